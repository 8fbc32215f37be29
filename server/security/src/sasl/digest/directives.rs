//! Directives: `name=value, name="quoted \" value"` (RFC 2831, 7.1).

use std::fmt;

/// Maximum number of directives in a message.
const DIRECTIVES_MAX: usize = 32;

/// The directives of a message. Names are in lower case, and no name is there twice.
#[derive(Debug)]
pub(super) struct Directives(Vec<(String, String)>);

impl Directives {
    /// Parses a message; `None` if it breaks the grammar, or has a directive twice.
    pub(super) fn parse(message: &[u8]) -> Option<Self> {
        let mut rest = std::str::from_utf8(message).ok()?;
        let mut found: Vec<(String, String)> = Vec::new();
        loop {
            // Elements of a list may be empty.
            rest = rest.trim_start_matches(|letter| is_space(letter) || letter == ',');
            if rest.is_empty() {
                return Some(Self(found));
            }
            let name = token(&mut rest)?.to_ascii_lowercase();
            rest = rest.trim_start_matches(is_space).strip_prefix('=')?;
            rest = rest.trim_start_matches(is_space);
            let value = match rest.strip_prefix('"') {
                Some(quoted) => unquote(quoted, &mut rest)?,
                None => token(&mut rest)?.to_owned(),
            };
            rest = rest.trim_start_matches(is_space);
            let is_last = rest.is_empty() || rest.starts_with(',');
            if !is_last || found.len() == DIRECTIVES_MAX || found.iter().any(|(other, _)| *other == name) {
                return None;
            }
            found.push((name, value));
        }
    }

    /// The value of a directive.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| &value[..])
    }
}

fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n')
}

/// Takes a token off the front: ASCII without control characters and separators.
fn token<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let is_part = |letter: char| letter.is_ascii_graphic() && !r#"()<>@,;:\"/[]?={}"#.contains(letter);
    let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
    let (token, behind) = rest.split_at(end);
    *rest = behind;
    (!token.is_empty()).then_some(token)
}

/// The text before the closing quote of `quoted`; `rest` becomes what follows it.
fn unquote<'a>(quoted: &'a str, rest: &mut &'a str) -> Option<String> {
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => {
                *rest = &quoted[at + 1..];
                return Some(value);
            }
            '\\' => value.push(letters.next()?.1),
            letter => value.push(letter),
        }
    }
    None
}

/// Displays a value in quotes.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for letter in self.0.chars() {
            if matches!(letter, '"' | '\\') {
                f.write_str("\\")?;
            }
            write!(f, "{letter}")?;
        }
        f.write_str("\"")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(message: &str) -> Option<Vec<(String, String)>> {
        Directives::parse(message.as_bytes()).map(|directives| directives.0)
    }

    #[test]
    fn directives_are_split_and_unquoted() {
        let expected =
            [("a", "1"), ("b", "x,\" \\y"), ("c-d", "")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(
            parsed(r#" A=1,,	b = "x,\" \\y" ,c-d="","#),
            Some(expected.to_vec())
        );
        assert_eq!(parsed(""), Some(Vec::new()));
    }

    #[test]
    fn broken_messages_are_refused() {
        for bad in [
            "a",
            "=1",
            "a=",
            "a=1 b=2",
            "a=\"1",
            "a=\"1\\",
            "a=1,a=2",
            "a=1,A=\"2\"",
            "a=\"1\"2",
            "a=b=c",
            "a b=1",
            "a=\u{e9}",
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
        assert!(Directives::parse(b"a=\"\xff\"").is_none());
        let many = |count: usize| {
            (0..count)
                .map(|at| format!("a{at}=1"))
                .collect::<Vec<_>>()
                .join(",")
        };
        assert!(parsed(&many(DIRECTIVES_MAX)).is_some());
        assert!(parsed(&many(DIRECTIVES_MAX + 1)).is_none());
    }

    proptest! {
        #[test]
        fn quoted_values_are_read_back(value in "\\PC{0,40}") {
            let directives = parsed(&format!("a={},b=1", Quoted(&value))).unwrap();
            prop_assert_eq!(&directives[0].1, &value);
        }

        #[test]
        fn any_text_is_parsed_or_refused(message in "[ab=,\"\\\\ \u{e9}]{0,40}") {
            if let Some(directives) = parsed(&message) {
                prop_assert!(directives.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() <= message.len());
            }
        }
    }
}
