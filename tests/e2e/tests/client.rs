//! Our client library against the real server.

use basalt_client::{Client, FamilySchema, Put, Scan, TableSchema};
use basalt_test_support::Server;

/// Two scans of one client run side by side. A scanner belongs to the connection that opened it, so each scan
/// must keep its own: when they shared a pool's connections, the second fetch met an unknown scanner.
#[test]
fn two_scans_of_one_client_do_not_disturb_each_other() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = Client::connect(&server.thrift.to_string())
            .await
            .expect("a connection");
        let schema = TableSchema::new("t")
            .expect("a name")
            .family(FamilySchema::new("f"));
        client.create_table(schema).await.expect("a table");
        let table = client.table("t").expect("a name");
        let put = |row: usize| Put::new(format!("row-{row:03}")).cell("f", "q", "value");
        table.put_multiple((0..300).map(put)).await.expect("written");

        let scan = || table.scan(Scan::new().rows_per_fetch(10)).expect("a scan");
        let (mut first, mut second) = (scan(), scan());
        for row in 0..300 {
            let expected = format!("row-{row:03}");
            for rows in [&mut first, &mut second] {
                let found = rows.next().await.expect("no error").expect("a row");
                assert_eq!(found.key, expected);
            }
        }
        assert!(first.next().await.expect("no error").is_none());
        assert!(second.next().await.expect("no error").is_none());
    });
    server.stop();
}
