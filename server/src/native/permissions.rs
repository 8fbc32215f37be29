//! Goal: every method of every native service is allowed exactly when HBase's table of rights says so
//! (docs/security.md). Method: the table as text; for each method a request that is well-formed, by a user
//! whose only right is one letter at one scope: all letters at all scopes.
//!
//! A call that is allowed may still fail for another reason, such as a snapshot that does not exist.

use std::collections::BTreeSet;
use std::sync::Arc;

use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::schema::{FamilyDescriptor, TableDescriptor, TableName};
use basalt_idl::native::messages as pb;
use basalt_security::rights::{Entry, Grantee, Rights, Scope};
use basalt_security::users::{Credential, NewUser, UserFile};
use bytes::Bytes;
use prost::Message;

use super::decode::peer::Service;
use super::tests::Client;
use crate::config::{Authenticate, Config};
use crate::security::{Caller, Login, Owner, Security};
use crate::serve::DATA_THREADS;
use crate::server::Server;

/// Service, letters of which one is needed, scopes at which it counts, methods. Scopes: `g` global, `n` the
/// namespace, `t` the table, `f` its family. Without letters: every user.
const TABLE: &str = "
    Master  -      -     IsMasterRunning GetClusterStatus GetTableNames ListTableNamesByState
    Master  -      -     ListTableDescriptorsByState IsMasterInMaintenanceMode IsBalancerEnabled IsNormalizerEnabled
    Master  -      -     IsSplitOrMergeEnabled IsCatalogJanitorEnabled IsCleanerChoreEnabled IsSnapshotCleanupEnabled
    Master  -      -     GetCompletedSnapshots IsSnapshotDone IsProcedureDone ListNamespaceDescriptors ListNamespaces
    Master  -      -     ListTableDescriptorsByNamespace ListTableNamesByNamespace getProcedureResult
    Master  -      -     getSecurityCapabilities HasUserPermissions GetLogEntries
    Master  RWXCA  gntf  GetTableState GetSchemaAlterStatus getLastMajorCompactionTimestamp getLastMajorCompactionTimestampForRegion
    Master  CA     gnt   GetTableDescriptors AddColumn DeleteColumn ModifyColumn DeleteTable truncateTable EnableTable
    Master  CA     gnt   DisableTable ModifyTable FlushTable ExecProcedure ExecProcedureWithRet
    Master  CA     gnt   ModifyTableStoreFileTracker ModifyColumnStoreFileTracker
    Master  CA     gn    CreateTable
    Master  A      gnt   MoveRegion MergeTableRegions AssignRegion UnassignRegion OfflineRegion SplitRegion
    Master  A      gnt   TruncateRegion Snapshot SetQuota Grant Revoke GetUserPermissions
    Master  A      gn    GetNamespaceDescriptor
    Master  A      g     CreateNamespace ModifyNamespace DeleteNamespace DeleteSnapshot RestoreSnapshot
    Master  A      g     Shutdown StopMaster Balance SetBalancerRunning SetSplitOrMergeEnabled Normalize
    Master  A      g     SetNormalizerRunning RunCatalogScan EnableCatalogJanitor RunCleanerChore
    Master  A      g     SetCleanerChoreRunning ExecMasterService SwitchSnapshotCleanup AbortProcedure GetProcedures
    Master  A      g     GetLocks AddReplicationPeer RemoveReplicationPeer EnableReplicationPeer
    Master  A      g     DisableReplicationPeer GetReplicationPeerConfig UpdateReplicationPeerConfig
    Master  A      g     ListReplicationPeers IsReplicationPeerEnabled ReplicationPeerModificationSwitch
    Master  A      g     GetReplicationPeerModificationProcedures IsReplicationPeerModificationEnabled
    Master  A      g     ListDecommissionedRegionServers DecommissionRegionServers RecommissionRegionServer
    Master  A      g     GetSpaceQuotaRegionSizes GetQuotaStates ClearDeadServers SwitchRpcThrottle
    Master  A      g     IsRpcThrottleEnabled SwitchExceedThrottleQuota FlushMasterStore
    Admin   -      -     GetServerInfo GetOnlineRegion GetRegionLoad GetSlowLogResponses GetLargeLogResponses GetLogEntries
    Admin   RWXCA  gntf  GetRegionInfo GetStoreFile
    Admin   CA     gnt   FlushRegion CompactRegion
    Admin   W      g     ReplicateWALEntry
    Admin   A      g     OpenRegion WarmupRegion CloseRegion CompactionSwitch Replay RollWALWriter StopServer
    Admin   A      g     UpdateFavoredNodes UpdateConfiguration ClearCompactionQueues ClearRegionBlockCache
    Admin   A      g     GetSpaceQuotaSnapshots ExecuteProcedures ClearSlowLogsResponses GetCachedFilesList
    Client  R      gntf  Get Scan Multi
    Client  W      gntf  Mutate
    Client  CA     gntf  BulkLoadHFile PrepareBulkLoad CleanupBulkLoad
    Client  -      -     ExecService
    Client  A      g     ExecRegionServerService
    ClientMeta -   -     GetClusterId GetActiveMaster GetMasters GetMetaRegionLocations GetBootstrapNodes
    BootstrapNode - -    GetAllBootstrapNodes
