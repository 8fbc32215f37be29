//! The state that all connections share.
//!
//! [`Server`] holds the engine, the settings, the limits and the metrics; it knows no protocol. The
//! calls themselves are in `service`, each protocol in a folder of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use basalt_client::native::Cluster;
use basalt_engine::Engine;
use basalt_engine::schema::TableName;
use metrics_exporter_prometheus::PrometheusHandle;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::cluster::{self, Placement};
use crate::config::{AllowedHosts, Config};
use crate::ephemeral::Controls;
use crate::limits::admission::Admission;
use crate::limits::capacity::Capacity;
use crate::observe::heat::Heat;
use crate::observe::metrics::{Api, CallCount, Calls, Connections, MethodMetrics};
use crate::observe::rates::Rates;
use crate::observe::slow_log::SlowLog;
use crate::security::{Access, Security};
use changes::Changes;
use peers::Peers;
use replication::Sink;
use sessions::Sessions;

mod backups;
pub(crate) mod changes;
mod master;
pub(crate) mod peers;
pub(crate) mod replication;
pub(crate) mod sessions;
mod status;

pub(crate) use backups::Backups;
pub(crate) use master::{Failed, MasterState};

/// Most bulk loads that run at a time. Each has a thread of the pool and writes to the disk as a
/// compaction does.
const BULK_LOADS: usize = 2;

