use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, KeyPair, SanType};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ProtocolVersion, ServerConfig, ServerConnection};

use super::*;
use crate::certificate::authority::{CA_CERTIFICATE, CA_KEY, SERVER_CERTIFICATE, SERVER_KEY};

const YEAR: Duration = Duration::from_hours(365 * 24);

/// An authority with a server's certificate in a directory of its own.
struct Site {
    dir: tempfile::TempDir,
    authority: Authority,
}

impl Site {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::create(dir.path(), "test", SystemTime::now()).unwrap();
        let site = Self { dir, authority };
        site.renew(&["db.example", "127.0.0.1"]);
        site
    }

    fn renew(&self, names: &[&str]) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        self.authority.server(&names, YEAR, SystemTime::now()).unwrap();
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn client(&self, user: &str) -> std::path::PathBuf {
        self.authority
            .client(user, YEAR, SystemTime::now(), self.dir.path())
            .unwrap()
    }

    fn certificates(&self, clients: ClientCertificates) -> Certificates {
        Certificates::open(self.files(clients)).unwrap()
    }

    fn files(&self, clients: ClientCertificates) -> Files {
        Files {
            certificate: self.path(SERVER_CERTIFICATE),
            key: self.path(SERVER_KEY),
            client_ca: Some(self.path(CA_CERTIFICATE)),
            clients,
        }
    }
}

/// Result of a handshake: the protocol's version, the client's and the server's certificate.
struct Shaken {
    version: ProtocolVersion,
    user: Option<String>,
    server: Vec<u8>,
}

/// A handshake in memory.
fn shake(
    server: Arc<ServerConfig>,
    client: Arc<rustls::ClientConfig>,
    name: &str,
) -> Result<Shaken, rustls::Error> {
    let mut server = ServerConnection::new(server)?;
    let mut client = ClientConnection::new(client, ServerName::try_from(name.to_owned()).unwrap())?;
    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut &bytes[..]).unwrap();
        server.process_new_packets()?;
        bytes.clear();
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut &bytes[..]).unwrap();
        client.process_new_packets()?;
    }
    let user = server
        .peer_certificates()
        .map(|chain| user_of(&chain[0], NameFrom::CommonName).unwrap());
    Ok(Shaken {
        version: server.protocol_version().unwrap(),
        user,
        server: client.peer_certificates().unwrap()[0].to_vec(),
    })
}

fn trusting(site: &Site, certificate: Option<&Path>) -> Arc<rustls::ClientConfig> {
    tls::client_config(&site.path(CA_CERTIFICATE), certificate).unwrap()
}

#[test]
fn a_client_certificate_names_the_user() {
    let site = Site::new();
    let config = site.certificates(ClientCertificates::Needed).config();
    let ada = trusting(&site, Some(&site.client("ada")));
    for name in ["db.example", "127.0.0.1"] {
        let shaken = shake(Arc::clone(&config), Arc::clone(&ada), name).unwrap();
        assert_eq!(shaken.version, ProtocolVersion::TLSv1_3);
        assert_eq!(shaken.user.as_deref(), Some("ada"));
    }
    assert!(
        shake(Arc::clone(&config), ada, "other.example").is_err(),
        "the name is not in the certificate"
    );
}

#[test]
fn both_versions_of_tls_are_spoken() {
    let site = Site::new();
    let config = site.certificates(ClientCertificates::Off).config();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(pem(&site.path(CA_CERTIFICATE))).unwrap();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        let shaken = shake(Arc::clone(&config), Arc::new(client), "db.example").unwrap();
        assert_eq!(shaken.version, version.version);
        assert_eq!(shaken.user, None);
    }
}

#[test]
fn a_missing_certificate_fails_where_it_is_needed() {
    let site = Site::new();
    let without = || trusting(&site, None);
    let shaken = shake(
        site.certificates(ClientCertificates::Wanted).config(),
        without(),
        "db.example",
    )
    .unwrap();
    assert_eq!(shaken.user, None);
    assert!(
        shake(
            site.certificates(ClientCertificates::Needed).config(),
            without(),
            "db.example"
        )
        .is_err()
    );
}

#[test]
fn certificates_of_another_authority_are_refused() {
    let (site, other) = (Site::new(), Site::new());
    let foreign = other.client("ada");
    for clients in [ClientCertificates::Wanted, ClientCertificates::Needed] {
        let config = site.certificates(clients).config();
        assert!(shake(config, trusting(&site, Some(&foreign)), "db.example").is_err());
    }
    // A server's certificate is none of a client.
    let server = site.path("both.pem");
    let both = [SERVER_CERTIFICATE, SERVER_KEY].map(|name| fs::read_to_string(site.path(name)).unwrap());
    fs::write(&server, both.concat()).unwrap();
    let config = site.certificates(ClientCertificates::Needed).config();
    assert!(shake(config, trusting(&site, Some(&server)), "db.example").is_err());
    let config = site.certificates(ClientCertificates::Off).config();
    assert!(shake(config, trusting(&other, None), "db.example").is_err());
}

#[test]
fn a_reload_concerns_new_connections_and_fails_whole() {
    let site = Site::new();
    let certificates = site.certificates(ClientCertificates::Off);
    let server = |config| shake(config, trusting(&site, None), "db.example").unwrap().server;
    let before = certificates.config();
    let first = server(Arc::clone(&before));
    assert!(!certificates.changed());
    site.renew(&["db.example"]);
    assert!(certificates.changed());
    assert_eq!(server(certificates.config()), first);
    certificates.reload().unwrap();
    assert!(!certificates.changed());
    let second = server(certificates.config());
    assert_ne!(second, first);
    assert_eq!(server(before), first);
    // The key of another certificate.
    fs::copy(site.path(CA_KEY), site.path(SERVER_KEY)).unwrap();
    let error = certificates.reload().unwrap_err().to_string();
    assert!(
        error.contains("server.key: the key does not belong to"),
        "{error}"
    );
    assert_eq!(server(certificates.config()), second);
}

