//! The caller itself: who it is, and tokens for it (HBase: `TokenProvider`).

use std::time::Duration;

use basalt_security::token::Token;

use super::{AdminCall, run_admin};
use crate::security::{Action, Target};
use crate::service::Failure;

/// Time for which an issued token is valid, as in HBase.
const LIFETIME: Duration = Duration::from_hours(7 * 24);
/// Most tokens of a user that are valid at a time. Each is a record in the file of users, which is written
/// whole with every token.
const TOKENS_MAX: usize = 1_000;

/// The caller of a call.
#[derive(Debug)]
pub(crate) struct Itself {
    /// The user whose rights count.
    pub(crate) user: Option<String>,
    /// How it has logged in, in Hadoop's words.
    pub(crate) method: &'static str,
}

/// The caller of this call.
pub(crate) fn caller(call: &AdminCall) -> Result<Itself, Failure> {
    run_admin(call, Action::Connect, Target::Server, |_| {
        let caller = call.caller();
        Ok(Itself {
            user: caller.user_name().map(str::to_owned),
            method: caller.hadoop_authentication(),
        })
    })
}

/// Issues a token for the caller. As in HBase, a login by token gets none: a token that could make tokens
/// could be renewed for ever.
pub(crate) fn issue(call: &AdminCall) -> Result<Token, Failure> {
    run_admin(call, Action::Connect, Target::Server, |_| {
        let caller = call.caller();
        let Some(user) = caller
            .proven_user()
            .filter(|_| caller.has_certificate_or_ticket())
        else {
            return Err(Failure::access_denied(
                "Token generation only allowed for clients that log in with a certificate or with Kerberos; an operator makes \
                 tokens for others with basalt token create",
            ));
        };
        let issued = call
            .server()
            .security()
            .issue_token(caller, user, LIFETIME, TOKENS_MAX);
        issued.map_err(|error| Failure::do_not_retry(error.to_string()))
    })
}
