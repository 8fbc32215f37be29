//! The cluster: the state that its handles share, and one call on one region with its retries.

use std::sync::Arc;

use basalt_idl::native::messages::{
    GetRequest, GetResponse, MultiRequest, MultiResponse, MutateRequest, MutateResponse, NameBytesPair,
    RegionSpecifier, ScanRequest, ScanResponse,
};
use prost::Message;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::advice::{advice, is_outcome_unknown};
use super::connection::Service;
use super::connection::{Call, Reply};
use super::connections::Connections;
use super::directory::Directory;
use super::look_ups::LookUps;
use super::meta::{meta_table, priority};
use super::observer::Observer;
use super::options::ClusterOptions;
use super::regions::{Region, RegionCache};
use super::retry::{Attempts, random};
use crate::error::{Error, Result, copy};
use crate::name::TableName;
use crate::remote::{Advice, RemoteException};

/// A client of a cluster. Clones share its connections and its cache of regions; use one for a whole program.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub(super) inner: Arc<Inner>,
}

/// State that the handles of a cluster share.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) options: Arc<ClusterOptions>,
    pub(super) connections: Arc<Connections>,
    pub(super) directory: Directory,
    pub(super) regions: RegionCache,
    pub(super) look_ups: LookUps,
    /// Scanners that are being closed in the background.
    pub(super) closing: watch::Sender<usize>,
    /// Marks this client in nonces.
    pub(super) nonce_group: u64,
}

/// Whether a call may be repeated after a failure with an unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// A repetition has no further effect, or the server recognises it by its nonce.
    Always,
    Never,
}

/// A request about one region.
pub(super) trait RegionRequest: Message {
    type Response: Message + Default;
    const METHOD: &'static str;
    /// Whether it may write.
    const CHANGES: bool;

    fn set_region(&mut self, region: RegionSpecifier);

    /// A failure inside the answer.
    fn take_failure(_response: &mut Self::Response) -> Option<NameBytesPair> {
        None
    }
}

impl RegionRequest for GetRequest {
    type Response = GetResponse;
    const METHOD: &'static str = "Get";
    const CHANGES: bool = false;

    fn set_region(&mut self, region: RegionSpecifier) {
        self.region = region;
    }
}

impl RegionRequest for MutateRequest {
    type Response = MutateResponse;
    const METHOD: &'static str = "Mutate";
    const CHANGES: bool = true;

    fn set_region(&mut self, region: RegionSpecifier) {
        self.region = region;
    }
}

impl RegionRequest for ScanRequest {
    type Response = ScanResponse;
    const METHOD: &'static str = "Scan";
    const CHANGES: bool = false;

    fn set_region(&mut self, region: RegionSpecifier) {
        self.region = Some(region);
    }
}

/// A Multi with one atomic group.
impl RegionRequest for MultiRequest {
    type Response = MultiResponse;
    const METHOD: &'static str = "Multi";
    const CHANGES: bool = true;

    fn set_region(&mut self, region: RegionSpecifier) {
        for action in &mut self.region_action {
            action.region = region.clone();
        }
    }

    fn take_failure(response: &mut MultiResponse) -> Option<NameBytesPair> {
        response.region_action_result.iter_mut().find_map(|result| {
            let mut actions = result.result_or_exception.iter_mut();
            let of_action = actions.find_map(|action| action.exception.take());
            result.exception.take().or(of_action.map(|pair| *pair))
        })
    }
}

impl Cluster {
    /// A client that connects when first used.
    pub fn new(options: ClusterOptions) -> Cluster {
        let options = Arc::new(options);
        let connections = Arc::new(Connections::new(Arc::clone(&options)));
        Cluster {
            inner: Arc::new(Inner {
                directory: Directory::new(Arc::clone(&options), Arc::clone(&connections)),
                connections,
                options,
                regions: RegionCache::default(),
                look_ups: LookUps::default(),
                closing: watch::Sender::new(0),
                nonce_group: random(),
            }),
        }
    }

    /// A client that has found the server of `hbase:meta`. Fails if it cannot be found within the retries and
    /// the operation's time.
    pub async fn connect(options: ClusterOptions) -> Result<Cluster> {
        let cluster = Cluster::new(options);
        let inner = &cluster.inner;
        let mut attempts = Attempts::begin(&inner.options);
        while let Err(error) = inner.reach_meta(attempts.call_deadline()).await {
            attempts
                .pause(error, || "connecting to the cluster".to_owned())
                .await?;
        }
        Ok(cluster)
    }

    /// The options.
    pub fn options(&self) -> &ClusterOptions {
        &self.inner.options
    }

    /// Drops the known locations of a table's regions, for tests of look-ups and after changes by others.
    pub fn evict_regions(&self, table: &TableName) {
        self.inner.regions.remove_table(table);
    }
}

