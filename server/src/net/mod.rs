//! Both ports: accepting connections, detecting their protocols ([`detect`]), and the connection loop
//! that serves each.
//!
//! The main port serves Thrift, HBase's native RPC, ZooKeeper and HBase's REST interface. A client of another
//! protocol is refused with the reason, in its protocol where that is possible ([`foreign`]).

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use basalt_idl::wire::Detected;
use bytes::BytesMut;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::observe::metrics::Api;
use crate::security::{Caller, Login, Owner, Stranger};
use crate::server::Server;
use crate::socket::Socket;
#[cfg(feature = "thrift")]
use crate::thrift;
use crate::{native, rest, zookeeper};

mod detect;
mod foreign;
mod foreign_log;
pub(crate) mod http;
mod listener;

use foreign::ForeignProtocol;
use foreign_log::ForeignLog;
pub(crate) use listener::Listener;

/// The methods of all protocols, numbered within each service as they come.
pub(crate) fn methods() -> impl Iterator<Item = (Api, &'static str)> {
    #[cfg(feature = "thrift")]
    let thrift = thrift::methods();
    #[cfg(not(feature = "thrift"))]
    let thrift = std::iter::empty();
    let native = native::methods().map(|method| (Api::Native, method));
    thrift.chain(native).chain(rest::methods())
}

/// Closes the scanners of a connection, however it ends.
struct Scanners {
    server: Arc<Server>,
    owner: Owner,
}

impl Drop for Scanners {
    fn drop(&mut self) {
        self.server.sessions().close_owner(self.owner);
    }
}

/// Serves the main port until shutdown.
pub(crate) async fn serve(
    listener: Listener,
    server: Arc<Server>,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    let next = AtomicU64::new(1);
    let rest = server
        .config()
        .rest
        .enabled
        .then(|| rest::site(&server, tasks.clone()));
    let port = Arc::new(MainPort {
        server,
        foreign_log: ForeignLog::default(),
        zookeepers: zookeeper::Sessions::default(),
        rest,
        stop: stop.clone(),
    });
    listener
        .accept(tasks, stop, |socket, peer, stranger| {
            let connection = next.fetch_add(1, Ordering::Relaxed);
            let port = Arc::clone(&port);
            async move {
                let _scanners = Scanners {
                    server: Arc::clone(&port.server),
                    owner: Owner::Connection(connection),
                };
                if let Err(end) = port.connection(socket, connection, peer, stranger).await {
                    tracing::debug!(%peer, "connection closed: {end}");
                }
            }
        })
        .await;
}

/// The client of a connection whose protocol is known.
struct Client {
    /// Number of the connection.
    number: u64,
    peer: SocketAddr,
    login: Option<Login>,
    stranger: Stranger,
}

/// A connection that is served by its protocol. Boxed: a task would have the size of the largest protocol
/// from its first poll on. Without a layer in between, which each call would pass.
type Serving<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// State that the connections of the main port share.
struct MainPort {
    server: Arc<Server>,
    foreign_log: ForeignLog,
    zookeepers: zookeeper::Sessions,
    /// The REST interface, if it is served.
    rest: Option<Router>,
    stop: CancellationToken,
}

impl MainPort {
    /// Serves a connection until either side ends it; returns why the server ended it.
    async fn connection(
        &self,
        socket: TcpStream,
        number: u64,
        peer: SocketAddr,
        stranger: Stranger,
    ) -> Result<(), String> {
        let (server, stop) = (&self.server, &self.stop);
        let mut socket = Socket::new(socket);
        let mut received = BytesMut::new();
        let mut detected = self.first(&mut socket, &mut received).await?;
        if detected == Detected::Tls
            && let Some(tls) = server.security().tls()
        {
            socket = Box::pin(detect::encrypt(server, socket, &mut received, tls, stop))
                .await
                .map_err(|error| self.note_handshake(peer, &error))?;
            detected = self.first(&mut socket, &mut received).await?;
        } else if !server.security().accepts_plaintext(peer.ip()) {
            self.foreign_log.note(peer, "main", None, PLAINTEXT);
            Box::pin(foreign::end(server, socket, stop)).await;
            return Ok(());
        }
        let mut login = detect::certificate_login(server.security(), &socket, "main", peer)?;
        #[cfg(feature = "thrift")]
        if detected == Detected::Sasl && server.security().authenticates() {
            let shaken = thrift::sasl::authenticate(server, &mut socket, &mut received, login.as_ref());
            login = Some(Box::pin(shaken).await.map_err(|end| end.to_string())?);
            detected = self.first(&mut socket, &mut received).await?;
        }
        if login.is_some() {
            stranger.logged_in();
        }
        // A native connection registers its login with the user that it acts for.
        let registered = login
            .as_ref()
            .filter(|_| detected != Detected::HBaseRpc)
            .map(|login| server.security().register(login, None));
        let client = Client {
            number,
            peer,
            login,
            stranger,
        };
        let serving = self.serve(detected, socket, received, client);
        match &registered {
            None => serving.await,
            Some(registered) => tokio::select! {
                ended = serving => ended,
                () = registered.ended.cancelled() => Err("its login has ended".to_owned()),
            },
        }
    }

