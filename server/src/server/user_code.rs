//! Users' classes: the Java host with its settings, the classes that may be loaded, figures.
//!
//! With security on, loading code needs the global ADMIN right: a class is loaded by the first call of a
//! caller who has it, or by any call if `user_code.classes` names it. Once it was loaded, every caller may
//! have it used, also by a host that was started anew.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use basalt_engine::cell::CellBatch;
use basalt_engine::filter::{FilterSender, UserFilter};
use basalt_engine::schema::TableName;
use basalt_host::filter::{Loaded, Loads};
use basalt_host::{Error, Host, Settings};
use metrics::{counter, histogram};
use parking_lot::Mutex;

use crate::config;
use crate::observe::metrics::names;
use crate::security::{Action, Caller, Security, Target};
use crate::server::Server;

/// Most classes that are remembered as loaded, and that have series of their own.
const CLASSES_MAX: usize = 500;
/// Label of the others.
const OTHER: &str = "other";
/// Name of the host's jar beside the program.
const HOST_JAR: &str = "basalt-host.jar";

/// The host of users' classes.
#[derive(Debug)]
pub(crate) struct UserCode {
    host: Arc<Host>,
    /// Classes that `user_code.classes` names or that were loaded.
    known: Mutex<BTreeSet<String>>,
}

impl UserCode {
    /// The host of these settings, without a process; `None` if there are no directories. The error is for
    /// operators.
    pub(crate) fn of(config: &config::UserCode) -> Result<Option<Self>, String> {
        if config.directories.is_empty() {
            return Ok(None);
        }
        for directory in &config.directories {
            if !directory.is_dir() {
                return Err(format!(
                    "user_code.directories: {} is not a folder",
                    directory.display()
                ));
            }
        }
        let program = host_jar(config)?;
        let class_path = match &config.java_class_path {
            set if !set.is_empty() => set.clone(),
            _ => beside(&program, "lib").join("*").display().to_string(),
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let host = Host::new(Settings {
            command: config.java_command.clone(),
            program,
            class_path,
            directories: config.directories.clone(),
            heap_bytes: config.java_heap_bytes,
            deadline: Duration::from_millis(config.deadline_ms),
            start_max: Duration::from_millis(config.java_start_ms),
            // More would leave too few threads of the blocking pool for other calls.
            sockets: match config.sockets {
                0 => (2 * processors).clamp(2, 16),
                sockets => sockets,
            },
        });
        Ok(Some(Self {
            host: Arc::new(host),
            known: Mutex::new(config.classes.iter().cloned().collect()),
        }))
    }

    pub(crate) fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// Classes that a sender may have loaded.
    pub(crate) fn loads(&self, sender: &FilterSender) -> Loads {
        if sender.may_load {
            Loads::All
        } else {
            Loads::Only(self.known.lock().iter().cloned().collect())
        }
    }

    /// Notes classes that a call has had loaded.
    pub(crate) fn note_loads(
        &self,
        security: &Security,
        sender: &FilterSender,
        table: &TableName,
        loaded: &[Loaded],
    ) {
        for Loaded { class, jar, digest } in loaded {
            let user = sender.user.as_deref();
            tracing::info!(%class, %jar, %digest, user, table = %table, "a class of a user was loaded");
            security.note_code_loaded(user, table, class, jar);
            let mut known = self.known.lock();
            if known.len() < CLASSES_MAX {
                known.insert(class.clone());
            }
        }
    }

    /// Counts a call.
    pub(crate) fn count(&self, class: &str, took: Duration, error: Option<&Error>) {
        let class = if self.known.lock().contains(class) {
            class.to_owned()
        } else {
            OTHER.to_owned()
        };
        histogram!(names::USER_CODE_SECONDS, "class" => class.clone()).record(took.as_secs_f64());
        if let Some(error) = error {
            counter!(names::USER_CODE_ERRORS, "class" => class, "reason" => reason(error)).increment(1);
        }
    }

    /// Brings the figures up to date.
    pub(crate) fn publish(&self) {
        let figures = self.host.figures();
        counter!(names::USER_CODE_STARTS).absolute(figures.starts);
        counter!(names::USER_CODE_FAILURES).absolute(figures.failures);
    }
}

fn host_jar(config: &config::UserCode) -> Result<PathBuf, String> {
    let jar = if config.java_host.as_os_str().is_empty() {
        let program = std::env::current_exe().map_err(|error| format!("user_code.java_host: {error}"))?;
        beside(&program, HOST_JAR)
    } else {
        config.java_host.clone()
    };
    if jar.exists() {
        return Ok(jar);
    }
    Err(format!(
        "user_code.java_host: there is no {}; packages/java/host builds it",
        jar.display()
    ))
}

fn beside(file: &Path, name: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new(".")).join(name)
}

