//! Quotas that native clients set.

use basalt_client::Client as Thrift;
use basalt_client::admin::Admin;
use basalt_idl::native::cells::Cells;
use basalt_idl::native::messages::{
    Quotas, SetQuotaRequest, SetQuotaResponse, SpaceLimitRequest, ThrottleRequest, ThrottleType, TimeUnit,
    TimedQuota,
};
use basalt_test_support::Server;
use prost::Message;

use super::client::{Client, create, region, table_name};
use super::requests::get;

/// A limit of the table `t`; `None` removes it.
fn limit(soft_limit: Option<u64>) -> SetQuotaRequest {
    SetQuotaRequest {
        table_name: Some(table_name("t")),
        throttle: Some(ThrottleRequest {
            r#type: Some(ThrottleType::WriteNumber.into()),
            timed_quota: soft_limit.map(|soft_limit| TimedQuota {
                time_unit: TimeUnit::Minutes.into(),
                soft_limit: Some(soft_limit),
                ..TimedQuota::default()
            }),
        }),
        ..SetQuotaRequest::default()
    }
}

/// A limit that a native client sets is the one that BasaltAdmin lists, until it is removed.
#[test]
fn limits_are_set_and_removed() {
    let dir = basalt_test_support::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"), &[]);
    create(&server, "t");
    let mut master = Client::connect(&server, "MasterService");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let thrift = runtime
        .block_on(Thrift::connect(&server.thrift.to_string()))
        .unwrap();
    let listed = || {
        let quotas = runtime
            .block_on(Admin::new(&thrift).quotas(None, None, None))
            .unwrap();
        let shown = quotas
            .into_iter()
            .map(|quota| (quota.table_name.unwrap(), quota.soft_limit));
        shown.collect::<Vec<_>>()
    };
    master.ask::<SetQuotaResponse>("SetQuota", &limit(Some(7)));
    assert_eq!(listed(), [("t".into(), Some(7))]);
    // Native clients list quotas by reading HBase's table.
    let quotas = region(&server, "hbase:quota");
    let mut client = Client::connect(&server, "ClientService");
    let mut stored = || {
        client.call(3, "Get", &get(&quotas, "t.t"), b"");
        let response = client.response().unwrap();
        let cells = Cells::new(&response.cells).map(|cell| {
            let cell = cell.unwrap();
            (
                [cell.family, cell.qualifier].concat(),
                Quotas::decode(cell.value.strip_prefix(b"PBUF").expect("HBase's magic")).unwrap(),
            )
        });
        cells.collect::<Vec<_>>()
    };
    let [(column, quotas)] = &stored()[..] else {
        panic!("one cell for the table")
    };
    let limit_of = |quotas: &Quotas| quotas.throttle.as_ref()?.write_num.as_ref()?.soft_limit;
    assert_eq!((&column[..], limit_of(quotas)), (&b"qs"[..], Some(7)));
    master.ask::<SetQuotaResponse>("SetQuota", &limit(None));
    assert_eq!(listed(), []);
    assert_eq!(stored(), []);

    let space = SetQuotaRequest {
        table_name: Some(table_name("t")),
        space_limit: Some(SpaceLimitRequest::default()),
        ..SetQuotaRequest::default()
    };
    let (class, text) = master.refusal("SetQuota", &space, b"");
    assert_eq!(class, "DoNotRetryIOException");
    assert!(text.contains("space quotas are not supported"), "{text}");
    server.stop();
}
