//! The filter language of HBase as messages of its protocol, which has no such language itself.
//!
//! ```text
//! or      := and ( OR and )*
//! and     := unary ( AND unary )*
//! unary   := ( SKIP | WHILE )* primary
//! primary := Name '(' arguments ')' | '(' or ')'
//! ```
//!
//! [`lexer`] cuts the text into operators and calls, [`calls`] turns a call into a message, this file builds
//! the tree. Names, number and types of arguments are checked here; their meaning is up to the server.

mod calls;
mod fields;
mod lexer;

use bytes::Bytes;

use self::fields::Fields;
use self::lexer::{Lexer, Token};
use crate::error::{Error, Result};

/// Deepest nesting of parentheses, SKIP and WHILE.
const DEPTH_MAX: usize = 64;

/// HBase's codes of a list's operator.
const MUST_PASS_ALL: i64 = 1;
const MUST_PASS_ONE: i64 = 2;

/// A filter in HBase's filter language, for example `PrefixFilter('x') AND KeyOnlyFilter()`, as HBase's
/// message `Filter`. [`Get::filter`](crate::Get::filter) and [`Scan::filter`](crate::Scan::filter) do this by
/// themselves.
pub fn filter_message(text: &[u8]) -> Result<Bytes> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        next: None,
    };
    parser.advance()?;
    let filter = parser.or(0)?;
    match parser.next {
        None => Ok(filter.into()),
        Some((at, _)) => Err(wrong(at, "the filter is complete before this")),
    }
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    next: Option<(usize, Token<'t>)>,
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<()> {
        self.next = self.lexer.next()?;
        Ok(())
    }

    fn or(&mut self, depth: usize) -> Result<Vec<u8>> {
        let mut filters = vec![self.and(depth)?];
        while matches!(self.next, Some((_, Token::Or))) {
            self.advance()?;
            filters.push(self.and(depth)?);
        }
        Ok(list(MUST_PASS_ONE, filters))
    }

    fn and(&mut self, depth: usize) -> Result<Vec<u8>> {
        let mut filters = vec![self.unary(depth)?];
        while matches!(self.next, Some((_, Token::And))) {
            self.advance()?;
            filters.push(self.unary(depth)?);
        }
        Ok(list(MUST_PASS_ALL, filters))
    }

    fn unary(&mut self, depth: usize) -> Result<Vec<u8>> {
        let Some((at, token)) = self.next.take() else {
            return Err(wrong(self.lexer.position(), "a filter is missing at the end"));
        };
        if depth > DEPTH_MAX {
            return Err(wrong(
                at,
                &format!("filters are nested deeper than {DEPTH_MAX} levels"),
            ));
        }
        self.advance()?;
        match token {
            Token::Skip => Ok(wrapper("SkipFilter", &self.unary(depth + 1)?)),
            Token::While => Ok(wrapper("WhileMatchFilter", &self.unary(depth + 1)?)),
            Token::Call(call) => calls::message(&call),
            Token::Open => {
                let filter = self.or(depth + 1)?;
                // HBase accepts a parenthesis that is left open at the end.
                match self.next {
                    Some((_, Token::Close)) => self.advance()?,
                    Some((at, _)) => return Err(wrong(at, "an operator or a parenthesis is missing")),
                    None => {}
                }
                Ok(filter)
            }
            Token::And | Token::Or | Token::Close => Err(wrong(at, "a filter is missing")),
        }
    }
}

fn wrong(position: usize, what: &str) -> Error {
    Error::InvalidRequest(format!("incorrect filter string at position {position}: {what}"))
}

/// HBase's message `Filter`: a class with its own message.
fn named(class: &str, fields: Fields) -> Vec<u8> {
    let name = format!("org.apache.hadoop.hbase.filter.{class}");
    Fields::new()
        .bytes(1, name.as_bytes())
        .bytes(2, &fields.encoded())
        .encoded()
}

fn wrapper(class: &str, filter: &[u8]) -> Vec<u8> {
    named(class, Fields::new().bytes(1, filter))
}

/// A list; one filter stands for itself.
fn list(operator: i64, mut filters: Vec<Vec<u8>>) -> Vec<u8> {
    if filters.len() == 1 {
        return filters.remove(0);
    }
    let fields = Fields::new().number(1, operator);
    let fields = filters
        .iter()
        .fold(fields, |fields, filter| fields.bytes(2, filter));
    named("FilterList", fields)
}

#[cfg(test)]
mod tests {
    use super::filter_message;

    #[test]
    fn mistakes_are_named_with_their_position() {
        for (text, position, what) in [
            ("", 0, "missing"),
            ("PrefixFilter", 0, "argument list"),
            ("PrefixFilter('a'", 0, "argument list"),
            ("PrefixFilter('a)", 13, "quote"),
            ("PrefixFilter(a)", 13, "quotes"),
            ("PrefixFilter()", 0, "0 arguments"),
            ("NoFilter()", 0, "NoFilter"),
            ("PageFilter(x)", 11, "number"),
            ("PageFilter(99999999999999999999)", 11, "number"),
            ("RowFilter(~, 'binary:a')", 10, "operator"),
            ("RowFilter(=, 'binary')", 13, "comparator"),
            ("RowFilter(<, 'substring:a')", 10, "= and !="),
            ("KeyOnlyFilter() AND ", 20, "missing"),
            ("AND KeyOnlyFilter()", 0, "argument list"),
            ("KeyOnlyFilter() KeyOnlyFilter()", 16, "complete"),
            ("(KeyOnlyFilter() KeyOnlyFilter())", 17, "parenthesis"),
            ("KeyOnlyFilter())", 15, "complete"),
            ("ColumnRangeFilter('a', maybe, 'b', true)", 23, "true or false"),
        ] {
            let error = filter_message(text.as_bytes()).unwrap_err().to_string();
            assert!(
                error.contains(&format!("position {position}:")),
                "{text}: {error}"
            );
            assert!(error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{}KeyOnlyFilter()", "(".repeat(depth));
        assert!(filter_message(nested(60).as_bytes()).is_ok());
        let error = filter_message(nested(100_000).as_bytes())
            .unwrap_err()
            .to_string();
        assert!(error.contains("64 levels"), "{error}");
    }
}
