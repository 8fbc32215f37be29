//! Bytes as text for people.

use std::fmt;

/// Bytes for people: printable ASCII as it is, the rest and the backslash as `\xNN` (HBase:
/// `Bytes.toStringBinary`).
pub fn escape(bytes: &[u8]) -> String {
    Escaped(bytes).to_string()
}

/// Displays bytes as [`escape`] does, without a string in between.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.0 {
            if (b' '..=b'~').contains(&byte) && byte != b'\\' {
                write!(f, "{}", char::from(byte))?;
            } else {
                write!(f, "\\x{byte:02X}")?;
            }
        }
        Ok(())
    }
}

/// Bytes of a name that [`Cut`] shows.
const CUT_BYTES: usize = 1 << 10;

/// Displays a row, family, column or region that a call names, as [`Escaped`] does; of a long one
/// only the first bytes and its length, so that the text of a refusal does not need several times
/// the memory of the call.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a>(pub &'a [u8]);

impl fmt::Display for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.get(..CUT_BYTES) {
            Some(first) if first.len() < self.0.len() => {
                write!(f, "{}... ({} bytes)", Escaped(first), self.0.len())
            }
            _ => fmt::Display::fmt(&Escaped(self.0), f),
        }
    }
}

/// Displays bytes as [`Escaped`] does, but text as it is, and only the first bytes
/// of a long name.
#[derive(Clone, Copy, Debug)]
pub struct Brief<'a>(pub &'a [u8]);

/// Bytes of a name that [`Brief`] shows.
const BRIEF_BYTES: usize = 48;

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(cut) = self.0.get(..BRIEF_BYTES).filter(|cut| cut.len() < self.0.len()) else {
            return show(self.0, f);
        };
        // The cut is not inside a character.
        let end = (0..=cut.len()).rev().find(|end| self.0[*end] & 0xc0 != 0x80);
        show(&cut[..end.unwrap_or(cut.len())], f)?;
        f.write_str("...")
    }
}

/// Shows text as it is, and other bytes escaped.
fn show(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => f.write_str(text),
        _ => fmt::Display::fmt(&Escaped(bytes), f),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shown_in_brief() {
        assert_eq!(Brief(b"abc").to_string(), "abc");
        assert_eq!(Brief(b"a\x00").to_string(), "a\\x00");
        assert_eq!(Brief(&[b'x'; 49]).to_string(), format!("{}...", "x".repeat(48)));
        let letters = "\u{8868}".repeat(100);
        assert_eq!(
            Brief(letters.as_bytes()).to_string(),
            format!("{}...", "\u{8868}".repeat(16))
        );
        let shifted = format!("x{letters}");
        assert_eq!(
            Brief(shifted.as_bytes()).to_string(),
            format!("x{}...", "\u{8868}".repeat(15))
        );
    }

    /// Four characters for each byte would be 400 kB.
    #[test]
    fn a_long_name_is_cut() {
        let long = vec![0; 100_000];
        let text = Cut(&long).to_string();
        assert!(text.ends_with("\\x00... (100000 bytes)"), "{text}");
        assert!(text.len() < 5 * CUT_BYTES, "{}", text.len());
        let whole = vec![b'a'; CUT_BYTES];
        assert_eq!(Cut(&whole).to_string().len(), CUT_BYTES);
        assert_eq!(Cut(b"a\x01\\").to_string(), r"a\x01\x5C");
    }
}
