//! Thrift calls to engine calls and back.
//!
//! A message comes in as bytes, its answer goes out as bytes. In between: the header, which of the three services it is for
//! (`basalt_idl::dispatch`), the arguments as the interface's types, one handler function, the answer. Handlers are grouped
//! in small files; `from_thrift` and `to_thrift` hold the conversions; `failure` makes exceptions.
//!
//! Where work runs: plain writes, and gets, fetches of scans, increments, appends and checks that memory can answer run on the network
//! thread itself. What may wait for the disk or for a row's lock, or takes long (a block that is not cached, a row that somebody has, scans
//! with a filter, schema changes) goes to tokio's blocking pool; waiting for a commit is a future and takes no thread. Before any of it
//! begins, `admission` may refuse it, and `charge` may hold it back.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use basalt_engine::Engine;
use basalt_engine::cell::{Budget, CellBatch, OnShortage};
use basalt_engine::clock::{BEHIND_MS, behind_text};
use basalt_engine::engine::ServerName;
use basalt_engine::schema::{TableDescriptor, TableName};
use basalt_idl::call::MethodDescriptor;
use basalt_idl::dispatch::{Service, service_at, which_service};
use basalt_idl::thrift2::describe::{describe_family, describe_table};
use basalt_idl::wire::{MessageKind, Protocol, Reader, WireError};
use basalt_idl::{TApplicationException, TApplicationExceptionType, admin, thrift1, thrift2};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::admission::{Admission, Class, Held, Memory, Purpose};
use crate::capacity::{Capacity, server_names};
use crate::config::Config;
use crate::ephemeral::Controls;
use crate::heat::Heat;
use crate::http::AllowedHosts;
use crate::metrics::{Api, CallCount, Calls, Connections};
use crate::native::{self, MasterState};
use crate::rates::Rates;
use crate::sessions::{Owner, Sessions};
use crate::slow_log::SlowLog;

mod access;
mod basalt_admin;
mod charge;
mod codec;
mod failure;
pub(crate) mod faults;
mod from_thrift;
mod gather;
mod hbase1;
mod hbase2;
mod places;
pub(crate) mod quotas;
pub(crate) mod reads;
mod regions;
pub(crate) mod scans;
pub(crate) mod schema;
mod slow_log;
mod snapshots;
pub(crate) mod testing;
mod to_thrift;
mod touched;
pub(crate) mod writes;

use codec::{Binary, Codec, Compact, Reply};
pub(crate) use failure::Failure;
use faults::Consequence;
pub(crate) use from_thrift::{has_regex, select};

/// Arguments up to this size are decoded without a check beforehand, as long as they take at most
/// [`UNRESERVED_BYTES`]. Decoding itself reports errors in them.
const UNCHECKED_BYTES: usize = 32 << 10;
/// Most memory of lists and maps in unchecked arguments. Arguments that need more are checked, and
/// their memory is reserved, before they are decoded: an element of one byte on the wire may take
/// 320 bytes in memory.
const UNRESERVED_BYTES: usize = 64 << 10;

/// Most bulk loads that run at a time. Each has a thread of the pool and writes to the disk as a
/// compaction does.
const BULK_LOADS: usize = 2;

/// Most damaged regions that `/readyz` and the overview list one by one.
const DAMAGED_LISTED: usize = 3;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Server {
    engine: Arc<Engine>,
    /// The settings of the start.
    config: Config,
    /// The settings in force: some are taken over while the server runs.
    in_force: Mutex<Config>,
    /// Host names that the HTTP port answers to, in lower case.
    allowed_hosts: AllowedHosts,
    sessions: Arc<Sessions>,
    admission: Admission,
    slow_log: SlowLog,
    heat: Heat,
    rates: Rates,
    /// State of the master that native clients see.
    master: MasterState,
    /// Bounds the bulk loads that run at a time.
    bulk_loads: Arc<Semaphore>,
    calls: Calls,
    connections: Connections,
    /// What region locations name: the address clients can reach.
    thrift_address: SocketAddr,
    /// Host and port that native clients connect to.
    advertised: (String, u16),
    started: SystemTime,
    started_mono: Instant,
    ready: AtomicBool,
    /// Controls for the calls of tests; `None` unless the server is ephemeral.
    controls: Option<Controls>,
    /// Calls that have a number: those that are told of in the log.
    requests: AtomicU64,
}

