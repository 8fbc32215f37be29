//! Limits of users and tables at a gateway.

use std::net::SocketAddr;

use basalt_client::Get;
use basalt_idl::admin::{TQuotaScope, TThrottle, TThrottleType, TTimeUnit, args};

use super::{Pair, client, exception, gateway, put, wait};

/// Goal: limits are those of the gateway, which keeps them over a restart. Method: a batch larger than a
/// limit of one row a day passes once and leaves a debt of days.
#[test]
fn limits_are_of_the_gateway_and_survive_its_restart() {
    let Pair {
        gateway: first,
        cluster,
        dir,
    } = Pair::start(&["quota.user=\"app\""], &[]);
    let quota = TThrottle {
        throttle_type: Some(TThrottleType::WRITE_NUMBER),
        soft_limit: Some(1),
        time_unit: Some(TTimeUnit::DAYS),
        scope: Some(TQuotaScope::MACHINE),
        user_name: Some("app".to_owned()),
        ..TThrottle::default()
    };
    let write = |at: SocketAddr| {
        wait(async move {
            let table = client(at).table("t").unwrap();
            table
                .put_multiple((0..10).map(|row| put(&format!("r{row}"), "v")))
                .await
        })
    };
    wait(client(first.thrift).call(&args::BasaltSetQuota { quota })).expect("a quota");
    write(first.thrift).expect("the first batch passes");
    let (text, can_retry) = exception(write(first.thrift).expect_err("a debt of days"));
    assert!(text.contains("app") && can_retry, "{text}");
    wait(client(first.thrift).table("t").unwrap().get(Get::new("r1"))).expect("reads have no limit");
    write(cluster.thrift).expect("the cluster has no limit");
    first.stop();
    let second = gateway(dir.path(), cluster.thrift, &["quota.user=\"app\""]);
    write(second.thrift).expect("a start forgives debts");
    exception(write(second.thrift).expect_err("the limit is kept"));
    second.stop();
}