";

/// A method and what it needs.
struct Need {
    service: Service,
    method: String,
    letters: String,
    scopes: String,
}

fn needs() -> Vec<Need> {
    let service = |name: &str| {
        let full = match name {
            "ClientMeta" | "BootstrapNode" | "Client" | "Admin" | "Master" => format!("{name}Service"),
            other => panic!("{other} is no service"),
        };
        let mut all = Service::ALL.into_iter();
        all.find(|service| service.name() == full).expect("the service")
    };
    let lines = TABLE.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .flat_map(|line| {
            let mut words = line.split_whitespace();
            let mut next = || words.next().expect("service, letters and scopes");
            let (name, letters, scopes) = (next(), next(), next());
            let of = |method: &str| Need {
                service: service(name),
                method: method.to_owned(),
                letters: letters.to_owned(),
                scopes: scopes.to_owned(),
            };
            words.map(of).collect::<Vec<_>>()
        })
        .collect()
}

fn table(name: &'static str) -> pb::TableName {
    pb::TableName {
        namespace: Bytes::from_static(b"default"),
        qualifier: Bytes::from_static(name.as_bytes()),
    }
}

/// The region of table `t`, as requests name it.
struct Named {
    specifier: pb::RegionSpecifier,
    info: pb::RegionInfo,
    /// Below which clients put files that they load. There are none.
    staging: String,
}

impl Named {
    fn of(server: &Server) -> Self {
        let region = crate::rig::engine(server)
            .regions(&TableName::parse(b"t").expect("a name"))
            .expect("the table exists")
            .remove(0);
        Self {
            specifier: pb::RegionSpecifier {
                r#type: pb::region_specifier::RegionSpecifierType::RegionName.into(),
                value: Bytes::from(region.name()),
            },
            info: super::schema::to_region(&region),
            staging: {
                let data = server.config().data.dir.canonicalize();
                data.expect("it exists").join("staging").display().to_string()
            },
        }
    }
}

fn family(name: &'static str) -> pb::ColumnFamilySchema {
    pb::ColumnFamilySchema {
        name: Bytes::from_static(name.as_bytes()),
        ..pb::ColumnFamilySchema::default()
    }
}

fn schema_of(name: &'static str) -> pb::TableSchema {
    pb::TableSchema {
        table_name: Some(table(name)),
        column_families: vec![family("f")],
        ..pb::TableSchema::default()
    }
}

fn permission_on_t() -> pb::UserPermission {
    pb::UserPermission {
        user: Bytes::from_static(b"eve"),
        permission: pb::Permission {
            r#type: pb::permission::Type::Table.into(),
            table_permission: Some(pb::TablePermission {
                table_name: Some(table("t")),
                action: vec![0],
                ..pb::TablePermission::default()
            }),
            ..pb::Permission::default()
        },
    }
}

fn snapshot(of: Option<&str>) -> pb::SnapshotDescription {
    pb::SnapshotDescription {
        name: "s".to_owned(),
        table: of.map(str::to_owned),
        ..pb::SnapshotDescription::default()
    }
}