#[test]
fn errors_name_the_file_and_the_remedy() {
    let site = Site::new();
    let open = |change: &dyn Fn(&mut Files)| {
        let mut files = site.files(ClientCertificates::Wanted);
        change(&mut files);
        Certificates::open(files).unwrap_err().to_string()
    };
    let error = open(&|files| files.certificate = site.path("none.crt"));
    assert!(
        error.contains("none.crt: it cannot be used") && error.contains("check that"),
        "{error}"
    );
    let error = open(&|files| files.certificate = site.path(SERVER_KEY));
    assert!(error.contains("server.key: it has no certificate"), "{error}");
    let error = open(&|files| files.key = site.path(SERVER_CERTIFICATE));
    assert!(error.contains("server.crt: it cannot be used"), "{error}");
    let error = open(&|files| files.client_ca = None);
    assert!(error.contains("client certificates need"), "{error}");
}

#[test]
fn an_authority_is_opened_again_and_not_replaced() {
    let site = Site::new();
    let error = Authority::create(site.dir.path(), "again", SystemTime::now()).unwrap_err();
    assert!(error.to_string().contains("has a certificate authority already"));
    let opened = Authority::open(site.dir.path()).unwrap();
    assert_eq!(opened.certificate(), site.authority.certificate());
    let bob = opened
        .client("bob", YEAR, SystemTime::now(), site.dir.path())
        .unwrap();
    let config = site.certificates(ClientCertificates::Needed).config();
    let shaken = shake(config, trusting(&site, Some(&bob)), "db.example").unwrap();
    assert_eq!(shaken.user.as_deref(), Some("bob"));
    let error = Authority::open(&site.path("none")).unwrap_err().to_string();
    assert!(error.contains("none/ca.crt: it cannot be read"), "{error}");
    for user in ["a/b", "../b", "a b", ""] {
        assert!(
            site.authority
                .client(user, YEAR, SystemTime::now(), site.dir.path())
                .is_err(),
            "{user}"
        );
    }
    assert!(site.authority.server(&[], YEAR, SystemTime::now()).is_err());
}

#[test]
fn files_belong_to_their_owner_and_expire_in_time() {
    use std::os::unix::fs::PermissionsExt;
    let site = Site::new();
    let client = site.client("ada");
    for path in [site.path(CA_KEY), site.path(SERVER_KEY), client.clone()] {
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600,
            "{}",
            path.display()
        );
    }
    let left = expires(&pem(&client))
        .unwrap()
        .duration_since(SystemTime::now())
        .unwrap();
    assert!(left <= YEAR && left + Duration::from_mins(1) > YEAR, "{left:?}");
    assert_eq!(expires(b"none"), None);
}

fn pem(path: &Path) -> rustls::pki_types::CertificateDer<'static> {
    use rustls::pki_types::pem::PemObject;
    rustls::pki_types::CertificateDer::from_pem_file(path).unwrap()
}

/// A self-signed certificate with these common names and alternative names.
fn certificate(common: &[&str], alternative: Vec<SanType>) -> Vec<u8> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    for (at, name) in common.iter().enumerate() {
        // The crate has one value for each type: a second one needs a type of its own, with the
        // same number.
        let oid = [2, 5, 4, 3];
        let kind = if at == 0 {
            DnType::CommonName
        } else {
            DnType::CustomDnType(oid.to_vec())
        };
        params.distinguished_name.push(kind, *name);
    }
    params.subject_alt_names = alternative;
    params
        .self_signed(&KeyPair::generate().unwrap())
        .unwrap()
        .der()
        .to_vec()
}

#[test]
fn exactly_one_name_is_the_user() {
    let user = |der: &[u8], from| user_of(der, from).ok();
    let email = |name: &str| SanType::Rfc822Name(name.try_into().unwrap());
    let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
    let address = SanType::IpAddress(IpAddr::from([10, 0, 0, 1]));
    let der = certificate(
        &["ada"],
        vec![email("ada@example.com"), dns("ada.example"), address],
    );
    assert_eq!(user(&der, NameFrom::CommonName).as_deref(), Some("ada"));
    assert_eq!(user(&der, NameFrom::Email).as_deref(), Some("ada@example.com"));
    assert_eq!(user(&der, NameFrom::Dns).as_deref(), Some("ada.example"));
    let none = certificate(&[], Vec::new());
    let two = certificate(&["ada", "root"], vec![email("a@x"), email("b@x")]);
    for from in [NameFrom::CommonName, NameFrom::Email, NameFrom::Dns] {
        assert_eq!(user(&none, from), None);
        assert_eq!(user(&two, from), None);
    }
    for name in ["", "a b", "@dev", "a\0b", "a,b"] {
        assert_eq!(
            user(&certificate(&[name], Vec::new()), NameFrom::CommonName),
            None,
            "{name:?}"
        );
    }
    for end in 0..der.len() {
        assert_eq!(user(&der[..end], NameFrom::CommonName), None);
    }
    assert_eq!(user(&[&der[..], &[0]].concat(), NameFrom::CommonName), None);
}