/// Who calls: what the server remembers of a connection between its calls.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Of the scanners it opens.
    owner: Owner,
    /// Where it comes from.
    address: Option<SocketAddr>,
    /// The table of the scanner that the call in hand fetches from: its arguments do not name it.
    scanned: Option<TableName>,
    /// Which service a call means.
    speaks: Speaks,
    /// Results are collected here, call after call; `None` while a call uses it, and when none is
    /// kept.
    batch: Option<CellBatch>,
    /// The reservation for the reply of the call in hand. The connection takes it over.
    reply: Held,
    /// Memory reserved for the arguments of the call in hand; 0 for small arguments.
    arguments_bytes: usize,
    /// The client has closed the connection: set while a call runs, for work that is of no use to anybody then.
    gone: Arc<AtomicBool>,
    /// The call in hand has met a fault that closes the connection without an answer.
    is_cut: bool,
}

/// Which of HBase's services a caller speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaks {
    /// Both: each call tells. The service of the last call that could tell decides what `getThriftServerType` means.
    Both(Option<Service>),
    /// This one, since the call came to a place of its own.
    Only(Service),
}

impl Caller {
    /// A connection of the Thrift port that has not called yet. `connection` is its number.
    pub(crate) fn connected(connection: u64, memory: &Arc<Memory>) -> Self {
        Self::new(Owner::Connection(connection), Speaks::Both(None), memory)
    }

    /// The sender of one call over HTTP to the place of `service`.
    pub(crate) fn over_http(service: Service, memory: &Arc<Memory>) -> Self {
        Self::new(Owner::Http, Speaks::Only(service), memory)
    }

    fn new(owner: Owner, speaks: Speaks, memory: &Arc<Memory>) -> Self {
        Self {
            owner,
            address: None,
            scanned: None,
            speaks,
            batch: None,
            reply: Held::nothing(memory),
            arguments_bytes: 0,
            gone: Arc::default(),
            is_cut: false,
        }
    }

    /// The same, from that address.
    pub(crate) fn at(mut self, address: Option<SocketAddr>) -> Self {
        self.address = address;
        self
    }

    /// Sets how much memory is reserved for the arguments of its call.
    pub(crate) fn with_arguments(mut self, bytes: usize) -> Self {
        self.arguments_bytes = bytes;
        self
    }

    /// Sets the flag that its connection raises when the client has closed it.
    pub(crate) fn until(mut self, gone: &Arc<AtomicBool>) -> Self {
        self.gone = Arc::clone(gone);
        self
    }

    /// The client's address, without the port.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        self.address.map(|address| address.ip())
    }

    /// Whether the client has closed the connection, as the wire finds out while a call runs.
    pub(crate) fn gone(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.gone)
    }

    /// Whether the connection is to be closed without an answer to the call in hand.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The table of the scanner that the call in hand has fetched from.
    pub(crate) fn take_scanned(&mut self) -> Option<TableName> {
        self.scanned.take()
    }

    /// The owner of the scanners that it opens.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Lends the batch out; give it back with [`Self::put_batch`].
    fn take_batch(&mut self) -> CellBatch {
        let new = || CellBatch::charged_to(Arc::clone(self.reply.memory()) as Arc<dyn Budget>);
        self.batch.take().unwrap_or_else(new)
    }

    /// The reservation for the reply of the last call, to be taken over.
    pub(crate) fn reply(&mut self) -> &mut Held {
        &mut self.reply
    }

    /// Takes a batch back for the next call, unless it has grown large.
    fn put_batch(&mut self, mut batch: CellBatch) {
        const KEEP_BYTES: usize = 64 << 10;
        if batch.memory_bytes() <= KEEP_BYTES {
            batch.clear();
            batch.set_on_shortage(OnShortage::Leave);
            // The reply may have taken the batch's reservation. A batch that cannot be reserved
            // again is not kept.
            self.batch = batch.is_reserved().then_some(batch);
        }
    }

    /// Memory that is kept for the next call.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.batch.as_ref().map_or(0, CellBatch::memory_bytes)
    }

    /// Gives back what is kept for the next call.
    pub(crate) fn release(&mut self) {
        self.batch = None;
    }
}