/// A well-formed request of the method, about table `t`, its region and its family `f`, or namespace
/// `default`. Methods that need no such thing have an empty one.
fn request(need: &Need, named: &Named) -> Vec<u8> {
    match need.service {
        Service::Master => of_master(&need.method, named),
        Service::Admin => of_admin(&need.method, named),
        Service::Client => of_client(&need.method, named),
        Service::ClientMeta | Service::BootstrapNode => Vec::new(),
    }
}

fn of_master(method: &str, named: &Named) -> Vec<u8> {
    let region = &named.specifier;
    let procedure = || pb::ProcedureDescription {
        signature: "flush-table-proc".to_owned(),
        instance: Some("t".to_owned()),
        ..pb::ProcedureDescription::default()
    };
    // Requests whose first field is the name of a table.
    let of_table = || one(1, table("t").encode_to_vec());
    match method {
        "GetTableDescriptors"
        | "DeleteTable"
        | "EnableTable"
        | "DisableTable"
        | "FlushTable"
        | "GetTableState"
        | "GetSchemaAlterStatus"
        | "getLastMajorCompactionTimestamp" => of_table(),
        "truncateTable" => pb::TruncateTableRequest {
            table_name: table("t"),
            ..pb::TruncateTableRequest::default()
        }
        .encode_to_vec(),
        "AddColumn" => [of_table(), one(2, family("g").encode_to_vec())].concat(),
        "ModifyColumn" => [of_table(), one(2, family("f").encode_to_vec())].concat(),
        "DeleteColumn" => [of_table(), one(2, b"f".to_vec())].concat(),
        "ModifyTable" => [of_table(), one(2, schema_of("t").encode_to_vec())].concat(),
        "ModifyTableStoreFileTracker" => [of_table(), one(2, b"DEFAULT".to_vec())].concat(),
        "ModifyColumnStoreFileTracker" => {
            [of_table(), one(2, b"f".to_vec()), one(3, b"DEFAULT".to_vec())].concat()
        }
        "CreateTable" => one(1, schema_of("u").encode_to_vec()),
        "getLastMajorCompactionTimestampForRegion"
        | "AssignRegion"
        | "UnassignRegion"
        | "OfflineRegion"
        | "MoveRegion" => one(1, region.encode_to_vec()),
        "MergeTableRegions" => [one(1, region.encode_to_vec()), one(1, region.encode_to_vec())].concat(),
        "SplitRegion" | "TruncateRegion" => one(1, named.info.encode_to_vec()),
        "Snapshot" | "RestoreSnapshot" => one(1, snapshot(Some("t")).encode_to_vec()),
        "DeleteSnapshot" | "IsSnapshotDone" => one(1, snapshot(None).encode_to_vec()),
        "ExecProcedure" | "ExecProcedureWithRet" | "IsProcedureDone" => one(1, procedure().encode_to_vec()),
        "CreateNamespace" => one(1, one(1, b"n".to_vec())),
        "ModifyNamespace" => one(1, one(1, b"default".to_vec())),
        "DeleteNamespace"
        | "GetNamespaceDescriptor"
        | "ListTableDescriptorsByNamespace"
        | "ListTableNamesByNamespace" => one(1, b"default".to_vec()),
        "SetQuota" => pb::SetQuotaRequest {
            table_name: Some(table("t")),
            remove_all: Some(true),
            ..pb::SetQuotaRequest::default()
        }
        .encode_to_vec(),
        "Grant" => pb::GrantRequest {
            user_permission: permission_on_t(),
            merge_existing_permissions: None,
        }
        .encode_to_vec(),
        "Revoke" => pb::RevokeRequest {
            user_permission: permission_on_t(),
        }
        .encode_to_vec(),
        "GetUserPermissions" => pb::GetUserPermissionsRequest {
            r#type: Some(pb::permission::Type::Table.into()),
            table_name: Some(table("t")),
            ..pb::GetUserPermissionsRequest::default()
        }
        .encode_to_vec(),
        "HasUserPermissions" => pb::HasUserPermissionsRequest {
            user_name: None,
            permission: vec![permission_on_t().permission],
        }
        .encode_to_vec(),
        "ListTableDescriptorsByState"
        | "ListTableNamesByState"
        | "SetBalancerRunning"
        | "SetNormalizerRunning"
        | "EnableCatalogJanitor"
        | "SetCleanerChoreRunning"
        | "SwitchSnapshotCleanup" => vec![8, 1],
        "SetSplitOrMergeEnabled" => pb::SetSplitOrMergeEnabledRequest {
            enabled: true,
            switch_types: vec![0],
            ..pb::SetSplitOrMergeEnabledRequest::default()
        }
        .encode_to_vec(),
        "IsSplitOrMergeEnabled" | "getProcedureResult" | "AbortProcedure" => vec![8, 0],
        "ExecMasterService" => exec(named),
        "GetLogEntries" => pb::LogRequest {
            log_class_name: "BalancerDecisionsRequest".to_owned(),
            ..pb::LogRequest::default()
        }
        .encode_to_vec(),
        _ => Vec::new(),
    }
}

