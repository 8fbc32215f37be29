//! EXTERNAL: the client asks to be the user that its certificate names.

use crate::users::NAME_BYTES_MAX;
use crate::{Reason, Refused};

/// Parses the client's only message: the user to act as. `None`: the certificate's user, `user`.
/// Another one is subject to proxy rules.
pub fn parse(message: &[u8], user: &str) -> Result<Option<String>, Refused> {
    match std::str::from_utf8(message) {
        Ok(other) if other.is_empty() || other == user => Ok(None),
        Ok(other) if other.len() <= NAME_BYTES_MAX && !other.contains('\0') => Ok(Some(other.to_owned())),
        _ => Err(Refused(Reason::Malformed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_empty_or_a_user() {
        assert_eq!(parse(b"", "ada"), Ok(None));
        assert_eq!(parse(b"ada", "ada"), Ok(None));
        assert_eq!(parse(b"bob", "ada"), Ok(Some("bob".into())));
        for bad in [&b"\xff"[..], b"bob\0", &[b'x'; NAME_BYTES_MAX + 1]] {
            assert!(parse(bad, "ada").is_err());
        }
    }
}
