//! Percent-encoding to bytes, and the base64 of keys (`e=`).

use base64::Engine as _;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use percent_encoding::percent_decode;

use crate::{Malformed, Result};

/// Most bytes of a client's text that an error repeats.
const SHOWN_BYTES_MAX: usize = 80;

const fn engine(alphabet: &Alphabet) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(alphabet, config)
}

/// Standard base64: written with padding, read with or without.
pub(crate) const BASE64: GeneralPurpose = engine(&STANDARD);
const BASE64_URL: GeneralPurpose = engine(&URL_SAFE);

/// How keys and columns are written in a path or query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// As they are, percent-encoded.
    #[default]
    Plain,
    /// URL-safe base64.
    UrlSafe,
    /// Standard base64.
    Standard,
}

impl Encoding {
    /// The encoding of that name in `e=` or the header `Encoding`.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "b64" | "base64" | "b64url" | "base64url" => Ok(Self::UrlSafe),
            "b64basic" | "base64basic" => Ok(Self::Standard),
            _ => Err(Malformed(format!(
                "the encoding {} is not known (e=, header Encoding): b64 is URL-safe base64, b64basic is standard base64",
                shown(name.as_bytes())
            ))),
        }
    }

    /// A key or column from its percent-encoded text.
    pub fn decode(self, text: &[u8]) -> Result<Vec<u8>> {
        let plain = decode_percent(text);
        let engine = match self {
            Self::Plain => return Ok(plain),
            Self::UrlSafe => &BASE64_URL,
            Self::Standard => &BASE64,
        };
        decode_with(engine, &plain)
    }
}

/// Standard base64, as in JSON and XML.
pub fn decode_base64(text: &[u8]) -> Result<Vec<u8>> {
    decode_with(&BASE64, text)
}

/// URL-safe base64, as in `filter_b64=`.
pub fn decode_base64_url(text: &[u8]) -> Result<Vec<u8>> {
    decode_with(&BASE64_URL, text)
}

/// Standard base64 with padding.
pub fn encode_base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Appends standard base64 with padding.
pub(crate) fn put_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = bytes.len().div_ceil(3) * 4;
    let start = out.len();
    out.resize(start + length, 0);
    let written = BASE64.encode_slice(bytes, &mut out[start..]);
    debug_assert_eq!(written, Ok(length), "padding makes the length known");
}

fn decode_with(engine: &GeneralPurpose, text: &[u8]) -> Result<Vec<u8>> {
    engine
        .decode(text)
        .map_err(|error| Malformed(format!("{} is not base64: {error}", shown(text))))
}

/// Percent-decoding of forms: `+` is a blank.
pub fn decode_percent(text: &[u8]) -> Vec<u8> {
    let blanks: Vec<u8>;
    let text = if text.contains(&b'+') {
        blanks = text
            .iter()
            .map(|byte| if *byte == b'+' { b' ' } else { *byte })
            .collect();
        &blanks
    } else {
        text
    };
    percent_decode(text).collect()
}

/// A client's text in an error: quoted, cut.
pub(crate) fn shown(text: &[u8]) -> String {
    let end = text.len().min(SHOWN_BYTES_MAX);
    let rest = if end < text.len() { "..." } else { "" };
    format!("\"{}{rest}\"", text[..end].escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_yields_bytes() {
        for (text, bytes) in [
            ("%FF%fe", &b"\xff\xfe"[..]),
            ("a+b", b"a b"),
            ("a%2Bb%2fc%2Cd", b"a+b/c,d"),
            ("100%", b"100%"),
            ("%zz", b"%zz"),
            ("", b""),
        ] {
            assert_eq!(decode_percent(text.as_bytes()), bytes, "{text}");
        }
    }

    #[test]
    fn keys_are_in_either_base64_with_or_without_padding() {
        let key = b"\xff\xfe\x00";
        for (name, text) in [
            ("b64", "__4A"),
            ("base64url", "__4A"),
            ("b64basic", "//4A"),
            ("b64basic", "%2F%2F4A"),
        ] {
            assert_eq!(
                Encoding::from_name(name)
                    .unwrap()
                    .decode(text.as_bytes())
                    .unwrap(),
                key
            );
        }
        for text in ["YQ", "YQ==", "YQ%3D%3D"] {
            assert_eq!(Encoding::UrlSafe.decode(text.as_bytes()).unwrap(), b"a", "{text}");
        }
        let error = Encoding::UrlSafe.decode(b"a/b").unwrap_err();
        assert!(error.0.starts_with("\"a/b\" is not base64"), "{error}");
        assert!(Encoding::from_name("hex").is_err());
        assert_eq!(shown(&[b'x'; 200]).len(), SHOWN_BYTES_MAX + 5);
    }

    #[test]
    fn base64_is_appended_as_it_is_encoded() {
        for length in 0..10 {
            let bytes = vec![0xab; length];
            let mut out = b"x".to_vec();
            put_base64(&mut out, &bytes);
            assert_eq!(out[1..], *encode_base64(&bytes).as_bytes());
        }
    }
}