fn of_admin(method: &str, named: &Named) -> Vec<u8> {
    match method {
        "GetRegionInfo" | "GetStoreFile" | "FlushRegion" | "CompactRegion" => {
            one(1, named.specifier.encode_to_vec())
        }
        "CompactionSwitch" => vec![8, 1],
        "GetLogEntries" => pb::LogRequest {
            log_class_name: "SlowLogResponseRequest".to_owned(),
            ..pb::LogRequest::default()
        }
        .encode_to_vec(),
        _ => Vec::new(),
    }
}

fn of_client(method: &str, named: &Named) -> Vec<u8> {
    let region = named.specifier.encode_to_vec();
    let get = pb::Get {
        row: Bytes::from_static(b"r"),
        column: vec![pb::Column {
            family: Bytes::from_static(b"f"),
            qualifier: Vec::new(),
        }],
        ..pb::Get::default()
    };
    match method {
        "Get" => [one(1, region), one(2, get.encode_to_vec())].concat(),
        "Mutate" => [one(1, region), one(2, put().encode_to_vec())].concat(),
        "Scan" => {
            let scan = pb::Scan {
                column: get.column,
                ..pb::Scan::default()
            };
            [one(1, region), one(2, scan.encode_to_vec()), vec![32, 10]].concat()
        }
        "Multi" => {
            let action = pb::Action {
                index: Some(0),
                get: Some(Box::new(get)),
                ..pb::Action::default()
            };
            let of_region = pb::RegionAction {
                region: named.specifier.clone(),
                action: vec![action],
                ..pb::RegionAction::default()
            };
            one(1, of_region.encode_to_vec())
        }
        "BulkLoadHFile" => pb::BulkLoadHFileRequest {
            region: named.specifier.clone(),
            family_path: vec![pb::bulk_load_h_file_request::FamilyPath {
                family: Bytes::from_static(b"f"),
                path: format!("file:{}/none", named.staging),
            }],
            ..pb::BulkLoadHFileRequest::default()
        }
        .encode_to_vec(),
        "PrepareBulkLoad" => pb::PrepareBulkLoadRequest {
            table_name: table("t"),
            region: Some(named.specifier.clone()),
        }
        .encode_to_vec(),
        "CleanupBulkLoad" => pb::CleanupBulkLoadRequest {
            bulk_token: format!("file:{}/none", named.staging),
            region: Some(named.specifier.clone()),
        }
        .encode_to_vec(),
        "ExecService" | "ExecRegionServerService" => exec(named),
        _ => Vec::new(),
    }
}

fn put() -> pb::MutationProto {
    use pb::mutation_proto::column_value::QualifierValue;
    let value = QualifierValue {
        qualifier: Some(Bytes::from_static(b"q")),
        value: Some(Bytes::from_static(b"v")),
        ..QualifierValue::default()
    };
    pb::MutationProto {
        row: Some(Bytes::from_static(b"r")),
        mutate_type: Some(pb::mutation_proto::MutationType::Put.into()),
        column_value: vec![pb::mutation_proto::ColumnValue {
            family: Bytes::from_static(b"f"),
            qualifier_value: vec![value],
        }],
        ..pb::MutationProto::default()
    }
}

fn exec(named: &Named) -> Vec<u8> {
    pb::CoprocessorServiceRequest {
        region: named.specifier.clone(),
        call: pb::CoprocessorServiceCall {
            service_name: "None".to_owned(),
            ..pb::CoprocessorServiceCall::default()
        },
    }
    .encode_to_vec()
}

