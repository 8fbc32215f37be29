//! A server to test with: on a simulated disk, without background threads. Metrics go nowhere.

use std::sync::Arc;

use basalt_engine::Engine;
use basalt_engine::clock::ManualClock;
use basalt_engine::fs::sim::{SimFs, SimOptions};
use basalt_engine::options::{Background, Options};

use crate::api::Server;
use crate::config::Config;

/// A server on a disk of its own that never fails.
pub(crate) fn server(config: Config) -> Arc<Server> {
    server_on(&SimFs::new(1, SimOptions::default()), config)
}

/// A server on this disk.
pub(crate) fn server_on(disk: &SimFs, config: Config) -> Arc<Server> {
    let (engine, address) = (engine_on(disk, &config), ([127, 0, 0, 1], 9090).into());
    Arc::new(Server::new(engine, config, address, 4).expect("the disk never fails"))
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
