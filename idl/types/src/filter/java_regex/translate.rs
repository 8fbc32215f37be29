//! Java's pattern syntax to that of the `regex` crate.

use std::fmt::Write as _;

use super::flag;

/// A line end, as Java's `$` and `\Z` know it.
const LAST_LINE_END: &str = r"(?:(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z)";

/// Rewrites a Java pattern. One pass, no recursion.
pub(super) struct Translator {
    chars: Vec<char>,
    /// Next character to read.
    at: usize,
    out: String,
    /// Open brackets of the character class being read; 0 outside of one.
    class_depth: usize,
    /// A `$` matches at each line end, or might (an inline flag turns it on somewhere).
    multiline: bool,
    /// `.` is written out, because Java leaves out more line ends than a line feed.
    narrow_dot: bool,
    unicode_classes: bool,
}

impl Translator {
    pub(super) fn new(pattern: &str, flags: i32) -> Self {
        Self {
            chars: pattern.chars().collect(),
            at: 0,
            out: String::with_capacity(pattern.len() + 16),
            class_depth: 0,
            multiline: flags & flag::MULTILINE != 0,
            narrow_dot: flags & (flag::DOTALL | flag::UNIX_LINES) == 0,
            unicode_classes: flags & flag::UNICODE_CHARACTER_CLASS != 0,
        }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    fn take_if(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        self.at += usize::from(there);
        there
    }

    pub(super) fn translate(mut self) -> std::result::Result<String, String> {
        while let Some(character) = self.next() {
            match character {
                '\\' => self.escape()?,
                '[' => self.open_class(),
                _ if self.class_depth > 0 => self.class_character(character),
                '(' => self.group()?,
                '$' if !self.multiline => self.out.push_str(LAST_LINE_END),
                '.' if self.narrow_dot => self.out.push_str(r"[^\n\r\x{85}\x{2028}\x{2029}]"),
                '*' | '+' | '?' => {
                    self.out.push(character);
                    self.refuse_possessive()?;
                }
                '}' => {
                    self.out.push('}');
                    let opened = self.out.rfind('{').is_some_and(|open| {
                        self.out[open + 1..self.out.len() - 1]
                            .bytes()
                            .all(|byte| matches!(byte, b'0'..=b'9' | b','))
                    });
                    if opened {
                        self.refuse_possessive()?;
                    }
                }
                _ => self.out.push(character),
            }
        }
        Ok(self.out)
    }

    fn refuse_possessive(&self) -> std::result::Result<(), String> {
        if self.peek() == Some('+') {
            return Err("possessive quantifiers are not supported".into());
        }
        Ok(())
    }

    fn open_class(&mut self) {
        self.class_depth += 1;
        self.out.push('[');
        if self.take_if('^') {
            self.out.push('^');
        }
        // A bracket that comes first is a character, and `[:` begins nothing special in Java.
        if self.take_if(']') {
            self.out.push_str(r"\]");
        } else if self.take_if(':') {
            self.out.push_str(r"\:");
        }
    }

    fn class_character(&mut self, character: char) {
        match character {
            ']' => {
                self.class_depth -= 1;
                self.out.push(']');
            }
            // A set operation in the `regex` crate, a character in Java.
            '~' => self.out.push_str(r"\~"),
            _ => self.out.push(character),
        }
    }

    /// After `(`.
    fn group(&mut self) -> std::result::Result<(), String> {
        self.out.push('(');
        if !self.take_if('?') {
            return Ok(());
        }
        let ahead = self.chars.get(self.at + 1).copied();
        match (self.peek(), ahead) {
            (Some('=' | '!'), _) => Err("lookahead is not supported".into()),
            (Some('<'), Some('=' | '!')) => Err("lookbehind is not supported".into()),
            (Some('>'), _) => Err("atomic groups are not supported".into()),
            (Some('<' | ':'), _) => {
                self.out.push('?');
                Ok(())
            }
            _ => self.inline_flags(),
        }
    }

    /// After `(?`: flags up to `)` or `:`. Those that the `regex` crate reads differently are left out.
    fn inline_flags(&mut self) -> std::result::Result<(), String> {
        let (mut on, mut off, mut negated) = (String::new(), String::new(), false);
        loop {
            match self.next() {
                Some('-') if !negated => negated = true,
                Some(kept @ ('i' | 'm' | 's' | 'x')) => {
                    self.multiline |= kept == 'm';
                    self.narrow_dot &= kept != 's';
                    if negated { &mut off } else { &mut on }.push(kept);
                }
                Some('d' | 'u' | 'U') => {}
                Some(end @ (')' | ':')) => {
                    self.out.push('?');
                    self.out.push_str(&on);
                    if !off.is_empty() {
                        self.out.push('-');
                        self.out.push_str(&off);
                    }
                    // `(?)` is not a group for the `regex` crate; an empty one says the same.
                    if on.is_empty() && off.is_empty() && end == ')' {
                        self.out.push(':');
                    }
                    self.out.push(end);
                    return Ok(());
                }
                Some(other) => return Err(format!("unknown inline flag {other:?}")),
                None => return Err("unclosed group".into()),
            }
        }
    }

    /// After a backslash, inside or outside of a class.
    fn escape(&mut self) -> std::result::Result<(), String> {
        let Some(character) = self.next() else {
            return Err("a backslash at the end".into());
        };
        let in_class = self.class_depth > 0;
        match character {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' if self.unicode_classes => {
                self.out.push('\\');
                self.out.push(character);
            }
            'd' | 'D' => self.set("0-9", character == 'D'),
            'w' | 'W' => self.set("A-Za-z0-9_", character == 'W'),
            's' | 'S' => self.set(r"\x20\t\n\x0B\f\r", character == 'S'),
            'h' | 'H' => self.set(
                r"\x20\t\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}",
                character == 'H',
            ),
            'v' | 'V' => self.set(r"\n\x0B\f\r\x{85}\x{2028}\x{2029}", character == 'V'),
            't' | 'n' | 'r' | 'f' | 'a' => {
                self.out.push('\\');
                self.out.push(character);
            }
            'b' | 'B' | 'A' | 'z' if !in_class => {
                self.out.push('\\');
                self.out.push(character);
                // `\b{start}` is the `regex` crate's own.
                if self.peek() == Some('{') {
                    return Err("a quantifier behind a boundary is not supported".into());
                }
            }
            'Z' if !in_class => self.out.push_str(LAST_LINE_END),
            'R' if !in_class => self.out.push_str(r"(?:\r\n|[\n\x0B\f\r\x{85}\x{2028}\x{2029}])"),
            'Q' => self.quotation(),
            'e' => self.literal('\u{1b}'),
            '0' => {
                let code = self.number(8, 1, 3)?;
                self.code(code)?;
            }
            'x' => self.hex_escape()?,
            'u' => self.unicode_escape()?,
            'c' => {
                let control = self.next().ok_or("\\c without a character")?;
                self.code(u32::from(control) ^ 64)?;
            }
            'p' | 'P' => self.property(character == 'P')?,
            '1'..='9' | 'k' => return Err("backreferences are not supported".into()),
            letter if letter.is_ascii_alphabetic() => {
                return Err(format!("\\{letter} is not supported"));
            }
            other => self.literal(other),
        }
        Ok(())
    }

