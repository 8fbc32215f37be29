//! Files and switches of security that follow from the settings and from what is in the data directory.

use std::path::{Path, PathBuf};

use basalt_security::certificate::authority::{CA_CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY};
use basalt_security::certificate::{self, Files, NameFrom};

use super::{Authenticate, ClientCertificates, Config, UserFrom};

/// Directory of users, rights and certificates in a data directory.
pub fn security_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("security")
}

impl Config {
    /// Directory of users, rights and certificates.
    pub fn security_dir(&self) -> PathBuf {
        security_dir(&self.data.dir)
    }

    /// The PEM files of TLS; `None` without a certificate: neither set nor made by
    /// `basalt certificate create`.
    pub fn tls_files(&self) -> Option<Files> {
        let directory = self.security_dir();
        let or = |path: &Path, made: &str| {
            if path.as_os_str().is_empty() {
                directory.join(made)
            } else {
                path.to_owned()
            }
        };
        let certificate = or(&self.tls.certificate, SERVER_CERTIFICATE);
        if self.tls.certificate.as_os_str().is_empty() && !certificate.exists() {
            return None;
        }
        let client_ca = or(&self.tls.client_ca, CA_CERTIFICATE);
        let has_client_ca = !self.tls.client_ca.as_os_str().is_empty() || client_ca.exists();
        let clients = match self.tls.client_certificates {
            // Without an authority no client certificate can be verified, so none is requested.
            ClientCertificates::Wanted if !has_client_ca => certificate::ClientCertificates::Off,
            ClientCertificates::Off => certificate::ClientCertificates::Off,
            ClientCertificates::Wanted => certificate::ClientCertificates::Wanted,
            ClientCertificates::Needed => certificate::ClientCertificates::Needed,
        };
        Some(Files {
            certificate,
            key: or(&self.tls.key, SERVER_KEY),
            client_ca: has_client_ca.then_some(client_ca),
            clients,
        })
    }

    /// The part of a client certificate that is the user.
    pub fn user_from(&self) -> NameFrom {
        match self.tls.user_from {
            UserFrom::Cn => NameFrom::CommonName,
            UserFrom::Dns => NameFrom::Dns,
            UserFrom::Email => NameFrom::Email,
        }
    }

    /// Whether users must prove who they are.
    pub fn authenticates(&self) -> bool {
        match self.security.authentication {
            Authenticate::Off => false,
            Authenticate::Required => true,
            Authenticate::Auto => self.security_dir().join("users.json").exists(),
        }
    }

    /// Whether strangers are kept out: connections of other machines are encrypted, and users must
    /// prove who they are.
    pub fn is_secured(&self) -> bool {
        self.authenticates() && self.tls_files().is_some()
    }
}
