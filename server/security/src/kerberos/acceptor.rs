//! The keys of the service, and the server's side of GSSAPI in SASL (RFC 4752).
//!
//! ```text
//! client: token                      until the context is complete; the server answers with its tokens
//! client: (empty)                    if the last token was the server's
//! server: wrapped: protections u8 | size u24
//! client: wrapped: protection u8 | size u24 | user to act as
//! ```
//!
//! The sizes are the longest wrapped pieces that the two sides accept; HBase's clients send longer ones.

use std::fs::File;

use libgssapi::context::{CtxFlags, SecurityContext as _, ServerCtx};
use libgssapi::credential::Cred;
use libgssapi::error::{Error as Gss, MajorFlags};

use super::keys::{Mechanisms, acquire};
use super::rules::{Principal, Rules};
use super::{Failure, PIECE_BYTES_MAX, Peer, Protection, Service, Step, TOKEN_BYTES_MAX, Wrap};
use crate::users::NAME_BYTES_MAX;
use crate::{Error, Reason, Refused};

/// Longest wrapped piece that a client should send.
const WRAPPED_BYTES_MAX: u32 = 64 << 10;
/// More bytes than wrapping adds to a piece.
const OVERHEAD: usize = 256;
/// The part of a status that is a number of an error, not a set of flags (RFC 2744, 3.9.1).
const ROUTINE_ERROR: u32 = 0xff << 16;
/// Most bytes of a principal.
const PRINCIPAL_BYTES_MAX: usize = 1 << 10;

/// The keys of a service. Shared by all logins.
#[derive(Debug)]
pub struct Acceptor {
    principal: String,
    keys: Cred,
    /// Keys for HTTP, if there are any.
    http_keys: Option<Cred>,
    rules: Rules,
    protections: Vec<Protection>,
}

impl Acceptor {
    /// Reads the keytab. The library reads it again for each login, so keys may be added later.
    pub fn open(service: &Service<'_>) -> Result<Self, Error> {
        let checked = service.check()?;
        File::open(service.keytab).map_err(|error| Error::File {
            path: service.keytab.to_owned(),
            line: 0,
            problem: format!("the keytab cannot be read: {error}"),
            remedy: "name the file in kerberos.keytab, and let the server's user read it",
        })?;
        let acquire = |principal: &str, mechanisms| {
            acquire(service.keytab, principal, mechanisms).map_err(|error| Error::File {
                path: service.keytab.to_owned(),
                line: 0,
                problem: format!("it has no keys of {principal}: {error}"),
                remedy: "add them (kadmin: ktadd -k FILE PRINCIPAL); klist -k FILE lists what it has",
            })
        };
        let keys = acquire(service.principal, Mechanisms::Kerberos)?;
        let http_keys = if service.http_principal.is_empty() {
            let host = service.principal.split_once('/').map_or("", |(_, host)| host);
            acquire(&format!("HTTP/{host}"), Mechanisms::Negotiate).ok()
        } else {
            Some(acquire(service.http_principal, Mechanisms::Negotiate)?)
        };
        Ok(Self {
            principal: service.principal.to_owned(),
            keys,
            http_keys,
            rules: checked.rules,
            protections: checked.protections,
        })
    }

    /// The principal of the service.
    pub fn principal(&self) -> &str {
        &self.principal
    }

    /// Whether HTTP requests may have tickets.
    pub fn negotiates(&self) -> bool {
        self.http_keys.is_some()
    }

    /// The user of a principal, by the rules.
    pub fn user_of(&self, principal: &str) -> Result<String, Refused> {
        self.rules.user_of(principal)
    }

    /// Begins a login.
    pub fn exchange(&self) -> Exchange {
        Exchange {
            context: ServerCtx::new(Some(self.keys.clone())),
            protections: self.protections.clone(),
            state: State::Accepting,
            principal: None,
        }
    }

    /// Verifies the token of an HTTP request; returns the client and the answer to its token.
    pub fn negotiate(&self, token: &[u8]) -> Result<(Peer, Option<Vec<u8>>), Failure> {
        let keys = self.http_keys.clone().ok_or(Refused(Reason::Malformed))?;
        let mut context = ServerCtx::new(Some(keys));
        let answer = context.step(token, None).map_err(failure)?;
        // A request has one token. Kerberos needs no second one.
        if !context.is_complete() {
            return Err(Refused(Reason::Malformed).into());
        }
        let peer = Peer {
            principal: principal_of(&context)?,
            acts_for: None,
            wrap: None,
        };
        Ok((peer, answer.map(|answer| answer.to_vec())))
    }
}

/// The state of a login.
#[derive(Debug)]
enum State {
    /// Tokens of the context are exchanged.
    Accepting,
    /// The client is to acknowledge the last token.
    Acknowledging,
    /// The client is to choose one of these protections.
    Choosing(Vec<Protection>),
}

/// A login.
#[derive(Debug)]
pub struct Exchange {
    context: ServerCtx,
    protections: Vec<Protection>,
    state: State,
    /// The client, once the context is complete.
    principal: Option<String>,
}

