//! Cutting a filter string into operators and calls.
//!
//! Bytes, not characters. Between tokens only space and tab are skipped; inside of arguments only space,
//! comma and closing parenthesis separate. A keyword is one only with the right neighbours; otherwise it is
//! read as a filter name.

use std::borrow::Cow;

use super::{INCORRECT, ParseError, Result};

/// Most bytes of the input that an error repeats.
const REPEATED_MAX_BYTES: usize = 100;

pub(super) enum Token<'t> {
    Open,
    Close,
    And,
    Or,
    Skip,
    While,
    Call(Call<'t>),
}

/// `Name(argument, ...)`.
pub(super) struct Call<'t> {
    pub(super) position: usize,
    pub(super) name: &'t [u8],
    pub(super) arguments: Vec<Argument<'t>>,
}

pub(super) struct Argument<'t> {
    pub(super) position: usize,
    pub(super) quoted: bool,
    /// Without the quotes around it, and with single ones inside.
    pub(super) bytes: Cow<'t, [u8]>,
}

pub(super) struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
}

/// Bytes of the input, fit for an error message.
pub(super) fn repeated(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(REPEATED_MAX_BYTES)];
    let dots = if shown.len() < bytes.len() { "..." } else { "" };
    format!("{}{dots}", shown.escape_ascii())
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// The next token and where it begins; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(usize, Token<'t>)>> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let position = self.at;
        let token = match self.text.get(position) {
            None => return Ok(None),
            Some(b'(') => self.take(1, Token::Open),
            Some(b')') => self.take(1, Token::Close),
            Some(_) if self.keyword(b"AND", b" )", false) => self.take(3, Token::And),
            Some(_) if self.keyword(b"OR", b" )", false) => self.take(2, Token::Or),
            Some(_) if self.keyword(b"SKIP", b" )(", true) => self.take(4, Token::Skip),
            Some(_) if self.keyword(b"WHILE", b" )(", true) => self.take(5, Token::While),
            Some(_) => Token::Call(self.call()?),
        };
        Ok(Some((position, token)))
    }

    fn take(&mut self, bytes: usize, token: Token<'t>) -> Token<'t> {
        self.at += bytes;
        token
    }

    /// Whether `word` stands here, with one of `before` in front of it (or nothing, if `at_start`) and a
    /// space or parenthesis behind it.
    fn keyword(&self, word: &[u8], before: &[u8], at_start: bool) -> bool {
        let front = match self.at.checked_sub(1) {
            Some(index) => before.contains(&self.text[index]),
            None => at_start,
        };
        front
            && self.text[self.at..].starts_with(word)
            && matches!(self.text.get(self.at + word.len()), Some(b' ' | b'('))
    }

    fn call(&mut self) -> Result<Call<'t>> {
        let position = self.at;
        let rest = &self.text[position..];
        let length = rest
            .iter()
            .position(|byte| matches!(byte, b'(' | b' '))
            .ok_or_else(|| ParseError::new(position, INCORRECT))?;
        let name = &rest[..length];
        if name.iter().any(|byte| matches!(byte, b'\'' | b',' | b')')) {
            return Err(ParseError::new(
                position,
                format!("Incorrect Filter Name {}", repeated(name)),
            ));
        }
        self.at += length;
        while self.text.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
        match self.text.get(self.at) {
            Some(b'(') => self.at += 1,
            Some(_) => return Err(ParseError::new(self.at, "Incorrect argument list")),
            None => return Err(ParseError::new(self.at, INCORRECT)),
        }
        let arguments = self.arguments(position)?;
        Ok(Call {
            position,
            name,
            arguments,
        })
    }

    /// Up to the closing parenthesis.
    fn arguments(&mut self, call_at: usize) -> Result<Vec<Argument<'t>>> {
        let mut arguments = Vec::new();
        loop {
            match self.text.get(self.at) {
                // The expression that begins at `call_at` has no end.
                None => return Err(ParseError::new(call_at, INCORRECT)),
                Some(b' ' | b',') => self.at += 1,
                Some(b')') => {
                    self.at += 1;
                    return Ok(arguments);
                }
                Some(b'\'') => arguments.push(self.quoted(call_at)?),
                Some(_) => arguments.push(self.unquoted()),
            }
        }
    }

    fn unquoted(&mut self) -> Argument<'t> {
        let position = self.at;
        let rest = &self.text[position..];
        let length = rest
            .iter()
            .position(|byte| matches!(byte, b' ' | b',' | b')'))
            .unwrap_or(rest.len());
        self.at += length;
        Argument {
            position,
            quoted: false,
            bytes: Cow::Borrowed(&rest[..length]),
        }
    }

    fn quoted(&mut self, call_at: usize) -> Result<Argument<'t>> {
        let position = self.at;
        let mut start = position + 1;
        let mut unescaped: Vec<u8> = Vec::new();
        loop {
            let length = self.text[start..]
                .iter()
                .position(|byte| *byte == b'\'')
                .ok_or_else(|| ParseError::new(call_at, INCORRECT))?;
            let piece = &self.text[start..start + length];
            let behind = start + length + 1;
            if self.text.get(behind) == Some(&b'\'') {
                // A quote written twice: keep one.
                unescaped.extend_from_slice(&self.text[start..behind]);
                start = behind + 1;
                continue;
            }
            self.at = behind;
            // HBase swallows the byte behind a closing quote, whatever it is. What is no separator is a slip.
            if !matches!(self.text.get(behind), None | Some(b' ' | b',' | b')')) {
                return Err(ParseError::new(behind, "Incorrect argument list"));
            }
            let bytes = if unescaped.is_empty() {
                Cow::Borrowed(piece)
            } else {
                unescaped.extend_from_slice(piece);
                Cow::Owned(unescaped)
            };
            return Ok(Argument {
                position,
                quoted: true,
                bytes,
            });
        }
    }
}
