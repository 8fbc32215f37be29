//! `basalt serve`: starts the parts of the server, and stops them in order.
//!
//! Start, in an order that leaves nothing behind if a step fails:
//! 1. catch SIGHUP, and ignore signals that have no meaning for the server
//!    ([`catch_or_ignore_signals`]);
//! 2. bind the ports: connections made from here on wait until they are accepted;
//! 3. open the engine (recovery);
//! 4. accept, write `--listen-file`, and print one line, or run the command of an ephemeral server.
//!
//! Stop, on SIGTERM, Ctrl-C, or the end of that command:
//! 1. stop accepting;
//! 2. tell the connections: none begins to read a further message;
//! 3. let each answer its running calls, for at most [`DRAIN`];
//! 4. close the engine: flush, seal the WAL. An ephemeral server removes its directory instead
//!    ([`Home`]), also when a step of the start fails.

use std::ffi::OsString;
use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use basalt_engine::Engine;
use basalt_engine::clock::{Clock, MovableClock, SystemClock};
use basalt_engine::fs::{RealFs, UnsyncedFs, Vfs, raise_open_files};
use basalt_engine::options::Options;
use basalt_engine::schema::TableName;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backup::continuous;
use crate::config::{Address, Config};
use crate::ephemeral::command::Running;
use crate::ephemeral::faults::Faults;
use crate::ephemeral::{self, Controls, Home};
use crate::limits::descriptors::Descriptors;
use crate::limits::{threads, yields};
use crate::net;
use crate::observe::metrics::{Calls, EngineEvents, UPKEEP_PERIOD};
use crate::replication;
use crate::security::Security;
use crate::server::Server;
use crate::server::copies::standing::Role;
use crate::server::gateway::Gateway;
use crate::server::user_code::UserCode;
use crate::service::remote;
use crate::{cluster, standby};

pub(crate) mod first_start;
mod listen_file;
pub(crate) mod reload;
mod supervisor;

use first_start::{Credentials, FirstStart};
use listen_file::ListenFile;
use reload::Reload;
use supervisor::Supervisor;

/// Longest wait for running calls when the server stops.
const DRAIN: Duration = Duration::from_secs(30);

/// Longest wait, when a gateway stops, for the cluster to close its scanners.
const CLOSE_SCANNERS: Duration = Duration::from_secs(3);

/// Threads for calls that block: reads from disk, scans with filters, waits for a row's lock. A
/// call queues when all are taken. They are more than there are cores, since some wait for the disk
/// or for a lock. But most reads are cached, and too many threads contend for the cores: 240
/// threads for data calls did a quarter fewer increments under overload than 32 (`basalt-bench
/// overload --calls increment`). HBase has 30 handlers.
pub(crate) const BLOCKING_THREADS: usize = 48;

/// The part of these threads that data calls may take: the rest is for reads of system tables
/// (`admission::SYSTEM_PERMITS`), schema changes, pages and upkeep.
pub(crate) const DATA_THREADS: usize = BLOCKING_THREADS - 16;

/// Number of tasks that a network thread runs before it polls for new messages. A poll finds a task
/// for each connection with a message, up to 1,024. They go to the end of the thread's own queue,
/// which has 256 places, and half of a full queue moves to the queue of all threads, which is
/// polled less often: with tokio's own interval of 61, early messages waited for many later ones
/// (docs/decisions/0009-where-work-runs.md).
const EVENT_INTERVAL: u32 = 1024;

/// Minimum time between two rounds that make idle scanners release memory, and least idle time of a
/// scanner for that.
const RELIEF_PERIOD: Duration = Duration::from_millis(50);

/// Time between two looks at the files of users, rights and certificates.
const SECURITY_PERIOD: Duration = Duration::from_secs(2);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Options of the command line that are no settings.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// The directory of an ephemeral server's data, which the settings name, too.
    pub(crate) home: Option<Home>,
    /// Whether the tables are in another cluster, which the settings name.
    pub(crate) is_gateway: bool,
    /// `--secure`.
    pub(crate) first_start: Option<FirstStart>,
    /// `--listen-file`.
    pub(crate) listen_file: Option<PathBuf>,
    /// A command to run while an ephemeral server serves; empty: none.
    pub(crate) command: Vec<OsString>,
}