impl Server {
    /// Data calls take at most so many `places` on the blocking pool.
    /// REQUIRES: the metrics recorder is installed.
    pub(crate) fn new(
        engine: Arc<Engine>,
        config: Config,
        thrift_address: SocketAddr,
        places: usize,
    ) -> Result<Self, basalt_engine::Error> {
        let methods = |api, names: &'static [&'static MethodDescriptor]| {
            names.iter().map(move |method| (api, method.name))
        };
        let calls = Calls::new(
            methods(Api::Thrift1, thrift1::SERVICE.methods)
                .chain(methods(Api::Thrift2, thrift2::SERVICE.methods))
                .chain(methods(Api::Admin, admin::SERVICE.methods))
                .chain(native::methods().map(|method| (Api::Native, method))),
        );
        let server = Self {
            advertised: advertised(&config.server.advertise, thrift_address),
            sessions: Arc::new(Sessions::new(&config.scanner)),
            admission: Admission::new(&config.requests, places, Capacity::new(&config, &engine)?),
            slow_log: SlowLog::new(&config.slow_log),
            heat: Heat::new(&config.key_visualizer, Arc::clone(engine.clock())),
            rates: Rates::new(),
            master: MasterState::new(started_ms(SystemTime::now())),
            bulk_loads: Arc::new(Semaphore::new(BULK_LOADS)),
            engine,
            in_force: Mutex::new(config.clone()),
            allowed_hosts: AllowedHosts::new(&config.http.allowed_hosts),
            config,
            calls,
            connections: Connections::new(),
            thrift_address,
            started: SystemTime::now(),
            started_mono: Instant::now(),
            ready: AtomicBool::new(false),
            controls: None,
            requests: AtomicU64::new(0),
        };
        let memory = Arc::clone(server.admission.memory());
        server.engine.charge_calls_to(memory);
        let start_code = server.start_code().unsigned_abs();
        let (host, port) = server.advertised();
        let names = match server.config.rehearsal.servers {
            0 => vec![ServerName {
                host: host.to_owned(),
                port,
                start_code,
            }],
            servers => server_names(servers, port, start_code),
        };
        server.engine.announce(names);
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

    /// The settings of the start. Those that can be reloaded ([`Self::take_over`]) are not read from
    /// here.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// The settings in force.
    pub(crate) fn in_force(&self) -> Config {
        self.in_force.lock().clone()
    }

