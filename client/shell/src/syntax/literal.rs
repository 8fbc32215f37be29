//! Strings and numbers.

use super::cursor::Cursor;
use super::{Expression, Parsed, SyntaxError, Value};

impl Cursor<'_> {
    pub(super) fn number(&mut self) -> Parsed<Value> {
        let begin = self.at;
        let rest = self.rest();
        let signs = rest.len() - rest.trim_start_matches(['-', '+']).len();
        let body = rest.get(signs..).unwrap_or_default();
        let text = rest.get(..signs + number_length(body)).unwrap_or_default();
        self.at += text.len();
        let digits = text.replace('_', "");
        let (sign, unsigned) = match digits.strip_prefix('-') {
            Some(unsigned) => ("-", unsigned),
            None => ("", digits.strip_prefix('+').unwrap_or(&digits)),
        };
        let integer = match unsigned.get(..2) {
            Some("0x" | "0X") => i64::from_str_radix(&format!("{sign}{}", &unsigned[2..]), 16),
            Some("0b" | "0B") => i64::from_str_radix(&format!("{sign}{}", &unsigned[2..]), 2),
            _ => format!("{sign}{unsigned}").parse(),
        };
        if let Ok(integer) = integer {
            return Ok(Value::Integer(integer));
        }
        match unsigned.parse::<f64>() {
            Ok(float) if unsigned.contains('.') && float.is_finite() => {
                Ok(Value::Float(if sign.is_empty() { float } else { -float }))
            }
            _ => Err(self.error_at(begin, format!("'{text}' is no number of 64 bits"))),
        }
    }

    fn unclosed(&self, begin: usize) -> SyntaxError {
        SyntaxError {
            incomplete: true,
            ..self.error_at(begin, "string is not closed")
        }
    }

    /// A string up to one of these quotes, with the escapes of single quotes.
    pub(super) fn single_quoted(&mut self, close: [char; 2]) -> Parsed<Value> {
        let begin = self.at;
        self.take();
        let mut bytes = Vec::new();
        loop {
            match self.take() {
                None => return Err(self.unclosed(begin)),
                Some(quote) if close.contains(&quote) => return Ok(Value::Bytes(bytes)),
                Some('\\') if matches!(self.peek(), Some('\\' | '\'')) => {
                    bytes.extend(self.take().and_then(|escaped| u8::try_from(escaped).ok()));
                }
                Some(other) => push_char(&mut bytes, other),
            }
        }
    }

    /// A string up to one of these quotes, with escapes and interpolations.
    pub(super) fn double_quoted(&mut self, close: [char; 2]) -> Parsed<Expression> {
        let begin = self.at;
        self.take();
        let (mut parts, mut bytes) = (Vec::new(), Vec::new());
        loop {
            match self.take() {
                None => return Err(self.unclosed(begin)),
                Some(quote) if close.contains(&quote) => break,
                Some('#') if self.take_if("{") => {
                    parts.push(Expression::Literal(Value::Bytes(std::mem::take(&mut bytes))));
                    parts.push(self.nested(Self::interpolation)?);
                }
                Some('\\') => self.escape(begin, &mut bytes)?,
                Some(other) => push_char(&mut bytes, other),
            }
        }
        let last = Expression::Literal(Value::Bytes(bytes));
        if parts.is_empty() {
            return Ok(last);
        }
        parts.push(last);
        Ok(Expression::Text(parts))
    }

    /// Whether an array of words comes next: `%w(a b)`.
    pub(super) fn is_at_words(&self) -> bool {
        let behind = self.rest().strip_prefix("%w");
        behind.is_some_and(|behind| behind.starts_with(|open: char| open.is_ascii_punctuation()))
    }

    /// `%w(a b)`, with any brackets, or any sign on both sides. A backslash keeps the blank behind it.
    pub(super) fn words(&mut self) -> Parsed<Expression> {
        let begin = self.at;
        self.at += 2;
        let open = self.take().unwrap_or_default();
        let close = match open {
            '(' => ')',
            '[' => ']',
            '{' => '}',
            '<' => '>',
            other => other,
        };
        let (mut words, mut word, mut depth) = (Vec::new(), None::<Vec<u8>>, 0usize);
        loop {
            let next = self.take().ok_or_else(|| self.unclosed(begin))?;
            match next {
                _ if next == close && depth == 0 => break,
                _ if next.is_whitespace() => {
                    words.extend(word.take());
                    continue;
                }
                _ if next == close => depth -= 1,
                _ if next == open => depth += 1,
                _ => {}
            }
            let escaped = |next: char| next.is_whitespace() || next == '\\' || next == close || next == open;
            let kept = match self.peek() {
                Some(behind) if next == '\\' && escaped(behind) => self.take().unwrap_or(next),
                _ => next,
            };
            push_char(word.get_or_insert_default(), kept);
        }
        words.extend(word);
        let words = words
            .into_iter()
            .map(|word| Expression::Literal(Value::Bytes(word)));
        Ok(Expression::Array(words.collect()))
    }

    fn interpolation(&mut self) -> Parsed<Expression> {
        self.blanks(true);
        let value = self.as_value(Self::expression)?;
        self.blanks(true);
        if self.take_if("}") {
            Ok(value)
        } else {
            Err(self.unexpected("'}'"))
        }
    }

    /// An escape sequence after a backslash in double quotes.
    fn escape(&mut self, begin: usize, bytes: &mut Vec<u8>) -> Parsed<()> {
        let at = self.at - 1;
        let Some(kind) = self.take() else {
            return Err(self.unclosed(begin));
        };
        match kind {
            'n' => bytes.push(b'\n'),
            't' => bytes.push(b'\t'),
            'r' => bytes.push(b'\r'),
            's' => bytes.push(b' '),
            'e' => bytes.push(0x1b),
            'a' => bytes.push(0x07),
            'b' => bytes.push(0x08),
            'f' => bytes.push(0x0c),
            'v' => bytes.push(0x0b),
            '\n' => {}
            'x' => match self.digits(16, 2) {
                Some(number) => bytes.push(number as u8),
                None => return Err(self.error_at(at, "\\x is followed by no hex digit")),
            },
            '0'..='7' => {
                self.at -= 1;
                match self.digits(8, 3).map(u8::try_from) {
                    Some(Ok(byte)) => bytes.push(byte),
                    _ => return Err(self.error_at(at, "octal escape is above \\377")),
                }
            }
            'u' => {
                let braced = self.take_if("{");
                let code = self.digits(16, if braced { 6 } else { 4 });
                let complete = if braced {
                    self.take_if("}")
                } else {
                    self.at - at == 6
                };
                match code.and_then(char::from_u32) {
                    Some(character) if complete => push_char(bytes, character),
                    _ => return Err(self.error_at(at, "\\u needs four hex digits, or some in braces")),
                }
            }
            other => push_char(bytes, other),
        }
        Ok(())
    }

    /// A number of at most `most` digits; `None` if there is no digit.
    fn digits(&mut self, radix: u32, most: usize) -> Option<u32> {
        let mut number = None;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else {
                break;
            };
            self.take();
            number = Some(number.unwrap_or(0) * radix + digit);
        }
        number
    }
}

/// Length of the digits and letters of a number. A point belongs to it only before a digit, so that
/// `1..3` and `3.times` begin with a whole number.
fn number_length(text: &str) -> usize {
    let is_part = |(at, letter): (usize, char)| match letter {
        '.' => text[at + 1..].starts_with(|next: char| next.is_ascii_digit()) && !text[..at].contains('.'),
        other => other.is_ascii_alphanumeric() || other == '_',
    };
    let end = text.char_indices().find(|letter| !is_part(*letter));
    end.map_or(text.len(), |(at, _)| at)
}

fn push_char(bytes: &mut Vec<u8>, character: char) {
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}
