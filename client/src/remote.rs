//! Exceptions that a server of HBase's native protocol answers, and a client's reaction to them.
//!
//! | advice | reason | next step |
//! | --- | --- | --- |
//! | [`Advice::Relocate`] | the region is not there, or the call got no answer | look the region up again, after a pause |
//! | [`Advice::Moved`] | the region is on a server that the exception names | remember that, repeat at once |
//! | [`Advice::ServerGone`] | the connection is lost, or the server stops | drop its regions from the cache, pause |
//! | [`Advice::Wait`], [`Advice::WaitOverloaded`], [`Advice::WaitFor`] | a condition that passes | pause, repeat |
//! | [`Advice::Now`] | the answer became too large | repeat at once |
//! | [`Advice::Final`] | everything else | report it |

use std::fmt;
use std::time::Duration;

use basalt_idl::native::exception::ExceptionClass;
use basalt_idl::native::messages::{ExceptionResponse, NameBytesPair};

use crate::server_name::ServerName;

/// Longest time that a client waits because a server's quota asks for it.
const QUOTA_WAIT_MAX: Duration = Duration::from_mins(1);

/// The origin of an exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The method that was called.
    pub method: &'static str,
    /// The server as `host:port`.
    pub server: String,
    /// The region's name with bytes escaped; `None` for calls that are not about a region.
    pub region: Option<String>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.method, self.server)?;
        match &self.region {
            Some(region) => write!(f, " in region {region}"),
            None => Ok(()),
        }
    }
}

/// An exception that a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteException {
    /// The call.
    pub origin: Origin,
    /// The full name of the Java class.
    pub class: String,
    /// The server's text, without the class name and without the stack trace.
    pub message: String,
    /// Whether the same call fails again.
    pub do_not_retry: bool,
    /// Whether the server says that it is overloaded.
    pub overloaded: bool,
    /// The server to which the region has moved.
    pub moved_to: Option<ServerName>,
}

impl fmt::Display for RemoteException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.class_name(), self.message, self.origin)
    }
}

impl RemoteException {
    /// The class without its package.
    pub fn class_name(&self) -> &str {
        self.class.rsplit('.').next().unwrap_or(&self.class)
    }

    /// Whether it is of this class.
    pub fn is(&self, class: ExceptionClass) -> bool {
        self.class == class.name()
    }

    /// An exception of a response header.
    pub(crate) fn of_response(exception: ExceptionResponse, origin: Origin) -> RemoteException {
        let class = exception.exception_class_name.unwrap_or_default();
        let text = exception.stack_trace.unwrap_or_default();
        RemoteException {
            do_not_retry: exception.do_not_retry == Some(true) || is_final(&class),
            overloaded: exception.server_overloaded == Some(true),
            ..RemoteException::of_text(origin, class, &text)
        }
    }

    /// An exception of one action or region of a Multi.
    pub(crate) fn of_pair(pair: NameBytesPair, origin: Origin) -> RemoteException {
        let text = pair.value.unwrap_or_default();
        RemoteException::of_text(origin, pair.name, &String::from_utf8_lossy(&text))
    }

    /// An exception that the client itself raises, of a class that HBase has for it.
    pub(crate) fn local(class: ExceptionClass, origin: Origin, message: &str) -> RemoteException {
        RemoteException {
            do_not_retry: class.do_not_retry(),
            ..RemoteException::of_text(origin, class.name().to_owned(), message)
        }
    }

    pub(crate) fn of_text(origin: Origin, class: String, text: &str) -> RemoteException {
        let message = text.split("\n\tat ").next().unwrap_or_default().trim();
        let message = message.strip_prefix(&class).unwrap_or(message);
        let message = message.trim_start_matches(':').trim();
        let do_not_retry = is_final(&class);
        let moved_to = moved_to(&class, text);
        let (class, message) = match wrapped(&class, message) {
            Some((wrapped, message)) => (wrapped.to_owned(), message),
            None => (class, message),
        };
        RemoteException {
            origin,
            do_not_retry,
            overloaded: false,
            moved_to,
            message: message.to_owned(),
            class,
        }
    }