/// State shared by all connections.
#[derive(Debug)]
pub(crate) struct Server {
    engine: Arc<Engine>,
    /// The cluster that has the tables, if they are not in the engine.
    cluster: Option<Cluster>,
    /// Servers and regions as clients see them.
    placement: Arc<Placement>,
    /// The settings of the start.
    config: Config,
    /// The settings in force: some are taken over while the server runs.
    in_force: Mutex<Config>,
    /// Host names that the HTTP port answers to, in lower case.
    allowed_hosts: AllowedHosts,
    /// Who may do what.
    access: Access,
    /// Users, rights and certificates.
    security: Arc<Security>,
    sessions: Arc<Sessions>,
    admission: Admission,
    slow_log: SlowLog,
    heat: Heat,
    rates: Rates,
    /// State of the master that native clients see.
    master: MasterState,
    /// Figures of the edits that other clusters have replicated to this one.
    sink: Sink,
    /// The clusters that get the edits of this one.
    peers: Peers,
    /// Streams of changes.
    changes: Changes,
    /// Bounds the bulk loads that run at a time.
    bulk_loads: Arc<Semaphore>,
    backups: Backups,
    calls: Calls,
    connections: Connections,
    /// Address in region locations: one that clients can reach.
    main_address: SocketAddr,
    /// Host and port that native clients connect to.
    advertised: (String, u16),
    started: SystemTime,
    started_mono: Instant,
    ready: AtomicBool,
    /// Controls for the calls of tests; `None` unless the server is ephemeral.
    controls: Option<Controls>,
    /// Number of calls that were given a number for the log.
    requests: AtomicU64,
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
        let started = SystemTime::now();
        let advertised = cluster::advertised(&config.server.advertise, main_address);
        let (host, port) = &advertised;
        let servers = cluster::server_names(config.rehearsal.servers, host, *port, started_ms(started));
        let placement = Arc::new(Placement::new(servers));
        let server = Self {
            placement: Arc::clone(&placement),
            advertised,
            access: if security.authenticates() {
                Access::Rights(Arc::clone(&security))
            } else {
                Access::Everybody
            },
            security,
            sessions: Arc::new(Sessions::new(&config.scanner)),
            admission: Admission::new(&config.requests, places, Capacity::new(&config, &engine)?),
            slow_log: SlowLog::new(&config.slow_log),
            heat: Heat::new(&config.key_visualizer, Arc::clone(engine.clock())),
            rates: Rates::new(),
            master: MasterState::new(started_ms(SystemTime::now())),
            sink: Sink::new(started_ms(started)),
            peers: Peers::load(&engine)?,
            changes: Changes::load(&engine, config.changes.max_streams)?,
            bulk_loads: Arc::new(Semaphore::new(BULK_LOADS)),
            backups: Backups::new(),
            engine,
            cluster: None,
            in_force: Mutex::new(config.clone()),
            allowed_hosts: AllowedHosts::new(&config.http.allowed_hosts),
            config,
            calls,
            connections: Connections::new(),
            main_address,
            started,
            started_mono: Instant::now(),
            ready: AtomicBool::new(false),
            controls: None,
            requests: AtomicU64::new(0),
        };
        let memory = Arc::clone(server.admission.memory());
        server.engine.charge_calls_to(memory);
        server.engine.set_directory(placement);
        if server.security.authenticates() {
            server.engine.set_grants(Arc::clone(&server.security) as _);
        }
        Ok(server)
    }

    /// Makes the server answer calls of tests, if there are controls.
    pub(crate) fn with_controls(mut self, controls: Option<Controls>) -> Self {
        self.controls = controls;
        self
    }

    /// Controls for the calls of tests; `None` unless the server is ephemeral.
    pub(crate) fn controls(&self) -> Option<&Controls> {
        self.controls.as_ref()
    }

    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Makes the server one for the tables of another cluster, if one is given.
    pub(crate) fn with_cluster(mut self, cluster: Option<Cluster>) -> Self {
        self.cluster = cluster;
        self
    }

    /// The cluster that has the tables; `None` if they are in the engine.
    pub(crate) fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    /// Who may do what.
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// Users, rights and certificates.
    pub(crate) fn security(&self) -> &Arc<Security> {
        &self.security
    }

    /// Sets who may do what.
    #[cfg(test)]
    pub(crate) fn with_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// The servers that clients see, and which region is on which.
    pub(crate) fn placement(&self) -> &Arc<Placement> {
        &self.placement
    }

    /// The settings of the start. Those that can be reloaded ([`Self::take_over`]) are not read from
    /// here.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn in_force(&self) -> Config {
        self.in_force.lock().clone()
    }

    /// Applies the settings in `config` that can change while the server runs, except the filter of
    /// the log.
    pub(crate) fn take_over(&self, config: &Config) {
        let mut in_force = self.in_force.lock();
        in_force.log.filter.clone_from(&config.log.filter);
        in_force.http.allowed_hosts.clone_from(&config.http.allowed_hosts);
        in_force.slow_log.threshold_ms = config.slow_log.threshold_ms;
        in_force.slow_log.percentile = config.slow_log.percentile;
        in_force.slow_log.large_bytes = config.slow_log.large_bytes;
        self.allowed_hosts.set(&config.http.allowed_hosts);
        self.slow_log.set_limits(&config.slow_log);
    }

    /// Host names that the HTTP port answers to.
    pub(crate) fn allowed_hosts(&self) -> &AllowedHosts {
        &self.allowed_hosts
    }

    pub(crate) fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    pub(crate) fn admission(&self) -> &Admission {
        &self.admission
    }

    pub(crate) fn slow_log(&self) -> &SlowLog {
        &self.slow_log
    }

    pub(crate) fn heat(&self) -> &Heat {
        &self.heat
    }

    pub(crate) fn master(&self) -> &MasterState {
        &self.master
    }

    /// Figures of the edits that other clusters have replicated to this one.
    pub(crate) fn sink(&self) -> &Sink {
        &self.sink
    }

    /// The clusters that get the edits of this one.
    pub(crate) fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Streams of changes.
    pub(crate) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// A permit for each bulk load that may run now.
    pub(crate) fn bulk_loads(&self) -> &Arc<Semaphore> {
        &self.bulk_loads
    }

    /// Backups of this server.
    pub(crate) fn backups(&self) -> &Backups {
        &self.backups
    }

    /// Host and port by which native clients reach this server.
    pub(crate) fn advertised(&self) -> (&str, u16) {
        (&self.advertised.0, self.advertised.1)
    }

    pub(crate) fn rates(&self) -> &Rates {
        &self.rates
    }
    /// The next number of a call in log lines.
    pub(crate) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The counters of the method with this number; `None` when the service has fewer.
    pub(crate) fn method(&self, api: Api, number: usize) -> Option<&MethodMetrics> {
        self.calls.method(api, number)
    }

    /// The methods that have a threshold of slow calls by percentile, and it.
    pub(crate) fn slow_thresholds(&self) -> Vec<(Api, &'static str, Duration)> {
        self.calls.thresholds()
    }

    /// Brings the scrape's figures of calls and connections up to date.
    pub(crate) fn publish_counts(&self) {
        self.calls.publish();
        self.connections.publish();
    }

    /// Number of regions.
    pub(crate) fn region_count(&self) -> u64 {
        self.engine.catalog_size().regions
    }

    /// Brings all figures up to date, and writes them as Prometheus' text. Walks over all regions.
    pub(crate) fn render_metrics(&self, recorder: &PrometheusHandle) -> String {
        self.admission.publish();
        self.security.publish();
        self.backups.publish();
        self.peers.publish(self.engine.clock().wall_ms());
        self.changes.publish();
        self.publish_counts();
        let (memstores, regions) = (self.config.memstore.total_bytes, self.config.metrics.max_regions);
        crate::observe::metrics::render(recorder, &self.engine, memstores, regions, &self.heat)
    }

    /// How often methods were called since the start, in no order.
    pub(crate) fn call_counts(&self) -> Vec<CallCount> {
        self.calls.counts()
    }

    /// The address that clients connect to.
    pub(crate) fn main_address(&self) -> SocketAddr {
        self.main_address
    }

    /// Since the start.
    pub(crate) fn uptime(&self) -> Duration {
        self.started_mono.elapsed()
    }

    pub(crate) fn started(&self) -> SystemTime {
        self.started
    }

    /// Records the load figures of pages. To be called every second or so, where it may take a few
    /// milliseconds.
    pub(crate) fn note_load(&self) {
        self.calls.tick(self.in_force.lock().slow_log.percentile);
        self.heat.tick(|table| self.boundaries(table));
        self.rates.tick(|| {
            (
                self.call_counts(),
                self.engine.region_requests(),
                self.stalled_writes(),
            )
        });
    }

    /// Keeps the load figures that survive a restart. To be called when the last call has ended.
    pub(crate) fn close_load(&self) {
        self.heat.close(|table| self.boundaries(table));
    }

    /// Writes that were refused, stalled or slowed because flushes did not keep up.
    fn stalled_writes(&self) -> u64 {
        let counters = self.engine.counters();
        counters.blocked_writes.get() + counters.delayed_writes.get() + counters.suspended_writes.get()
    }

    /// The start keys of a table's regions, in order; none when it is gone.
    pub(crate) fn boundaries(&self, table: &TableName) -> Vec<Vec<u8>> {
        let regions = self.engine.regions(table).unwrap_or_default();
        regions.into_iter().map(|region| region.start).collect()
    }
    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Whether calls are accepted.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }
    pub(crate) fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    /// HBase's start code of a server: when it started, in milliseconds.
    pub(crate) fn start_code(&self) -> i64 {
        i64::try_from(started_ms(self.started)).unwrap_or(i64::MAX)
    }
}

/// Milliseconds since 1970.
fn started_ms(started: SystemTime) -> u64 {
    started
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
