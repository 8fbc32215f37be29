//! HBase's request quotas: limits of tables, namespaces and users, set by an operator.
//!
//! 1. They are kept in the table `hbase:quota`, in HBase's form ([`stored`]), and read from there when the
//!    server starts.
//! 2. A change is durable there before it counts. The owner's buckets are reset to full.
//! 3. A call looks up its quotas: at most one of its user, one of its table, one of the table's
//!    namespace. The most specific quota of a user counts: that in the table, else that in the
//!    namespace, else the general one (`UserQuotaState.getTableLimiter`).
//!
//! System tables are under no quota, as in HBase.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use basalt_engine::schema::limits::{Brief, QUOTAS, USER_NAME};
use basalt_engine::schema::{TableName, check_namespace_name};
use basalt_engine::{Engine, Error};
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;

use super::throttle::{Limit, Throttle, ThrottleType};

mod messages;
mod stored;

/// Whom a quota is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// Calls on a namespace's tables.
    Namespace(String),
    /// Calls on a table.
    Table(TableName),
    /// Calls of a user
    User {
        /// of this name
        name: String,
        /// on these tables.
        scope: UserScope,
    },
}

/// Where a user's quota counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum UserScope {
    /// Where no nearer one does.
    All,
    /// In a namespace.
    Namespace(String),
    /// In a table.
    Table(TableName),
}

impl Owner {
    /// Refuses names that HBase does not accept, and names beyond the limits.
    fn check(&self) -> Result<(), Error> {
        if let Self::User { name, .. } = self {
            if name.is_empty() {
                return Err(Error::InvalidArgument("the user name is empty".into()));
            }
            USER_NAME.check(name.len(), format_args!("user name {}", Brief(name.as_bytes())))?;
        }
        match self {
            Self::Namespace(namespace)
            | Self::User {
                scope: UserScope::Namespace(namespace),
                ..
            } => check_namespace_name(namespace)?,
            Self::Table(_) | Self::User { .. } => {}
        }
        Ok(())
    }
}

/// As the error names it.
impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Namespace(name) => write!(f, "namespace {name}"),
            Self::Table(name) => write!(f, "table {name}"),
            Self::User { name, scope } => match scope {
                UserScope::All => write!(f, "user {name}"),
                UserScope::Namespace(namespace) => write!(f, "user {name} in namespace {namespace}"),
                UserScope::Table(table) => write!(f, "user {name} in table {table}"),
            },
        }
    }
}

/// A limit, and whether it was set for each machine or for the cluster (HBase: `QuotaScope`), which
/// are the same here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) limit: Limit,
    /// Set for the cluster.
    pub(crate) is_cluster: bool,
}

/// The settings of one owner.
pub(crate) type Settings = BTreeMap<ThrottleType, Setting>;

/// The limits of one owner and how far they are used.
#[derive(Debug)]
pub(crate) struct Quota {
    pub(crate) owner: Owner,
    pub(crate) settings: Settings,
    pub(crate) throttle: Throttle,
}

impl Quota {
    fn new(owner: Owner, settings: Settings) -> Self {
        let limits = settings.iter().map(|(kind, setting)| (*kind, setting.limit));
        Self {
            throttle: Throttle::new(limits),
            owner,
            settings,
        }
    }
}

/// The quotas that a call is under.
pub(crate) type Applying = SmallVec<[Arc<Quota>; 3]>;

/// All quotas. Shared by all connections.
#[derive(Debug)]
pub(crate) struct Quotas {
    /// The user of anonymous calls.
    anonymous: String,
    /// Held while a change is made durable.
    changing: Mutex<()>,
    set: RwLock<Set>,
}

/// The quotas by owner, and those that apply to calls by table and namespace.
#[derive(Debug, Default)]
struct Set {
    all: BTreeMap<Owner, Arc<Quota>>,
    namespaces: HashMap<String, Arc<Quota>>,
    tables: HashMap<TableName, Arc<Quota>>,
    users: HashMap<String, OfUser>,
}

/// The quotas of a user.
#[derive(Debug, Default)]
struct OfUser {
    all: Option<Arc<Quota>>,
    namespaces: HashMap<String, Arc<Quota>>,
    tables: HashMap<TableName, Arc<Quota>>,
}

impl OfUser {
    /// The most specific one for a table.
    fn applying(&self, table: &TableName) -> Option<&Arc<Quota>> {
        (self.tables.get(table))
            .or_else(|| self.namespaces.get(table.namespace()))
            .or(self.all.as_ref())
    }
}

impl Set {
    fn of(all: BTreeMap<Owner, Arc<Quota>>) -> Self {
        let mut set = Self::default();
        for (owner, quota) in &all {
            let quota = Arc::clone(quota);
            match owner {
                Owner::Namespace(namespace) => drop(set.namespaces.insert(namespace.clone(), quota)),
                Owner::Table(table) => drop(set.tables.insert(table.clone(), quota)),
                Owner::User { name, scope } => {
                    let of_user = set.users.entry(name.clone()).or_default();
                    match scope {
                        UserScope::All => of_user.all = Some(quota),
                        UserScope::Namespace(name) => drop(of_user.namespaces.insert(name.clone(), quota)),
                        UserScope::Table(table) => drop(of_user.tables.insert(table.clone(), quota)),
                    }
                }
            }
        }
        set.all = all;
        set
    }

