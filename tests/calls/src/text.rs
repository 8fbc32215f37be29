//! The text of values and answers, of which scripts consist.
//!
//! | type | text |
//! | --- | --- |
//! | bool | `true`, `false` |
//! | integers, enums | `12`, `-1`; a scanner's id `$3`; a timestamp of the server's clock `now` |
//! | binary, string | `"r\x00"`: letters stand for themselves, `\\`, `\"`, `\xNN` for other bytes |
//! | list, set | `[a, b]` |
//! | map | `{"k": v}` |
//! | struct | `{row="r", timestamp=1}` |
//!
//! [`parse`] gets the type, so it refuses text that cannot be a value of it.

use std::fmt::Write as _;

use basalt_idl::schema::{StructDescriptor, TypeDescriptor};

use super::{Answer, Value};

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Answer::Success(value) => write!(f, "= {value}"),
            Answer::Thrown(name, value) => {
                let mut value = value.clone();
                shorten_message(&mut value);
                write!(f, "! {name} {value}")
            }
            Answer::Application(exception) => {
                let message = exception.message.clone().unwrap_or_default();
                let kind = exception.kind.map_or(0, |kind| kind.0);
                write!(f, "!! {kind} {}", quoted(&first_line(message.as_bytes())))
            }
        }
    }
}

/// Longest text of an exception that is kept.
const MESSAGE_BYTES_MAX: usize = 160;

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Void => f.write_str("void"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            Value::Scanner(number) => write!(f, "${number}"),
            Value::Now => f.write_str("now"),
            Value::Bytes(bytes) => f.write_str(&quoted(bytes)),
            Value::List(values) => {
                f.write_char('[')?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", separator(index))?;
                }
                f.write_char(']')
            }
            Value::Map(pairs) => {
                f.write_char('{')?;
                for (index, (key, value)) in pairs.iter().enumerate() {
                    write!(f, "{}{key}: {value}", separator(index))?;
                }
                f.write_char('}')
            }
            Value::Struct(fields) => {
                f.write_char('{')?;
                write_fields(f, fields)?;
                f.write_char('}')
            }
        }
    }
}

/// The first line of an exception's text, not too long: HBase sends stack traces.
pub fn first_line(text: &[u8]) -> Vec<u8> {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line[..line.len().min(MESSAGE_BYTES_MAX)].to_vec()
}

/// Cuts an exception's text to the part that is compared.
fn shorten_message(exception: &mut Value) {
    if let Value::Struct(fields) = exception {
        for (name, value) in fields {
            if let ("message", Value::Bytes(text)) = (*name, value) {
                *text = first_line(text);
            }
        }
    }
}

/// `name=value, name=value`.
pub fn write_fields(f: &mut std::fmt::Formatter<'_>, fields: &[(&'static str, Value)]) -> std::fmt::Result {
    for (index, (name, value)) in fields.iter().enumerate() {
        write!(f, "{}{name}={value}", separator(index))?;
    }
    Ok(())
}

fn separator(index: usize) -> &'static str {
    if index == 0 { "" } else { ", " }
}

/// Bytes in quotes.
pub fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(byte));
            }
            0x20..0x7f => text.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(text, "\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

/// A syntax error in a text, with its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct ParseError {
    what: String,
    at: usize,
}

/// A text being read.
#[derive(Debug)]
pub struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

type Parsed<T> = Result<T, ParseError>;

/// Reads a value of this type; nothing may come behind it.
pub fn parse(ty: &TypeDescriptor, text: &str) -> Parsed<Value> {
    let mut parser = Parser::new(text);
    let value = parser.value(ty)?;
    parser.end()?;
    Ok(value)
}

impl<'a> Parser<'a> {
    /// At the beginning of a text.
    pub fn new(text: &'a str) -> Self {
        Parser {
            text: text.as_bytes(),
            at: 0,
        }
    }

    fn fail<T>(&self, what: impl Into<String>) -> Parsed<T> {
        Err(self.error(what))
    }

    /// An error at this place.
    pub fn error(&self, what: impl Into<String>) -> ParseError {
        ParseError {
            what: what.into(),
            at: self.at,
        }
    }

    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// Whether this sign comes next; if so it is passed.
    pub fn eat(&mut self, sign: u8) -> bool {
        let found = self.peek() == Some(sign);
        self.at += usize::from(found);
        found
    }

    /// Passes this sign.
    pub fn expect(&mut self, sign: u8) -> Parsed<()> {
        if self.eat(sign) {
            return Ok(());
        }
        self.fail(format!("expected {}", char::from(sign)))
    }