    /// The next step after it.
    pub(crate) fn advice(&self) -> Advice {
        if let Some(server) = &self.moved_to {
            return Advice::Moved(server.clone());
        }
        match self.class_name() {
            "NotServingRegionException" | "WrongRegionException" | "RegionOfflineException" => {
                Advice::Relocate
            }
            "RegionServerStoppedException"
            | "RegionServerAbortedException"
            | "ServerNotRunningYetException"
            | "MasterStoppedException"
            | "MasterNotRunningException"
            | "FatalConnectionException" => Advice::ServerGone,
            "RetryImmediatelyException" | "MultiActionResultTooLarge" => Advice::Now,
            "CallQueueTooBigException" | "CallDroppedException" => Advice::WaitOverloaded,
            "RpcThrottlingException" => throttled(&self.message).map_or(Advice::Wait, Advice::WaitFor),
            _ if self.do_not_retry => Advice::Final,
            _ if self.overloaded => Advice::WaitOverloaded,
            _ => Advice::Wait,
        }
    }

    /// Whether a scan can go on with a new scanner.
    pub(crate) fn ends_scanner(&self) -> bool {
        let classes = [
            ExceptionClass::UnknownScanner,
            ExceptionClass::ScannerReset,
            ExceptionClass::OutOfOrderScannerNext,
        ];
        classes.into_iter().any(|class| self.is(class)) || self.class_name() == "LeaseException"
    }
}

/// The client's next step after a failed attempt. The module comment has the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    Final,
    Relocate,
    Moved(ServerName),
    ServerGone,
    Wait,
    WaitOverloaded,
    WaitFor(Duration),
    Now,
}

/// Whether a class means that the call must not be repeated, where the answer does not say it.
fn is_final(class: &str) -> bool {
    match ExceptionClass::ALL.iter().find(|known| known.name() == class) {
        Some(known) => known.do_not_retry(),
        None => class.contains("DoNotRetry") || FINAL.iter().any(|name| class.ends_with(name)),
    }
}

/// Final classes that are not in [`ExceptionClass`].
const FINAL: [&str; 6] = [
    ".LeaseException",
    ".QuotaExceededException",
    ".SpaceLimitingException",
    ".WrongRowIOException",
    ".CorruptedSnapshotException",
    ".MasterRegistryFetchException",
];

/// The new place in a RegionMovedException: `... hostname=h port=1 startCode=2. As of locationSeqNum=3.`
fn moved_to(class: &str, text: &str) -> Option<ServerName> {
    if !class.ends_with(".RegionMovedException") {
        return None;
    }
    let value = |key: &str| {
        let (_, rest) = text.split_once(key)?;
        rest.split([' ', '\n'])
            .next()
            .map(|word| word.trim_end_matches('.'))
    };
    Some(ServerName {
        host: value("hostname=")?.to_owned(),
        port: value("port=")?.parse().ok()?,
        start_code: value("startCode=")?.parse().ok()?,
    })
}

/// The wait that a throttled call is asked for: `... - wait 1mins, 2sec, 250ms`.
fn throttled(text: &str) -> Option<Duration> {
    let (_, wait) = text.split_once("wait ")?;
    let mut total = Duration::ZERO;
    for part in wait.split([',', '\n']).map(str::trim) {
        let unit = part.find(|c: char| !c.is_ascii_digit())?;
        let count: u64 = part[..unit].parse().ok()?;
        let ms = match part[unit..].trim().trim_end_matches('.') {
            "hrs" => 3_600_000,
            "mins" => 60_000,
            "sec" => 1_000,
            "ms" => 1,
            _ => return None,
        };
        total += Duration::from_millis(count.checked_mul(ms)?);
    }
    Some(total.min(QUOTA_WAIT_MAX))
}