/// The reason of an error as a label.
fn reason(error: &Error) -> &'static str {
    match error {
        Error::Thrown { .. } => "thrown",
        Error::Busy { .. } => "busy",
        Error::Late(_) => "late",
        Error::Ended | Error::Restarted => "ended",
        Error::Nonsense(_) => "nonsense",
        Error::NotStarted(_) => "not_started",
        Error::GivenUp(_) => "given_up",
        Error::TooLarge => "too_large",
    }
}

impl Server {
    /// The sender of filters of a caller, if this server runs users' classes.
    pub(crate) fn filter_sender(&self, caller: &Caller) -> Option<FilterSender> {
        self.user_code.as_ref()?;
        Some(FilterSender {
            user: caller.user_name().map(Arc::from),
            may_load: self.access.shows(caller, Action::Admin, Target::Server),
        })
    }
}

/// A filter that is open in the host. Closed there when it is dropped.
#[derive(Debug)]
pub(crate) struct OpenFilter {
    pub(crate) host: Arc<Host>,
    /// The process that has it.
    pub(crate) incarnation: u64,
    pub(crate) handle: u64,
}

impl Drop for OpenFilter {
    fn drop(&mut self) {
        self.host.forget(self.incarnation, self.handle);
    }
}

/// The state of a scan with a filter of a user's class.
#[derive(Debug)]
pub(crate) struct UserScan {
    pub(crate) filter: UserFilter,
    /// Most cells of a result.
    pub(crate) batch: Option<usize>,
    /// Rows that may still be returned.
    pub(crate) rows_left: u64,
    /// `None` until the first rows are judged.
    pub(crate) open: Option<OpenFilter>,
    /// Rows that passed.
    pub(crate) ready: CellBatch,
    /// The first of them that is not returned,
    pub(crate) next_row: usize,
    /// and the number of its cells that are.
    pub(crate) next_cell: usize,
    /// Rows that the next call asks about.
    pub(crate) candidates: usize,
    /// Where the filter wants to go on.
    pub(crate) jump: Option<Vec<u8>>,
    /// Rows that were judged and are no results, since the last answer.
    pub(crate) passed_over: u64,
    /// The filter wants nothing more.
    pub(crate) is_ended_by_filter: bool,
    /// There are no more rows to judge.
    pub(crate) is_exhausted: bool,
}

impl UserScan {
    /// A scan before its first row, whose judged rows are charged to the batch's budget.
    pub(crate) fn new(
        filter: UserFilter,
        batch: Option<usize>,
        limit: Option<u64>,
        ready: CellBatch,
    ) -> Self {
        Self {
            filter,
            batch,
            rows_left: limit.unwrap_or(u64::MAX),
            open: None,
            ready,
            next_row: 0,
            next_cell: 0,
            candidates: 1,
            jump: None,
            passed_over: 0,
            is_ended_by_filter: false,
            is_exhausted: false,
        }
    }

    /// Whether judged rows wait to be returned.
    pub(crate) fn has_ready(&self) -> bool {
        self.next_row < self.ready.row_count()
    }

    /// Whether nothing follows the rows that are ready.
    pub(crate) fn is_over(&self) -> bool {
        self.is_exhausted || self.is_ended_by_filter
    }
}
