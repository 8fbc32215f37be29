//! Cutting a filter string into operators and calls.
//!
//! Bytes, not characters. Between tokens only space and tab are skipped; among arguments only space, comma
//! and closing parenthesis separate. A keyword is one only with the right neighbours; otherwise it begins a
//! filter's name. A quote inside an argument is written twice.

use super::wrong;
use crate::error::Result;

pub(super) enum Token<'t> {
    Open,
    Close,
    And,
    Or,
    Skip,
    While,
    Call(Call<'t>),
}

/// A filter and its arguments.
pub(super) struct Call<'t> {
    pub(super) position: usize,
    pub(super) name: &'t [u8],
    pub(super) arguments: Vec<Argument>,
}

pub(super) struct Argument {
    pub(super) position: usize,
    pub(super) is_quoted: bool,
    /// Without quotes.
    pub(super) bytes: Vec<u8>,
}

pub(super) struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t [u8]) -> Lexer<'t> {
        Lexer { text, at: 0 }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The next token and where it begins.
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

    /// Whether a keyword is next: behind one of `before`, and in front of a space or parenthesis.
    fn keyword(&self, word: &[u8], before: &[u8], at_start: bool) -> bool {
        let front = match self.at.checked_sub(1) {
            Some(index) => before.contains(&self.text[index]),
            None => at_start,
        };
        let behind = self.text.get(self.at + word.len());
        front && self.text[self.at..].starts_with(word) && matches!(behind, Some(b' ' | b'('))
    }

    fn call(&mut self) -> Result<Call<'t>> {
        let position = self.at;
        let rest = &self.text[position..];
        let no_list = || wrong(position, "a filter has no argument list");
        let length = rest
            .iter()
            .position(|byte| matches!(byte, b'(' | b' '))
            .ok_or_else(no_list)?;
        self.at += length;
        while self.text.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
        if self.text.get(self.at) != Some(&b'(') {
            return Err(no_list());
        }
        self.at += 1;
        Ok(Call {
            position,
            name: &rest[..length],
            arguments: self.arguments(position)?,
        })
    }

    fn arguments(&mut self, call_at: usize) -> Result<Vec<Argument>> {
        let mut arguments = Vec::new();
        loop {
            match self.text.get(self.at) {
                None => return Err(wrong(call_at, "the argument list has no end")),
                Some(b' ' | b',') => self.at += 1,
                Some(b')') => {
                    self.at += 1;
                    return Ok(arguments);
                }
                Some(b'\'') => arguments.push(self.quoted()?),
                Some(_) => arguments.push(self.unquoted()),
            }
        }
    }

    fn unquoted(&mut self) -> Argument {
        let position = self.at;
        let rest = &self.text[position..];
        let length = rest.iter().position(|byte| matches!(byte, b' ' | b',' | b')'));
        let length = length.unwrap_or(rest.len());
        self.at += length;
        Argument {
            position,
            is_quoted: false,
            bytes: rest[..length].to_vec(),
        }
    }

    fn quoted(&mut self) -> Result<Argument> {
        let position = self.at;
        let mut bytes = Vec::new();
        self.at += 1;
        loop {
            let Some(byte) = self.text.get(self.at) else {
                return Err(wrong(position, "the quote has no end"));
            };
            self.at += 1;
            match (byte, self.text.get(self.at)) {
                (b'\'', Some(b'\'')) => self.at += 1,
                (b'\'', None | Some(b' ' | b',' | b')')) => {
                    return Ok(Argument {
                        position,
                        is_quoted: true,
                        bytes,
                    });
                }
                (b'\'', Some(_)) => return Err(wrong(self.at, "a separator is missing behind the quote")),
                _ => {}
            }
            bytes.push(*byte);
        }
    }
}