    fn applying(&self, user: &str, table: &TableName) -> Applying {
        let of_user = self.users.get(user).and_then(|quotas| quotas.applying(table));
        [
            of_user,
            self.tables.get(table),
            self.namespaces.get(table.namespace()),
        ]
        .into_iter()
        .flatten()
        .cloned()
        .collect()
    }
}

impl Quotas {
    /// The quotas that the database holds. Calls without a user are those of `anonymous`.
    pub(super) fn load(engine: &Engine, anonymous: &str) -> Result<Self, Error> {
        let all = stored::load(engine)?
            .into_iter()
            .map(|(owner, settings)| (owner.clone(), Arc::new(Quota::new(owner, settings))))
            .collect();
        Ok(Self {
            anonymous: anonymous.to_owned(),
            changing: Mutex::new(()),
            set: RwLock::new(Set::of(all)),
        })
    }

    pub(super) fn any(&self) -> bool {
        !self.set.read().all.is_empty()
    }

    /// The quotas of a call of `user` on this table.
    pub(super) fn applying(&self, user: Option<&str>, table: &TableName) -> Applying {
        let user = user.unwrap_or(&self.anonymous);
        self.set.read().applying(user, table)
    }

    /// All of them, by owner.
    pub(super) fn list(&self) -> Vec<Arc<Quota>> {
        self.set.read().all.values().cloned().collect()
    }

