//! Options of a command line for TLS and the login, shared by `basalt-shell` and `basalt-bench`.
//!
//! Every option has a variable. User and token exclude each other; one from the command line replaces the
//! other one's variable, which may be meant for other programs.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use basalt_security::Secret;
use clap::ArgMatches;
use clap::parser::ValueSource;

use super::{Login, Security, Tls};
use crate::error::{Error, Result};

/// TLS and the login.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SecurityArguments {
    // In front of the options, which take their values out of what was parsed.
    #[command(flatten)]
    choice: LoginChoice,
    /// Encrypt connections, and trust servers whose certificate an authority of this PEM file has
    /// signed. Basalt's authority is security/ca.crt in the data directory.
    #[arg(long, value_name = "FILE", env = "BASALT_CLIENT_CA")]
    tls_ca: Option<PathBuf>,
    /// Name in the server's certificate, if it is not the host of the address.
    #[arg(
        long,
        value_name = "NAME",
        env = "BASALT_CLIENT_SERVER_NAME",
        requires = "tls_ca"
    )]
    tls_server_name: Option<String>,
    /// Log in with this certificate: a PEM file with certificate and key, from `basalt certificate
    /// client`.
    #[arg(
        long,
        value_name = "FILE",
        env = "BASALT_CLIENT_CERTIFICATE",
        requires = "tls_ca"
    )]
    tls_certificate: Option<PathBuf>,
    /// Log in as this user with a password. Thrift only.
    #[arg(long, value_name = "NAME", env = "BASALT_USER")]
    user: Option<String>,
    /// File with the password on its first line. Default: a prompt at the terminal.
    #[arg(long, value_name = "FILE", env = "BASALT_PASSWORD_FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// Log in with the token in this file: a token file of Hadoop, or the token as text.
    #[arg(long, value_name = "FILE", env = "BASALT_TOKEN_FILE")]
    token: Option<PathBuf>,
    /// The value of the options, so that clones read files and ask for the password once.
    #[arg(skip)]
    loaded: Arc<OnceLock<Security>>,
}

impl SecurityArguments {
    /// The value of the options. The first call reads the files, and asks for a password that no
    /// file has.
    pub fn security(&self) -> Result<Security> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded.clone());
        }
        let loaded = self.load()?;
        Ok(self.loaded.get_or_init(|| loaded).clone())
    }

    /// Whether there is none of the options.
    pub fn is_none(&self) -> bool {
        self.words().is_empty()
    }

    /// Whether [`Self::security`] asks for a password at the terminal.
    pub fn asks_for_password(&self) -> bool {
        self.user().is_some() && self.password_file.is_none()
    }

    /// The user, unless a token is chosen.
    fn user(&self) -> Option<&str> {
        self.user.as_deref().filter(|_| self.choice != LoginChoice::Token)
    }

    /// The file of a token, unless a user is chosen.
    fn token(&self) -> Option<&Path> {
        self.token.as_deref().filter(|_| self.choice != LoginChoice::User)
    }

    /// The options as words of a command line. A password that was asked for is not in them.
    pub fn words(&self) -> Vec<OsString> {
        let path = |path: &Option<PathBuf>| path.clone().map(OsString::from);
        let password_file = path(&self.password_file).filter(|_| self.user().is_some());
        let options = [
            ("--tls-ca", path(&self.tls_ca)),
            (
                "--tls-server-name",
                self.tls_server_name.clone().map(OsString::from),
            ),
            ("--tls-certificate", path(&self.tls_certificate)),
            ("--user", self.user().map(OsString::from)),
            ("--password-file", password_file),
            ("--token", self.token().map(OsString::from)),
        ];
        let given = options
            .into_iter()
            .filter_map(|(name, value)| Some([name.into(), value?]));
        given.flatten().collect()
    }

    fn load(&self) -> Result<Security> {
        let mut security = Security::none();
        if let Some(ca) = &self.tls_ca {
            let tls = match &self.tls_certificate {
                Some(certificate) => Tls::with_certificate(ca, certificate)?,
                None => Tls::new(ca)?,
            };
            security = security.tls(match &self.tls_server_name {
                Some(name) => tls.server_name(name)?,
                None => tls,
            });
        }
        Ok(match (self.user(), self.token()) {
            (Some(user), _) => security.login(Login::password(user, self.password(user)?)?),
            (None, Some(token)) => security.login(Login::token_file(token)?),
            (None, None) => security,
        })
    }

    fn password(&self, user: &str) -> Result<Secret> {
        match &self.password_file {
            Some(path) => first_line(path),
            None if std::io::stdin().is_terminal() => {
                let typed = rpassword::prompt_password(format!("Password of {user}: "));
                typed.map(Secret::new).map_err(|error| {
                    Error::Credentials(format!(
                        "the password of {user} cannot be read: {error}; give --password-file"
                    ))
                })
            }
            None => Err(Error::Credentials(format!(
                "the password of {user} is missing, and standard input is no terminal: give --password-file"
            ))),
        }
    }
}

/// The login that was chosen where options and variables name two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LoginChoice {
    /// There is one at most.
    #[default]
    Only,
    /// The command line has the user, and a variable the token.
    User,
    /// The command line has the token, and a variable the user.
    Token,
}

