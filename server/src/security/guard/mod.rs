//! Users, rights and certificates of a running server.
//!
//! - [`Security::check`] decides for [`super::Access`].
//! - Logins: a certificate, a token or a password becomes a [`Login`]. A password takes tens of
//!   milliseconds of a processor, so few are verified at a time, away from the network threads, and
//!   after the growing delay of failures.
//! - [`Security::reload`] takes over files that have changed: at SIGHUP, and every few seconds. Failures
//!   change nothing. Connections whose login has ended are closed.
//!
//! | module | contents |
//! | --- | --- |
//! | `decide` | HBase's table of rights |
//! | `kerberos` | logins with Kerberos |
//! | `changes` | changes of rights and tokens by calls, with their audit lines |
//!
//! Without users ([`Security::authenticates`]) all callers may do everything; certificates work as well.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use basalt_security::audit::{AuditLog, Event, Kind};
use basalt_security::certificate::{self, Certificates, NameFrom};
use basalt_security::delay::Delays;
use basalt_security::rights::{ColumnFilter, Readable, Rights, Subject};
use basalt_security::sasl::http::Authorization;
use basalt_security::sasl::plain::Plain;
use basalt_security::users::{Changed, Credential, Ended, Users};
use basalt_security::{Error, Fingerprints, Reason, Refused as Failed, token};
use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::decide::decide;
use self::kerberos::Kerberos;
pub(crate) use self::kerberos::{Next, Ticket};
use super::live::Live;
use super::{Action, Caller, Login, Owner, Refused, Strangers, Target};
use crate::config::{Config, Plaintext};
use crate::observe::metrics::names;

mod changes;
mod decide;
mod kerberos;

/// File with the id of the database, for `basalt token create`.
pub(crate) const CLUSTER_ID_FILE: &str = "cluster-id";
/// Passwords that are verified at a time. Each takes a processor and 19 MiB.
const VERIFIED_AT_A_TIME: usize = 1;
/// Most events that wait for the audit log's thread.
const AUDIT_QUEUE: usize = 8_192;
/// HTTP logins that are remembered, since every request repeats its login.
const REMEMBERED_MAX: usize = 1_024;
/// Time for which an HTTP login is remembered.
const REMEMBERED_FOR: Duration = Duration::from_mins(5);

/// Users, rights and certificates of a server.
#[derive(Debug)]
pub(crate) struct Security {
    directory: PathBuf,
    authenticates: bool,
    plaintext: Plaintext,
    user_from: NameFrom,
    tls: Option<Certificates>,
    users: Live<Users>,
    rights: Live<Rights>,
    delays: Delays,
    audit: Option<AuditLog>,
    /// Whether allowed calls go to the audit log, too.
    audits_allowed: bool,
    verifying: Semaphore,
    kerberos: Option<Kerberos>,
    /// HTTP logins by the fingerprint of their header, and until when they are remembered.
    remembered: Mutex<HashMap<[u8; 32], (Login, Instant)>>,
    fingerprints: Fingerprints,
    connections: Mutex<HashMap<u64, Connected>>,
    strangers: Arc<Strangers>,
    next_connection: AtomicU64,
}

/// A connection whose login may end.
#[derive(Debug)]
struct Connected {
    login: Login,
    acts_for: Option<String>,
    end: CancellationToken,
}

/// Registers a connection's login for as long as it lives.
#[derive(Debug)]
pub(crate) struct Registered {
    security: Arc<Security>,
    number: u64,
    /// Cancelled when the login ends: the user, password or token is gone.
    pub(crate) ended: CancellationToken,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.security.connections.lock().remove(&self.number);
    }
}