    /// Changes one owner's settings. Blocks until that is durable. Removing a missing setting is no
    /// error, as in HBase.
    pub(super) fn change(
        &self,
        engine: &Engine,
        owner: Owner,
        change: impl FnOnce(&mut Settings),
    ) -> Result<(), Error> {
        // A stored quota whose name is beyond the limits can still be removed.
        if !self.set.read().all.contains_key(&owner) {
            owner.check()?;
        }
        let _changing = self.changing.lock();
        let mut all = self.set.read().all.clone();
        let before = all
            .get(&owner)
            .map(|quota| quota.settings.clone())
            .unwrap_or_default();
        let mut settings = before.clone();
        change(&mut settings);
        if settings == before {
            return Ok(());
        }
        if before.is_empty() {
            QUOTAS.check_total(all.len() + 1, QUOTAS.max, "take away quotas that are not needed")?;
        }
        stored::store(engine, &owner, &settings)?;
        if settings.is_empty() {
            all.remove(&owner);
        } else {
            all.insert(owner.clone(), Arc::new(Quota::new(owner, settings)));
        }
        *self.set.write() = Set::of(all);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::capacity::throttle::TimeUnit;

    fn table(name: &str) -> TableName {
        TableName::parse(name.as_bytes()).unwrap()
    }

    fn user(name: &str, scope: UserScope) -> Owner {
        Owner::User {
            name: name.into(),
            scope,
        }
    }

    /// Goal: the most specific quota of a user counts, besides the table's and its namespace's, and
    /// no others.
    #[test]
    fn a_call_is_under_the_nearest_quota_of_each_kind() {
        let owners = [
            Owner::Namespace("ns".into()),
            Owner::Table(table("ns:t")),
            user("me", UserScope::All),
            user("me", UserScope::Namespace("ns".into())),
            user("me", UserScope::Table(table("ns:t"))),
            user("you", UserScope::All),
            user("you", UserScope::Table(table("u"))),
        ];
        let all = owners
            .into_iter()
            .map(|owner| (owner.clone(), Arc::new(Quota::new(owner, Settings::new()))))
            .collect();
        let set = Set::of(all);
        let of = |user: &str, name: &str| -> Vec<String> {
            let quotas = set.applying(user, &table(name));
            quotas.iter().map(|quota| quota.owner.to_string()).collect()
        };
        let applying = |name: &str| of("me", name);
        assert_eq!(
            applying("ns:t"),
            ["user me in table ns:t", "table ns:t", "namespace ns"]
        );
        assert_eq!(applying("ns:other"), ["user me in namespace ns", "namespace ns"]);
        assert_eq!(applying("u"), ["user me"]);
        assert_eq!(of("you", "u"), ["user you in table u"]);
        assert_eq!(of("third", "ns:t"), ["table ns:t", "namespace ns"]);
    }

    /// Goal: a change takes effect at once and after the next start, and removing it leaves
    /// nothing.
    #[test]
    fn changes_are_kept() {
        let disk = basalt_engine::fs::sim::SimFs::new(1, basalt_engine::fs::sim::SimOptions::default());
        let setting = |amount| Setting {
            limit: Limit {
                unit: TimeUnit::Minutes,
                ..Limit::per_second(amount).unwrap()
            },
            is_cluster: amount == 7,
        };
        let owners = [
            Owner::Namespace("ns".into()),
            Owner::Table(table("t")),
            user("me", UserScope::All),
            user("me", UserScope::Namespace("ns".into())),
            user("me.too", UserScope::Table(table("ns:t"))),
        ];
        let open = || crate::rig::server_on(&disk, crate::config::Config::default());
        {
            let server = open();
            let capacity = server.admission().capacity();
            assert!(!capacity.is_on());
            for owner in &owners {
                capacity
                    .change_quota(server.engine(), owner.clone(), |settings| {
                        settings.insert(ThrottleType::RequestNumber, setting(10));
                        settings.insert(ThrottleType::WriteSize, setting(7));
                    })
                    .unwrap();
            }
            let without = |settings: &mut Settings| {
                settings.remove(&ThrottleType::RequestNumber);
            };
            capacity
                .change_quota(server.engine(), owners[1].clone(), without)
                .unwrap();
            capacity
                .change_quota(server.engine(), owners[2].clone(), Settings::clear)
                .unwrap();
            capacity
                .change_quota(server.engine(), user("nobody", UserScope::All), Settings::clear)
                .unwrap();
            server.engine().close().unwrap();
        }
        let server = open();
        let listed = server.admission().capacity().list_quotas();
        let listed: Vec<_> = listed
            .iter()
            .map(|quota| (quota.owner.clone(), quota.settings.clone()))
            .collect();
        let both = Settings::from([
            (ThrottleType::RequestNumber, setting(10)),
            (ThrottleType::WriteSize, setting(7)),
        ]);
        let one = Settings::from([(ThrottleType::WriteSize, setting(7))]);
        assert_eq!(
            listed,
            [
                (owners[0].clone(), both.clone()),
                (owners[1].clone(), one),
                (owners[3].clone(), both.clone()),
                (owners[4].clone(), both),
            ]
        );
    }

    /// Goal: whatever clients write to the table of quotas, the server starts, and quotas that can
    /// be read are in force.
    #[test]
    fn nothing_in_the_table_keeps_the_server_from_starting() {
        use basalt_engine::op::{RowMutation, Write};
        use basalt_engine::schema::{Durability, FamilyDescriptor};

        let disk = basalt_engine::fs::sim::SimFs::new(1, basalt_engine::fs::sim::SimOptions::default());
        let open = || crate::rig::server_on(&disk, crate::config::Config::default());
        let quotas = table("hbase:quota");
        {
            let server = open();
            let set = |settings: &mut Settings| {
                let setting = Setting {
                    limit: Limit::per_second(5).unwrap(),
                    is_cluster: false,
                };
                settings.insert(ThrottleType::RequestNumber, setting);
            };
            let capacity = server.admission().capacity();
            capacity
                .change_quota(server.engine(), Owner::Table(table("t\u{8868}")), set)
                .unwrap();
            // A row larger than a read may collect; no cell is a valid quota.
            let value = vec![b'x'; 1 << 10];
            let qualifiers: Vec<String> = (0..100).map(|number| format!("s.{number}")).collect();
            let puts = qualifiers.iter().map(|qualifier| Write::Put {
                family: b"q",
                qualifier: qualifier.as_bytes(),
                timestamp: None,
                value: &value,
                ttl_ms: None,
            });
            let mutation = RowMutation {
                row: b"u.odd",
                writes: puts.collect(),
                durability: Durability::UseDefault,
            };
            let written = server.engine().mutate(&quotas, &[mutation]).unwrap();
            written.wait().unwrap();
        }
        let owners = |server: &crate::server::Server| -> Vec<String> {
            let quotas = server.admission().capacity().list_quotas();
            quotas.iter().map(|quota| quota.owner.to_string()).collect()
        };
        let server = crate::rig::server_on(
            &disk,
            crate::config::Config {
                row: crate::config::Row {
                    max_bytes: 50 << 10,
                    ..crate::config::Config::default().row
                },
                ..crate::config::Config::default()
            },
        );
        assert_eq!(owners(&server), ["table t\u{8868}"]);
        server
            .engine()
            .add_family(&quotas, FamilyDescriptor::new(b"other"))
            .unwrap();
        server.engine().drop_family(&quotas, b"q").unwrap();
        drop(server);
        assert!(owners(&open()).is_empty());
    }

    #[test]
    fn bad_names_are_refused() {
        for (owner, text) in [
            (Owner::Namespace("n-s".into()), "Illegal character"),
            (user("", UserScope::All), "empty"),
            (
                user("me", UserScope::Namespace("n/s".into())),
                "Illegal character",
            ),
            (Owner::Namespace("n".repeat(256)), "the limit 'namespace name'"),
            (
                user(&"u".repeat(256), UserScope::All),
                "the limit 'user name' is 255 bytes",
            ),
        ] {
            let error = owner.check().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