/// Serves until shutdown, or until the end of the command, whose exit code it returns.
pub(crate) fn run(config: Config, reload: Reload, given: Given) -> Result<ExitCode, Failure> {
    let Given {
        home,
        is_gateway,
        first_start,
        listen_file,
        command,
    } = given;
    let recorder = crate::observe::metrics::install()?;
    let gateway = is_gateway.then(|| remote::gateway(&config)).transpose()?;
    threads::check(&config)?;
    let descriptors = Descriptors::divide(raise_open_files(), &config)?;
    tracing::info!("{}", descriptors.line());
    for warning in descriptors.warnings(&config) {
        tracing::warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("basalt-net")
        .on_thread_park(yields::before_sleep)
        .event_interval(EVENT_INTERVAL)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_keep_alive(threads::KEEP_ALIVE)
        .build()?;
    let (hangups, ports) = runtime.block_on(async {
        let hangups = catch_or_ignore_signals()?;
        let ports = Ports {
            main: bind("server.listen", &config.server.listen).await?,
            http: bind("http.listen", &config.http.listen).await?,
            rest: match &config.rest.listen.0 {
                None => None,
                Some(listen) => Some(bind("rest.listen", listen).await?),
            },
        };
        Ok::<_, Failure>((hangups, ports))
    })?;
    let controls = home.is_some().then(|| Controls {
        clock: Arc::new(MovableClock::new()),
        faults: Faults::new(),
        template: parking_lot::Mutex::default(),
    });
    let (vfs, clock): (Arc<dyn Vfs>, Arc<dyn Clock>) = match &controls {
        None => (Arc::new(RealFs), Arc::new(SystemClock::new())),
        Some(controls) => (
            Arc::new(UnsyncedFs::default()),
            Arc::clone(&controls.clock) as Arc<dyn Clock>,
        ),
    };
    let (main_address, http_address) = (ports.main.local_addr()?, ports.http.local_addr()?);
    let (host, _) = cluster::advertised(&config.server.advertise, main_address);
    let url = standby::wire::url_of(&config, &host, http_address.port());
    runtime.block_on(standby::seed::prepare(&config, &url))?;
    // The copy of a primary has its users, rights and certificates.
    config.validate()?;
    let security = Security::open(&config)?;
    if let Some(exposure) = config.exposure() {
        tracing::warn!("{exposure}");
    }
    let restart = CancellationToken::new();
    let engine = Engine::builder()
        .options(Options {
            max_open_files: descriptors.files,
            ..config.engine_options()
        })
        .file_system(vfs)
        .clock(clock)
        .listener(Arc::new(EngineEvents::new()))
        .open(&config.data.dir)?;
    if is_gateway {
        require_no_tables(&engine, &config)?;
    }
    let outcome = runtime.block_on(serve(
        config,
        Parts {
            controls,
            gateway,
            security,
            first_start,
            listen_file,
            command,
            restart: restart.clone(),
        },
        (reload, hangups),
        ports,
        Arc::clone(&engine),
        recorder,
        descriptors,
    ));
    // Blocking work that outlived the drain is abandoned; the engine refuses it from here on.
    runtime.shutdown_timeout(Duration::from_secs(1));
    match home {
        None => engine.close()?,
        Some(home) => {
            engine.close_unflushed()?;
            drop(home);
        }
    }
    tracing::info!("stopped");
    if restart.is_cancelled() && outcome.is_ok() {
        return Err(start_again().into());
    }
    outcome
}

/// Replaces the process by another start of it. Returns only when that fails.
fn start_again() -> std::io::Error {
    use std::os::unix::process::CommandExt as _;
    crate::observe::log_queue::flush();
    let mut arguments = std::env::args_os();
    match (std::env::current_exe(), arguments.next()) {
        (Ok(program), Some(name)) => std::process::Command::new(program)
            .arg0(name)
            .args(arguments)
            .exec(),
        (Ok(program), None) => std::process::Command::new(program).exec(),
        (Err(error), _) => error,
    }
}

/// The ports, bound.
struct Ports {
    main: TcpListener,
    http: TcpListener,
    /// The port of the REST interface alone.
    rest: Option<TcpListener>,
}

/// Binds the port of a setting; the system's resolver is asked for host names.
async fn bind(setting: &'static str, listen: &Address) -> Result<TcpListener, Failure> {
    let bound = match listen.ip() {
        Some(address) => TcpListener::bind(address).await,
        None => TcpListener::bind(listen.to_string()).await,
    };
    bound.map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::AddrInUse => "; another process has it: stop that process or choose another port",
            ErrorKind::PermissionDenied => "; it needs a privilege: choose a port from 1024 on",
            _ => "",
        };
        format!("{setting} = {listen}: the port cannot be bound: {error}{remedy}").into()
    })
}

