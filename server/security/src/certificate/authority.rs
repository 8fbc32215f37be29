//! An own certificate authority, for sites without one.
//!
//! Files in its directory: `ca.crt` for clients to trust, `ca.key`, and what [`Authority::server`]
//! and [`Authority::client`] make. A client's file has its certificate, the CA's and the key in
//! one, as HBase's clients take it (`hbase.rpc.tls.keystore.location`, type PEM).

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use crate::users::check_name;
use crate::{Error, Result, file};

/// File of the CA's certificate.
pub const CA_CERTIFICATE: &str = "ca.crt";
/// File of the CA's key.
pub const CA_KEY: &str = "ca.key";
/// File of the server's certificate and the CA's.
pub const SERVER_CERTIFICATE: &str = "server.crt";
/// File of the server's key.
pub const SERVER_KEY: &str = "server.key";

const CERTIFICATE: &str = "CERTIFICATE";
const KEY: &str = "PRIVATE KEY";
/// Letters of base64 in a line of a PEM file.
const LINE: usize = 64;

/// Validity of the CA.
const CA_VALID: Duration = Duration::from_hours(3650 * 24);
/// Clients whose clock is late accept a certificate that is valid since yesterday.
const BACKDATED: Duration = Duration::from_hours(24);

/// A certificate authority in a directory.
pub struct Authority {
    directory: PathBuf,
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Authority {
    /// Whether the directory has an authority.
    pub fn exists(directory: &Path) -> bool {
        directory.join(CA_KEY).exists()
    }

    /// Makes an authority, valid for ten years. `name` stands in its subject. Never replaces one:
    /// all its certificates would become invalid.
    pub fn create(directory: &Path, name: &str, now: SystemTime) -> Result<Self> {
        if Self::exists(directory) {
            let problem = "the directory has a certificate authority already".to_owned();
            return Err(fault(
                &directory.join(CA_KEY),
                problem,
                "use it, or choose another directory",
            ));
        }
        file::create_dir(directory).map_err(|error| {
            let problem = format!("the directory cannot be created: {error}");
            fault(
                directory,
                problem,
                "create its parent, or choose another directory",
            )
        })?;
        let mut params = params(&format!("Basalt CA {name}"), CA_VALID, now);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(|error| generation(&error))?;
        let certificate = params.self_signed(&key).map_err(|error| generation(&error))?;
        let certificate = pem(CERTIFICATE, certificate.der()).to_string();
        write(&directory.join(CA_CERTIFICATE), certificate.as_bytes())?;
        // Last: an authority exists when its key does.
        write(&directory.join(CA_KEY), pem(KEY, key.serialized_der()).as_bytes())?;
        Ok(Self {
            directory: directory.to_owned(),
            certificate,
            issuer: Issuer::new(params, key),
        })
    }

    /// The authority in the directory.
    pub fn open(directory: &Path) -> Result<Self> {
        let remedy = "create an authority with `basalt certificate create`";
        let (certificate_path, key_path) = (directory.join(CA_CERTIFICATE), directory.join(CA_KEY));
        let certificate = std::fs::read_to_string(&certificate_path)
            .map_err(|error| fault(&certificate_path, format!("it cannot be read: {error}"), remedy))?;
        let key = file::read_private(&key_path)
            .map_err(|error| fault(&key_path, format!("it cannot be read: {error}"), remedy))?;
        let (key, _) = key.ok_or_else(|| fault(&key_path, "there is no such file".into(), remedy))?;
        let damaged = |path: &Path, error: &dyn std::fmt::Display| {
            fault(
                path,
                format!("it is not usable: {error}"),
                "restore the file from a copy",
            )
        };
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| damaged(&key_path, &error))?;
        let key = KeyPair::try_from(&key).map_err(|error| damaged(&key_path, &error))?;
        let der = CertificateDer::from_pem_slice(certificate.as_bytes());
        let der = der.map_err(|error| damaged(&certificate_path, &error))?;
        let issuer = Issuer::from_ca_cert_der(&der, key);
        Ok(Self {
            directory: directory.to_owned(),
            issuer: issuer.map_err(|error| damaged(&certificate_path, &error))?,
            certificate,
        })
    }

