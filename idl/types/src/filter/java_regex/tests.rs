//! Patterns as Java understands them.

use super::*;

/// Matches of Java's engine, and texts without a match.
#[test]
fn found_as_in_java() {
    let cases: &[(&str, &str, bool)] = &[
        ("b", "abc", true),
        ("^b", "abc", false),
        ("c$", "abc\n", true),
        ("c$", "abc\nd", false),
        ("(?m)c$", "abc\nd", true),
        (r"c\Z", "abc\r\n", true),
        (r"c\z", "abc\n", false),
        ("a.c", "a\nc", true),
        (r"^\d+$", "123", true),
        (r"^\d+$", "\u{661}", false),
        (r"^[\d_]+$", "1_2", true),
        (r"^[^\D]$", "7", true),
        (r"\w", "\u{e9}", false),
        ("^.$", "\u{e9}", true),
        (r"\Qa.b\E+", "a.bbb", true),
        (r"\Qa.b", "axb", false),
        (r"\<a\>", "<a>", true),
        (r"\u0041\x42\0103", "ABC", true),
        (r"\uD83D\uDE00", "\u{1f600}", true),
        (r"[]a]", "]", true),
        (r"[a[bc]&&[b]]", "b", true),
        (r"[:a]", ":", true),
        (r"[~~]", "~", true),
        (r"\p{Alpha}\p{L}\p{IsLatin}\P{Digit}", "a\u{e9}zx", true),
        ("(?i:AB)c", "abc", true),
        ("(?u)a", "a", true),
        (r"a\.\-\ b", "a.- b", true),
        ("a{2}+", "aa", false),
        ("(?<name>x)", "x", true),
    ];
    for (pattern, text, expected) in cases {
        match JavaRegex::new(pattern) {
            Ok(regex) => assert_eq!(
                regex.is_found_in(text.as_bytes()),
                *expected,
                "{pattern} in {text:?}"
            ),
            Err(error) => assert!(!expected, "{pattern}: {error}"),
        }
    }
}

#[test]
fn whole_patterns_match_from_end_to_end() {
    for (pattern, text, expected) in [
        ("a|ab", "ab", true),
        ("a", "ab", false),
        ("b", "ab", false),
        (r"\Qa.b", "a.b", true),
        ("t.*", "t:x", true),
    ] {
        let regex = JavaRegex::whole(pattern).unwrap();
        assert_eq!(
            regex.is_found_in(text.as_bytes()),
            expected,
            "{pattern} and {text}"
        );
    }
    assert!(JavaRegex::whole("a)(b").is_err());
}

#[test]
fn bytes_that_are_no_text_match_a_dot() {
    assert!(JavaRegex::new("^a.b$").unwrap().is_found_in(b"a\xffb"));
    let latin = JavaRegex::with_flags("\u{e9}", 0, "ISO-8859-1").unwrap();
    assert!(latin.is_found_in(b"\xe9"));
    let ascii = JavaRegex::with_flags("\u{e9}", 0, "US-ASCII").unwrap();
    assert!(!ascii.is_found_in("\u{e9}".as_bytes()));
}

#[test]
fn flags() {
    let matches = |pattern, flags, text: &str| {
        JavaRegex::with_flags(pattern, flags, "utf-8")
            .unwrap()
            .is_found_in(text.as_bytes())
    };
    assert!(!matches("a.c", 0, "a\nc"));
    assert!(!matches("a.c", 0, "a\rc"));
    assert!(matches("a.c", flag::UNIX_LINES, "a\rc"));
    assert!(matches("ABC", flag::CASE_INSENSITIVE, "abc"));
    assert!(matches("a b # text", flag::COMMENTS, "ab"));
    assert!(matches("a(", flag::LITERAL, "a("));
    assert!(matches("^b$", flag::MULTILINE, "a\nb\nc"));
    assert!(matches(r"\w", flag::UNICODE_CHARACTER_CLASS, "\u{e9}"));
}

#[test]
fn unsupported_syntax_is_named() {
    let cases = [
        ("a(?=b)", "lookahead"),
        ("(?<!a)b", "lookbehind"),
        ("(?>a)", "atomic"),
        (r"(a)\1", "backreferences"),
        (r"\k<a>", "backreferences"),
        ("a*+", "possessive"),
        ("a{1,2}+", "possessive"),
        (r"\G", r"\G is not"),
        (r"\p{InGreek}", "InGreek"),
        (r"\", "backslash"),
        ("(?q)", "inline flag"),
        ("(?", "unclosed group"),
        ("(a", "unclosed group"),
        (
            "((((a{500}){500}){500}){500})",
            "524288 bytes, which is the limit",
        ),
    ];
    for (pattern, expected) in cases {
        let text = JavaRegex::new(pattern).unwrap_err().to_string();
        assert!(text.contains(expected), "{pattern}: {text}");
    }
    let long =
        |part: &str, count: usize| JavaRegex::new(&part.repeat(count)).map_err(|error| error.to_string());
    assert!(long("a|", 4096).is_ok());
    for (part, count, expected) in [
        ("a", 8193, "of 8193 bytes is longer than 8192"),
        (r"\v", 1000, "longer than 24576 bytes, which is the limit"),
        (r"(?i)\pL", 17, "name more than 48000 characters"),
        (r"[\pL\x{100}-\x{ffff}]", 9, "name more than 48000 characters"),
    ] {
        let text = long(part, count).unwrap_err();
        assert!(text.contains(expected), "{text}");
    }
    let text = JavaRegex::with_flags("a", 0x80, "UTF-8").unwrap_err().to_string();
    assert!(text.contains("unsupported flags 0x80"), "{text}");
    let text = JavaRegex::with_flags("a", 0, "KOI8-R").unwrap_err().to_string();
    assert!(text.contains("unsupported charset \"KOI8-R\""), "{text}");
}