    /// Takes over from `config` what can change while the server runs, except the filter of the log.
    pub(crate) fn take_over(&self, config: &Config) {
        let mut in_force = self.in_force.lock();
        in_force.log.filter.clone_from(&config.log.filter);
        in_force.http.allowed_hosts.clone_from(&config.http.allowed_hosts);
        in_force.slow_log.threshold_ms = config.slow_log.threshold_ms;
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

    /// A permit for each bulk load that may run now.
    pub(crate) fn bulk_loads(&self) -> &Arc<Semaphore> {
        &self.bulk_loads
    }

    /// Host and port by which native clients reach this server.
    pub(crate) fn advertised(&self) -> (&str, u16) {
        (&self.advertised.0, self.advertised.1)
    }

    pub(crate) fn rates(&self) -> &Rates {
        &self.rates
    }

    /// Counts a native call. `number` is its position in [`native::methods`], `failed` the class of
    /// its exception.
    pub(crate) fn answered_native(&self, number: usize, took: Duration, failed: Option<&'static str>) {
        if let Some(method) = self.calls.method(Api::Native, number) {
            method.answered(took);
            if let Some(class) = failed {
                method.failed(class);
            }
        }
    }

    /// The next number of a call in log lines.
    pub(crate) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Shows a scrape what calls and connections have counted.
    pub(crate) fn publish_counts(&self) {
        self.calls.publish();
        self.connections.publish();
    }

    /// How often methods were called since the start, in no order.
    pub(crate) fn call_counts(&self) -> Vec<CallCount> {
        self.calls.counts()
    }

    /// What clients connect to.
    pub(crate) fn thrift_address(&self) -> SocketAddr {
        self.thrift_address
    }

    /// Since the start.
    pub(crate) fn uptime(&self) -> Duration {
        self.started_mono.elapsed()
    }

    /// When it started.
    pub(crate) fn started(&self) -> SystemTime {
        self.started
    }

    /// Notes what pages show of the load. To be called every second or so, where it may take a few milliseconds.
    pub(crate) fn note_load(&self) {
        self.heat.tick(|table| self.boundaries(table));
        self.rates.tick(self);
    }

    /// The start keys of a table's regions, in order; none when it is gone.
    pub(crate) fn boundaries(&self, table: &TableName) -> Vec<Vec<u8>> {
        let regions = self.engine.regions(table).unwrap_or_default();
        regions.into_iter().map(|region| region.start).collect()
    }

    /// A table as `describe` in the shell prints it: a line of its own settings, then one for each family.
    pub(crate) fn described(table: &TableDescriptor) -> Vec<String> {
        let shown = schema::to_table(table);
        let families = shown.columns.iter().flatten().map(describe_family);
        std::iter::once(describe_table(&table.name.to_string(), &shown))
            .chain(families)
            .collect()
    }

    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Whether calls are accepted.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Why not all calls are accepted although the server is ready, a sentence each; none when all is well.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let stalled = self
            .engine
            .stalled()
            .map(|waited| format!("the log has been waiting for the disk for {} s", waited.as_secs()));
        let suspended = self
            .engine
            .disk()
            .suspended
            .map(|why| format!("disk space: {why}"));
        let (used, limit) = (self.engine.memstore_bytes(), self.config.memstore.total_bytes);
        let full = (used >= limit).then(|| {
            format!("writes are refused until flushes have freed memory: memstores have {used} bytes, memstore.total_bytes is {limit}")
        });
        let memory = self.admission.memory();
        let busy = memory.check().is_err().then(|| {
            let (used, limit) = (memory.used(), memory.limit());
            format!("calls that need memory are refused: those in hand have {used} bytes, requests.memory_bytes is {limit}")
        });
        [stalled, suspended, full, busy].into_iter().flatten().collect()
    }

    /// Lines about damage: refused regions, up to [`DAMAGED_LISTED`] one by one, and damaged blocks
    /// that reads have found. Empty when nothing is damaged.
    pub(crate) fn damage(&self) -> Vec<String> {
        let damaged = self.engine.damaged_regions();
        let mut lines: Vec<_> = damaged
            .iter()
            .take(DAMAGED_LISTED)
            .map(ToString::to_string)
            .collect();
        if damaged.len() > DAMAGED_LISTED {
            lines.push(format!(
                "{} more regions are refused: basalt_regions_damaged counts them, the log of the start has them",
                damaged.len() - DAMAGED_LISTED
            ));
        }
        let reads = self.engine.counters().damaged_reads.get();
        if reads > 0 {
            lines.push(format!(
                "damaged blocks of store files were found {reads} times since the start: the log and the errors of calls name the files, basalt check finds all of them"
            ));
        }
        lines
    }

