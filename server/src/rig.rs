//! A server to test with: on a simulated disk, without background threads. Metrics go nowhere.

use std::sync::Arc;

use basalt_engine::Engine;
use basalt_engine::clock::ManualClock;
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::options::{Background, Options};

use crate::config::Config;
use crate::net;
use crate::observe::metrics::Calls;
use crate::security::Security;
use crate::server::Server;

/// A server on a disk of its own that never fails.
pub(crate) fn server(config: Config) -> Arc<Server> {
    server_on(&SimFs::new(1, SimOptions::default()), config)
}

/// A server on this disk.
pub(crate) fn server_on(disk: &SimFs, config: Config) -> Arc<Server> {
    Arc::new(server_of(engine_on(disk, &config), config, 4))
}

/// A server of this engine. Its data calls take at most `places` places on the pool.
pub(crate) fn server_of(engine: Arc<Engine>, config: Config, places: usize) -> Server {
    let address = ([127, 0, 0, 1], 9090).into();
    let calls = Calls::new(net::methods());
    let security = Security::open(&config).expect("there are no users");
    Server::new(engine, config, (address, security), places, calls).expect("the disk never fails")
}

/// The engine of a server, for tests of the adapters, which do not name it otherwise.
pub(crate) fn engine(server: &Server) -> &Arc<Engine> {
    server.engine()
}

/// An engine in this directory.
pub(crate) fn engine_in(dir: &std::path::Path, options: Options) -> Arc<Engine> {
    let opened = Engine::builder().options(options).open(dir);
    opened.expect("the directory is empty")
}

/// An engine on this disk.
pub(crate) fn engine_on(disk: &SimFs, config: &Config) -> Arc<Engine> {
    let options = Options {
        background: Background::Manual,
        wal_segment_bytes: 1 << 20,
        ..config.engine_options()
    };
    Engine::builder()
        .options(options)
        .file_system(Arc::new(disk.clone()))
        .clock(Arc::new(ManualClock::at(1_700_000_000_000)))
        .open("/data")
        .expect("the disk never fails")
}
