//! Verification of passwords, tokens and certificates.
//!
//! All refusals look the same to clients. [`Users::verify_password`] takes the same time whether
//! the user exists or not; it is slow on purpose, see [`crate::password`].

use std::time::SystemTime;

use super::{Credential, TokenRecord, User, Users};
use crate::token::{Token, TokenIdentifier, TokenKey};
use crate::{Reason, Refused, Secret, millis, password};

/// A verified use of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenUse {
    /// Name of the user.
    pub user: String,
    /// Sequence number of the token.
    pub sequence: u64,
    /// End of its validity, in milliseconds since 1970.
    pub expires_ms: u64,
}

type Result<T> = std::result::Result<T, Refused>;

impl Users {
    /// A user that may log in, for proofs that are made elsewhere: a certificate that TLS has
    /// verified, Kerberos.
    pub fn active_user(&self, name: &str) -> Result<&User> {
        let user = self.by_name.get(name).ok_or(Refused(Reason::UnknownUser))?;
        if user.disabled {
            Err(Refused(Reason::Disabled))
        } else {
            Ok(user)
        }
    }

    /// Verifies a password. Takes tens of milliseconds of CPU: not for network threads.
    pub fn verify_password(&self, name: &str, password: &Secret) -> Result<()> {
        let user = self.active_user(name);
        let hash = user.ok().and_then(|user| user.password.as_ref());
        let is_right = password::verify(hash, password);
        user?;
        if is_right {
            Ok(())
        } else {
            Err(Refused(Reason::WrongPassword))
        }
    }

    /// Verifies what a client sent as a password: a token's text, which is quick, or a password,
    /// which is not.
    pub fn verify_login(&self, name: &str, secret: &Secret, now: SystemTime) -> Result<Credential> {
        let Some(token) = secret.expose_str().and_then(Token::from_text) else {
            return self.verify_password(name, secret).map(|()| Credential::Password);
        };
        let found = self.verify_token(&token, now)?;
        if found.user == name {
            Ok(Credential::Token(found.sequence))
        } else {
            Err(Refused(Reason::WrongSignature))
        }
    }

    /// Verifies a token that a client sent whole: `Authorization: Bearer`.
    pub fn verify_token(&self, token: &Token, now: SystemTime) -> Result<TokenUse> {
        let found = self.lookup(&token.identifier)?;
        if !found.key.verify(&token.identifier, token.password.expose()) {
            return Err(Refused(Reason::WrongSignature));
        }
        found.validate(self, now)
    }

    /// The user and the signature of a token of which a client sent the identifier only. The client
    /// proves by DIGEST-MD5 that it knows the signature.
    pub fn find_token(&self, identifier: &[u8], now: SystemTime) -> Result<(TokenUse, Secret)> {
        let found = self.lookup(identifier)?;
        let signature = found.key.sign(identifier);
        Ok((found.validate(self, now)?, signature))
    }

    fn lookup(&self, identifier: &[u8]) -> Result<Found<'_>> {
        let unknown = Refused(Reason::UnknownToken);
        let parsed = TokenIdentifier::parse(identifier)?;
        let key = self
            .keys
            .iter()
            .find(|key| key.id == parsed.key_id)
            .ok_or(unknown)?;
        let sequence = parsed
            .sequence_number
            .and_then(|number| u64::try_from(number).ok());
        let sequence = sequence.ok_or(unknown)?;
        let record = self.tokens.get(&sequence).ok_or(unknown)?;
        // The identifier is the record's in every field, so that it need not be believed in any.
        if record.identifier(sequence) != parsed {
            return Err(unknown);
        }
        Ok(Found {
            key,
            sequence,
            record,
        })
    }
}

/// The record of a token, and the key that signed it.
struct Found<'a> {
    key: &'a TokenKey,
    sequence: u64,
    record: &'a TokenRecord,
}

impl Found<'_> {
    fn validate(&self, users: &Users, now: SystemTime) -> Result<TokenUse> {
        users.active_user(&self.record.user)?;
        if self.record.revoked {
            return Err(Refused(Reason::Revoked));
        }
        if self.record.expires_ms <= millis(now) {
            return Err(Refused(Reason::Expired));
        }
        Ok(TokenUse {
            user: self.record.user.clone(),
            sequence: self.sequence,
            expires_ms: self.record.expires_ms,
        })
    }
}
