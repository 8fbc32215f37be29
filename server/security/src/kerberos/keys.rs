//! The keys of a keytab as a credential of the GSS library.
//!
//! The safe bindings have no call that names a keytab: they read the one that the process' environment
//! names. This module has the one call of the C library that takes a file, `gss_acquire_cred_from`.

#![expect(unsafe_code, reason = "the only call that takes the keytab is C")]

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr::null_mut;

use libgssapi::credential::Cred;
use libgssapi::error::{Error, MajorFlags};
use libgssapi_sys as sys;

/// GSS_KRB5_NT_PRINCIPAL_NAME, 1.2.840.113554.1.2.2.1.
const PRINCIPAL: &[u8] = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01";
/// The mechanism Kerberos 5, 1.2.840.113554.1.2.2.
const KERBEROS: &[u8] = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02";
/// The mechanism SPNEGO, 1.3.6.1.5.5.2.
const SPNEGO: &[u8] = b"\x2b\x06\x01\x05\x05\x02";

/// The mechanisms of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mechanisms {
    /// Kerberos alone, for SASL.
    Kerberos,
    /// Kerberos, and SPNEGO that chooses it, for HTTP.
    Negotiate,
}

/// The keys of a principal in a keytab. Fails if the file cannot be read, or has none of it.
pub(super) fn acquire(keytab: &Path, principal: &str, mechanisms: Mechanisms) -> Result<Cred, Error> {
    let bad_name = Error {
        major: MajorFlags::GSS_S_BAD_NAME,
        minor: 0,
    };
    let file = [b"FILE:", keytab.as_os_str().as_bytes()].concat();
    let file = CString::new(file).map_err(|_| bad_name)?;
    let name = Name::import(principal.as_bytes())?;
    let mut chosen = [oid(KERBEROS), oid(SPNEGO)];
    let mut set = sys::gss_OID_set_desc {
        count: if mechanisms == Mechanisms::Kerberos { 1 } else { 2 },
        elements: chosen.as_mut_ptr(),
    };
    let mut element = sys::gss_key_value_element_desc {
        key: c"keytab".as_ptr(),
        value: file.as_ptr(),
    };
    let store = sys::gss_key_value_set_desc {
        count: 1,
        elements: &raw mut element,
    };
    let (mut minor, mut credential) = (0, null_mut());
    // SAFETY: all pointers are to values that live until the end of this function, with the counts and
    // lengths that they have; the library copies what it keeps. It does not write to the set, the store or
    // the bytes of the OIDs. The outputs that are not wanted are null, as RFC 2744, 5.2 allows.
    let major = unsafe {
        sys::gss_acquire_cred_from(
            &raw mut minor,
            name.0,
            sys::_GSS_C_INDEFINITE,
            &raw mut set,
            sys::GSS_C_ACCEPT.cast_signed(),
            &raw const store,
            &raw mut credential,
            null_mut(),
            null_mut(),
        )
    };
    check(major, minor)?;
    // SAFETY: the library has just made the credential, and nothing else has it.
    Ok(unsafe { Cred::from_c(credential) })
}

/// A name of the library.
struct Name(sys::gss_name_t);

impl Name {
    fn import(principal: &[u8]) -> Result<Self, Error> {
        let mut text = sys::gss_buffer_desc {
            length: principal.len(),
            value: principal.as_ptr().cast_mut().cast(),
        };
        let (mut minor, mut name, mut kind) = (0, null_mut(), oid(PRINCIPAL));
        // SAFETY: the pointers are to values of this function, which the library reads and copies.
        let major =
            unsafe { sys::gss_import_name(&raw mut minor, &raw mut text, &raw mut kind, &raw mut name) };
        check(major, minor).map(|()| Self(name))
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let mut minor = 0;
        // SAFETY: `import` has made the name, and it is dropped once.
        unsafe { sys::gss_release_name(&raw mut minor, &raw mut self.0) };
    }
}

fn oid(bytes: &'static [u8]) -> sys::gss_OID_desc {
    sys::gss_OID_desc {
        length: u32::try_from(bytes.len()).unwrap_or(0),
        elements: bytes.as_ptr().cast_mut().cast(),
    }
}

fn check(major: u32, minor: u32) -> Result<(), Error> {
    if major == sys::GSS_S_COMPLETE {
        return Ok(());
    }
    Err(Error {
        major: MajorFlags::from_bits_retain(major),
        minor,
    })
}
