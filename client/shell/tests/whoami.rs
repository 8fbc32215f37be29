//! `whoami`: the user as whom the calls of a session are made. It asks no server.

use basalt_client::native::{BASE_ZNODE, Cluster, ClusterOptions, Registry, ZOOKEEPER_PORT};
use basalt_client::security::{Login, Secret, Security};
use basalt_client::{Client, PoolOptions};
use basalt_shell::Session;
use basalt_shell::backend::{Api, Backend};
use basalt_shell::output::Output;

mod printed;

use printed::Printed;

async fn whoami(security: Security) -> String {
    let target = "127.0.0.1:1";
    let registry = Registry::zookeeper(target, ZOOKEEPER_PORT, BASE_ZNODE).expect("an address");
    let mut options = ClusterOptions::new(registry);
    options.security = security;
    "grace".clone_into(&mut options.user);
    let backend = Backend {
        api: Api::Thrift,
        client: Client::new(target, PoolOptions::default()).expect("an address"),
        cluster: Cluster::new(options),
        http: None,
    };
    let printed = Printed::default();
    let mut session = Session::new(backend, Output::new(Box::new(printed.clone())), false);
    session.execute("whoami").await.expect("it asks no server");
    printed.take()
}

#[tokio::test]
async fn the_user_of_a_login_is_named() {
    let login = Login::password("ada", Secret::new("open sesame")).expect("a password");
    assert_eq!(whoami(Security::none().login(login)).await, "ada (auth:PLAIN)\n");
    let without = whoami(Security::none()).await;
    assert!(without.starts_with("grace (auth:SIMPLE)\n"), "{without}");
}
