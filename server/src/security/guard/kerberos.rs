//! Logins with Kerberos.
//!
//! The GSS library reads the keytab and its replay cache for each login, so it runs on threads for blocking
//! calls, for a few logins at a time. A failure is answered after the growing delay of the client's address:
//! whose login it was to be is not known before it succeeds. A success is never delayed.
//!
//! The user is the short name that the rules make of the principal, and must be one of the users, as that of
//! a certificate.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_security::kerberos::{Acceptor, Exchange, Failure, Peer, Service, Step};
use basalt_security::sasl::http::{self, Authorization};
use basalt_security::users::Credential;
use basalt_security::{Error, Reason, Refused as Failed};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::Security;
use crate::observe::log_limit::LogLimit;
use crate::security::Login;

/// Logins that the library works on at a time. Each takes a thread.
const STEPS_AT_A_TIME: usize = 8;
/// Time between two log lines about failures; the audit log has all.
const LOG_PERIOD: Duration = Duration::from_secs(10);
/// The user under which failures of an address count.
const UNKNOWN: &str = "";

/// The service of a server, and the logins that the library works on.
#[derive(Debug)]
pub(super) struct Kerberos {
    acceptor: Arc<Acceptor>,
    steps: Semaphore,
    log_limit: Mutex<LogLimit>,
}

impl Kerberos {
    /// Reads the keytab.
    pub(super) fn open(service: &Service<'_>) -> Result<Self, Error> {
        let acceptor = Acceptor::open(service)?;
        if !acceptor.negotiates() {
            tracing::info!(
                "{} has no keys of the HTTP principal, so HTTP takes no tickets (kerberos.http_principal)",
                service.keytab.display()
            );
        }
        Ok(Self {
            acceptor: Arc::new(acceptor),
            steps: Semaphore::new(STEPS_AT_A_TIME),
            log_limit: Mutex::new(LogLimit::every(LOG_PERIOD)),
        })
    }
}

/// A client that has logged in with a ticket.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) login: Login,
    pub(crate) peer: Peer,
}

/// The next step of a login.
pub(crate) enum Next {
    /// The client is to answer this message.
    Challenge(Exchange, Vec<u8>),
    Complete(Ticket),
}

impl Security {
    /// The service to which clients log in with Kerberos, if there is one.
    pub(crate) fn kerberos(&self) -> Option<&Acceptor> {
        self.kerberos.as_ref().map(|kerberos| &*kerberos.acceptor)
    }

    /// Whether HTTP requests may have tickets.
    pub(crate) fn negotiates(&self) -> bool {
        self.kerberos().is_some_and(Acceptor::negotiates)
    }

    /// Takes a message of a login.
    pub(crate) async fn kerberos_step(
        self: &Arc<Self>,
        exchange: Exchange,
        message: impl AsRef<[u8]> + Send + 'static,
        address: Option<IpAddr>,
    ) -> Result<Next, Failed> {
        let stepped = self.run(move |_| exchange.step(message.as_ref())).await;
        let next = stepped.and_then(|step| match step {
            Step::Challenge(exchange, message) => {
                // Refused now, while the client waits for an answer, and not behind its last message.
                exchange
                    .principal()
                    .map_or(Ok(()), |principal| self.ticket_user(principal).map(drop))?;
                Ok(Next::Challenge(exchange, message))
            }
            Step::Complete(peer) => self.ticket(peer).map(Next::Complete).map_err(Failure::from),
        });
        self.delayed(next, address).await
    }

    /// Verifies the header `Authorization` of a request with a ticket; returns the login and the answer to
    /// the token.
    pub(crate) async fn http_ticket(
        self: &Arc<Self>,
        header: &[u8],
        address: Option<IpAddr>,
    ) -> Result<(Login, Option<Vec<u8>>), Failed> {
        let Authorization::Negotiate(token) = http::parse(header)? else {
            return Err(Failed(Reason::Malformed));
        };
        let negotiated = self.run(move |acceptor| acceptor.negotiate(&token)).await;
        let login = negotiated.and_then(|(peer, answer)| Ok((self.ticket(peer)?.login, answer)));
        self.delayed(login, address).await
    }

    /// The user that a name in a client's message means: a principal's short name, or the name itself.
    pub(crate) fn named_user(&self, name: &str) -> Result<String, Failed> {
        match self.kerberos() {
            Some(acceptor) if name.contains('@') => acceptor.user_of(name),
            _ => Ok(name.to_owned()),
        }
    }

    fn ticket(&self, peer: Peer) -> Result<Ticket, Failed> {
        let user = self.ticket_user(&peer.principal)?;
        let login = Login {
            user,
            credential: Credential::Kerberos,
        };
        Ok(Ticket { login, peer })
    }

    /// The user of a principal, which must be one that may log in.
    fn ticket_user(&self, principal: &str) -> Result<String, Failed> {
        let user = self.named_user(principal)?;
        self.with_users(|users| users.active_user(&user).map(drop))?;
        Ok(user)
    }

    /// Runs a step of the library, which blocks.
    async fn run<T: Send + 'static>(
        &self,
        step: impl FnOnce(&Acceptor) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let unavailable = Failed(Reason::Malformed);
        let kerberos = self.kerberos.as_ref().ok_or(unavailable)?;
        // Closed never: the semaphore lives as long as the server.
        let _permit = kerberos.steps.acquire().await.map_err(|_| unavailable)?;
        let acceptor = Arc::clone(&kerberos.acceptor);
        let stepped = tokio::task::spawn_blocking(move || step(&acceptor)).await;
        stepped.map_err(|_| unavailable)?
    }

    /// Logs a failure, and holds it back.
    async fn delayed<T>(&self, outcome: Result<T, Failure>, address: Option<IpAddr>) -> Result<T, Failed> {
        let failure = match outcome {
            Ok(value) => return Ok(value),
            Err(failure) => failure,
        };
        let kerberos = self.kerberos.as_ref();
        if let Some(left_out) = kerberos.and_then(|kerberos| kerberos.log_limit.lock().next(Instant::now())) {
            let reason = failure.refused.0.as_str();
            let from = address.map_or_else(|| "unknown".to_owned(), |address| address.to_string());
            tracing::warn!(
                "a login with Kerberos from {from} has failed ({left_out} more since the last such line): {reason}: {}",
                failure.text
            );
        }
        if let Some(address) = address {
            let delay = self.delays.begin(address, UNKNOWN, Instant::now());
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
        }
        Err(failure.refused)
    }
}