impl Inner {
    async fn reach_meta(&self, deadline: Instant) -> Result<()> {
        let meta = self.region_of(&meta_table(), b"", deadline).await?;
        let connected = self
            .connections
            .get(&meta.address, Service::Client, deadline)
            .await;
        connected
            .inspect_err(|error| self.note_failure(&meta, error))
            .map(drop)
    }

    /// Makes a call on the region that has a row, and repeats it after transient failures.
    pub(super) async fn on_region<R: RegionRequest>(
        &self,
        table: &TableName,
        row: &[u8],
        mut request: R,
        repeat: Repeat,
    ) -> Result<Reply<R::Response>> {
        let mut attempts = Attempts::begin(&self.options);
        let what = || format!("{} of row {} in table {table}", R::METHOD, row.escape_ascii());
        let mut sent = None;
        loop {
            let deadline = attempts.call_deadline();
            let error = match self.region_in_time(table, row, deadline).await {
                Ok(region) => match self.send(&region, &mut request, deadline).await {
                    Ok(reply) => return Ok(reply),
                    Err(error) => {
                        if R::CHANGES && is_outcome_unknown(&error) {
                            sent = Some(copy(&error));
                        }
                        let checked = self.after_failure(&region, &error, deadline).await;
                        checked.map_err(|error| after_sent(sent.take(), error, what))?;
                        if repeat == Repeat::Never && is_outcome_unknown(&error) {
                            return Err(error);
                        }
                        error
                    }
                },
                Err(error) => error,
            };
            let paused = attempts.pause(error, what).await;
            if let Err(error) = paused {
                return Err(after_sent(sent, error, what));
            }
        }
    }

    /// The region that has a row.
    pub(super) async fn region_with_retries(&self, table: &TableName, row: &[u8]) -> Result<Arc<Region>> {
        let mut attempts = Attempts::begin(&self.options);
        loop {
            match self.region_in_time(table, row, attempts.call_deadline()).await {
                Ok(region) => return Ok(region),
                Err(error) => {
                    attempts
                        .pause(error, || format!("looking up a region of {table}"))
                        .await?;
                }
            }
        }
    }

    /// The region that has a row; the look-up ends with the deadline.
    pub(super) async fn region_in_time(
        &self,
        table: &TableName,
        row: &[u8],
        deadline: Instant,
    ) -> Result<Arc<Region>> {
        let began = Instant::now();
        let looking_up = self.region_of(table, row, deadline);
        timeout_at(deadline, looking_up)
            .await
            .unwrap_or_else(|_| Err(self.away(look_up_timeout(table, began, deadline))))
    }

    /// Reports an event to the observer, if there is one.
    pub(super) fn note(&self, event: impl FnOnce(&dyn Observer)) {
        if let Some(observer) = &self.options.observer {
            event(&**observer);
        }
    }

    /// Makes one call on a region.
    pub(super) async fn send<R: RegionRequest>(
        &self,
        region: &Region,
        request: &mut R,
        deadline: Instant,
    ) -> Result<Reply<R::Response>> {
        request.set_region(region.specifier());
        let connection = self
            .connections
            .get(&region.address, Service::Client, deadline)
            .await?;
        let call = Call {
            method: R::METHOD,
            region: Some(&region.name),
            priority: priority(&region.table),
            deadline,
            opens_scanner: false,
        };
        let mut reply = connection.call::<R::Response>(&call, request, b"").await?;
        match R::take_failure(&mut reply.message) {
            Some(pair) => {
                let exception = RemoteException::of_pair(pair, connection.origin(&call));
                Err(Error::Remote(Box::new(exception)))
            }
            None => Ok(reply),
        }
    }

    /// Updates the cached location of a region after a failed call.
    pub(super) fn note_failure(&self, region: &Region, error: &Error) {
        match advice(error) {
            Advice::Relocate => self.regions.remove(region),
            Advice::Moved(server) => self.regions.moved(region, server),
            Advice::ServerGone => self.regions.remove_server(&region.address),
            _ => {}
        }
    }
}

/// The error of an operation that fails at last. It must not say that nothing was done if an earlier attempt
/// was sent and has got no answer.
fn after_sent(sent: Option<Error>, last: Error, what: impl Fn() -> String) -> Error {
    match sent {
        Some(sent) if !is_outcome_unknown(&last) => Error::Sent {
            what: what(),
            sent: Box::new(sent),
            last: Box::new(last),
        },
        _ => last,
    }
}

/// The error of a look-up that takes too long.
pub(super) fn look_up_timeout(table: &TableName, began: Instant, deadline: Instant) -> Error {
    Error::Timeout {
        what: "looking up a region of",
        target: format!("table {table}"),
        limit: deadline.saturating_duration_since(began),
    }
}