    /// Conditions that need an operator although everything is served.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let ahead = self.engine.ahead_of_clock();
        let behind = ahead > Duration::from_millis(BEHIND_MS);
        behind.then(|| behind_text(ahead)).into_iter().collect()
    }

    pub(crate) fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    /// Runs `work` of a data call where it may block, when its turn has come.
    /// REQUIRES: [`Admission::admit_to_line_of`] has let the call go on.
    pub(crate) async fn in_line<T: Send + 'static>(
        self: &Arc<Self>,
        class: Class,
        work: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let _place = self.admission.place(class).await?;
        self.on_pool(work).await
    }

    /// Converts arguments with regular expressions, on the pool. Few calls do so at a time:
    /// [`Admission::compiler`] bounds those of [`Class::User`], their places those of [`Class::System`].
    pub(crate) async fn compiled<T: Send + 'static>(
        self: &Arc<Self>,
        class: Class,
        convert: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let _place = match class {
            Class::User => Some(self.admission.compiler().await?),
            Class::System => None,
        };
        self.admission.admit_to_line_of(class)?;
        self.in_line(class, convert).await
    }

    /// Runs `work` where it may block, without waiting in line: schema changes and the like.
    pub(crate) async fn on_pool<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let server = Arc::clone(self);
        match tokio::task::spawn_blocking(move || work(&server)).await {
            Ok(result) => result,
            // The pool refuses work only when the runtime is going down. A panic in it has ended the process already in a release
            // build, and is a bug that tests see as this error.
            Err(_) => Err(basalt_engine::Error::ShuttingDown.into()),
        }
    }

    /// Answers one message. What cannot be answered (a reply instead of a call) leaves `out` with a refusal.
    pub(crate) async fn call(
        self: &Arc<Self>,
        caller: &mut Caller,
        protocol: Protocol,
        message: Bytes,
        out: &mut Vec<u8>,
    ) {
        if protocol == Protocol::Compact {
            // Boxed: its reader is the larger one, and the binary protocol is what most clients speak.
            Box::pin(self.call_as::<Compact>(caller, message, out)).await;
        } else {
            pin!(self.call_as::<Binary>(caller, message, out)).await;
        }
    }

    async fn call_as<P: Codec>(self: &Arc<Self>, caller: &mut Caller, message: Bytes, out: &mut Vec<u8>) {
        let began = Instant::now();
        let (length_before, whole) = (out.len(), message.clone());
        caller.scanned = None;
        caller.arguments_bytes = 0;
        let mut reader = P::reader(message);
        let header = match reader.message_begin() {
            Ok(header) => header,
            Err(error) => {
                return Reply::<P>::new(out, 0).application("", &TApplicationException::from(&error));
            }
        };
        let mut reply = Reply::<P>::new(out, header.seqid);
        if !matches!(header.kind, MessageKind::Call | MessageKind::Oneway) {
            let text = format!("a message of kind {:?} is not a call", header.kind);
            let exception = TApplicationException::new(TApplicationExceptionType::INVALID_MESSAGE_TYPE, text);
            return reply.application(header.name(), &exception);
        }
        let service = match self.service_of(caller, header.name(), &reader) {
            Ok(Service::Unknown) => {
                return reply.application(
                    header.name(),
                    &TApplicationException::unknown_method(header.name()),
                );
            }
            Ok(service) => service,
            Err(error) => return reply.application(header.name(), &TApplicationException::from(&error)),
        };
        let Some(called) = Called::of(service, header.name()) else {
            return;
        };
        let (api, number) = called.number();
        let fault = match self.armed_faults() {
            None => None,
            // Boxed: only a server that a test owns has faults.
            Some(faults) => Box::pin(faults::meet(self, faults, caller, called, reader.clone())).await,
        };
        if matches!(fault, Some(Consequence::DropsConnection)) {
            caller.is_cut = true;
            return;
        }
        let is_small = reader.remaining() <= UNCHECKED_BYTES;
        let mut outcome = if let Some(Consequence::Fails(failure)) = &fault {
            reply.refused(api, method_of(api, number).1, failure);
            Ok(())
        } else if is_small {
            reader.limit_memory(UNRESERVED_BYTES);
            pin!(self.dispatch(caller, called, reader, &mut reply)).await
        } else {
            Err(WireError::TooMuchMemory {
                offset: reader.position(),
                needed: UNRESERVED_BYTES,
                left: 0,
            })
        };
        if matches!(outcome, Err(WireError::TooMuchMemory { .. })) {
            // Boxed: few calls have arguments this large.
            outcome = Box::pin(self.dispatch_large(caller, called, whole.clone(), &mut reply)).await;
        }
        if let Err(error) = outcome {
            reply.application(header.name(), &TApplicationException::from(&error));
        }
        let (took, failed) = (began.elapsed(), reply.failed());
        if matches!(fault, Some(Consequence::DropsReply)) {
            caller.is_cut = true;
            return out.truncate(length_before);
        }
        if let Some(method) = self.calls.method(api, number) {
            method.answered(took);
            if let Some(class) = failed {
                method.failed(class);
            }
        }
        let answer_bytes = out.len() - length_before;
        let remarkable = self.slow_log.judge(took, answer_bytes);
        if failed.is_none() && remarkable.is_none() {
            return;
        }
        let (service, method) = method_of(api, number);
        // A call that nobody will read of needs no number.
        let request = self.next_request();
        let client = caller.address.map(tracing::field::display);
        if let Some(exception) = failed {
            tracing::debug!(
                request,
                service,
                method = method.name,
                client,
                exception,
                ?took,
                "call failed"
            );
        }
        if let Some(remarkable) = remarkable {
            tracing::info!(
                request,
                service,
                method = method.name,
                client,
                ?took,
                answer_bytes,
                slow = remarkable.slow,
                large = remarkable.large,
                "call is in the slow log"
            );
            let call = slow_log::Call {
                request,
                remarkable,
                took,
                answer_bytes,
                client: caller.address,
                service,
                method,
                message: &whole,
                scanned: caller.scanned.take(),
            };
            slow_log::record::<P>(self, call);
        }
    }

    /// Which service the call means. Never [`Service::Either`].
    fn service_of<R: Reader + Clone>(
        &self,
        caller: &mut Caller,
        method: &str,
        arguments: &R,
    ) -> Result<Service, WireError> {
        match &mut caller.speaks {
            Speaks::Only(service) => Ok(service_at(*service, method)),
            Speaks::Both(last) => Ok(match which_service(method, arguments)? {
                Service::Either => last.unwrap_or(self.default_service()),
                service @ (Service::Thrift1 | Service::Thrift2) => *last.insert(service),
                other => other,
            }),
        }
    }

    /// Runs the method. Fails, before anything is done, when the arguments do not match the
    /// interface.
    async fn dispatch<P: Codec>(
        self: &Arc<Self>,
        caller: &mut Caller,
        called: Called,
        reader: P::Reader,
        reply: &mut Reply<'_, P>,
    ) -> Result<(), WireError> {
        match called {
            Called::Thrift1(method) => pin!(hbase1::call(self, caller, method, reader, reply)).await,
            Called::Thrift2(method) => pin!(hbase2::call(self, caller, method, reader, reply)).await,
            Called::Admin(method) => basalt_admin::call(self, method, reader, reply).await,
        }
    }

    /// Runs a method whose arguments may take much memory. The encoded arguments are checked before
    /// they are decoded. Arguments that the interface does not allow are refused with a message
    /// that names the field, and the connection stays open. For the others, memory is reserved:
    /// [`ARGUMENT_COPIES`] times their decoded size, and the size of the message for what a write
    /// appends to the log.
    async fn dispatch_large<P: Codec>(
        self: &Arc<Self>,
        caller: &mut Caller,
        called: Called,
        message: Bytes,
        reply: &mut Reply<'_, P>,
    ) -> Result<(), WireError> {
        let message_bytes = message.len();
        let mut reader = P::reader(message);
        reader.message_begin()?;
        let (api, number) = called.number();
        let (_, method) = method_of(api, number);
        let mut walker = reader.clone();
        let before = walker.memory_left();
        basalt_idl::schema::check(&mut walker, method.args)?;
        let decoded = before - walker.memory_left();
        drop(walker);
        caller.arguments_bytes = message_bytes + ARGUMENT_COPIES * decoded;
        let mut held = Held::nothing(self.admission.memory());
        let reserved = held.add(caller.arguments_bytes as u64, Purpose::Arrive).await;
        if let Err(busy) = reserved {
            self.admission.count(busy);
            reply.refused(api, method, &busy.into());
            return Ok(());
        }
        self.dispatch(caller, called, reader, reply).await
    }

    fn default_service(&self) -> Service {
        if self.config.thrift.default_api == 1 {
            Service::Thrift1
        } else {
            Service::Thrift2
        }
    }

    /// Answers what has arrived of a message that will not be read to its end.
    pub(crate) fn refuse(
        protocol: Protocol,
        partial: Bytes,
        reason: &TApplicationException,
        out: &mut Vec<u8>,
    ) {
        fn refuse_as<P: Codec>(partial: Bytes, reason: &TApplicationException, out: &mut Vec<u8>) {
            if let Ok(header) = P::reader(partial).message_begin() {
                Reply::<P>::new(out, header.seqid).application(header.name(), reason);
            }
        }
        if protocol == Protocol::Compact {
            refuse_as::<Compact>(partial, reason, out);
        } else {
            refuse_as::<Binary>(partial, reason, out);
        }
    }
}

