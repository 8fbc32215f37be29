//! Passwords as argon2id hashes in PHC text form (`$argon2id$v=19$m=...`).
//!
//! Parameters: 19 MiB, 2 passes, 1 lane (OWASP's first choice), 16 bytes of salt. A verification
//! takes tens of milliseconds of CPU and the hash's memory. Callers run it away from network
//! threads and cap how many run at once.
//!
//! Invariant: [`verify`] does the same work whether a user has a password or not.

use std::fmt;

use argon2::password_hash::phc;
use argon2::{Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{Error, Result, Secret};

/// Length of a password in bytes. The maximum bounds what a client can send.
const PASSWORD_BYTES: std::ops::RangeInclusive<usize> = 8..=1024;

const SALT_BYTES: usize = 16;

/// Maximum parameters of a hash that another program made: what one verification may cost.
const MEMORY_KIB_MAX: u32 = 256 << 10;
const PASSES_MAX: u32 = 16;
const LANES_MAX: u32 = 16;

/// Hash of random bytes that were not kept, with the parameters of new hashes.
const DUMMY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$nZ2AKNWm/v3vgu6Q3iVjYA$qPHhYZiDX8KyQXOd3oWvlDBmhW9ieICWPeqzZhGVHEc";

/// The hash of a password. `Debug` prints `[secret]`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(Zeroizing<String>);

impl PasswordHash {
    /// Hashes a new password. Slow on purpose.
    pub fn new(password: &Secret) -> Result<Self> {
        check_password(password)?;
        let salt = Secret::random(SALT_BYTES)?;
        let hash = hasher().hash_password_with_salt(password.expose(), salt.expose());
        let hash = hash.map_err(|error| Error::Invalid(format!("the password cannot be hashed: {error}")))?;
        Ok(Self(Zeroizing::new(hash.to_string())))
    }

    /// Takes over a hash in PHC text form: argon2id, with bounded parameters.
    pub fn from_phc(text: &str) -> Result<Self> {
        let hash = Self(Zeroizing::new(text.to_owned()));
        match hash.check() {
            Ok(()) => Ok(hash),
            Err(problem) => Err(Error::Invalid(format!(
                "the password hash is not usable: {problem}"
            ))),
        }
    }

    /// Checks algorithm and bounds. The error has no value of the hash.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        let parsed = phc::PasswordHash::new(&self.0).map_err(|_| "it is no PHC text".to_owned())?;
        if parsed.algorithm != argon2::ARGON2ID_IDENT || parsed.hash.is_none() || parsed.salt.is_none() {
            return Err("it is not a complete argon2id hash".into());
        }
        let params = Params::try_from(&parsed).map_err(|_| "its parameters are not argon2id's".to_owned())?;
        if params.m_cost() > MEMORY_KIB_MAX || params.t_cost() > PASSES_MAX || params.p_cost() > LANES_MAX {
            let limits = format!("m={MEMORY_KIB_MAX},t={PASSES_MAX},p={LANES_MAX}");
            return Err(format!("its parameters are above the maximum, {limits}"));
        }
        Ok(())
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

fn hasher() -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::DEFAULT)
}

fn check_password(password: &Secret) -> Result<()> {
    let (least, most) = (PASSWORD_BYTES.start(), PASSWORD_BYTES.end());
    let problem = match password.expose_str() {
        None => "a password must be UTF-8".to_owned(),
        // PLAIN separates its fields by it.
        Some(text) if text.contains('\0') => "a password must not contain the character 0".to_owned(),
        Some(text) if !PASSWORD_BYTES.contains(&text.len()) => {
            format!(
                "a password must have {least} to {most} bytes; this one has {}",
                text.len()
            )
        }
        Some(_) => return Ok(()),
    };
    Err(Error::Invalid(problem))
}

/// Whether the password belongs to the hash. Without a hash the answer is no, after the same work.
pub fn verify(hash: Option<&PasswordHash>, password: &Secret) -> bool {
    let is_bounded = password.expose().len() <= *PASSWORD_BYTES.end();
    let password = if is_bounded { password.expose() } else { &[] };
    let text = hash.map_or(DUMMY, |hash| &hash.0);
    let is_right = hasher().verify_password(password, text).is_ok();
    is_right && hash.is_some() && is_bounded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_verifies_its_password_only() {
        let hash = PasswordHash::new(&Secret::new("correct horse")).unwrap();
        assert!(verify(Some(&hash), &Secret::new("correct horse")));
        assert!(!verify(Some(&hash), &Secret::new("correct hors")));
        assert!(!verify(Some(&hash), &Secret::new("")));
        assert!(!verify(None, &Secret::new("correct horse")));
        let again = PasswordHash::new(&Secret::new("correct horse")).unwrap();
        assert_ne!(hash, again, "the salt is random");
        assert_eq!(format!("{hash:?}"), "[secret]");
    }

    /// A vector of the reference implementation (P-H-C/phc-winner-argon2, src/test.c).
    #[test]
    fn hashes_of_other_programs_are_understood() {
        let text = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        let hash = PasswordHash::from_phc(text).unwrap();
        assert!(verify(Some(&hash), &Secret::new("password")));
        assert!(!verify(Some(&hash), &Secret::new("sassword")));
    }

    /// Without a user the work is that of a new hash: same parameters, same length of output.
    #[test]
    fn the_dummy_costs_what_a_real_hash_costs() {
        let dummy = PasswordHash::from_phc(DUMMY).unwrap();
        let real = PasswordHash::new(&Secret::new("correct horse")).unwrap();
        let shape = |hash: &PasswordHash| {
            let parsed = phc::PasswordHash::new(&hash.0).unwrap();
            let output = parsed.hash.unwrap().as_ref().len();
            (Params::try_from(&parsed).unwrap(), output, hash.0.len())
        };
        assert_eq!(shape(&dummy), shape(&real));
    }

    #[test]
    fn unusable_passwords_and_hashes_are_refused() {
        for bad in ["", "1234567", "with\0zero", &"x".repeat(1025)] {
            assert!(PasswordHash::new(&Secret::new(bad)).is_err(), "{bad:?}");
        }
        assert!(PasswordHash::new(&Secret::new([0xff; 9])).is_err());
        let tail = "$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        for head in [
            "",
            "$argon2i$v=19$m=19456,t=2,p=1",
            "$argon2id$v=19$m=4294967295,t=2,p=1",
            "$argon2id$v=19$m=19456,t=1000000,p=1",
        ] {
            assert!(
                PasswordHash::from_phc(&format!("{head}{tail}")).is_err(),
                "{head}"
            );
        }
        assert!(PasswordHash::from_phc("$argon2id$v=19$m=19456,t=2,p=1").is_err());
    }
}