impl Security {
    /// Reads the files of the settings.
    pub(crate) fn open(config: &Config) -> Result<Arc<Self>, Error> {
        let directory = config.security_dir();
        let authenticates = config.authenticates();
        let audit = match (config.security.audit_log.as_os_str().is_empty(), authenticates) {
            (true, false) => None,
            (true, true) => Some(directory.join("audit.log")),
            (false, _) => Some(config.security.audit_log.clone()),
        };
        Ok(Arc::new(Self {
            authenticates,
            plaintext: config.server.plaintext,
            user_from: config.user_from(),
            tls: config.tls_files().map(Certificates::open).transpose()?,
            users: Live::open(&directory)?,
            rights: Live::open(&directory)?,
            delays: Delays::default(),
            audit: audit.map(|path| AuditLog::open(&path, AUDIT_QUEUE)).transpose()?,
            audits_allowed: config.security.audit_allowed,
            verifying: Semaphore::new(VERIFIED_AT_A_TIME),
            kerberos: config
                .kerberos_service()
                .map(|service| Kerberos::open(&service))
                .transpose()?,
            remembered: Mutex::default(),
            fingerprints: Fingerprints::new()?,
            connections: Mutex::default(),
            strangers: Strangers::new(authenticates.then_some(config.security.unauthenticated_per_address)),
            next_connection: AtomicU64::new(1),
            directory,
        }))
    }

    /// Writes the id of the database where `basalt token create` finds it.
    pub(crate) fn store_cluster_id(&self, id: &str) {
        let path = self.directory.join(CLUSTER_ID_FILE);
        if self.authenticates
            && let Err(error) = std::fs::write(&path, format!("{id}\n"))
        {
            tracing::warn!(
                "{} cannot be written, so no token files can be made: {error}",
                path.display()
            );
        }
    }

    /// Whether users must prove who they are.
    pub(crate) fn authenticates(&self) -> bool {
        self.authenticates
    }

    /// The connections that have not logged in, on a server whose users must.
    pub(crate) fn strangers(&self) -> &Arc<Strangers> {
        &self.strangers
    }

