//! The state that all connections share.
//!
//! [`Server`] holds the engine, the settings, the limits and the metrics; it knows no protocol. The
//! calls themselves are in `service`, each protocol in a folder of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use basalt_client::native::Cluster;
use basalt_engine::Engine;
use basalt_engine::engine::RegionInfo;
use basalt_engine::schema::TableName;
use metrics_exporter_prometheus::PrometheusHandle;

use crate::cluster::{self, Placement};
use crate::config::Config;
use crate::ephemeral::Controls;
use crate::limits::admission::Admission;
use crate::limits::capacity::Capacity;
use crate::observe::load::Load;
use crate::observe::metrics::Calls;
use crate::security::{Access, Security};
use copies::Copies;
use gateway::Gateway;
use sessions::Sessions;
use user_code::UserCode;

pub(crate) mod copies;
pub(crate) mod gateway;
mod instance;
mod master;
pub(crate) mod sessions;
mod settings;
mod status;
pub(crate) mod user_code;

pub(crate) use instance::Instance;
pub(crate) use master::{Failed, MasterState};
pub(crate) use settings::Settings;

/// State shared by all connections, one part for each kind of its users. A function that needs one part
/// takes that part.
#[derive(Debug)]
pub(crate) struct Server {
    engine: Arc<Engine>,
    /// The cluster that has the tables, if they are not in the engine.
    gateway: Option<Gateway>,
    /// Servers and regions as clients see them.
    placement: Arc<Placement>,
    instance: Instance,
    settings: Settings,
    /// Rights, if there are users.
    access: Access,
    /// Users, rights and certificates.
    security: Arc<Security>,
    admission: Admission,
    sessions: Arc<Sessions>,
    load: Load,
    /// State of the master that native clients see.
    master: MasterState,
    copies: Copies,
    /// The host of users' classes; `None` unless `user_code.directories` is set.
    user_code: Option<UserCode>,
    /// Controls for the calls of tests; `None` unless the server is ephemeral.
    controls: Option<Controls>,
}

impl Server {
    /// A server whose data calls take at most `places` places on the blocking pool.
    /// REQUIRES: the metrics recorder is installed.
    pub(crate) fn new(
        engine: Arc<Engine>,
        config: Config,
        (main_address, security): (SocketAddr, Arc<Security>),
        places: usize,
        calls: Calls,
    ) -> Result<Self, basalt_engine::Error> {
        let instance = Instance::new(main_address, &config.server.advertise);
        let (started_ms, (host, port)) = (instance.started_ms(), instance.advertised());
        let servers = cluster::server_names(config.rehearsal.servers, host, port, started_ms);
        let placement = Arc::new(Placement::new(servers));
        let admission = Admission::new(&config.requests, places, Capacity::new(&config, &engine)?);
        engine.charge_calls_to(Arc::clone(admission.memory()) as _);
        engine.set_directory(Arc::clone(&placement) as _);
        let access = if security.authenticates() {
            engine.set_grants(Arc::clone(&security) as _);
            Access::Rights(Arc::clone(&security))
        } else {
            Access::Everybody
        };
        Ok(Self {
            gateway: None,
            placement,
            access,
            security,
            admission,
            sessions: Arc::new(Sessions::new(&config.scanner)),
            load: Load::new(&config, calls, &engine),
            master: MasterState::new(started_ms),
            copies: Copies::load(&engine, &config, started_ms)?,
            engine,
            instance,
            settings: Settings::new(config),
            user_code: None,
            controls: None,
        })
    }

    /// Makes the server answer calls of tests, if there are controls.
    pub(crate) fn with_controls(mut self, controls: Option<Controls>) -> Self {
        self.controls = controls;
        self
    }

    /// Makes the server one for the tables of another cluster, if one is given.
    pub(crate) fn with_gateway(mut self, gateway: Option<Gateway>) -> Self {
        self.gateway = gateway;
        self
    }

