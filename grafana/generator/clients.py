"""What clients do, and what of it fails, is refused or has to wait."""

from panels import bars, graph
from queries import quantile, share, summed, total, worst

UID = "basalt-clients"
TITLE = "Basalt: clients and errors"
DESCRIPTION = "Exceptions, latency by method, connections, scanners, calls that are refused or held back."
ALERTS = [
    "BasaltDown", "BasaltErrorRate", "BasaltReadsSlow", "BasaltPutsSlow", "BasaltCallsRefused", "BasaltConnectionsRefused",
    "BasaltLogLinesLost", "BasaltLoginsFail", "BasaltCertificateExpires", "BasaltAuditLost",
]

ERRORS = [
    graph(
        "Exceptions by class", "ops",
        (total("basalt_errors_total", "exception"), "{{exception}}"),
        description="Calls answered with an exception. A series begins with its first error, so that one shows in the panel "
        "beside this.",
        width=12,
    ),
    bars(
        "Exceptions since the start", "short",
        f"topk(10, {summed('basalt_errors_total', 'api', 'method', 'exception')})", "{{api}} {{method}} {{exception}}",
        "Which call failed how, counted since the server started.",
    ),
    graph(
        "Share of calls that failed, by method", "percentunit",
        (
            share(
                total("basalt_failed_requests_total", "api", "method"),
                total("basalt_requests_total", "api", "method"),
            ),
            "{{api}} {{method}}",
        ),
        description="Only methods that are called. The alert BasaltErrorRate looks at all methods together.",
        width=24, max_=1, limit=0.05,
    ),
]

LATENCY = [
    graph(
        "Latency by method, p99", "s",
        (quantile(0.99, "basalt_request_duration_seconds", "api", "method"), "{{api}} {{method}}"),
        description="The slowest hundredth of the calls of each method. A scan that fetches many rows is rightly slower "
        "than a get.",
        width=12,
    ),
    graph(
        "Calls in the slow log", "ops",
        (total("basalt_slow_calls_total", "kind"), "{{kind}}"),
        description="Calls that took longer than slow_log.threshold_ms or had answers larger than slow_log.large_bytes. "
        "The page /slow of the server says which calls.",
        width=12,
    ),
]

LOAD = [
    graph(
        "Refused calls", "ops",
        (total("basalt_refused_calls_total", "reason"), "{{reason}}"),
        description="Data calls refused before any work was done: no memory for calls in hand, the line for threads too long, "
        "network threads late.",
    ),
    graph(
        "Memory of calls in hand", "bytes",
        (summed("basalt_request_memory_bytes"), "used"),
        (summed("basalt_request_memory_limit_bytes"), "limit"),
        description="Messages and results, and requests.memory_bytes, where calls are refused.",
    ),
    graph(
        "Calls that wait for a thread", "short",
        (worst("basalt_waiting_calls"), "{{instance}}"),
        description="They wait behind others that read from disk or wait for row locks.",
    ),
    graph(
        "Calls held back, p99", "s",
        (quantile(0.99, "basalt_held_back_seconds", "by"), "{{by}}"),
        description="For how long calls wait because a quota or a virtual server of a rehearsal is used up.",
        width=12,
    ),
    graph(
        "Calls throttled", "reqps",
        (total("basalt_throttled_calls_total", "by"), "{{by}}"),
        description="Calls refused with RpcThrottlingException because they would have waited longer than quota.max_wait_ms.",
        width=12,
    ),
]

CONNECTIONS = [
    graph(
        "Connections", "short",
        (summed("basalt_connections", "instance"), "{{instance}}"),
        description="Open connections of the main port. Beyond server.max_connections new ones are closed at once.",
    ),
    graph(
        "Connections opened and refused", "cps",
        (total("basalt_connections_accepted_total"), "accepted"),
        (total("basalt_connections_rejected_total"), "rejected: too many"),
        (total("basalt_unauthenticated_rejected_total"), "rejected: too many of an address without a login"),
        (total("basalt_protocol_errors_total"), "ended by bytes that are no message"),
        description="A high rate of new connections means clients without a pool.",
    ),
    graph(
        "HTTP connections", "short",
        (summed("basalt_http_connections"), "open"),
        (total("basalt_http_connections_accepted_total"), "accepted a second"),
        (total("basalt_http_connections_rejected_total"), "rejected a second: too many"),
        description="Connections of the HTTP port: Thrift calls, scrapes, status pages.",
    ),
    graph(
        "Received", "Bps",
        (total("basalt_received_bytes_total", "instance"), "{{instance}}"),
        description="Bytes of Thrift messages from clients.",
        width=12,
    ),
    graph(
        "Sent", "Bps",
        (total("basalt_sent_bytes_total", "instance"), "{{instance}}"),
        description="Bytes of answers. Much more than clients need: name the columns, filter in the server.",
        width=12,
    ),
]

SCANNERS = [
    graph(
        "Open scanners", "short",
        (summed("basalt_scanner_sessions", "instance"), "{{instance}}"),
        description="Scanner sessions that clients have open. scanner.max_sessions limits them.",
        width=12,
    ),
    graph(
        "Scanners opened and expired", "ops",
        (total("basalt_scanner_sessions_opened_total"), "opened"),
        (total("basalt_scanner_sessions_expired_total"), "expired"),
        description="An expired scanner was not closed by its client: nobody fetched for scanner.lease_ms.",
        width=12,
    ),
]

REPLICATION = [
    graph(
        "Replicated edits", "ops",
        (total("basalt_replication_sink_edits_total"), "edits"),
        (total("basalt_replication_sink_loaded_files_total"), "files of bulk loads"),
        (total("basalt_replication_sink_dropped_total", "kind"), "dropped: {{kind}}"),
        description="Edits that an HBase sends because this server is its replication peer.",
    ),
    graph(
        "Replicated batches", "ops",
        (total("basalt_replication_sink_batches_total"), "applied"),
        (total("basalt_replication_sink_failed_batches_total"), "refused"),
        description="The source sends a refused batch again. The log says why it was refused.",
    ),
    graph(
        "Age of the last replicated edit", "s",
        (worst("basalt_replication_sink_age_seconds"), "{{instance}}"),
        description="From the write at its source until it was durable here.",
    ),
]

ROWS = [
    ("Errors", ERRORS),
    ("Latency", LATENCY),
    ("Refused and held back", LOAD),
    ("Connections", CONNECTIONS),
    ("Scanners", SCANNERS),
    ("Replication", REPLICATION),
]