impl LoginChoice {
    /// The choice by the sources of user and token. Two of the same source are an error.
    fn of(
        user: Option<ValueSource>,
        token: Option<ValueSource>,
    ) -> std::result::Result<LoginChoice, clap::Error> {
        let is_given = |source| source == ValueSource::CommandLine;
        match (user.map(is_given), token.map(is_given)) {
            (Some(true), Some(false)) => Ok(LoginChoice::User),
            (Some(false), Some(true)) => Ok(LoginChoice::Token),
            (Some(_), Some(_)) => Err(clap::Error::raw(
                clap::error::ErrorKind::ArgumentConflict,
                "--user <NAME> (BASALT_USER) and --token <FILE> (BASALT_TOKEN_FILE) are two logins: leave one of them out",
            )),
            _ => Ok(LoginChoice::Only),
        }
    }
}

impl clap::FromArgMatches for LoginChoice {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        LoginChoice::of(matches.value_source("user"), matches.value_source("token"))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for LoginChoice {
    fn augment_args(command: clap::Command) -> clap::Command {
        command
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        command
    }
}

/// The first line of a file.
fn first_line(path: &Path) -> Result<Secret> {
    let bytes = std::fs::read(path).map(Secret::new).map_err(|error| {
        Error::Credentials(format!(
            "the password in {} cannot be read: {error}",
            path.display()
        ))
    })?;
    let line = bytes
        .expose()
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    Ok(Secret::new(line.strip_suffix(b"\r").unwrap_or(line)))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        security: SecurityArguments,
    }

    fn parse(words: &[&str]) -> std::result::Result<SecurityArguments, String> {
        let parsed = Program::try_parse_from([&["program"], words].concat());
        parsed
            .map(|program| program.security)
            .map_err(|error| error.to_string())
    }

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    #[test]
    fn without_options_there_is_no_security() {
        let arguments = parse(&[]).unwrap();
        assert!(arguments.is_none() && arguments.security().unwrap().is_none());
    }

    #[test]
    fn options_that_need_or_exclude_another_are_refused() {
        for (words, named) in [
            (&["--tls-certificate", "a.pem"][..], "--tls-ca"),
            (&["--tls-server-name", "a"], "--tls-ca"),
            (&["--password-file", "p"], "--user"),
            (&["--user", "ada", "--token", "t"], "--token"),
        ] {
            let error = parse(words).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }

    /// A variable is for all programs, an option for this one.
    #[test]
    fn a_login_of_the_command_line_replaces_a_variable() {
        use ValueSource::{CommandLine, EnvVariable};
        let choice = |user, token| LoginChoice::of(user, token).map_err(|error| error.to_string());
        assert_eq!(
            choice(Some(CommandLine), Some(EnvVariable)),
            Ok(LoginChoice::User)
        );
        assert_eq!(
            choice(Some(EnvVariable), Some(CommandLine)),
            Ok(LoginChoice::Token)
        );
        assert_eq!(choice(Some(EnvVariable), None), Ok(LoginChoice::Only));
        let both = choice(Some(EnvVariable), Some(EnvVariable)).unwrap_err();
        assert!(both.contains("BASALT_TOKEN_FILE"), "{both}");
        let both = SecurityArguments {
            choice: LoginChoice::Token,
            user: Some("ada".to_owned()),
            password_file: Some("p".into()),
            token: Some("t".into()),
            ..SecurityArguments::default()
        };
        assert_eq!(both.words(), ["--token", "t"]);
        assert!(!both.asks_for_password());
        let both = SecurityArguments {
            choice: LoginChoice::User,
            ..both
        };
        assert_eq!(both.words(), ["--user", "ada", "--password-file", "p"]);
    }

    #[test]
    fn the_password_is_the_first_line_of_its_file() {
        for text in [
            "open sesame",
            "open sesame\n",
            "open sesame\r\n",
            "open sesame\nmore",
        ] {
            let file = file(text.as_bytes());
            let path = file.path().to_str().unwrap();
            let security = parse(&["--user", "ada", "--password-file", path])
                .unwrap()
                .security()
                .unwrap();
            let Some(Login::Password { user, password }) = security.login else {
                panic!("a password was expected")
            };
            assert!(user == "ada" && password.matches(b"open sesame"), "{text:?}");
        }
    }

    #[test]
    fn clones_read_files_once() {
        let file = file(b"open sesame");
        let path = file.path().to_str().unwrap();
        let arguments = parse(&["--user", "ada", "--password-file", path]).unwrap();
        let clone = arguments.clone();
        arguments.security().unwrap();
        drop(file);
        assert!(clone.security().is_ok());
    }

    #[test]
    fn words_are_parsed_to_the_same_options() {
        let words = [
            "--tls-ca",
            "a",
            "--tls-server-name",
            "b",
            "--tls-certificate",
            "c",
            "--user",
            "d",
            "--password-file",
            "e",
        ];
        assert_eq!(parse(&words).unwrap().words(), words);
        assert_eq!(parse(&["--token", "f"]).unwrap().words(), ["--token", "f"]);
    }

    #[test]
    fn a_missing_file_is_named() {
        let arguments = parse(&["--user", "ada", "--password-file", "/nowhere/p"]).unwrap();
        let error = arguments.security().unwrap_err().to_string();
        assert!(error.contains("/nowhere/p"), "{error}");
    }
}
