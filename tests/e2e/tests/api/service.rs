//! Calls about the server, and calls about permissions.

use basalt_idl::thrift1::{self, args as one};
use basalt_idl::thrift2::{self, args as two};

use crate::client::{Wire, some};

#[test]
fn both_services_say_who_they_are() {
    let mut wire = Wire::connect();
    wire.ok(&one::GetTableNames {});
    assert_eq!(
        wire.ok(&one::GetThriftServerType {}),
        thrift1::TThriftServerType::ONE
    );
    let id = wire.ok(&one::GetClusterId {});
    wire.ok(&two::ListNamespaces {});
    assert_eq!(
        wire.ok(&two::GetThriftServerType {}),
        thrift2::TThriftServerType::TWO
    );
    assert_eq!(wire.ok(&two::GetClusterId {}), id);
    assert_eq!(id.len(), 36, "a UUID: {id}");
}

/// There is no access control: both services answer as an HBase without it.
#[test]
fn permissions_cannot_be_granted() {
    const ANSWER: [&str; 2] = [
        "java.lang.UnsupportedOperationException: org.apache.hadoop.hbase.security.access.AccessController is not loaded",
        "can_retry: Some(false)",
    ];
    let mut wire = Wire::connect();
    wire.ok(&one::GetTableNames {});
    let entity = thrift1::TAccessControlEntity {
        username: "bob".into(),
        scope: thrift1::TPermissionScope::TABLE,
        actions: "RW".into(),
        table_name: some("t"),
        ns_name: None,
    };
    wire.refused(&one::Grant { info: entity.clone() }, &ANSWER);
    wire.refused(
        &one::Revoke { info: entity.clone() },
        &["org.apache.hadoop.hbase.DoNotRetryIOException: ", ANSWER[0]],
    );
    let info = thrift1::TAccessControlEntity {
        actions: "Q".into(),
        ..entity
    };
    wire.refused(&one::Grant { info }, &["IllegalArgumentException", "Q"]);
    wire.ok(&two::ListNamespaces {});
    let entity = thrift2::TAccessControlEntity {
        username: "bob".into(),
        scope: thrift2::TPermissionScope::NAMESPACE,
        actions: "A".into(),
        table_name: None,
        ns_name: Some("default".into()),
    };
    wire.refused(&two::Grant { info: entity.clone() }, &ANSWER);
    wire.refused(&two::Revoke { info: entity.clone() }, &ANSWER);
    let info = thrift2::TAccessControlEntity {
        ns_name: None,
        ..entity
    };
    wire.refused(&two::Revoke { info }, &["nsName is missing"]);
}