    /// A set of characters, as a class of its own or inside of one.
    fn set(&mut self, members: &str, negated: bool) {
        if self.class_depth > 0 && !negated {
            self.out.push_str(members);
        } else {
            self.out.push_str(if negated { "[^" } else { "[" });
            self.out.push_str(members);
            self.out.push(']');
        }
    }

    /// One character that means itself, in every mode.
    fn literal(&mut self, character: char) {
        if character.is_alphanumeric() {
            self.out.push(character);
        } else {
            write!(self.out, "\\x{{{:X}}}", u32::from(character)).expect("writing to a string does not fail");
        }
    }

    fn code(&mut self, code: u32) -> std::result::Result<(), String> {
        let character =
            char::from_u32(code).ok_or_else(|| format!("no character has the number {code:#x}"))?;
        self.literal(character);
        Ok(())
    }

    /// `\Q` up to `\E` or the end.
    fn quotation(&mut self) {
        while let Some(character) = self.next() {
            if character == '\\' && self.take_if('E') {
                return;
            }
            self.literal(character);
        }
    }

    /// Between `least` and `most` digits.
    fn number(&mut self, radix: u32, least: usize, most: usize) -> std::result::Result<u32, String> {
        let mut value = 0;
        let mut count = 0;
        while count < most {
            let Some(digit) = self.peek().and_then(|character| character.to_digit(radix)) else {
                break;
            };
            // Java reads a third octal digit only as far as 0377.
            if radix == 8 && value * 8 + digit > 0o377 {
                break;
            }
            value = value * radix + digit;
            count += 1;
            self.at += 1;
        }
        if count < least {
            return Err("an escape with too few digits".into());
        }
        Ok(value)
    }

