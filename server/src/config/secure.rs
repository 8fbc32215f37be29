//! Files and switches of security that follow from the settings and from what is in the data directory.

use std::path::{Path, PathBuf};

use basalt_security::certificate::authority::{CA_CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY};
use basalt_security::certificate::{self, Files, NameFrom};

use basalt_security::kerberos::{IS_BUILT_IN, NOT_BUILT_IN, Service};

use super::{Authenticate, ClientCertificates, Config, ConfigError, UserFrom};

/// Directory of users, rights and certificates in a data directory.
pub fn security_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("security")
}

/// Refuses settings of Kerberos that are incomplete or wrong, and all of them in a program without it.
pub(super) fn check_kerberos(config: &Config) -> Result<(), ConfigError> {
    let settings = &config.kerberos;
    let refuse = |key: &str, message: &str| Err(ConfigError::new(format!("kerberos.{key}"), message));
    match (
        settings.keytab.as_os_str().is_empty(),
        settings.principal.is_empty(),
    ) {
        (true, true) if settings.http_principal.is_empty() => return Ok(()),
        _ if !IS_BUILT_IN => return refuse("keytab", NOT_BUILT_IN),
        (true, _) => {
            return refuse(
                "keytab",
                "is empty, and must name the file with the keys of kerberos.principal",
            );
        }
        (false, true) => {
            return refuse(
                "principal",
                "is empty, and must name the service whose keys kerberos.keytab has, such as hbase/db.example.org@EXAMPLE.ORG",
            );
        }
        (false, false) => {}
    }
    let checked = config.kerberos_service().map(|service| service.check().map(drop));
    checked
        .unwrap_or(Ok(()))
        .map_err(|error| ConfigError::new("kerberos", error))
}

impl Config {
    /// The service that clients with Kerberos log in to, if there is one.
    pub fn kerberos_service(&self) -> Option<Service<'_>> {
        let settings = &self.kerberos;
        (!settings.keytab.as_os_str().is_empty()).then_some(Service {
            keytab: &settings.keytab,
            principal: &settings.principal,
            http_principal: &settings.http_principal,
            rules: &settings.auth_to_local,
            protections: &settings.protection,
        })
    }

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