/// Parts of a server besides settings, ports and engine.
struct Parts {
    controls: Option<Controls>,
    gateway: Option<Gateway>,
    security: Arc<Security>,
    first_start: Option<FirstStart>,
    listen_file: Option<PathBuf>,
    command: Vec<OsString>,
    /// Cancelled when the server is to stop, and to start again.
    restart: CancellationToken,
}

async fn serve(
    config: Config,
    parts: Parts,
    (reload, hangups): (Reload, Signal),
    ports: Ports,
    engine: Arc<Engine>,
    recorder: metrics_exporter_prometheus::PrometheusHandle,
    descriptors: Descriptors,
) -> Result<ExitCode, Failure> {
    let (main_address, http_address) = (ports.main.local_addr()?, ports.http.local_addr()?);

    let calls = Calls::new(net::methods());
    let Parts {
        controls,
        gateway,
        security,
        first_start,
        listen_file,
        command,
        restart,
    } = parts;
    let cluster_id = engine.cluster_id().to_string();
    security.store_cluster_id(&cluster_id);
    let credentials = match first_start {
        None => None,
        Some(first_start) => first_start.finish(&cluster_id)?,
    };
    for line in credentials.iter().flat_map(Credentials::lines) {
        tracing::info!("{line}");
    }
    let user_code = UserCode::of(&config.user_code)?;
    let server = Server::new(engine, config, (main_address, security), DATA_THREADS, calls)?;
    let server = server
        .with_controls(controls)
        .with_gateway(gateway)
        .with_user_code(user_code);
    let server = Arc::new(server);
    server.instance().set_http_port(http_address.port());
    take_standing(&server).await?;
    if server.controls().is_none() {
        let path = server.config().data.dir.join("key-visualizer");
        let is_there = |table: &TableName| server.shows_table(table);
        server.load().heat.keep_in(path, is_there);
    }
    if let Some(rehearsal) = server.admission().capacity().rehearsal() {
        tracing::warn!("{rehearsal}");
    }
    let stop = CancellationToken::new();
    let tasks = TaskTracker::new();

    tasks.spawn({
        let (server, stop) = (Arc::clone(&server), stop.clone());
        async move { server.admission().watch(stop).await }
    });
    tasks.spawn(relief(Arc::clone(&server), stop.clone()));
    for work in [
        Box::pin(continuous::run(Arc::clone(&server), stop.clone()))
            as Pin<Box<dyn Future<Output = ()> + Send>>,
        Box::pin(replication::run(Arc::clone(&server), stop.clone())),
    ] {
        tasks.spawn(once_primary(Arc::clone(&server), stop.clone(), work));
    }
    tasks.spawn(standby::follower::run(
        Arc::clone(&server),
        stop.clone(),
        restart.clone(),
    ));
    tasks.spawn(watch_security(Arc::clone(&server), stop.clone()));
    tasks.spawn(remote::health::run(Arc::clone(&server), stop.clone()));
    tasks.spawn(upkeep(Arc::clone(&server), recorder.clone(), stop.clone()));
    let supervisor = Arc::new(Supervisor::from_environment());
    tasks.spawn({
        let (supervisor, stop) = (Arc::clone(&supervisor), stop.clone());
        async move { supervisor.watch(stop).await }
    });
    let (config, connections) = (server.config(), &server.load().connections);
    let strangers = server.security().strangers();
    let http = net::Listener {
        socket: ports.http,
        max_connections: descriptors.http,
        setting: descriptors.http_bound(config),
        descriptors_end: descriptors.http_end(),
        port: connections.http.clone(),
        strangers: Arc::clone(strangers),
    };
    let main = net::Listener {
        socket: ports.main,
        max_connections: descriptors.main,
        setting: descriptors.main_bound(config),
        descriptors_end: descriptors.main_end(),
        port: connections.main.clone(),
        strangers: Arc::clone(strangers),
    };
    let rest = ports.rest.map(|socket| net::Listener {
        socket,
        max_connections: descriptors.rest,
        setting: descriptors.http_bound(config),
        descriptors_end: descriptors.http_end(),
        port: connections.http.clone(),
        strangers: Arc::clone(strangers),
    });
    let mut accepting = vec![
        tokio::spawn(net::http::serve(
            http,
            Arc::clone(&server),
            recorder,
            tasks.clone(),
            stop.clone(),
        )),
        tokio::spawn(net::serve(main, Arc::clone(&server), tasks.clone(), stop.clone())),
    ];
    if let Some(rest) = rest {
        tracing::info!("HBase's REST interface is on {}", rest.socket.local_addr()?);
        let serving = net::http::serve_rest(rest, Arc::clone(&server), tasks.clone(), stop.clone());
        accepting.push(tokio::spawn(serving));
    }

    tokio::spawn(reload_settings(reload, hangups, Arc::clone(&server)));
    // The signals that mean a clean stop. Until they are caught, they end the process at once.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    server.instance().set_ready(true);
    let line = ephemeral::line(
        main_address,
        http_address,
        &server.config().data.dir,
        credentials.as_ref(),
    );
    let listen_file = listen_file
        .map(|path| ListenFile::write(&path, &line))
        .transpose()?;
    let mut command = Running::start(&command, main_address, http_address)?;
    // Tools wait for this line; it comes only when calls are accepted, and when a signal is a clean stop.
    // Standard output is the command's, if there is one.
    match (server.controls(), &command) {
        (None, _) => print_line(format!(
            "basalt serves HBase clients on {main_address} and HTTP on http://{http_address}/"
        )),
        (Some(_), None) => print_line(line),
        (Some(_), Some(_)) => {}
    }
    supervisor.ready();

    let mut code = tokio::select! {
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
        code = ended(&mut command) => Some(code),
        () = restart.cancelled() => None,
    };
    if code.is_none()
        && let Some(command) = command
    {
        code = Some(command.stop().await);
    }
    drop(listen_file);
    supervisor.stopping();
    tracing::info!("stopping: no new connections, calls in hand are finished");
    server.instance().set_ready(false);
    stop.cancel();
    for port in accepting {
        port.await?;
    }
    tasks.close();
    if tokio::time::timeout(DRAIN, tasks.wait()).await.is_err() {
        tracing::warn!(
            tasks = tasks.len(),
            "calls still running after {DRAIN:?} are abandoned"
        );
    }
    server.load().close(|table| server.boundaries(table));
    server.sessions().close_all();
    if let Some(user_code) = server.user_code() {
        user_code.host().stop();
    }
    if let Some(cluster) = server.cluster()
        && tokio::time::timeout(CLOSE_SCANNERS, cluster.scanners_closed())
            .await
            .is_err()
    {
        tracing::warn!(
            "scanners of the cluster are left to their leases: it did not close them within {CLOSE_SCANNERS:?}"
        );
    }
    Ok(code.unwrap_or(ExitCode::SUCCESS))
}

