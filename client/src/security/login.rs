//! The proof of a client's user.

use std::path::Path;

use basalt_security::token::{DEFAULT_SERVICE, KIND, Token, TokenFile, TokenIdentifier};
use basalt_security::{Secret, sasl::plain};

use crate::error::{Error, Result};

/// Longest name and longest password in bytes. A server of Basalt refuses longer messages.
const PASSWORD_BYTES_MAX: usize = 1 << 10;

/// The proof of a client's user, beside a client certificate.
#[derive(Clone, Debug)]
pub enum Login {
    /// A user's password.
    Password {
        /// The user.
        user: String,
        /// The password.
        password: Secret,
    },
    /// A token that a server has issued.
    Token(Token),
}

impl Login {
    /// Logs in with a password. Name and password have 1 to 1,024 bytes and no zero byte, which
    /// PLAIN uses as the separator.
    pub fn password(user: impl Into<String>, password: Secret) -> Result<Login> {
        let user = user.into();
        for (what, bytes) in [
            ("name of the user", user.as_bytes()),
            ("password", password.expose()),
        ] {
            if bytes.is_empty() || bytes.len() > PASSWORD_BYTES_MAX || bytes.contains(&0) {
                return Err(Error::Credentials(format!(
                    "the {what} has {} bytes: it needs 1 to {PASSWORD_BYTES_MAX} of them and no zero byte",
                    bytes.len()
                )));
            }
        }
        Ok(Login::Password { user, password })
    }

    /// Logs in with a token of a file: a token file of Hadoop, as `basalt token create` writes it,
    /// or one with the token as text (`basalt token create --text`).
    pub fn token_file(path: impl AsRef<Path>) -> Result<Login> {
        let path = path.as_ref();
        let unusable = |what: &dyn std::fmt::Display| {
            Error::Credentials(format!("the token in {} cannot be used: {what}", path.display()))
        };
        let bytes = std::fs::read(path)
            .map(Secret::new)
            .map_err(|error| unusable(&error))?;
        Login::token_bytes(&bytes).map_err(|error| unusable(&error))
    }

    /// Logs in with a token as text, as `basalt token create --text` prints it.
    pub fn token_text(text: &str) -> Result<Login> {
        let token = Token::from_text(text.trim()).ok_or_else(|| {
            Error::Credentials("it is no token: create one with `basalt token create USER`".to_owned())
        })?;
        Ok(Login::Token(token))
    }

    /// A token in either form. A token file gives the one for registries, else the first of
    /// HBase.
    fn token_bytes(bytes: &Secret) -> Result<Login> {
        if let Some(text) = bytes.expose_str().filter(|text| !text.starts_with("HDTS")) {
            return Login::token_text(text);
        }
        let file = TokenFile::parse(bytes.expose()).map_err(|error| Error::Credentials(error.to_string()))?;
        let mut entries = file.entries.iter();
        let first = || entries.find(|entry| entry.kind == KIND).map(|entry| &entry.token);
        let token = file.find(DEFAULT_SERVICE).or_else(first).ok_or_else(|| {
            Error::Credentials(format!(
                "it has no token of the kind {KIND}: create one with `basalt token create USER`"
            ))
        })?;
        Ok(Login::Token(token.clone()))
    }

    /// The user that it proves; `None` for a token that names none.
    pub(super) fn user(&self) -> Option<String> {
        match self {
            Login::Password { user, .. } => Some(user.clone()),
            Login::Token(token) => {
                let parsed = TokenIdentifier::parse(&token.identifier).ok()?;
                String::from_utf8(parsed.username).ok()
            }
        }
    }

