//! Text to commands: the part of Ruby that people use in HBase's shell.
//!
//! ```text
//! commands = [ command ] { ( newline | ";" ) [ command ] }
//! command  = name [ "(" [ args ] ")" | args ]
//! args     = arg { "," arg }            pairs without braces are one hash, the last argument
//! arg      = value [ "=>" value ] | name ":" value
//! value    = string | symbol | number | true | false | nil | CONSTANT | "[" ... "]" | "{" pairs "}"
//! ```
//!
//! A newline does not end a command inside brackets, after a comma and after `=>`. `#` starts a comment.
//! Strings are bytes: in double quotes with Ruby's escapes (`\n`, `\x00`, `\0`, `\u00e9`, ...), in single
//! quotes only `\\` and `\'`. Constants stand for their names. Expressions, variables and interpolation are
//! Ruby, not commands, and are refused.

use std::fmt;

/// A command and its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// The command.
    pub name: String,
    /// Arguments of the command; pairs without braces are a hash at the end.
    pub arguments: Vec<Value>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string, in quotes or as a symbol.
    Bytes(Vec<u8>),
    /// A constant, by its name.
    Constant(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// `nil`
    Nil,
    /// `[...]`
    Array(Vec<Value>),
    /// `{...}`, in the order written. Keys are strings, symbols or constants.
    Hash(Vec<(Vec<u8>, Value)>),
}

/// Why text is no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Description of the error.
    pub message: String,
    /// The intended form, perhaps.
    pub hint: Option<String>,
    /// Line of the mistake, from 1.
    pub line: usize,
    /// Character within the line, from 1.
    pub column: usize,
    /// Whether the text only stops too early, so that more of it may help.
    pub incomplete: bool,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for SyntaxError {}

/// The commands in a text.
pub fn parse(text: &str) -> Result<Vec<Command>, SyntaxError> {
    Parser::new(text).commands()
}

/// Deepest nesting of arrays and hashes.
const DEPTH_MAX: usize = 64;

