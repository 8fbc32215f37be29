//! TLS of connections: 1.2 and 1.3 with the authorities of a file.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use basalt_security::certificate::tls::client_config;
use basalt_security::certificate::{NameFrom, user_of};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error as TlsError};

use crate::error::{Error, Result};

/// Settings of TLS: the authorities to trust, a client certificate, and the name of the server.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    has_certificate: bool,
    /// The common name of the client certificate; `None` if it has none that can be a user.
    user: Option<String>,
    /// The name that the server's certificate must have, if it is not the host of the address.
    server_name: Option<ServerName<'static>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("has_certificate", &self.has_certificate)
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}

impl Tls {
    /// Trusts the authorities of a PEM file. Basalt's own authority is `security/ca.crt` in its
    /// data directory.
    pub fn new(ca: impl AsRef<Path>) -> Result<Tls> {
        Tls::load(ca.as_ref(), None)
    }

    /// Trusts the authorities of a PEM file, and logs in with the certificate of another PEM file,
    /// which has its chain and its key, as `basalt certificate client` writes it.
    pub fn with_certificate(ca: impl AsRef<Path>, certificate: impl AsRef<Path>) -> Result<Tls> {
        Tls::load(ca.as_ref(), Some(certificate.as_ref()))
    }

    fn load(ca: &Path, certificate: Option<&Path>) -> Result<Tls> {
        let config = client_config(ca, certificate).map_err(|error| Error::Credentials(error.to_string()))?;
        Ok(Tls {
            config,
            has_certificate: certificate.is_some(),
            user: certificate.and_then(common_name),
            server_name: None,
        })
    }

    /// The name or IP address that the server's certificate must have, instead of the host that the
    /// client connects to.
    pub fn server_name(mut self, name: &str) -> Result<Tls> {
        self.server_name = Some(server_name(name)?);
        Ok(self)
    }

    /// Whether there is a client certificate.
    pub(super) fn has_certificate(&self) -> bool {
        self.has_certificate
    }

    /// The common name of the client certificate.
    pub(super) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Runs the client's side of the handshake on a connection to `target`, a `host:port`.
    pub(crate) async fn encrypt(&self, target: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>> {
        let name = match &self.server_name {
            Some(name) => name.clone(),
            None => server_name(host(target))?,
        };
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let shaken = connector.connect(name, stream).await;
        shaken.map_err(|source| handshake_failed(target, &source))
    }
}

/// The common name of the first certificate of a PEM file.
fn common_name(path: &Path) -> Option<String> {
    let certificate = CertificateDer::from_pem_file(path).ok()?;
    user_of(&certificate, NameFrom::CommonName).ok()
}

/// The host of a `host:port`, without the brackets of an IPv6 address.
fn host(target: &str) -> &str {
    let host = target.rsplit_once(':').map_or(target, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

fn server_name(name: &str) -> Result<ServerName<'static>> {
    ServerName::try_from(name.to_owned()).map_err(|_| {
        Error::Credentials(format!(
            "'{name}' cannot be in a certificate: give a DNS name or an IP address as the server name"
        ))
    })
}

fn handshake_failed(target: &str, source: &io::Error) -> Error {
    match tls_error(source) {
        Some(error) => Error::Login {
            target: target.to_owned(),
            what: format!("the TLS handshake failed: {error}; {}", remedy(error)),
        },
        None => Error::Connect {
            target: target.to_owned(),
            source: io::Error::new(
                source.kind(),
                format!("the TLS handshake failed: {source}; the server's log has the cause"),
            ),
        },
    }
}

/// The server's rejection that a read or write reports: in TLS 1.3 it arrives after the handshake.
pub(crate) fn alert(error: &io::Error) -> Option<String> {
    match tls_error(error) {
        Some(alert @ TlsError::AlertReceived(_)) => Some(format!("{alert}; {}", remedy(alert))),
        _ => None,
    }
}

fn tls_error(error: &io::Error) -> Option<&TlsError> {
    error.get_ref()?.downcast_ref()
}

fn remedy(error: &TlsError) -> &'static str {
    match error {
        TlsError::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            "give the CA file of this server (Basalt: security/ca.crt in its data directory)"
        }
        TlsError::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => {
            "connect to a name in the certificate, give one as the server name, or create a certificate for this name"
        }
        TlsError::InvalidCertificate(_) => "the server needs a new certificate",
        TlsError::AlertReceived(_) => {
            "the server rejects the client: give a client certificate that its authority has signed"
        }
        TlsError::InvalidMessage(_) => {
            "the server does not answer with TLS: give it a certificate, or connect without a CA file"
        }
        _ => "the server's log may have the cause",
    }
}

#[cfg(test)]
mod tests {
    use basalt_security::certificate::Authority;

    use super::super::Security;
    use super::*;

    #[test]
    fn the_host_of_an_address_is_the_name_in_the_certificate() {
        for (target, name) in [
            ("db.example:9090", "db.example"),
            ("127.0.0.1:9090", "127.0.0.1"),
            ("[::1]:9090", "::1"),
            ("db", "db"),
        ] {
            assert_eq!(host(target), name);
            server_name(name).unwrap();
        }
        let error = server_name("a b").unwrap_err().to_string();
        assert!(error.contains("'a b'"), "{error}");
    }

    #[test]
    fn the_user_of_a_certificate_is_its_common_name() {
        let folder = tempfile::tempdir().unwrap();
        let now = std::time::SystemTime::now();
        let authority = Authority::create(&folder.path().join("ca"), "test", now).unwrap();
        let day = std::time::Duration::from_hours(24);
        let certificate = authority.client("ada", day, now, folder.path()).unwrap();
        let ca = folder.path().join("ca").join("ca.crt");
        let security = Security::none().tls(Tls::with_certificate(&ca, &certificate).unwrap());
        assert_eq!(security.user().as_deref(), Some("ada"));
        assert_eq!(security.method(), "CERTIFICATE");
        let only_encrypted = Security::none().tls(Tls::new(&ca).unwrap());
        assert_eq!((only_encrypted.user(), only_encrypted.method()), (None, "SIMPLE"));
    }

    #[test]
    fn a_missing_ca_file_is_named() {
        let error = Tls::new("/nowhere/ca.crt").unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Setup);
        let text = error.to_string();
        assert!(
            text.contains("/nowhere/ca.crt") && text.contains("check that the file exists"),
            "{text}"
        );
    }
}