    fn hex_escape(&mut self) -> std::result::Result<(), String> {
        let code = if self.take_if('{') {
            let code = self.number(16, 1, 6)?;
            if !self.take_if('}') {
                return Err("unclosed \\x{".into());
            }
            code
        } else {
            self.number(16, 2, 2)?
        };
        self.code(code)
    }

    /// `\uhhhh`; two of them may make up one character.
    fn unicode_escape(&mut self) -> std::result::Result<(), String> {
        let first = self.number(16, 4, 4)?;
        if !(0xD800..0xDC00).contains(&first) {
            return self.code(first);
        }
        if !(self.take_if('\\') && self.take_if('u')) {
            return Err("half a surrogate pair".into());
        }
        let second = self.number(16, 4, 4)?;
        let low = second.checked_sub(0xDC00).filter(|low| *low < 0x400);
        self.code(0x10000 + ((first - 0xD800) << 10) + low.ok_or("half a surrogate pair")?)
    }

    /// `\p{Name}` or `\pL`.
    fn property(&mut self, negated: bool) -> std::result::Result<(), String> {
        let name: String = if self.take_if('{') {
            let rest = &self.chars[self.at..];
            let end = rest.iter().position(|c| *c == '}').ok_or("unclosed \\p{")?;
            self.at += end + 1;
            rest[..end].iter().collect()
        } else {
            self.next().ok_or("\\p without a name")?.to_string()
        };
        let members = match name.as_str() {
            "Lower" => "a-z",
            "Upper" => "A-Z",
            "ASCII" => r"\x00-\x7F",
            "Alpha" => "A-Za-z",
            "Digit" => "0-9",
            "Alnum" => "A-Za-z0-9",
            "Punct" => r"!-/:-@\[-`{-\x7E",
            "Graph" => r"!-\x7E",
            "Print" => r"\x20-\x7E",
            "Blank" => r"\x20\t",
            "Cntrl" => r"\x00-\x1F\x7F",
            "XDigit" => "0-9A-Fa-f",
            "Space" => r"\x20\t\n\x0B\f\r",
            "javaLowerCase" => r"\p{Lowercase}",
            "javaUpperCase" => r"\p{Uppercase}",
            _ => {
                if name.starts_with("java") || name.starts_with("In") {
                    return Err(format!("\\p{{{name}}} is not supported"));
                }
                let property = name.strip_prefix("Is").unwrap_or(&name);
                self.out.push_str(if negated { r"\P{" } else { r"\p{" });
                self.out.push_str(property);
                self.out.push('}');
                return Ok(());
            }
        };
        self.set(members, negated);
        Ok(())
    }
}