/// Makes the engine one of a primary, a standby, or a server that was replaced; a primary asks its standbys
/// whether it was.
async fn take_standing(server: &Arc<Server>) -> Result<(), Failure> {
    standby::leader::ask_standbys(server).await;
    let (engine, standing) = (server.engine(), &server.copies().standing);
    match standing.role() {
        Role::Primary if server.copies().standbys.all().is_empty() => {}
        Role::Primary => engine.keep_turns()?,
        Role::Standby | Role::Copying => {
            let copy = standing.copy();
            if let Some(begin) = standing.copied() {
                engine.begin_copy(copy, begin)?;
            }
            let reached = engine.set_follows(Some(copy))?;
            let noted = standing.note_reached(reached);
            noted.map_err(|error| format!("storing the standing: {error}"))?;
        }
        Role::Fenced => engine.suspend_writes_of("standby", standing.refusal()),
    }
    Ok(())
}

/// Does work that only a primary does, once this server is one.
async fn once_primary(server: Arc<Server>, stop: CancellationToken, work: impl Future<Output = ()>) {
    while !server.copies().standing.is_primary() {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(UPKEEP_PERIOD) => {}
        }
    }
    work.await;
}

/// The exit code of the command, when it has ended. Without a command it never ends.
async fn ended(command: &mut Option<Running>) -> ExitCode {
    match command {
        Some(command) => command.ended().await,
        None => std::future::pending().await,
    }
}

/// Prints a line to standard output, on a separate thread if the system gives one, because a full pipe
/// blocks the write.
fn print_line(line: String) {
    let print = move || {
        let mut out = std::io::stdout();
        if let Err(error) = writeln!(out, "{line}").and_then(|()| out.flush()) {
            tracing::warn!(%error, "standard output did not take the line: {line}");
        }
    };
    let thread = std::thread::Builder::new().name("basalt-print".into());
    if thread.spawn(print.clone()).is_err() {
        print();
    }
}

