//! Settings of TLS from PEM files: 1.2 and 1.3, with ring's cipher suites.
//!
//! [`Certificates`] holds the settings for new connections. A reload that succeeds replaces them;
//! one that fails changes nothing. Connections keep the settings that they began with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::file::{self, Stamp};
use crate::{Error, Result};

/// Whether clients show a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// The server does not ask.
    Off,
    /// The server asks. A client without one authenticates otherwise; a wrong one is an error.
    #[default]
    Wanted,
    /// The handshake fails without one.
    Needed,
}

/// PEM files of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The server's certificate, then the intermediate ones.
    pub certificate: PathBuf,
    /// The key of the server's certificate.
    pub key: PathBuf,
    /// Authorities of client certificates.
    pub client_ca: Option<PathBuf>,
    /// Whether clients show a certificate.
    pub clients: ClientCertificates,
}

/// The TLS settings of a server.
#[derive(Debug)]
pub struct Certificates {
    files: Files,
    current: ArcSwap<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    config: Arc<ServerConfig>,
    /// The server's certificate.
    certificate: CertificateDer<'static>,
    stamps: [Option<Stamp>; 3],
}

impl Certificates {
    /// Loads the files.
    pub fn open(files: Files) -> Result<Self> {
        let current = ArcSwap::from_pointee(Loaded::load(&files)?);
        Ok(Self { files, current })
    }

    /// The settings for a new connection.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.load().config)
    }

    /// The server's certificate as DER, for its expiry ([`super::expires`]).
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.current.load().certificate.clone()
    }

    /// Whether a file is another one than the one that was loaded.
    pub fn changed(&self) -> bool {
        self.current.load().stamps != stamps(&self.files)
    }

    /// Loads the files again. On failure the settings stay as they are.
    pub fn reload(&self) -> Result<()> {
        self.current.store(Arc::new(Loaded::load(&self.files)?));
        Ok(())
    }
}

fn stamps(files: &Files) -> [Option<Stamp>; 3] {
    let client_ca = files.client_ca.as_deref().and_then(file::stamp);
    [
        file::stamp(&files.certificate),
        file::stamp(&files.key),
        client_ca,
    ]
}

impl Loaded {
    fn load(files: &Files) -> Result<Self> {
        // Before the files are read: a change in between is seen as one.
        let stamps = stamps(files);
        let chain = certificates(&files.certificate)?;
        let certificate = chain[0].clone();
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("ring has suites of both versions");
        let builder = match client_verifier(files)? {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let config = builder
            .with_single_cert(chain, key(&files.key)?)
            .map_err(|error| {
                let problem = format!(
                    "the key does not belong to {}: {error}",
                    files.certificate.display()
                );
                fault(&files.key, problem, "replace both files together")
            })?;
        Ok(Self {
            config: Arc::new(config),
            certificate,
            stamps,
        })
    }
}

fn client_verifier(files: &Files) -> Result<Option<Arc<dyn ClientCertVerifier>>> {
    if files.clients == ClientCertificates::Off {
        return Ok(None);
    }
    let Some(path) = &files.client_ca else {
        return Err(Error::Invalid(
            "client certificates need the file of their authority; set it, or switch client certificates off"
                .into(),
        ));
    };
    let roots = Arc::new(roots(path)?);
    let mut builder = WebPkiClientVerifier::builder_with_provider(roots, provider());
    if files.clients == ClientCertificates::Wanted {
        builder = builder.allow_unauthenticated();
    }
    let verifier = builder.build();
    verifier.map(Some).map_err(|error| unusable(path, &error))
}

/// The settings of our own clients: an authority to trust, and a client certificate with its key in
/// one file, as [`super::Authority::client`] writes it.
pub fn client_config(ca: &Path, certificate: Option<&Path>) -> Result<Arc<ClientConfig>> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("ring has suites of both versions")
        .with_root_certificates(roots(ca)?);
    let config = match certificate {
        None => builder.with_no_client_auth(),
        Some(path) => builder
            .with_client_auth_cert(certificates(path)?, key(path)?)
            .map_err(|error| unusable(path, &error))?,
    };
    Ok(Arc::new(config))
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn roots(path: &Path) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| unusable(path, &error))?;
    }
    Ok(roots)
}

/// At least one certificate.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let found =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>);
    match found {
        Ok(found) if found.is_empty() => Err(fault(
            path,
            "it has no certificate".into(),
            "write the certificate into it as PEM",
        )),
        Ok(found) => Ok(found),
        Err(error) => Err(unusable(path, &error)),
    }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    let remedy = "check that the file exists, is readable and is PEM";
    fault(path, format!("it cannot be used: {error}"), remedy)
}

fn fault(path: &Path, problem: String, remedy: &'static str) -> Error {
    Error::File {
        path: path.to_owned(),
        line: 0,
        problem,
        remedy,
    }
}
