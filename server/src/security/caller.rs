//! The sender of calls.
//!
//! A connection makes one [`Caller`] when its first bytes have said who sends, and never changes it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use basalt_security::users::Credential;

/// Owner of a session: only it may use the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// The connection of the main port with this number.
    Connection(u64),
    /// Any HTTP caller that has the id.
    Http,
    /// An HTTP caller that is the user with this number.
    HttpUser(u64),
}

/// How the server knows the user of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Authentication {
    /// The protocol names no user.
    Anonymous,
    /// The client's own word (HBase: `SIMPLE`).
    Simple,
    /// A proof.
    Proven(Credential),
    /// A client that looks for the server, as HBase's clients do in ZooKeeper before they log in.
    Locating,
}

impl Authentication {
    /// The word in log lines.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Simple => "simple",
            Self::Locating => "locating",
            Self::Proven(Credential::Certificate) => "certificate",
            Self::Proven(Credential::Kerberos) => "kerberos",
            Self::Proven(Credential::Password) => "password",
            Self::Proven(Credential::Token(_)) => "token",
        }
    }
}

/// A user as HBase's native protocol names one (`UserInformation`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    /// The user whose rights and quotas count.
    pub(crate) effective: String,
    /// The user that acts for the effective one, if it is another.
    pub(crate) real: Option<String>,
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.effective)?;
        match &self.real {
            Some(real) => write!(f, " (through {real})"),
            None => Ok(()),
        }
    }
}

/// A user that has proved its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) credential: Credential,
}

/// The sender of the calls of a connection. Immutable.
#[derive(Debug)]
pub(crate) struct Caller {
    user: Option<User>,
    address: Option<SocketAddr>,
    authentication: Authentication,
    /// Owner of the scanners that it opens.
    owner: Owner,
}

impl Caller {
    /// A caller of a protocol that names no user.
    pub(crate) fn anonymous(owner: Owner, address: Option<SocketAddr>) -> Arc<Self> {
        Self::simple(owner, address, None)
    }

    /// A caller of a native connection, whose header may name a user.
    pub(crate) fn simple(owner: Owner, address: Option<SocketAddr>, user: Option<User>) -> Arc<Self> {
        let authentication = match user {
            Some(_) => Authentication::Simple,
            None => Authentication::Anonymous,
        };
        Arc::new(Self {
            user,
            address,
            authentication,
            owner,
        })
    }

    /// A client that looks for the server. It learns where that is, and of tables that it names.
    pub(crate) fn locating(owner: Owner, address: Option<SocketAddr>) -> Arc<Self> {
        Arc::new(Self {
            user: None,
            address,
            authentication: Authentication::Locating,
            owner,
        })
    }

    /// The caller of a login; without one an anonymous caller.
    pub(crate) fn of_login(owner: Owner, address: Option<SocketAddr>, login: Option<Login>) -> Arc<Self> {
        match login {
            None => Self::anonymous(owner, address),
            Some(login) => Self::proven(owner, address, login, None),
        }
    }

    /// A caller that has proved its name, and acts for another user if one is given: the caller has
    /// checked that it may.
    pub(crate) fn proven(
        owner: Owner,
        address: Option<SocketAddr>,
        login: Login,
        acts_for: Option<String>,
    ) -> Arc<Self> {
        let Login { user, credential } = login;
        let user = match acts_for.filter(|other| *other != user) {
            None => User {
                effective: user,
                real: None,
            },
            Some(effective) => User {
                effective,
                real: Some(user),
            },
        };
        Arc::new(Self {
            user: Some(user),
            address,
            authentication: Authentication::Proven(credential),
            owner,
        })
    }

    /// The user, if the client has named one.
    pub(crate) fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// The name whose rights and quotas count; `None` for anonymous callers.
    pub(crate) fn user_name(&self) -> Option<&str> {
        self.user.as_ref().map(|user| &user.effective[..])
    }

    /// The name whose rights count, if the caller has proved it.
    pub(crate) fn proven_user(&self) -> Option<&str> {
        match self.authentication {
            Authentication::Proven(_) => self.user_name(),
            _ => None,
        }
    }

    /// How the server knows the user.
    pub(crate) fn authentication(&self) -> Authentication {
        self.authentication
    }

    /// Whether the user that sends the calls has shown a certificate or a Kerberos ticket.
    pub(crate) fn has_certificate_or_ticket(&self) -> bool {
        matches!(
            self.authentication,
            Authentication::Proven(Credential::Certificate | Credential::Kerberos)
        )
    }

    /// How the server knows the user, in the words of Hadoop's `AuthenticationMethod`. It has none for
    /// passwords; HBase's example of a password login is a TOKEN.
    pub(crate) fn hadoop_authentication(&self) -> &'static str {
        let acts_for_another = self.user.as_ref().is_some_and(|user| user.real.is_some());
        match self.authentication {
            Authentication::Proven(_) if acts_for_another => "PROXY",
            Authentication::Proven(Credential::Certificate) => "CERTIFICATE",
            Authentication::Proven(Credential::Kerberos) => "KERBEROS",
            Authentication::Proven(Credential::Token(_) | Credential::Password) => "TOKEN",
            Authentication::Anonymous | Authentication::Simple | Authentication::Locating => "SIMPLE",
        }
    }

    /// The client's address and port.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The client's address, without the port.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        self.address.map(|address| address.ip())
    }

    /// Owner of the scanners that it opens.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }
}
