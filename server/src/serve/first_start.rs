//! `--secure`: makes what encryption and users need, if it is not there.
//!
//! 1. [`FirstStart::prepare`], before the settings are validated: an authority with a certificate of the
//!    server, unless the settings name one or the data directory has one; and the superuser [`SUPERUSER`],
//!    who has no password, unless there are users.
//! 2. [`FirstStart::finish`], once the id of the database is known: a token file and a client certificate
//!    of that user, in the same directory.
//!
//! Nothing that exists is changed: a server that has a certificate and users starts as without `--secure`. If
//! the process ends between the two steps, the next start makes what the second one would have made.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use basalt_security::certificate::Authority;
use basalt_security::certificate::authority::{CA_CERTIFICATE, SERVER_CERTIFICATE};
use basalt_security::file::write_private;
use basalt_security::token::TokenFile;
use basalt_security::users::{NewUser, UserFile};

use super::Failure;
use crate::config::Config;

/// The user that is made.
pub(crate) const SUPERUSER: &str = "admin";
const DAY: Duration = Duration::from_hours(24);
/// Validity of the server's certificate, as that of `basalt certificate create`.
const SERVER_CERTIFICATE_VALID: Duration = DAY.saturating_mul(825);
/// Validity of the superuser's certificate and token.
const SUPERUSER_VALID: Duration = DAY.saturating_mul(365);

/// The directory in which files were made, or are to be made.
#[derive(Debug)]
pub(crate) struct FirstStart {
    directory: PathBuf,
}

/// Files with which clients log in as [`SUPERUSER`].
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Credentials {
    pub(crate) user: &'static str,
    /// Certificate of the authority, for clients to trust.
    pub(crate) ca: PathBuf,
    /// Certificate and key of the user.
    pub(crate) certificate: PathBuf,
    /// Token as a file of Hadoop, for `HADOOP_TOKEN_FILE_LOCATION`.
    pub(crate) token: PathBuf,
    /// The same token as text, for passwords and `Authorization: Bearer`.
    pub(crate) token_text: PathBuf,
}

impl FirstStart {
    /// Makes certificate and user, if they are missing.
    pub(crate) fn prepare(config: &Config) -> Result<Self, Failure> {
        let directory = config.security_dir();
        std::fs::create_dir_all(&directory)?;
        let now = SystemTime::now();
        if config.tls.certificate.as_os_str().is_empty() && !directory.join(SERVER_CERTIFICATE).exists() {
            let authority = if Authority::exists(&directory) {
                Authority::open(&directory)?
            } else {
                Authority::create(&directory, "Basalt", now)?
            };
            authority.server(&names(&config.server.advertise), SERVER_CERTIFICATE_VALID, now)?;
        }
        let users = UserFile::in_dir(&directory);
        users.update(|users| {
            if users.users().next().is_some() {
                return Ok(());
            }
            let admin = NewUser {
                superuser: true,
                ..NewUser::default()
            };
            users.create_user(SUPERUSER, admin)
        })?;
        Ok(Self { directory })
    }

    /// Makes token and certificate of the superuser, if they are missing, and returns where all is. `None` if
    /// the server has another certificate or other users.
    pub(crate) fn finish(&self, cluster_id: &str) -> Result<Option<Credentials>, Failure> {
        let credentials = Credentials::in_dir(&self.directory);
        let users = UserFile::in_dir(&self.directory);
        let (known, _) = users.load()?;
        if known.active_user(SUPERUSER).is_err() || !Authority::exists(&self.directory) {
            return Ok(None);
        }
        let now = SystemTime::now();
        if !credentials.certificate.exists() {
            Authority::open(&self.directory)?.client(SUPERUSER, SUPERUSER_VALID, now, &self.directory)?;
        }
        if !credentials.token.exists() {
            let ((_, token), ..) =
                users.update(|users| users.issue_token(SUPERUSER, SUPERUSER_VALID, now))?;
            write_private(&credentials.token_text, token.to_text().as_bytes())?;
            write_private(&credentials.token, &TokenFile::of(&token, cluster_id).to_bytes())?;
        }
        Ok(Some(credentials))
    }
}

impl Credentials {
    fn in_dir(directory: &Path) -> Self {
        let of_user = |form: &str| directory.join(form.replace('%', SUPERUSER));
        Self {
            user: SUPERUSER,
            ca: directory.join(CA_CERTIFICATE),
            certificate: of_user("client-%.pem"),
            token: of_user("%.token"),
            token_text: of_user("%.token.txt"),
        }
    }

    /// How clients use them, a line each.
    pub(crate) fn lines(&self) -> [String; 4] {
        let Self {
            user,
            ca,
            certificate,
            token,
            token_text,
        } = self;
        [
            format!(
                "users must log in; the superuser is {user}, and clients trust {}",
                ca.display()
            ),
            format!(
                "Java, shell, MapReduce: HADOOP_TOKEN_FILE_LOCATION={} and hbase.security.authentication=kerberos",
                token.display()
            ),
            format!(
                "Python, Go, Node, C++, Java 2.6: client certificate {}",
                certificate.display()
            ),
            format!(
                "HTTP: Authorization: Bearer with the text of {}",
                token_text.display()
            ),
        ]
    }
}

/// Names and addresses by which clients may reach the server.
fn names(advertise: &str) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let advertised = advertise.rsplit_once(':').map_or(advertise, |(host, _)| host);
    for name in [host.as_str(), advertised.trim_matches(['[', ']'])] {
        if !name.is_empty() && name != "auto" && names.iter().all(|known| known != name) {
            names.push(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(dir: &Path) -> Config {
        let mut config = Config::default();
        config.data.dir = dir.to_path_buf();
        config
    }

    /// Goal: the first start makes all, later ones change nothing, and a server with users of its own gets
    /// none.
    #[test]
    fn missing_files_are_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let config = config(dir.path());
        assert!(!config.is_secured());
        let first = FirstStart::prepare(&config).unwrap();
        assert!(config.is_secured());
        let made = first.finish("c1").unwrap().unwrap();
        let contents = || {
            [&made.ca, &made.certificate, &made.token, &made.token_text]
                .map(|path| std::fs::read(path).unwrap())
        };
        let before = contents();
        let again = FirstStart::prepare(&config).unwrap().finish("c1").unwrap();
        assert_eq!(again.as_ref(), Some(&made));
        assert_eq!(contents(), before);

        // A start that ended between the two steps.
        std::fs::remove_file(&made.token).unwrap();
        first.finish("c1").unwrap().unwrap();
        assert!(made.token.exists());

        let other = tempfile::tempdir().unwrap();
        let config = super::tests::config(other.path());
        std::fs::create_dir_all(config.security_dir()).unwrap();
        UserFile::in_dir(&config.security_dir())
            .update(|users| users.create_user("ada", NewUser::default()))
            .unwrap();
        let first = FirstStart::prepare(&config).unwrap();
        assert_eq!(first.finish("c1").unwrap(), None);
    }

    #[test]
    fn the_certificate_has_the_advertised_name() {
        for (advertise, expected) in [
            ("db.example:9090", Some("db.example")),
            ("[fd00::2]:9090", Some("fd00::2")),
            ("auto", None),
        ] {
            let names = names(advertise);
            assert!(names.iter().any(|name| name == "localhost"));
            assert!(!names.iter().any(|name| name == "auto"));
            if let Some(expected) = expected {
                assert!(names.iter().any(|name| name == expected), "{names:?}");
            }
        }
    }
}
