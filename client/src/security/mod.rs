//! TLS and the login of a client, the same for Thrift and HBase's native protocol.
//!
//! | login | Thrift | native protocol |
//! | --- | --- | --- |
//! | client certificate | in the TLS handshake | in the TLS handshake |
//! | user and password | SASL PLAIN | none: HBase has no mechanism for it |
//! | token | SASL PLAIN, its text as the password | SASL DIGEST-MD5 |
//!
//! - The CA file is never optional: without it a client could not tell the server from an impostor,
//!   and the system's authorities do not sign Basalt's certificates.
//! - A secret is sent in clear to this machine only. DIGEST-MD5 sends none, so it works without
//!   TLS.
//! - Secrets are not printed by `Debug` and not part of errors.
//!
//! The SASL messages are in `crate::sasl`.

#[cfg(feature = "arguments")]
mod arguments;
mod login;
mod tls;

#[cfg(feature = "arguments")]
pub use arguments::SecurityArguments;
pub use basalt_security::Secret;
pub use basalt_security::token::Token;
pub use login::Login;
pub use tls::Tls;
pub(crate) use tls::alert;

/// TLS and the login of a client. The default has neither.
///
/// ```no_run
/// # fn example() -> basalt_client::Result<()> {
/// use basalt_client::security::{Login, Secret, Security, Tls};
/// use basalt_client::{Client, ConnectionOptions, PoolOptions};
///
/// let security = Security::none()
///     .tls(Tls::new("ca.crt")?)
///     .login(Login::password("ada", Secret::new("open sesame"))?);
/// let connection = ConnectionOptions { security, ..ConnectionOptions::default() };
/// let pool = PoolOptions { connection, ..PoolOptions::default() };
/// let client = Client::new("db.example:9090", pool)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Security {
    pub(crate) tls: Option<Tls>,
    pub(crate) login: Option<Login>,
}

impl Security {
    /// Plain connections without a login.
    pub fn none() -> Security {
        Security::default()
    }

    /// Encrypts connections.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Security {
        self.tls = Some(tls);
        self
    }

    /// Logs in on every connection.
    #[must_use]
    pub fn login(mut self, login: Login) -> Security {
        self.login = Some(login);
        self
    }

    /// The user that the server takes this client for, as far as the client can tell: the one of the login,
    /// else the common name of the client certificate. A server may be set to take another name of the
    /// certificate.
    pub fn user(&self) -> Option<String> {
        match &self.login {
            Some(login) => login.user(),
            None => self.tls.as_ref()?.user().map(str::to_owned),
        }
    }

    /// How the user is proven, in Hadoop's words.
    pub fn method(&self) -> &'static str {
        match &self.login {
            Some(Login::Password { .. }) => "PLAIN",
            Some(Login::Token(_)) => "TOKEN",
            None if self.tls.as_ref().is_some_and(Tls::has_certificate) => "CERTIFICATE",
            None => "SIMPLE",
        }
    }

    /// Whether connections are plain and without a login.
    pub fn is_none(&self) -> bool {
        self.tls.is_none() && self.login.is_none()
    }
}