    /// Makes the server run users' classes, if a host for them is given.
    pub(crate) fn with_user_code(mut self, user_code: Option<UserCode>) -> Self {
        self.user_code = user_code;
        self
    }

    /// The host of users' classes; `None` unless `user_code.directories` is set.
    pub(crate) fn user_code(&self) -> Option<&UserCode> {
        self.user_code.as_ref()
    }

    /// Sets the rights.
    #[cfg(test)]
    pub(crate) fn with_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The cluster that has the tables; `None` if they are in the engine.
    pub(crate) fn cluster(&self) -> Option<&Cluster> {
        self.gateway.as_ref().map(Gateway::cluster)
    }

    /// State of a gateway; `None` for other servers.
    pub(crate) fn gateway(&self) -> Option<&Gateway> {
        self.gateway.as_ref()
    }

    /// The regions of a table for pages, in order. A gateway has those that it knows.
    pub(crate) fn shown_regions(&self, table: &TableName) -> basalt_engine::Result<Vec<RegionInfo>> {
        match &self.gateway {
            None => self.engine.regions(table),
            Some(gateway) => Ok(gateway.regions(table)),
        }
    }

    /// The start keys of a table's regions, in order; none when it is gone.
    pub(crate) fn boundaries(&self, table: &TableName) -> Vec<Vec<u8>> {
        let regions = self.shown_regions(table).unwrap_or_default();
        regions.into_iter().map(|region| region.start).collect()
    }

    /// Whether pages show a table. A gateway shows all that it has seen calls on.
    pub(crate) fn shows_table(&self, table: &TableName) -> bool {
        self.gateway.is_some() || self.engine.describe_table(table).is_ok()
    }

    /// Whether there are pages of tables, regions and files: a gateway has none.
    pub(crate) fn has_tables(&self) -> bool {
        self.gateway.is_none()
    }

    /// The servers that clients see, and which region is on which.
    pub(crate) fn placement(&self) -> &Arc<Placement> {
        &self.placement
    }

    /// Addresses, start, readiness.
    pub(crate) fn instance(&self) -> &Instance {
        &self.instance
    }

    /// The settings of the start. Those that can be reloaded ([`Settings::take_over`]) are not read from
    /// here.
    pub(crate) fn config(&self) -> &Config {
        self.settings.start()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Rights, if there are users.
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// Users, rights and certificates.
    pub(crate) fn security(&self) -> &Arc<Security> {
        &self.security
    }

    pub(crate) fn admission(&self) -> &Admission {
        &self.admission
    }

    pub(crate) fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    /// Calls, connections, hot keys, slow calls.
    pub(crate) fn load(&self) -> &Load {
        &self.load
    }

    pub(crate) fn master(&self) -> &MasterState {
        &self.master
    }

    /// Copies of the data elsewhere, and from elsewhere.
    pub(crate) fn copies(&self) -> &Copies {
        &self.copies
    }

    /// Controls for the calls of tests; `None` unless the server is ephemeral.
    pub(crate) fn controls(&self) -> Option<&Controls> {
        self.controls.as_ref()
    }

    /// Records the load figures of pages. To be called every second or so, where it may take a few
    /// milliseconds.
    pub(crate) fn note_load(&self) {
        let boundaries = |table: &TableName| self.boundaries(table);
        self.load
            .tick(&self.engine, boundaries, self.settings.slow_percentile());
    }

    /// Brings all figures up to date, and writes them as Prometheus' text. Walks over all regions.
    pub(crate) fn render_metrics(&self, recorder: &PrometheusHandle) -> String {
        self.admission.publish();
        self.security.publish();
        self.copies.publish(&self.engine);
        self.load.publish();
        if let Some(user_code) = &self.user_code {
            user_code.publish();
        }
        if self.gateway.is_some() {
            return crate::observe::metrics::render_without_engine(recorder);
        }
        let (memstores, regions) = (
            self.config().memstore.total_bytes,
            self.config().metrics.max_regions,
        );
        crate::observe::metrics::render(recorder, &self.engine, memstores, regions, &self.load.heat)
    }
}