/// Copies of decoded arguments: as the interface's types and as the engine's.
const ARGUMENT_COPIES: usize = 2;

/// A method of one of the interfaces.
#[derive(Clone, Copy, Debug)]
enum Called {
    Thrift1(thrift1::Method),
    Thrift2(thrift2::Method),
    Admin(admin::Method),
}

impl Called {
    /// The method of that name; `None` if the service does not have it.
    fn of(service: Service, name: &str) -> Option<Self> {
        match service {
            Service::Thrift1 => thrift1::Method::from_name(name).map(Self::Thrift1),
            Service::Thrift2 => thrift2::Method::from_name(name).map(Self::Thrift2),
            _ => admin::Method::from_name(name).map(Self::Admin),
        }
    }

    /// Its service and its number there.
    fn number(self) -> (Api, usize) {
        match self {
            Self::Thrift1(method) => (Api::Thrift1, method as usize),
            Self::Thrift2(method) => (Api::Thrift2, method as usize),
            Self::Admin(method) => (Api::Admin, method as usize),
        }
    }
}

/// The name of a Thrift service, and its method with this number. REQUIRES: the service has such a
/// method.
fn method_of(api: Api, number: usize) -> (&'static str, &'static MethodDescriptor) {
    let service = match api {
        Api::Thrift1 => &thrift1::SERVICE,
        Api::Thrift2 => &thrift2::SERVICE,
        Api::Admin => &admin::SERVICE,
        Api::Native => unreachable!("only Thrift calls are described by a Thrift service"),
    };
    (service.name, service.methods[number])
}

impl Server {
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

/// Host and port that native clients connect to: `server.advertise`, or the bound address.
fn advertised(setting: &str, bound: SocketAddr) -> (String, u16) {
    match setting.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() => {
            // `Config::validate` has checked the port.
            (host.to_owned(), port.parse().unwrap_or(bound.port()))
        }
        _ if setting == "auto" => (bound.ip().to_string(), bound.port()),
        _ => (setting.to_owned(), bound.port()),
    }
}

#[cfg(test)]
mod tests;
