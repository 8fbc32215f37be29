//! Metrics, logs and the figures that pages show: observation of the server, which decides nothing.

pub(crate) mod heat;
pub(crate) mod load;
pub(crate) mod log_filter;
pub(crate) mod log_limit;
pub(crate) mod log_queue;
pub(crate) mod metrics;
pub(crate) mod rates;
pub(crate) mod recent;
pub(crate) mod slow_log;
pub(crate) mod tail;