/// A field of bytes or of a message.
#[expect(clippy::needless_pass_by_value, reason = "all callers have just made it")]
fn one(number: u32, message: Vec<u8>) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::bytes::encode(number, &message, &mut out);
    out
}

/// Settings of a server whose users must log in, with the user bob.
fn config(dir: &std::path::Path) -> Config {
    let mut config = Config::default();
    config.data.dir = dir.join("data");
    config.security.authentication = Authenticate::Required;
    std::fs::create_dir_all(config.security_dir()).expect("there is space");
    let file = UserFile::in_dir(&config.security_dir());
    file.update(|users| {
        if users.user("bob").is_none() {
            users.create_user("bob", NewUser::default())?;
        }
        Ok(())
    })
    .expect("there is space");
    config
}

/// A server with table `t`.
fn server(config: Config) -> Arc<Server> {
    let engine = crate::rig::engine_on(&SimFs::new(1, SimOptions::default()), &config);
    let name = TableName::parse(b"t").expect("a name");
    let table = TableDescriptor::new(name, vec![FamilyDescriptor::new(b"f")]);
    engine
        .create_table(table, Vec::new())
        .expect("the disk never fails");
    Arc::new(crate::rig::server_of(engine, config, DATA_THREADS))
}

fn scope(name: char) -> Scope {
    let t = || TableName::parse(b"t").expect("a name");
    match name {
        'g' => Scope::Global,
        'n' => Scope::Namespace("default".to_owned()),
        't' => Scope::table(t(), None, None).expect("a scope"),
        'f' => Scope::table(t(), Some(b"f"), None).expect("a scope"),
        other => panic!("{other} is no scope"),
    }
}

/// Gives bob this right and no other.
fn give(security: &Security, scope: &Scope, letter: char) {
    let nobody = Caller::anonymous(Owner::Http, None);
    let changed = security.change_rights(&nobody, "bob", "for a test", |rights| {
        *rights = Rights::default();
        rights.grant(
            Entry {
                grantee: Grantee::User("bob".to_owned()),
                scope: scope.clone(),
                actions: letter.to_string().parse()?,
            },
            false,
        )
    });
    changed.expect("there is space");
}

/// Whether the call is denied to bob.
async fn is_denied(server: &Arc<Server>, need: &Need) -> bool {
    let login = Login {
        user: "bob".to_owned(),
        credential: Credential::Password,
    };
    let mut client = Client::connect_as(server, need.service.name(), login).await;
    let request = request(need, &Named::of(server));
    match client.answer(&need.method, Bytes::from(request)).await {
        Err(class) => class.ends_with("AccessDeniedException"),
        // A Multi has the exceptions of its regions in its answer.
        Ok(answer) if need.method == "Multi" => {
            let answer = pb::MultiResponse::decode(answer).expect("its answer");
            format!("{answer:?}").contains("AccessDeniedException")
        }
        Ok(_) => false,
    }
}

#[test]
fn methods_need_what_hbase_says() {
    let needs = needs();
    let listed: BTreeSet<(&str, &str)> = needs
        .iter()
        .map(|need| (need.service.name(), need.method.as_str()))
        .collect();
    assert_eq!(listed.len(), needs.len(), "a method is there twice");
    let all = Service::ALL.into_iter().flat_map(|service| {
        let methods = service.methods().into_iter();
        methods.map(move |method| (service.name(), method))
    });
    assert_eq!(listed, all.collect(), "the methods of all services");

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("threads");
    let dir = tempfile::tempdir().expect("a temporary folder");
    runtime.block_on(async {
        let new_server = || server(config(dir.path()));
        let mut server = new_server();
        let mut wrong = Vec::new();
        for need in &needs {
            for name in ['g', 'n', 't', 'f'] {
                for letter in ['R', 'W', 'X', 'C', 'A'] {
                    give(server.security(), &scope(name), letter);
                    let allowed = !is_denied(&server, need).await;
                    let is_free = need.letters == "-";
                    let expected = is_free || need.letters.contains(letter) && need.scopes.contains(name);
                    if allowed != expected {
                        wrong.push(format!(
                            "{} with {letter} on {name}: allowed = {allowed}",
                            need.method
                        ));
                    }
                    // It may have changed what the next one is about.
                    if allowed && !is_free {
                        server = new_server();
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    });
}
