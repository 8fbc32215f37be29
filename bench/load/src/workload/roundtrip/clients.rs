//! The threads of the client: each drives its share of the connections by itself.
//!
//! A runtime with several threads wakes one of them whenever another receives replies, which on few
//! cores slows down the server as well as the client. Here each thread has a runtime of one thread,
//! and connections stay where they are.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};

use crate::error::{Error, Result};

/// How the client of a comparison runs.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct ClientOptions {
    /// Threads that drive connections [default: half as many as there are cores, at least one].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    client_threads: Option<u16>,
}

impl ClientOptions {
    /// Number of threads: the servers have the other half of the cores.
    pub(super) fn threads(self) -> usize {
        let cores = available_parallelism().map_or(1, NonZeroUsize::get);
        self.client_threads
            .map_or_else(|| (cores / 2).max(1), usize::from)
    }
}

fn broken(error: &dyn std::fmt::Display) -> Error {
    Error::Different(format!("a thread of the client ended: {error}"))
}

/// Runs a task for each connection on `threads` threads, and returns their results in any order. A task gets
/// its connection's number. The first error ends all of them, and so does dropping this.
pub(super) async fn run<T, F>(
    threads: usize,
    connections: Vec<TcpStream>,
    task: impl Fn(u16, TcpStream) -> F + Clone + Send + 'static,
) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let mut shares: Vec<Vec<(u16, std::net::TcpStream)>> = Vec::new();
    shares.resize_with(threads.min(connections.len()), Vec::new);
    for (number, connection) in (0..).zip(connections) {
        // A connection belongs to the runtime that made it; its socket can be moved to another.
        let connection = connection.into_std().map_err(|error| broken(&error))?;
        let share = usize::from(number) % shares.len();
        shares[share].push((number, connection));
    }
    // A thread cannot be stopped from outside: it watches for the sender to be gone.
    let (_held, watched) = watch::channel(());
    let mut running = JoinSet::new();
    for share in shares {
        let (task, mut watched) = (task.clone(), watched.clone());
        running.spawn(async move {
            let outcome = spawn_blocking(move || {
                let runtime = Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|error| broken(&error))?;
                runtime.block_on(async {
                    tokio::select! {
                        outcomes = run_here(share, task) => outcomes,
                        _ = watched.changed() => Err(broken(&"another one had an error")),
                    }
                })
            });
            outcome.await.map_err(|error| broken(&error))?
        });
    }
    let mut outcomes = Vec::new();
    while let Some(joined) = running.join_next().await {
        outcomes.extend(joined.map_err(|error| broken(&error))??);
    }
    Ok(outcomes)
}

/// Runs the tasks of one thread.
async fn run_here<T, F>(
    share: Vec<(u16, std::net::TcpStream)>,
    task: impl Fn(u16, TcpStream) -> F,
) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for (number, connection) in share {
        let connection = TcpStream::from_std(connection).map_err(|error| broken(&error))?;
        tasks.spawn(task(number, connection));
    }
    let mut outcomes = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        outcomes.push(joined.map_err(|error| broken(&error))??);
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use std::thread::{self, ThreadId};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Connections to one that sends each of them a byte, which is its number.
    async fn connections(count: u8) -> Vec<TcpStream> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut connections = Vec::new();
        for number in 0..count {
            connections.push(TcpStream::connect(address).await.unwrap());
            let (mut accepted, _) = listener.accept().await.unwrap();
            accepted.write_all(&[number]).await.unwrap();
        }
        connections
    }

    #[tokio::test]
    async fn each_connection_has_its_number_and_stays_with_one_of_the_threads() {
        let receive = |number: u16, mut connection: TcpStream| async move {
            let byte = connection.read_u8().await.unwrap();
            Ok((number, u16::from(byte), thread::current().id()))
        };
        let mut outcomes: Vec<(u16, u16, ThreadId)> = run(2, connections(5).await, receive).await.unwrap();
        outcomes.sort_unstable_by_key(|(number, ..)| *number);
        let numbers: Vec<(u16, u16)> = outcomes
            .iter()
            .map(|(number, byte, _)| (*number, *byte))
            .collect();
        assert_eq!(numbers, (0..5).map(|number| (number, number)).collect::<Vec<_>>());
        let threads: Vec<ThreadId> = outcomes.iter().map(|(.., thread)| *thread).collect();
        assert_eq!(threads[0], threads[2]);
        assert_eq!(threads[1], threads[3]);
    }

    /// The others would wait for ever, and the runtime for their threads.
    #[tokio::test]
    async fn an_error_of_one_connection_ends_all() {
        let fail = |number: u16, _| async move {
            if number == 2 {
                return Err(Error::Different("of the third".to_owned()));
            }
            std::future::pending::<Result<()>>().await
        };
        let error = run(2, connections(4).await, fail).await.unwrap_err();
        assert!(error.to_string().contains("of the third"), "{error}");
    }
}