    /// Nothing but spaces comes.
    pub fn end(&mut self) -> Parsed<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.fail("the text goes on"),
        }
    }

    /// A name or number: letters, digits, `_`, `-`.
    pub fn word(&mut self) -> Parsed<&'a str> {
        self.peek();
        let text = self.text;
        let rest = &text[self.at..];
        let len = rest
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
            .count();
        if len == 0 {
            return self.fail("expected a word");
        }
        self.at += len;
        // Letters and digits of ASCII are UTF-8.
        Ok(std::str::from_utf8(&rest[..len]).unwrap_or_default())
    }

    fn int(&mut self) -> Parsed<Value> {
        if self.eat(b'$') {
            let word = self.word()?;
            return word
                .parse()
                .map(Value::Scanner)
                .or_else(|_| self.fail("expected the number of a scanner"));
        }
        match self.word()? {
            "now" => Ok(Value::Now),
            word => word
                .parse()
                .map(Value::Int)
                .or_else(|_| self.fail("expected an integer")),
        }
    }

    /// Bytes in quotes.
    pub fn quoted(&mut self) -> Parsed<Vec<u8>> {
        self.expect(b'"')?;
        let mut bytes = Vec::new();
        loop {
            let Some(&byte) = self.text.get(self.at) else {
                return self.fail("the quote does not end");
            };
            self.at += 1;
            match byte {
                b'"' => return Ok(bytes),
                b'\\' => bytes.push(self.escaped()?),
                _ => bytes.push(byte),
            }
        }
    }

    fn escaped(&mut self) -> Parsed<u8> {
        match self.text.get(self.at..) {
            Some([sign @ (b'"' | b'\\'), ..]) => {
                self.at += 1;
                Ok(*sign)
            }
            Some([b'x', high, low, ..]) => {
                let digit = |sign: &u8| char::from(*sign).to_digit(16);
                let (Some(high), Some(low)) = (digit(high), digit(low)) else {
                    return self.fail("expected two hex digits");
                };
                self.at += 3;
                Ok((high * 16 + low) as u8)
            }
            _ => self.fail("expected \\\\, \\\" or \\xNN"),
        }
    }

    /// A value of this type, or `void`: a server may answer nothing where the interface promises something.
    pub fn value_or_void(&mut self, ty: &TypeDescriptor) -> Parsed<Value> {
        self.peek();
        if self.text[self.at..].starts_with(b"void") {
            return self.value(&TypeDescriptor::Void);
        }
        self.value(ty)
    }

    /// A value of this type.
    pub fn value(&mut self, ty: &TypeDescriptor) -> Parsed<Value> {
        match ty {
            TypeDescriptor::Void => match self.word()? {
                "void" => Ok(Value::Void),
                _ => self.fail("expected void"),
            },
            TypeDescriptor::Bool => match self.word()? {
                "true" => Ok(Value::Bool(true)),
                "false" => Ok(Value::Bool(false)),
                _ => self.fail("expected true or false"),
            },
            TypeDescriptor::I8
            | TypeDescriptor::I16
            | TypeDescriptor::I32
            | TypeDescriptor::I64
            | TypeDescriptor::Enum(_) => self.int(),
            TypeDescriptor::Binary | TypeDescriptor::String => Ok(Value::Bytes(self.quoted()?)),
            TypeDescriptor::List(element) | TypeDescriptor::Set(element) => {
                self.expect(b'[')?;
                let mut values = Vec::new();
                while !self.eat(b']') {
                    values.push(self.value(element)?);
                    if !self.eat(b',') {
                        self.expect(b']')?;
                        break;
                    }
                }
                Ok(Value::List(values))
            }
            TypeDescriptor::Map(key_type, value_type) => {
                self.expect(b'{')?;
                let mut pairs = Vec::new();
                while !self.eat(b'}') {
                    let key = self.value(key_type)?;
                    self.expect(b':')?;
                    pairs.push((key, self.value(value_type)?));
                    if !self.eat(b',') {
                        self.expect(b'}')?;
                        break;
                    }
                }
                Ok(Value::Map(pairs))
            }
            TypeDescriptor::Struct(of) => {
                self.expect(b'{')?;
                self.fields(of, b'}').map(Value::Struct)
            }
        }
    }

    /// `name=value, ...` up to the closing sign.
    pub fn fields(&mut self, of: &'static StructDescriptor, close: u8) -> Parsed<Vec<(&'static str, Value)>> {
        let mut fields = Vec::new();
        while !self.eat(close) {
            let name = self.word()?;
            let Some(field) = of.fields.iter().find(|field| field.name == name) else {
                return self.fail(format!("{} has no field {name}", of.name));
            };
            self.expect(b'=')?;
            fields.push((field.name, self.value(&field.ty)?));
            if !self.eat(b',') {
                self.expect(close)?;
                break;
            }
        }
        Ok(fields)
    }
}