    async fn first(&self, socket: &mut Socket, received: &mut BytesMut) -> Result<Detected, String> {
        let first = detect::first(&self.server, socket, received, &self.stop).await;
        first.map_err(|why| why.to_string())
    }

    /// Logs a handshake that has failed.
    fn note_handshake(&self, peer: SocketAddr, error: &std::io::Error) -> String {
        let text = format!("the TLS handshake has failed: {error}");
        self.server.load().connections.protocol_errors.increment(1);
        self.foreign_log
            .note(peer, "main", Some(ForeignProtocol::Tls), &text);
        text
    }

    /// Serves a connection whose protocol is known. A client without a login counts as one (`_counted`) until
    /// the connection ends, or the protocol logs it in.
    fn serve(&self, detected: Detected, socket: Socket, received: BytesMut, client: Client) -> Serving<'_> {
        let (server, stop) = (Arc::clone(&self.server), self.stop.clone());
        let Client {
            number,
            peer,
            login,
            stranger,
        } = client;
        #[cfg(feature = "thrift")]
        if let Detected::Thrift { protocol, framed } = detected {
            let first = (thrift::messages::WireFormat { protocol, framed }, received);
            let caller = Caller::of_login(Owner::Connection(number), Some(peer), login);
            return Box::pin(async move {
                let _counted = stranger;
                let ended = thrift::connection::run(server, socket, first, caller, stop).await;
                ended.map_err(|end| end.to_string())
            });
        }
        if detected == Detected::Http
            && let Some(rest) = &self.rest
        {
            let rest = rest.clone();
            return Box::pin(async move {
                let serving = http::run((socket, received), peer, (login, stranger), &server, rest, stop);
                serving.await.map_err(|end| end.to_string())
            });
        }
        let is_served = matches!(
            detected,
            Detected::HBaseRpc | Detected::ZooKeeper | Detected::ZooKeeperWord
        );
        if !is_served {
            let protocol = ForeignProtocol::of(detected, &received);
            self.foreign_log.note(peer, "main", Some(protocol), protocol);
            return Box::pin(async move {
                let _counted = stranger;
                foreign::refuse(&server, socket, protocol, &stop).await;
                Ok(())
            });
        }
        if server.gateway().is_some() {
            let protocol = match detected {
                Detected::HBaseRpc => ForeignProtocol::HbaseRpcOfGateway,
                _ => ForeignProtocol::ZooKeeperOfGateway,
            };
            self.foreign_log.note(peer, "main", Some(protocol), protocol);
            return Box::pin(async move {
                let _counted = stranger;
                foreign::refuse(&server, socket, protocol, &stop).await;
                Ok(())
            });
        }
        match detected {
            Detected::HBaseRpc => Box::pin(async move {
                let client = (number, (login, stranger));
                let ended = native::run(server, socket, received, client, stop).await;
                ended.map_err(|end| end.to_string())
            }),
            Detected::ZooKeeperWord => Box::pin(async move {
                let _counted = stranger;
                let answering = zookeeper::answer_word(&server, &self.zookeepers, socket, &received);
                answering.await.map_err(|end| end.to_string())
            }),
            _ => Box::pin(async move {
                let _counted = stranger;
                let client = (number, Caller::locating(Owner::Connection(number), Some(peer)));
                let ended = zookeeper::run(server, &self.zookeepers, socket, received, client, stop).await;
                ended.map_err(|end| end.to_string())
            }),
        }
    }
}

/// Why a connection without TLS is closed.
const PLAINTEXT: &str = "the connection is not encrypted, and server.plaintext does not allow that from its \
                         address: configure TLS in the client";

#[cfg(test)]
mod tests;
