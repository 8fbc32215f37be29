//! PLAIN: `authzid 00 user 00 password`, in clear.
//!
//! The caller verifies the password with `Users::verify_login`, away from network threads. It
//! offers PLAIN only inside TLS or on loopback.

use super::MESSAGE_BYTES_MAX;
use crate::users::NAME_BYTES_MAX;
use crate::{Reason, Refused, Secret};

/// A login that is not verified yet.
#[derive(Debug)]
pub struct Plain {
    /// The user that logs in.
    pub user: String,
    /// The user for which it acts, if that is another one: subject to proxy rules.
    pub acts_for: Option<String>,
    /// A password, or the text of a token.
    pub password: Secret,
}

/// Parses the client's only message.
pub fn parse(message: &[u8]) -> Result<Plain, Refused> {
    let malformed = Refused(Reason::Malformed);
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(malformed);
    }
    let mut fields = message.split(|byte| *byte == 0);
    let (Some(acts_for), Some(user), Some(password), None) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return Err(malformed);
    };
    let name = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) if bytes.len() <= NAME_BYTES_MAX => Ok(text.to_owned()),
        _ => Err(malformed),
    };
    let (acts_for, user) = (name(acts_for)?, name(user)?);
    if user.is_empty() || password.is_empty() {
        return Err(malformed);
    }
    Ok(Plain {
        acts_for: Some(acts_for).filter(|other| !other.is_empty() && *other != user),
        user,
        password: Secret::new(password),
    })
}

/// The client's only message.
pub fn message(user: &str, password: &Secret) -> Secret {
    Secret::new([b"\0", user.as_bytes(), b"\0", password.expose()].concat())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The message that HBase 2.6.4 with the Shade provider sends, and one of RFC 4616, section 4.
    #[test]
    fn messages_of_clients_are_parsed() {
        let plain = parse(b"\0alice\0secret").unwrap();
        assert_eq!((&plain.user[..], plain.acts_for), ("alice", None));
        assert!(plain.password.matches(b"secret"));
        let plain = parse(b"Ursel\0Kurt\0xipj3plmq").unwrap();
        assert_eq!(
            (&plain.user[..], plain.acts_for.as_deref()),
            ("Kurt", Some("Ursel"))
        );
        assert_eq!(parse(b"alice\0alice\0secret").unwrap().acts_for, None);
        let sent = message("alice", &Secret::new("secret"));
        assert_eq!(sent.expose(), b"\0alice\0secret");
    }

    #[test]
    fn malformed_messages_are_refused() {
        let long = [&b"\0alice\0"[..], &[b'x'; MESSAGE_BYTES_MAX]].concat();
        let name = [&b"\0"[..], &[b'x'; NAME_BYTES_MAX + 1], b"\0secret"].concat();
        for bad in [
            &b""[..],
            b"alice",
            b"\0alice",
            b"\0alice\0",
            b"\0\0secret",
            b"\0a\0b\0c",
            b"\0\xff\0secret",
            &long,
            &name,
        ] {
            assert_eq!(
                parse(bad).unwrap_err(),
                Refused(Reason::Malformed),
                "{}",
                bad.escape_ascii()
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_login_or_refused(bytes in prop::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..64)) {
            if let Ok(plain) = parse(&bytes) {
                let acts_for = plain.acts_for.unwrap_or_default();
                prop_assert!(bytes.ends_with(message(&plain.user, &plain.password).expose()));
                prop_assert!(bytes.starts_with(acts_for.as_bytes()));
            }
        }
    }
}