    /// The CA's certificate as PEM, for clients to trust.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Makes a certificate for a server that is reached by these names and IP addresses, and writes
    /// [`SERVER_CERTIFICATE`] and [`SERVER_KEY`] to the directory; older ones are replaced.
    pub fn server(&self, names: &[String], valid: Duration, now: SystemTime) -> Result<()> {
        let Some(first) = names.first() else {
            return Err(Error::Invalid(
                "a server certificate needs a name by which clients reach the server".into(),
            ));
        };
        let mut params = params(first, valid, now);
        let with_names = CertificateParams::new(names);
        let with_names = with_names
            .map_err(|error| Error::Invalid(format!("a name of the server is not usable: {error}")))?;
        params.subject_alt_names = with_names.subject_alt_names;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let (chain, key) = self.sign(params)?;
        write(&self.directory.join(SERVER_KEY), key.as_bytes())?;
        write(&self.directory.join(SERVER_CERTIFICATE), chain.as_bytes())
    }

    /// Makes a certificate for a user (CN), and writes it with the CA's and the key to
    /// `client-USER.pem` in `to`, which it returns.
    pub fn client(&self, user: &str, valid: Duration, now: SystemTime, to: &Path) -> Result<PathBuf> {
        check_name("user", user)?;
        if user.contains('/') {
            return Err(Error::Invalid(format!(
                "no file can be named after user {user}: the name contains a slash"
            )));
        }
        let mut params = params(user, valid, now);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let (mut text, key) = self.sign(params)?;
        text.push_str(&key);
        let text = Zeroizing::new(text);
        let path = to.join(format!("client-{user}.pem"));
        write(&path, text.as_bytes())?;
        Ok(path)
    }

    /// A certificate with the CA's behind it, and its key.
    fn sign(&self, mut params: CertificateParams) -> Result<(String, Zeroizing<String>)> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(|error| generation(&error))?;
        let certificate = params
            .signed_by(&key, &self.issuer)
            .map_err(|error| generation(&error))?;
        let chain = pem(CERTIFICATE, certificate.der()).to_string() + &self.certificate;
        Ok((chain, pem(KEY, key.serialized_der())))
    }
}

fn params(common_name: &str, valid: Duration, now: SystemTime) -> CertificateParams {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = epoch + since.saturating_sub(BACKDATED);
    params.not_after = epoch + since + valid;
    params
}

/// Text form of a certificate or key (RFC 7468).
fn pem(label: &str, der: &[u8]) -> Zeroizing<String> {
    let base64 = Zeroizing::new(BASE64_STANDARD.encode(der));
    // With room for all of it: growing would leave copies of a key behind.
    let mut text = Zeroizing::new(String::with_capacity(base64.len() / LINE * (LINE + 1) + 200));
    text.extend(["-----BEGIN ", label, "-----\n"]);
    for at in (0..base64.len()).step_by(LINE) {
        text.push_str(&base64[at..base64.len().min(at + LINE)]);
        text.push('\n');
    }
    text.extend(["-----END ", label, "-----\n"]);
    text
}

fn write(path: &Path, contents: &[u8]) -> Result<()> {
    let written = file::write_private(path, contents);
    written.map_err(|error| {
        fault(
            path,
            format!("it cannot be written: {error}"),
            "check space and permissions of the directory",
        )
    })
}

fn generation(error: &rcgen::Error) -> Error {
    Error::Invalid(format!("the certificate cannot be made: {error}"))
}

fn fault(path: &Path, problem: String, remedy: &'static str) -> Error {
    Error::File {
        path: path.to_owned(),
        line: 0,
        problem,
        remedy,
    }
}