struct Parser<'a> {
    text: &'a str,
    /// Bytes consumed, always at a character.
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Parser {
            text,
            at: 0,
            depth: 0,
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn take_if(&mut self, expected: &str) -> bool {
        let there = self.rest().starts_with(expected);
        if there {
            self.at += expected.len();
        }
        there
    }

    fn error_at(&self, at: usize, message: impl Into<String>) -> SyntaxError {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        SyntaxError {
            message: message.into(),
            hint: None,
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).map_or(0, |line| line.chars().count()) + 1,
            incomplete: false,
        }
    }

    fn error(&self, message: impl Into<String>) -> SyntaxError {
        self.error_at(self.at, message)
    }

    fn unexpected(&self, wanted: &str) -> SyntaxError {
        match self.peek() {
            Some(found) => self.error(format!("expected {wanted}, found '{}'", found.escape_debug())),
            None => SyntaxError {
                incomplete: true,
                ..self.error(format!("expected {wanted}, found the end of the input"))
            },
        }
    }

    /// Passes over blanks and comments, and over newlines if they mean nothing here.
    fn blanks(&mut self, newlines: bool) {
        while let Some(next) = self.peek() {
            let escaped_newline = next == '\\' && self.rest().starts_with("\\\n");
            if escaped_newline {
                self.at += 2;
            } else if next == '#' {
                let comment = self.rest();
                self.at += comment.find('\n').unwrap_or(comment.len());
            } else if next.is_whitespace() && (newlines || next != '\n') {
                self.take();
            } else {
                break;
            }
        }
    }

    fn commands(mut self) -> Result<Vec<Command>, SyntaxError> {
        let mut commands = Vec::new();
        loop {
            self.blanks(true);
            if self.take_if(";") {
                continue;
            }
            if self.peek().is_none() {
                return Ok(commands);
            }
            commands.push(self.command()?);
            self.blanks(false);
            if self.peek().is_some() && !self.take_if("\n") && !self.take_if(";") {
                return Err(SyntaxError {
                    hint: Some("arguments are separated by commas, commands by newlines or ';'".to_owned()),
                    ..self.unexpected("the end of the command")
                });
            }
        }
    }

    fn command(&mut self) -> Result<Command, SyntaxError> {
        let begin = self.at;
        let name = self.word();
        if name.is_empty() {
            return Err(self.unexpected("a command"));
        }
        if !name.starts_with(|first: char| first.is_ascii_lowercase()) {
            let hint = format!("commands are in lower case: {}", name.to_ascii_lowercase());
            return Err(SyntaxError {
                hint: Some(hint),
                ..self.error_at(begin, format!("'{name}' is no command"))
            });
        }
        let name = name.to_owned();
        self.blanks(false);
        let arguments = if self.take_if("(") {
            self.arguments(Some(')'))?
        } else if matches!(self.peek(), None | Some('\n' | ';')) {
            Vec::new()
        } else {
            self.arguments(None)?
        };
        Ok(Command { name, arguments })
    }

    /// Arguments up to the closing bracket, or to the end of the command where there is none.
    fn arguments(&mut self, close: Option<char>) -> Result<Vec<Value>, SyntaxError> {
        let mut arguments = Vec::new();
        let mut pairs = Vec::new();
        loop {
            self.blanks(close.is_some());
            if let Some(close) = close
                && self.peek() == Some(close)
            {
                self.take();
                break;
            }
            let begin = self.at;
            match self.argument()? {
                (Some(key), value) => pairs.push((key, value)),
                (None, _) if !pairs.is_empty() => {
                    let hint = Some("pairs come last; put braces around them: { KEY => value }".to_owned());
                    return Err(SyntaxError {
                        hint,
                        ..self.error_at(begin, "a value stands behind a pair without braces")
                    });
                }
                (None, value) => arguments.push(value),
            }
            self.blanks(close.is_some());
            if self.take_if(",") {
                self.blanks(true);
                if self.peek().is_none() {
                    return Err(self.unexpected("another argument"));
                }
                continue;
            }
            match close {
                None => break,
                Some(close) if self.peek() == Some(close) => {}
                Some(close) => return Err(self.unexpected(&format!("',' or '{close}'"))),
            }
        }
        if !pairs.is_empty() {
            arguments.push(Value::Hash(pairs));
        }
        Ok(arguments)
    }

    /// A value, or a pair.
    fn argument(&mut self) -> Result<(Option<Vec<u8>>, Value), SyntaxError> {
        let begin = self.at;
        // Ruby's short form of a pair: `name: value`.
        let word = self.word();
        if !word.is_empty() && self.rest().starts_with(':') && !self.rest().starts_with("::") {
            let key = word.as_bytes().to_vec();
            self.take();
            self.blanks(true);
            return Ok((Some(key), self.value()?));
        }
        self.at = begin;
        let value = self.value()?;
        let end = self.at;
        self.blanks(true);
        if !self.take_if("=>") {
            // Newlines behind a value that is no key may end the command.
            self.at = end;
            return Ok((None, value));
        }
        let key = match value {
            Value::Bytes(key) => key,
            Value::Constant(name) => name.into_bytes(),
            Value::Integer(number) => number.to_string().into_bytes(),
            _ => return Err(self.error_at(begin, "a key is a string, a symbol or a constant")),
        };
        self.blanks(true);
        Ok((Some(key), self.value()?))
    }

    fn value(&mut self) -> Result<Value, SyntaxError> {
        let begin = self.at;
        match self.peek() {
            Some('\'') => self.single_quoted().map(Value::Bytes),
            Some('"') => self.double_quoted().map(Value::Bytes),
            Some('[') => self.nested(|parser| {
                let elements = parser.arguments(Some(']'))?;
                Ok(Value::Array(elements))
            }),
            Some('{') => self.nested(|parser| match parser.arguments(Some('}'))?.as_mut_slice() {
                [] => Ok(Value::Hash(Vec::new())),
                [Value::Hash(pairs)] => Ok(Value::Hash(std::mem::take(pairs))),
                _ => Err(SyntaxError {
                    hint: Some("write { KEY => value }".to_owned()),
                    ..parser.error_at(begin, "braces hold a value that is no pair")
                }),
            }),
            Some('0'..='9' | '-' | '+') => self.number(),
            Some(':') => {
                self.take();
                match self.peek() {
                    Some('"') => self.double_quoted().map(Value::Bytes),
                    _ => match self.word() {
                        "" => Err(self.unexpected("the name of a symbol")),
                        name => Ok(Value::Bytes(name.as_bytes().to_vec())),
                    },
                }
            }
            _ => self.bare_word(),
        }
    }

    fn nested(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<Value, SyntaxError>,
    ) -> Result<Value, SyntaxError> {
        if self.depth >= DEPTH_MAX {
            return Err(self.error(format!("brackets are nested deeper than {DEPTH_MAX}")));
        }
        self.take();
        self.depth += 1;
        let value = inside(self);
        self.depth -= 1;
        value
    }

    fn bare_word(&mut self) -> Result<Value, SyntaxError> {
        let begin = self.at;
        match self.word() {
            "" => Err(self.unexpected("a value")),
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            "nil" => Ok(Value::Nil),
            name if name.starts_with(|first: char| first.is_ascii_uppercase()) => {
                Ok(Value::Constant(name.to_owned()))
            }
            name if self.peek() == Some('.') => Err(SyntaxError {
                hint: Some("a filter is written as text: FILTER => \"PrefixFilter('x')\"".to_owned()),
                ..self.error_at(
                    begin,
                    format!("'{name}.' would be a Java object, and this shell is not Java"),
                )
            }),
            name => Err(SyntaxError {
                hint: Some(format!("names are strings: write '{name}'")),
                ..self.error_at(begin, format!("'{name}' has no meaning here"))
            }),
        }
    }

    /// Letters, digits and underscores, possibly none.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        if word.starts_with(|first: char| first.is_ascii_digit()) {
            return "";
        }
        self.at += end;
        word
    }

    fn number(&mut self) -> Result<Value, SyntaxError> {
        let begin = self.at;
        let rest = self.rest();
        let signs = rest.len() - rest.trim_start_matches(['-', '+']).len();
        let body = rest.get(signs..).unwrap_or_default();
        let end = body
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.')
            .unwrap_or(body.len());
        let text = rest.get(..signs + end).unwrap_or_default();
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

    fn single_quoted(&mut self) -> Result<Vec<u8>, SyntaxError> {
        let begin = self.at;
        self.take();
        let mut bytes = Vec::new();
        loop {
            match self.take() {
                None => return Err(self.unclosed(begin)),
                Some('\'') => return Ok(bytes),
                Some('\\') if matches!(self.peek(), Some('\\' | '\'')) => {
                    bytes.extend(self.take().and_then(|escaped| u8::try_from(escaped).ok()));
                }
                Some(other) => push_char(&mut bytes, other),
            }
        }
    }

    fn double_quoted(&mut self) -> Result<Vec<u8>, SyntaxError> {
        let begin = self.at;
        self.take();
        let mut bytes = Vec::new();
        loop {
            match self.take() {
                None => return Err(self.unclosed(begin)),
                Some('"') => return Ok(bytes),
                Some('#') if self.peek() == Some('{') => {
                    return Err(SyntaxError {
                        hint: Some("write \\# for the character itself".to_owned()),
                        ..self.error_at(self.at - 1, "interpolation is Ruby and not available")
                    });
                }
                Some('\\') => self.escape(begin, &mut bytes)?,
                Some(other) => push_char(&mut bytes, other),
            }
        }
    }

    /// An escape sequence after a backslash in double quotes.
    fn escape(&mut self, begin: usize, bytes: &mut Vec<u8>) -> Result<(), SyntaxError> {
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

fn push_char(bytes: &mut Vec<u8>, character: char) {
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests;