/// Takes over changed files of users, rights and certificates every few seconds.
async fn watch_security(server: Arc<Server>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(SECURITY_PERIOD) => {}
        }
        let security = Arc::clone(server.security());
        // Fails only when the runtime stops.
        let _ = tokio::task::spawn_blocking(move || security.reload()).await;
    }
}

/// Housekeeping once a second: histograms' sample buffers, expired scanners, memory that idle
/// scanners hold, the load figures of pages.
async fn upkeep(
    server: Arc<Server>,
    recorder: metrics_exporter_prometheus::PrometheusHandle,
    stop: CancellationToken,
) {
    let mut ticks = tokio::time::interval(UPKEEP_PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {
                recorder.run_upkeep();
                server.sessions().expire();
                if let Some(gateway) = server.gateway() {
                    renew(&server, gateway);
                }
                // When scans release files, these may have to be removed from disk.
                let idle = Arc::clone(&server);
                let kept = tokio::task::spawn_blocking(move || {
                    require_directory(idle.engine());
                    idle.sessions().release_idle();
                    idle.sessions().rest(UPKEEP_PERIOD);
                    idle.note_load();
                });
                if let Err(error) = kept.await {
                    tracing::warn!(%error, "upkeep was not done");
                }
            }
        }
    }
}

/// Renews the leases that scanners of slow clients have at the cluster.
fn renew(server: &Server, gateway: &Gateway) {
    for renewal in server.sessions().renewals() {
        gateway.calls().renewed();
        tokio::spawn(async move {
            if let Err(error) = renewal.send().await {
                tracing::debug!(%error, "the lease of a scanner was not renewed; its scan opens another one");
            }
        });
    }
}

/// Fails if the data directory of a gateway has tables: they would be hidden.
fn require_no_tables(engine: &Engine, config: &Config) -> Result<(), Failure> {
    let tables = engine.tables();
    match tables.iter().find(|(table, _)| !table.name.is_system()) {
        None => Ok(()),
        Some((table, _)) => Err(format!(
            "data.dir = {}: it has tables of its own, {} for one, which a gateway would hide: give the gateway another \
             directory (--data-dir)",
            config.data.dir.display(),
            table.name
        )
        .into()),
    }
}

/// Ends the process when the path of the data directory names another directory: another server may
/// have its database there, and new files of this one would mix with its files. Acknowledged writes
/// are in the log, which was moved with its directory.
fn require_directory(engine: &Engine) {
    if let Err(error) = engine.check_directory() {
        tracing::error!("ending the process: {error}");
        crate::observe::log_queue::exit(crate::observe::log_queue::EXIT_LOG_FAILED);
    }
}

/// Catches SIGHUP, and ignores other signals that would end the process by default: SIGUSR1 and
/// SIGUSR2, which operators send to other servers. REQUIRES: called within the runtime.
fn catch_or_ignore_signals() -> std::io::Result<Signal> {
    for (name, kind) in [
        ("SIGUSR1", SignalKind::user_defined1()),
        ("SIGUSR2", SignalKind::user_defined2()),
    ] {
        let mut signals = signal(kind)?;
        // The task ends with the runtime.
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                tracing::info!(
                    "{name} is ignored: SIGHUP takes settings over from the file, and SIGTERM stops the server"
                );
            }
        });
    }
    signal(SignalKind::hangup())
}

/// Reloads settings at each SIGHUP, also one that came during the start. The task ends with the
/// runtime.
async fn reload_settings(reload: Reload, mut hangups: Signal, server: Arc<Server>) {
    let reload = Arc::new(reload);
    while hangups.recv().await.is_some() {
        let (reload, server) = (Arc::clone(&reload), Arc::clone(&server));
        if let Err(error) = tokio::task::spawn_blocking(move || reload.run(&server)).await {
            tracing::warn!(%error, "settings were not read again");
        }
    }
}

/// Makes idle scanners release memory when calls are short of it.
async fn relief(server: Arc<Server>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = server.admission().memory().short() => {}
        }
        let idle = Arc::clone(&server);
        let rested = tokio::task::spawn_blocking(move || idle.sessions().rest(RELIEF_PERIOD));
        if let Err(error) = rested.await {
            tracing::warn!(%error, "idle scanners kept their memory");
        }
        tokio::time::sleep(RELIEF_PERIOD).await;
    }
}
