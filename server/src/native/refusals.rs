//! Goal: every method of every native service asks whether its caller may call it, and says nothing
//! else when it may not. Method: a server on which nobody may do anything; each method is called with
//! requests of several shapes, of which at least one is well-formed for it. None may succeed.

use basalt_engine::schema::TableName;
use basalt_idl::native::messages as pb;
use bytes::Bytes;
use prost::Message;

use super::decode::peer::Service;
use super::tests::{Client, with_table_t};
use crate::config::Config;
use crate::security::Access;

/// The messages that requests have in their first fields, each as field 1 or 2.
fn shapes(region: &[u8]) -> Vec<Vec<u8>> {
    let table = pb::TableName {
        namespace: Bytes::from_static(b"default"),
        qualifier: Bytes::from_static(b"t"),
    };
    let region = pb::RegionSpecifier {
        r#type: pb::region_specifier::RegionSpecifierType::RegionName.into(),
        value: Bytes::copy_from_slice(region),
    };
    let family = pb::ColumnFamilySchema {
        name: Bytes::from_static(b"g"),
        ..pb::ColumnFamilySchema::default()
    };
    let schema = pb::TableSchema {
        table_name: Some(table.clone()),
        column_families: vec![family.clone()],
        ..pb::TableSchema::default()
    };
    let namespace = pb::NamespaceDescriptor {
        name: b"n"[..].into(),
        ..pb::NamespaceDescriptor::default()
    };
    let snapshot = pb::SnapshotDescription {
        name: "s".to_owned(),
        table: Some("t".to_owned()),
        ..pb::SnapshotDescription::default()
    };
    let procedure = pb::ProcedureDescription {
        signature: "flush-table-proc".to_owned(),
        instance: Some("t".to_owned()),
        ..pb::ProcedureDescription::default()
    };
    let info = pb::RegionInfo {
        table_name: table.clone(),
        ..pb::RegionInfo::default()
    };
    let get = pb::Get {
        row: Bytes::from_static(b"r"),
        ..pb::Get::default()
    };
    let put = pb::MutationProto {
        row: Some(Bytes::from_static(b"r")),
        mutate_type: Some(pb::mutation_proto::MutationType::Put.into()),
        column_value: vec![pb::mutation_proto::ColumnValue {
            family: Bytes::from_static(b"f"),
            qualifier_value: vec![pb::mutation_proto::column_value::QualifierValue {
                qualifier: Some(Bytes::from_static(b"q")),
                value: Some(Bytes::from_static(b"v")),
                ..Default::default()
            }],
        }],
        ..pb::MutationProto::default()
    };
    let service = pb::CoprocessorServiceCall {
        service_name: "None".to_owned(),
        ..pb::CoprocessorServiceCall::default()
    };
    let ok = |message: &dyn Fn() -> Vec<u8>| message();
    let one = |first: Vec<u8>| field(1, &first);
    let two = |first: Vec<u8>, second: Vec<u8>| [field(1, &first), field(2, &second)].concat();
    vec![
        ok(&Vec::new),
        one(table.encode_to_vec()),
        one(schema.encode_to_vec()),
        two(table.encode_to_vec(), schema.encode_to_vec()),
        two(table.encode_to_vec(), family.encode_to_vec()),
        one(region.encode_to_vec()),
        two(region.encode_to_vec(), region.encode_to_vec()),
        two(region.encode_to_vec(), get.encode_to_vec()),
        two(region.encode_to_vec(), put.encode_to_vec()),
        two(region.encode_to_vec(), pb::Scan::default().encode_to_vec()),
        two(region.encode_to_vec(), service.encode_to_vec()),
        one(namespace.encode_to_vec()),
        one(b"n".to_vec()),
        pb::GrantRequest {
            user_permission: pb::UserPermission {
                user: Bytes::from_static(b"bob"),
                permission: pb::Permission {
                    r#type: pb::permission::Type::Global.into(),
                    global_permission: Some(pb::GlobalPermission { action: vec![0] }),
                    ..pb::Permission::default()
                },
            },
            merge_existing_permissions: None,
        }
        .encode_to_vec(),
        one(snapshot.encode_to_vec()),
        one(procedure.encode_to_vec()),
        one(info.encode_to_vec()),
        one(pb::RegionAction {
            region,
            action: vec![pb::Action {
                get: Some(Box::new(get)),
                ..pb::Action::default()
            }],
            ..pb::RegionAction::default()
        }
        .encode_to_vec()),
    ]
}

fn field(number: u32, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::bytes::encode(number, &message.to_vec(), &mut out);
    out
}

#[test]
fn every_method_asks_before_anything_else() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let server = with_table_t(Config::default(), Access::Nobody);
        let engine = std::sync::Arc::clone(crate::rig::engine(&server));
        let table = TableName::parse(b"t").unwrap();
        let region = engine.regions(&table).unwrap().remove(0).name();
        let state = || format!("{:?} {:?}", engine.tables(), engine.region_requests());
        let before = state();
        let mut wrong = Vec::new();
        for service in Service::ALL {
            for method in service.methods() {
                let mut client = Client::connect(&server, service.name()).await;
                let mut refused = false;
                for shape in shapes(&region) {
                    let answer = client.answer(method, Bytes::from(shape)).await;
                    match answer {
                        Err(class) => refused |= class.ends_with("AccessDeniedException"),
                        // A Multi has the exceptions of its regions in its answer.
                        Ok(answer) if method == "Multi" => {
                            let answer = pb::MultiResponse::decode(answer).unwrap();
                            let text = format!("{answer:?}");
                            refused |= text.contains("AccessDeniedException");
                            if !answer.region_action_result.is_empty() && !text.contains("Exception") {
                                wrong.push(format!("{method} answers {text}"));
                            }
                        }
                        Ok(_) => wrong.push(format!("{} {method} answers", service.name())),
                    }
                }
                if !refused {
                    wrong.push(format!("{} {method} does not ask", service.name()));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert_eq!(state(), before, "nothing is changed");
    });
}
