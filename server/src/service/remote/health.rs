//! Looks at the cluster behind a gateway: whether `hbase:meta` and the region servers answer.
//!
//! A look is one read from meta, the list of servers, and one small call to each, all with a short limit. The
//! list is that of the last look where the registry does not answer: data calls do not need the registry
//! then, either.

use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_client::native::{Cluster, ServerName};
use tokio_util::sync::CancellationToken;

use crate::server::Server;
use crate::server::gateway::{Seen, SeenServer};

/// Time between two looks.
const PERIOD: Duration = Duration::from_secs(2);
/// Longest time of each step.
const LIMIT: Duration = Duration::from_secs(3);

/// Looks at the cluster until the server stops. Ends at once for a server that is no gateway.
pub(crate) async fn run(server: Arc<Server>, stop: CancellationToken) {
    let Some(gateway) = server.gateway() else {
        return;
    };
    let mut known = Vec::new();
    loop {
        let looking = look(gateway.cluster(), &mut known);
        tokio::select! {
            () = stop.cancelled() => return,
            seen = looking => gateway.saw(seen),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(PERIOD) => {}
        }
    }
}

async fn look(cluster: &Cluster, known: &mut Vec<ServerName>) -> Seen {
    let meta = cluster.meta_answers(LIMIT).await;
    if let Ok(Ok(listed)) = tokio::time::timeout(LIMIT, cluster.region_servers()).await {
        *known = listed;
    }
    let asking = known.iter().map(|server| ask(cluster, server));
    Seen {
        meta: meta
            .map(|server| server.to_string())
            .map_err(|error| error.to_string()),
        servers: futures_util::future::join_all(asking).await,
        at: Instant::now(),
    }
}

async fn ask(cluster: &Cluster, server: &ServerName) -> SeenServer {
    let began = Instant::now();
    let answer = cluster.server_answers(server, LIMIT).await;
    SeenServer {
        name: server.to_string(),
        answer: answer
            .map(|()| began.elapsed())
            .map_err(|error| error.to_string()),
    }
}