/// The class of HBase's in a final exception's text, and the rest of the text: a server puts classes there
/// that HBase's own clients do not have.
fn wrapped<'t>(class: &str, message: &'t str) -> Option<(&'t str, &'t str)> {
    if class != ExceptionClass::DoNotRetryIo.name() {
        return None;
    }
    let (wrapped, message) = message.split_once(": ")?;
    let is_class = wrapped.starts_with("org.apache.hadoop.hbase.") && wrapped.ends_with("Exception");
    (is_class && !wrapped.contains(' ')).then_some((wrapped, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exception(class: &str, text: &str) -> RemoteException {
        let origin = Origin {
            method: "Get",
            server: "h:1".to_owned(),
            region: Some("t,,1".to_owned()),
        };
        RemoteException::of_text(origin, format!("org.apache.hadoop.hbase.{class}"), text)
    }

    #[test]
    fn the_text_names_class_method_server_and_region() {
        let class = "org.apache.hadoop.hbase.NotServingRegionException";
        let text = format!("{class}: t,,1 is not online\n\tat org.apache.Foo");
        let shown = exception("NotServingRegionException", &text).to_string();
        assert_eq!(
            shown,
            "NotServingRegionException: t,,1 is not online (Get at h:1 in region t,,1)"
        );
    }

    #[test]
    fn a_class_in_the_text_of_a_final_exception_counts() {
        let text =
            "org.apache.hadoop.hbase.constraint.ConstraintException: Namespace n has 1 tables: drop it";
        let found = exception(
            "DoNotRetryIOException",
            &format!("org.apache.hadoop.hbase.DoNotRetryIOException: {text}"),
        );
        assert_eq!(
            (found.class_name(), found.message.as_str(), found.do_not_retry),
            ("ConstraintException", "Namespace n has 1 tables: drop it", true)
        );
        for text in [
            "java.lang.UnsupportedOperationException: Grant",
            "Class a.BException: no",
            "no class",
        ] {
            let found = exception("DoNotRetryIOException", text);
            assert_eq!(
                (found.class_name(), found.message.as_str()),
                ("DoNotRetryIOException", text)
            );
        }
        let retried = exception("RegionTooBusyException", text);
        assert_eq!(retried.class_name(), "RegionTooBusyException");
    }

    #[test]
    fn a_moved_region_names_its_new_server() {
        let text = "Region moved to: hostname=b.example port=16020 startCode=17. As of locationSeqNum=5.";
        let moved = exception("exceptions.RegionMovedException", text);
        let server = ServerName {
            host: "b.example".to_owned(),
            port: 16_020,
            start_code: 17,
        };
        assert_eq!(moved.advice(), Advice::Moved(server));
        let garbled = exception("exceptions.RegionMovedException", "hostname=b port=x");
        assert_eq!(garbled.advice(), Advice::Wait);
    }

    #[test]
    fn quotas_say_how_long_to_wait() {
        let waits = [
            ("number of requests exceeded - wait 1sec, 250ms", Some(1_250)),
            ("read size limit exceeded - wait 2mins, 3sec", Some(60_000)),
            ("number of requests exceeded - wait 18446744073709551615hrs", None),
            ("no time", None),
        ];
        for (text, ms) in waits {
            let advice = exception("quotas.RpcThrottlingException", text).advice();
            let expected = ms.map_or(Advice::Wait, |ms| Advice::WaitFor(Duration::from_millis(ms)));
            assert_eq!(advice, expected, "{text}");
        }
    }

    #[test]
    fn classes_decide_where_no_flag_is_sent() {
        for class in [
            "DoNotRetryIOException",
            "regionserver.NoSuchColumnFamilyException",
            "client.WrongRowIOException",
        ] {
            assert_eq!(exception(class, "").advice(), Advice::Final, "{class}");
        }
        for class in ["RegionTooBusyException", "PleaseHoldException"] {
            assert_eq!(exception(class, "").advice(), Advice::Wait, "{class}");
        }
        assert!(exception("UnknownScannerException", "").ends_scanner());
    }
}