    /// The TLS settings for a new connection, if there is a certificate.
    pub(crate) fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.tls.as_ref().map(Certificates::config)
    }

    /// Brings the scrape's figures up to date.
    pub(crate) fn publish(&self) {
        let certificate = self.tls.as_ref().map(Certificates::certificate);
        if let Some(end) = certificate.and_then(|certificate| certificate::expires(&certificate)) {
            let since = end.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            metrics::gauge!(names::CERTIFICATE_EXPIRES).set(since.as_secs_f64());
        }
        // From the start, also without users: a series that begins with its first event hides that from
        // rate().
        for outcome in ["ok", "failed"] {
            metrics::counter!(names::LOGINS, "outcome" => outcome).increment(0);
        }
        let lost = self.audit.as_ref().map_or(0, |audit| audit.status().dropped);
        metrics::counter!(names::AUDIT_EVENTS_LOST).absolute(lost);
    }

    /// Whether a connection from there may be in clear.
    pub(crate) fn accepts_plaintext(&self, peer: IpAddr) -> bool {
        self.tls.is_none()
            || match self.plaintext {
                Plaintext::Allow => true,
                Plaintext::Loopback => peer.to_canonical().is_loopback(),
                Plaintext::Refuse => false,
            }
    }

    /// Whether a secret may be sent in clear on a connection: inside TLS, or on this machine.
    pub(crate) fn is_private(is_encrypted: bool, peer: Option<IpAddr>) -> bool {
        is_encrypted || peer.is_some_and(|peer| peer.to_canonical().is_loopback())
    }

    pub(crate) fn users(&self) -> Arc<Users> {
        self.users.get()
    }

    pub(crate) fn rights(&self) -> Arc<Rights> {
        self.rights.get()
    }

    /// A number that grows with each change of the rights, after the change.
    pub(super) fn rights_version(&self) -> u64 {
        self.rights.changes()
    }

    /// Writes an event to the audit log, if there is one.
    pub(crate) fn note(&self, event: Event<'_>) {
        if let Some(audit) = &self.audit {
            audit.write(&event, SystemTime::now());
        }
    }

    /// Takes over files that have changed, and opens the audit log again, for tools that rename it.
    /// Blocks on the disk.
    pub(crate) fn reload(&self) {
        if self.has_new_users() {
            tracing::info!("users were read again: {}", self.directory.display());
        }
        match self.rights.reload() {
            Ok(None) => {}
            Ok(Some(_)) => tracing::info!("rights were read again: {}", self.directory.display()),
            Err(error) => tracing::warn!("rights stay as they are: {error}"),
        }
        if let Some(tls) = self.tls.as_ref().filter(|tls| tls.changed()) {
            match tls.reload() {
                Ok(()) => tracing::info!("certificates were read again"),
                Err(error) => tracing::warn!("certificates stay as they are: {error}"),
            }
        }
    }

    /// Opens the audit log again.
    pub(crate) fn reopen_audit_log(&self) {
        if let Some(audit) = &self.audit
            && let Err(error) = audit.reopen()
        {
            tracing::warn!("the audit log cannot be opened again: {error}");
        }
    }

    /// Closes the connections whose logins have ended.
    fn end_logins(&self, before: &Users, after: &Users) {
        let ended = Ended::between(before, after);
        if ended.is_empty() {
            return;
        }
        self.remembered.lock().clear();
        for connected in self.connections.lock().values() {
            let acts_for = connected.acts_for.as_ref();
            let is_ended = ended.ends(&connected.login.user, connected.login.credential)
                || acts_for.is_some_and(|user| ended.users.contains(user));
            if is_ended {
                connected.end.cancel();
            }
        }
    }

    /// Registers a login for as long as its connection lives.
    pub(crate) fn register(self: &Arc<Self>, login: &Login, acts_for: Option<&str>) -> Registered {
        let (number, ended) = (
            self.next_connection.fetch_add(1, Ordering::Relaxed),
            CancellationToken::new(),
        );
        let connected = Connected {
            login: login.clone(),
            acts_for: acts_for.map(str::to_owned),
            end: ended.clone(),
        };
        self.connections.lock().insert(number, connected);
        // A change between login and registration has not seen this connection.
        if !self.is_valid(login) {
            ended.cancel();
        }
        Registered {
            security: Arc::clone(self),
            number,
            ended,
        }
    }

    /// Whether a login still holds. A changed password is not noticed here: its connections are young.
    fn is_valid(&self, login: &Login) -> bool {
        let users = self.users();
        let is_revoked = match login.credential {
            Credential::Token(sequence) => !users
                .tokens()
                .any(|(number, record)| number == sequence && !record.revoked),
            Credential::Password | Credential::Certificate | Credential::Kerberos => false,
        };
        !is_revoked && users.active_user(&login.user).is_ok()
    }

    /// The user of a certificate that TLS has verified.
    pub(crate) fn certificate_login(&self, der: &[u8]) -> Result<Login, Failed> {
        let user = certificate::user_of(der, self.user_from)?;
        self.with_users(|users| users.active_user(&user).map(drop))?;
        Ok(Login {
            user,
            credential: Credential::Certificate,
        })
    }

    /// The user and the password of a DIGEST-MD5 login with a token.
    pub(crate) fn token_login(&self, digest_user: &str) -> Result<(Login, basalt_security::Secret), Failed> {
        let identifier = token::identifier_of_digest_user(digest_user)?;
        let (used, signature) = self.with_users(|users| users.find_token(&identifier, SystemTime::now()))?;
        let login = Login {
            user: used.user,
            credential: Credential::Token(used.sequence),
        };
        Ok((login, token::digest_password(&signature)))
    }

    /// Asks the users; if they do not know a user or token, asks those of a file that has just changed:
    /// a token is valid as soon as it was made.
    fn with_users<T>(&self, ask: impl Fn(&Users) -> Result<T, Failed>) -> Result<T, Failed> {
        match ask(&self.users()) {
            Err(Failed(Reason::UnknownUser | Reason::UnknownToken)) if self.has_new_users() => {
                ask(&self.users())
            }
            answer => answer,
        }
    }

    /// Takes over a changed file of users; whether there was one.
    fn has_new_users(&self) -> bool {
        match self.users.reload() {
            Ok(None) => false,
            Ok(Some((before, after))) => {
                for change in Changed::between(&before, &after) {
                    self.note(Event {
                        event: Kind::UserChange,
                        subject: Some(&change.user),
                        reason: Some(&change.what),
                        ..Event::default()
                    });
                }
                self.end_logins(&before, &after);
                true
            }
            Err(error) => {
                tracing::warn!("users stay as they are: {error}");
                false
            }
        }
    }

    /// Verifies a password, or a token that was sent as one.
    pub(crate) async fn plain_login(
        self: &Arc<Self>,
        plain: Plain,
        address: Option<IpAddr>,
    ) -> Result<Login, Failed> {
        let name = plain.user.clone();
        if let Some(address) = address {
            let delay = self.delays.begin(address, &name, Instant::now());
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
        }
        // Closed never: the semaphore lives as long as the server.
        let _permit = self
            .verifying
            .acquire()
            .await
            .map_err(|_| Failed(Reason::Malformed))?;
        let security = Arc::clone(self);
        let verified = tokio::task::spawn_blocking(move || {
            let now = SystemTime::now();
            let verified = security.with_users(|users| users.verify_login(&plain.user, &plain.password, now));
            verified.map(|credential| Login {
                user: plain.user,
                credential,
            })
        });
        let login = verified.await.map_err(|_| Failed(Reason::Malformed))??;
        if let Some(address) = address {
            self.delays.succeeded(address, &name, Instant::now());
        }
        Ok(login)
    }

    /// Verifies the header `Authorization` of a request. Each request of a client repeats it, so a right
    /// one is remembered for a while.
    pub(crate) async fn http_login(
        self: &Arc<Self>,
        header: &[u8],
        address: Option<IpAddr>,
    ) -> Result<Login, Failed> {
        let now = Instant::now();
        let fingerprint = self.fingerprints.of(header);
        if let Some((login, _)) = self
            .remembered
            .lock()
            .get(&fingerprint)
            .filter(|(_, until)| *until > now)
        {
            return Ok(login.clone());
        }
        let login = match basalt_security::sasl::http::parse(header)? {
            // Tickets have a way of their own (`http_ticket`): each is good for one request.
            Authorization::Negotiate(_) => return Err(Failed(Reason::Malformed)),
            Authorization::Basic(plain) => self.plain_login(plain, address).await?,
            Authorization::Bearer(token) => {
                let used = self.with_users(|users| users.verify_token(&token, SystemTime::now()))?;
                return Ok(Login {
                    user: used.user,
                    credential: Credential::Token(used.sequence),
                });
            }
        };
        let mut remembered = self.remembered.lock();
        if remembered.len() >= REMEMBERED_MAX {
            remembered.retain(|_, (_, until)| *until > now);
        }
        if remembered.len() < REMEMBERED_MAX {
            remembered.insert(fingerprint, (login.clone(), now + REMEMBERED_FOR));
        }
        Ok(login)
    }

    /// Owner of the sessions of an HTTP caller with this login.
    pub(crate) fn http_owner(&self, login: &Login) -> Owner {
        let users = self.users();
        users
            .user(&login.user)
            .map_or(Owner::Http, |user| Owner::HttpUser(user.id()))
    }

    /// Notes a login in the audit log.
    pub(crate) fn note_login(
        &self,
        protocol: &'static str,
        address: Option<SocketAddr>,
        tls: bool,
        login: Result<&Login, Failed>,
    ) {
        let event = Event {
            address,
            protocol,
            tls: Some(tls),
            ..Event::default()
        };
        let outcome = if login.is_ok() { "ok" } else { "failed" };
        metrics::counter!(names::LOGINS, "outcome" => outcome).increment(1);
        self.note(match &login {
            Ok(login) => Event {
                event: Kind::Authenticated,
                user: Some(&login.user),
                authentication: super::caller::Authentication::Proven(login.credential).name(),
                ..event
            },
            Err(Failed(reason)) => Event {
                event: Kind::AuthenticationFailed,
                reason: Some(reason.as_str()),
                ..event
            },
        });
    }

    /// Notes that a user may not act for another.
    pub(crate) fn note_impersonation(
        &self,
        login: &Login,
        effective: &str,
        address: Option<SocketAddr>,
        reason: &str,
    ) {
        metrics::counter!(names::LOGINS, "outcome" => "failed").increment(1);
        self.note(Event {
            event: Kind::AuthenticationFailed,
            address,
            user: Some(effective),
            real_user: Some(&login.user),
            authentication: super::caller::Authentication::Proven(login.credential).name(),
            reason: Some(reason),
            ..Event::default()
        });
    }

    /// Decides whether a caller may do something; a denial goes to the audit log, and what was allowed if
    /// that is wanted.
    pub(super) fn check(
        &self,
        caller: &Caller,
        action: Action,
        target: Target<'_>,
    ) -> Result<Option<ColumnFilter>, Refused> {
        let decided = self.ask(caller, action, target);
        match &decided {
            Err(Refused::Denied { .. }) => self.note_decision(Kind::Denied, caller, action, target),
            Ok(_) if self.audits_allowed && action != Action::Connect => {
                self.note_decision(Kind::Allowed, caller, action, target);
            }
            Ok(_) | Err(Refused::Unauthenticated) => {}
        }
        decided
    }

    /// As [`Self::check`], for one of a list that the caller gets without what it may not see: no denial.
    pub(super) fn ask(
        &self,
        caller: &Caller,
        action: Action,
        target: Target<'_>,
    ) -> Result<Option<ColumnFilter>, Refused> {
        let is_locating = caller.authentication() == super::caller::Authentication::Locating;
        if is_locating && matches!(action, Action::Connect | Action::Know) {
            return Ok(None);
        }
        let Some(user) = caller.proven_user() else {
            return Err(Refused::Unauthenticated);
        };
        let users = self.users();
        let decided = users.active_user(user).map(|found| {
            let subject = Subject {
                user,
                groups: &found.groups,
                superuser: found.superuser,
            };
            decide(&self.rights(), &subject, action, target)
        });
        match decided {
            Ok(Readable::All) => Ok(None),
            Ok(Readable::Filtered(filter)) => Ok(Some(filter)),
            Ok(Readable::Nothing) | Err(_) => Err(Refused::new(caller, action, target)),
        }
    }

    /// Notes a decision in the audit log. Whether a caller may know of a table is no call of its own.
    fn note_decision(&self, event: Kind, caller: &Caller, action: Action, target: Target<'_>) {
        if action != Action::Know {
            let (namespace, table) = names_of(target);
            self.note(Event {
                event,
                action: action.name(),
                namespace: namespace.as_deref(),
                table: table.as_deref(),
                ..by(caller)
            });
        }
    }

    /// Whether a user may do everything.
    pub(crate) fn is_superuser(&self, user: &str) -> bool {
        self.users().active_user(user).is_ok_and(|user| user.superuser)
    }
}

/// The namespace and the table of a target, of which it has one at most.
fn names_of(target: Target<'_>) -> (Option<String>, Option<String>) {
    match target {
        Target::Server => (None, None),
        Target::Namespace(name) | Target::NamespaceRights(name) => (Some(name.to_owned()), None),
        Target::Table(table) | Target::Somewhere(table) | Target::Cells { table, .. } => {
            (None, Some(table.to_string()))
        }
    }
}

/// An event of a caller.
fn by(caller: &Caller) -> Event<'_> {
    Event {
        address: caller.address(),
        user: caller.user_name(),
        real_user: caller.user().and_then(|user| user.real.as_deref()),
        authentication: caller.authentication().name(),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests;
