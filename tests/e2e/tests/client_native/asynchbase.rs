//! asynchbase 1.8.2, the client of OpenTSDB: no codec version, inline cells, look-ups by
//! `closest_row_before`.

use std::net::SocketAddr;

use basalt_client::{Client, FamilySchema, TableSchema};
use basalt_test_support::JavaProgram;

use super::{Explained, compare, is_recorded, with_hbase, with_server};

/// The transcript recorded with HBase 2.6.1.
const ANSWERS: &str = include_str!("../../clients/asynchbase/answers.txt");

const EXPLAINED: &[Explained] = &[];

#[test]
fn hbase_gives_the_recorded_answers() {
    let Some(client) = JavaProgram::find("e2e/clients/asynchbase") else {
        return;
    };
    with_hbase(|hbase, _| {
        let port = hbase.zookeeper_port().expect("it has started").to_string();
        create_table(hbase.thrift2);
        let transcript = client.tour(&["zookeeper", "127.0.0.1", &port]);
        is_recorded(ANSWERS, &transcript, "e2e/clients/asynchbase");
    });
}

#[test]
fn asynchbase_1_8_2() {
    let Some(client) = JavaProgram::find("e2e/clients/asynchbase") else {
        return;
    };
    with_server(|server, _| {
        create_table(server.thrift);
        let port = server.thrift.port().to_string();
        let transcript = client.tour(&["zookeeper", "127.0.0.1", &port]);
        compare(ANSWERS, EXPLAINED, &transcript, "asynchbase");
    });
}

/// Makes the table of the tour through Thrift.
fn create_table(address: SocketAddr) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = Client::connect(&address.to_string()).await.expect("a connection");
        let family = FamilySchema::new("f").versions(3);
        let schema = TableSchema::new("at").expect("a name").family(family);
        let splits = vec![b"g".to_vec(), b"n".to_vec()];
        client.create_table_split(schema, splits).await.expect("a table");
    });
}