impl Exchange {
    /// The client's principal, once that is proved. The client may be refused until it has sent its last
    /// message; behind that it expects no answer.
    pub fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    /// Takes a message of the client. Blocks on the keytab and the replay cache.
    pub fn step(mut self, message: &[u8]) -> Result<Step, Failure> {
        let malformed = Refused(Reason::Malformed);
        if message.len() > TOKEN_BYTES_MAX {
            return Err(malformed.into());
        }
        match self.state {
            State::Accepting => {
                let token = self.context.step(message, None).map_err(failure)?;
                if !self.context.is_complete() {
                    let token = token.map(|token| token.to_vec()).unwrap_or_default();
                    return Ok(Step::Challenge(self, token));
                }
                self.principal = Some(principal_of(&self.context)?);
                let Some(token) = token else {
                    return self.offer();
                };
                self.state = State::Acknowledging;
                Ok(Step::Challenge(self, token.to_vec()))
            }
            State::Acknowledging if message.is_empty() => self.offer(),
            State::Acknowledging => Err(malformed.into()),
            State::Choosing(ref offered) => {
                let choice = self.context.unwrap(message).map_err(failure)?;
                let (protection, size, acts_for) = parse_choice(&choice)?;
                if !offered.contains(&protection) {
                    return Err(malformed.into());
                }
                self.complete(protection, size, acts_for)
            }
        }
    }

    /// Offers the protections that the context can give.
    fn offer(mut self) -> Result<Step, Failure> {
        let flags = self.context.flags().map_err(failure)?;
        let mut offered = self.protections.clone();
        offered.retain(|protection| match protection {
            Protection::Authentication => true,
            Protection::Integrity => flags.contains(CtxFlags::GSS_C_INTEG_FLAG),
            Protection::Privacy => flags.contains(CtxFlags::GSS_C_CONF_FLAG | CtxFlags::GSS_C_INTEG_FLAG),
        });
        if offered.is_empty() {
            return Err(Failure {
                refused: Refused(Reason::Malformed),
                text: "the client's context has none of the protections of kerberos.protection".into(),
            });
        }
        let bits = offered.iter().fold(0, |bits, protection| bits | protection.bit());
        let wraps = offered
            .iter()
            .any(|protection| *protection != Protection::Authentication);
        let size = if wraps { WRAPPED_BYTES_MAX } else { 0 };
        let offer = (u32::from(bits) << 24 | size).to_be_bytes();
        let offer = self.context.wrap(false, &offer).map_err(failure)?;
        self.state = State::Choosing(offered);
        Ok(Step::Challenge(self, offer.to_vec()))
    }

    fn complete(self, protection: Protection, size: usize, acts_for: String) -> Result<Step, Failure> {
        let principal = self.principal.ok_or(Refused(Reason::Malformed))?;
        let wrap: Option<Box<dyn Wrap>> = match protection {
            Protection::Authentication => None,
            _ => Some(Box::new(Wrapping {
                context: self.context,
                encrypts: protection == Protection::Privacy,
                piece_bytes_max: size
                    .checked_sub(OVERHEAD)
                    .filter(|size| *size > 0)
                    .ok_or(Refused(Reason::Malformed))?
                    .min(PIECE_BYTES_MAX),
            })),
        };
        Ok(Step::Complete(Peer {
            acts_for: Some(acts_for).filter(|other| !other.is_empty() && *other != principal),
            principal,
            wrap,
        }))
    }
}

/// Protection, size and user of the client's last message.
fn parse_choice(choice: &[u8]) -> Result<(Protection, usize, String), Refused> {
    let malformed = Refused(Reason::Malformed);
    let (head, user) = choice.split_first_chunk::<4>().ok_or(malformed)?;
    let protection = Protection::of_bit(head[0]).ok_or(malformed)?;
    let size = u32::from_be_bytes([0, head[1], head[2], head[3]]);
    let user = std::str::from_utf8(user).map_err(|_| malformed)?;
    if user.len() > NAME_BYTES_MAX || user.contains('\0') {
        return Err(malformed);
    }
    Ok((protection, size as usize, user.to_owned()))
}

/// The principal of the client of a complete context.
fn principal_of(context: &ServerCtx) -> Result<String, Failure> {
    let name = context.source_name().map_err(failure)?;
    let name = name.display_name().map_err(failure)?;
    let no_rule = Refused(Reason::NoRule);
    let text = std::str::from_utf8(&name).map_err(|_| no_rule)?;
    if text.len() > PRINCIPAL_BYTES_MAX || Principal::parse(text).is_none() {
        return Err(no_rule.into());
    }
    Ok(text.to_owned())
}

/// The library's text has the cause: its codes differ between mechanisms.
fn failure(error: Gss) -> Failure {
    let text = error.to_string();
    let has = |words: &str| text.contains(words);
    let reason = if has("Clock skew") {
        Reason::ClockSkew
    } else if has("expired") || has("Ticket not yet valid") {
        Reason::ExpiredTicket
    } else if error.major.bits() & ROUTINE_ERROR == MajorFlags::GSS_S_DEFECTIVE_TOKEN.bits() {
        Reason::Malformed
    } else {
        Reason::WrongTicket
    };
    Failure {
        refused: Refused(reason),
        text,
    }
}

/// The protection of a connection after its login.
#[derive(Debug)]
struct Wrapping {
    context: ServerCtx,
    encrypts: bool,
    piece_bytes_max: usize,
}

impl Wrap for Wrapping {
    fn piece_bytes_max(&self) -> usize {
        self.piece_bytes_max
    }

    fn wrap(&mut self, piece: &[u8]) -> Result<Vec<u8>, String> {
        let wrapped = self.context.wrap(self.encrypts, piece);
        wrapped
            .map(|bytes| bytes.to_vec())
            .map_err(|error| error.to_string())
    }

    fn unwrap(&mut self, piece: &[u8]) -> Result<Vec<u8>, String> {
        let bytes = self.context.unwrap(piece);
        bytes
            .map(|bytes| bytes.to_vec())
            .map_err(|error| error.to_string())
    }
}