    /// The message of SASL PLAIN.
    pub(crate) fn plain_message(&self) -> Result<Secret> {
        match self {
            Login::Password { user, password } => Ok(plain::message(user, password)),
            Login::Token(token) => {
                let user = self.user().ok_or_else(|| {
                    Error::Credentials("the token names no user: create another one".to_owned())
                })?;
                let text = token.to_text();
                Ok(plain::message(&user, &Secret::new(text.as_bytes())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Token {
        let identifier = TokenIdentifier {
            kind: 0,
            username: b"ada".to_vec(),
            key_id: 1,
            issue_date: Some(1),
            expiration_date: Some(2),
            sequence_number: Some(3),
        };
        Token {
            identifier: identifier.to_bytes(),
            password: Secret::new([7; 20]),
        }
    }

    fn read(bytes: &[u8]) -> Result<Login> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Login::token_file(file.path())
    }

    #[test]
    fn a_token_is_read_from_a_file_of_hadoop_and_from_text() {
        let other_service = {
            let mut file = TokenFile::of(&token(), "cluster");
            file.entries.retain(|entry| entry.service == "cluster");
            file.to_bytes()
        };
        let text = format!("{}\n", *token().to_text());
        for bytes in [
            &TokenFile::of(&token(), "cluster").to_bytes()[..],
            &other_service[..],
            text.as_bytes(),
        ] {
            let Login::Token(read) = read(bytes).unwrap() else {
                panic!("a token was expected")
            };
            assert_eq!(read.identifier, token().identifier);
            assert!(read.password.matches(&[7; 20]));
        }
    }

    #[test]
    fn files_without_a_token_are_errors_with_a_remedy() {
        let mut foreign = TokenFile::of(&token(), "cluster");
        for entry in &mut foreign.entries {
            entry.kind = "HDFS_DELEGATION_TOKEN".to_owned();
        }
        for (bytes, problem) in [
            (&b"open sesame"[..], "no token"),
            (b"HDTS\0\x01", "damaged"),
            (b"\xff\xfe", "HDTS"),
            (&foreign.to_bytes()[..], "HBASE_AUTH_TOKEN"),
        ] {
            let error = read(bytes).unwrap_err().to_string();
            assert!(
                error.contains(problem) && error.contains("basalt token create"),
                "{error}"
            );
            assert!(!error.contains("sesame"), "{error}");
        }
        let error = Login::token_file("/nowhere/ada.token").unwrap_err().to_string();
        assert!(error.contains("/nowhere/ada.token"), "{error}");
    }

    #[test]
    fn passwords_that_plain_cannot_carry_are_refused() {
        let long = "x".repeat(PASSWORD_BYTES_MAX + 1);
        for (user, password) in [
            ("", "p"),
            ("u", ""),
            ("a\0b", "p"),
            ("u", "a\0b"),
            (&long, "p"),
            ("u", &long),
        ] {
            let error = Login::password(user, Secret::new(password))
                .unwrap_err()
                .to_string();
            assert!(error.contains("1 to 1024"), "{error}");
        }
    }

    #[test]
    fn a_login_names_its_user() {
        let password = Login::password("grace", Secret::new("open sesame")).unwrap();
        assert_eq!(password.user().as_deref(), Some("grace"));
        assert_eq!(Login::Token(token()).user().as_deref(), Some("ada"));
        let nameless = Token {
            identifier: vec![0xff],
            ..token()
        };
        assert_eq!(Login::Token(nameless).user(), None);
    }

    #[test]
    fn the_message_of_plain_has_user_and_secret() {
        let password = Login::password("ada", Secret::new("open sesame")).unwrap();
        assert_eq!(password.plain_message().unwrap().expose(), b"\0ada\0open sesame");
        let expected = format!("\0ada\0{}", *token().to_text());
        let message = Login::Token(token()).plain_message().unwrap();
        assert_eq!(message.expose(), expected.as_bytes());
    }

    #[test]
    fn secrets_are_not_printed() {
        let password = Login::password("ada", Secret::new("sesame")).unwrap();
        let shown = format!("{password:?} {:?}", Login::Token(token()));
        assert!(
            shown.contains("ada") && !shown.contains("sesame") && !shown.contains("7, 7"),
            "{shown}"
        );
    }
}
