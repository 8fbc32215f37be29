//! Frames between the server and the Java host.
//!
//! ```text
//! length: u32, of what follows | kind: u8 | body
//! ```
//!
//! All numbers are big-endian. A frame has at most [`BYTES_MAX`] bytes behind its length. The server sends a
//! call and reads frames until the answer, `Ok` or `Thrown`.
//!
//! | kinds | direction | meaning |
//! | --- | --- | --- |
//! | 1 to 31 | to the host | calls: `Hello`, `Filter`, `Dump`; the others are for coprocessors: load, open, close, mutate, read, options, stream, endpoint, ddl |
//! | 32 to 63 | to the server | kept for nested calls (get, scan, put) that the host makes before it answers; the server answers each with `Ok` or `Thrown` on the same socket |
//! | 128, 129 | either | answers |
//!
//! The numbers are those of `packages/java/host/.../Frame.java`, and are never given to another meaning: a
//! host may be older than the server, which [`VERSION`] detects.

use std::io::{self, Read, Write};

/// Version of the protocol, which the host returns to `Hello`.
pub const VERSION: u32 = 1;
/// Most bytes of a frame behind its length.
pub const BYTES_MAX: usize = 64 << 20;
/// Memory is taken in steps of this size, as bytes arrive: a length is only a claim.
const STEP: usize = 1 << 20;

/// The meaning of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Asks for the version.
    Hello = 1,
    /// Opens a filter, judges rows, closes it ([`crate::filter`]).
    Filter = 2,
    /// Asks for the stacks of all threads.
    Dump = 3,
    /// The answer to a call.
    Ok = 128,
    /// The call has thrown.
    Thrown = 129,
}

impl Kind {
    fn of(code: u8) -> Option<Self> {
        let all = [Self::Hello, Self::Filter, Self::Dump, Self::Ok, Self::Thrown];
        all.into_iter().find(|kind| *kind as u8 == code)
    }
}

/// Reads a frame. Fails with `InvalidData` on bytes that are none.
pub fn read(from: &mut impl Read) -> io::Result<(Kind, Vec<u8>)> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
    if !(1..=BYTES_MAX).contains(&length) {
        return Err(invalid(format!("a frame claims {length} bytes")));
    }
    let kind = Kind::of(head[4]).ok_or_else(|| invalid(format!("there is no frame of kind {}", head[4])))?;
    let length = length - 1;
    let mut body = Vec::new();
    while body.len() < length {
        let begin = body.len();
        body.resize(length.min(begin + STEP.max(begin)), 0);
        from.read_exact(&mut body[begin..])?;
    }
    Ok((kind, body))
}

/// Writes a frame. Fails with `InvalidInput` where it would be too large.
pub fn write(to: &mut impl Write, kind: Kind, body: &[u8]) -> io::Result<()> {
    if body.len() >= BYTES_MAX {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("a frame of {} bytes is larger than {BYTES_MAX}", body.len()),
        ));
    }
    let length = u32::try_from(body.len() + 1).expect("the maximum fits");
    let mut head = [0; 5];
    head[..4].copy_from_slice(&length.to_be_bytes());
    head[4] = kind as u8;
    to.write_all(&head)?;
    to.write_all(body)
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        for length in [0, 1, STEP - 1, STEP, 3 * STEP + 7] {
            let body: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let mut wire = Vec::new();
            write(&mut wire, Kind::Filter, &body).unwrap();
            assert_eq!(wire.len(), 5 + length);
            assert_eq!(read(&mut &wire[..]).unwrap(), (Kind::Filter, body));
            let cut = read(&mut &wire[..wire.len() - 1]).unwrap_err();
            assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn a_frame_is_not_larger_than_it_may_be() {
        let refused = write(&mut io::sink(), Kind::Ok, &vec![0; BYTES_MAX]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        for head in [
            [0, 0, 0, 0, 1],
            [4, 0, 0, 1, 1],
            [0xff; 5],
            [0, 0, 0, 1, 0],
            [0, 0, 0, 1, 32],
        ] {
            let refused = read(&mut &head[..]).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{head:?}");
        }
    }

    /// A length that is only claimed costs no memory: no more is allocated than one step beyond what came.
    #[test]
    fn memory_follows_the_bytes_that_came() {
        struct Claims(usize);
        impl Read for Claims {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                assert!(into.len() <= STEP, "{}", into.len());
                let head = [3, 0, 0, 0, 2];
                if self.0 >= head.len() {
                    return Ok(0);
                }
                into[0] = head[self.0];
                self.0 += 1;
                Ok(1)
            }
        }
        let cut = read(&mut Claims(0)).unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_frame_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok((kind, body)) = read(&mut &bytes[..]) {
                let mut again = Vec::new();
                write(&mut again, kind, &body).unwrap();
                prop_assert_eq!(&again[..], &bytes[..again.len()]);
            }
        }
    }
}
