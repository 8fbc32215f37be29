//! The filter language of HBase (`ParseFilter`), byte for byte.
//!
//! ```text
//! or      := and ( OR and )*
//! and     := unary ( AND unary )*
//! unary   := ( SKIP | WHILE )* primary
//! primary := Name '(' arguments ')' | '(' or ')'
//! ```
//!
//! Three steps: [`lexer`] cuts the bytes into operators and calls, [`calls`] turns a call into a plain
//! filter, and this file builds the tree with two stacks, so that input cannot make it recurse.
//!
//! One defect of HBase is not carried over: within one pair of parentheses it refuses some mixtures of
//! operators, as `(A OR B AND C)` and `(A AND SKIP B)`, with "Mismatched parenthesis". Here they have the
//! meaning they have outside. A parenthesis left open at the end is accepted, as in HBase.

mod calls;
mod lexer;

use std::fmt;

use self::lexer::{Lexer, Token};
use super::java_regex::Taken;
use super::{DEPTH_MAX, FilterSpec, ListOperator};
use crate::Error;

/// Longest filter string.
pub const FILTER_STRING_MAX_BYTES: usize = 64 * 1024;

/// An error in a filter string, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Byte of the string, from 0.
    pub position: usize,
    /// In HBase's words where it has some.
    pub message: String,
}

impl ParseError {
    fn new(position: usize, message: impl Into<String>) -> Self {
        Self {
            position,
            message: message.into(),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Incorrect filter string at position {}: {}",
            self.position, self.message
        )
    }
}

impl std::error::Error for ParseError {}

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Self {
        Self::InvalidArgument(error.to_string())
    }
}

type Result<T> = std::result::Result<T, ParseError>;

const INCORRECT: &str = "Incorrect Filter String";

impl FilterSpec {
    /// Reads the filter language. Strings are at most [`FILTER_STRING_MAX_BYTES`] long and [`DEPTH_MAX`]
    /// levels deep.
    pub fn parse(text: &[u8]) -> Result<Self> {
        if text.len() > FILTER_STRING_MAX_BYTES {
            let message = format!("{} bytes are more than {FILTER_STRING_MAX_BYTES}", text.len());
            return Err(ParseError::new(FILTER_STRING_MAX_BYTES, message));
        }
        let mut lexer = Lexer::new(text);
        let mut stacks = Stacks::default();
        while let Some((position, token)) = lexer.next()? {
            stacks.push(position, token)?;
        }
        stacks.finish(text.len())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Open,
    Or,
    And,
    Skip,
    While,
}

impl Operator {
    /// Greater binds tighter. `Open` is below all, so that nothing reduces across it.
    fn precedence(self) -> u8 {
        match self {
            Self::Open => 0,
            Self::Or => 1,
            Self::And => 2,
            Self::Skip | Self::While => 3,
        }
    }

    fn missing_operand(self) -> &'static str {
        match self {
            Self::Open => INCORRECT,
            Self::Or => "Incorrect input string - an OR needs two filters",
            Self::And => "Incorrect input string - an AND needs two filters",
            Self::Skip => "Incorrect input string - a SKIP wraps a filter",
            Self::While => "Incorrect input string - a WHILE wraps a filter",
        }
    }
}

/// Operators that wait for what follows, and the filters between them.
#[derive(Default)]
struct Stacks {
    operators: Vec<(usize, Operator)>,
    filters: Vec<FilterSpec>,
    /// How many of `operators` are levels of nesting: parentheses, SKIP, WHILE.
    nesting: usize,
    /// Regular expressions so far.
    regexes: Taken,
    /// A filter was read last, so AND, OR or a closing parenthesis must follow.
    complete: bool,
}

impl Stacks {
    fn push(&mut self, position: usize, token: Token<'_>) -> Result<()> {
        match token {
            Token::Call(call) => {
                self.operand_allowed(position)?;
                let filter = calls::build(&call)?;
                if let Some(regex) = filter.regex() {
                    self.regexes
                        .add(regex)
                        .map_err(|message| ParseError::new(position, message))?;
                }
                self.filters.push(filter);
                self.complete = true;
            }
            Token::Open => self.nest(position, Operator::Open)?,
            Token::Skip => self.nest(position, Operator::Skip)?,
            Token::While => self.nest(position, Operator::While)?,
            Token::And => self.binary(position, Operator::And)?,
            Token::Or => self.binary(position, Operator::Or)?,
            Token::Close => {
                self.operand_needed(position, INCORRECT)?;
                self.reduce_above(0)?;
                if self.operators.pop().is_none() {
                    return Err(ParseError::new(position, "Mismatched parenthesis"));
                }
                self.nesting -= 1;
            }
        }
        Ok(())
    }

    fn operand_allowed(&self, position: usize) -> Result<()> {
        if self.complete {
            return Err(ParseError::new(position, INCORRECT));
        }
        Ok(())
    }

    /// The operator before `position` (or, without one, `otherwise`) lacks its operand, unless a filter was
    /// read last.
    fn operand_needed(&self, position: usize, otherwise: &str) -> Result<()> {
        if self.complete {
            return Ok(());
        }
        Err(match self.operators.last() {
            Some((operator_at, operator)) if *operator != Operator::Open => {
                ParseError::new(*operator_at, operator.missing_operand())
            }
            _ => ParseError::new(position, otherwise),
        })
    }

    /// A parenthesis or a prefix operator.
    fn nest(&mut self, position: usize, operator: Operator) -> Result<()> {
        self.operand_allowed(position)?;
        if self.nesting == DEPTH_MAX {
            let message = format!("filters are nested deeper than {DEPTH_MAX} levels");
            return Err(ParseError::new(position, message));
        }
        self.nesting += 1;
        self.operators.push((position, operator));
        Ok(())
    }

    fn binary(&mut self, position: usize, operator: Operator) -> Result<()> {
        self.operand_needed(position, operator.missing_operand())?;
        self.reduce_above(operator.precedence())?;
        self.operators.push((position, operator));
        self.complete = false;
        Ok(())
    }

    /// Applies the operators on top that bind tighter than `precedence`.
    fn reduce_above(&mut self, precedence: u8) -> Result<()> {
        while let Some((position, operator)) = self.operators.last().copied()
            && operator.precedence() > precedence
        {
            let operands = self.pop_run(operator) + 1;
            // Each binary operator was pushed behind a filter and is reduced behind one, so the filters are
            // there.
            let first = self.filters.len()
                - if matches!(operator, Operator::And | Operator::Or) {
                    operands
                } else {
                    1
                };
            let mut taken = self.filters.split_off(first);
            let built = match operator {
                Operator::And => FilterSpec::list(ListOperator::MustPassAll, taken),
                Operator::Or => FilterSpec::list(ListOperator::MustPassOne, taken),
                Operator::Skip => FilterSpec::skip(taken.remove(0)),
                Operator::While => FilterSpec::while_match(taken.remove(0)),
                Operator::Open => unreachable!("nothing has a lower precedence than a parenthesis"),
            };
            self.filters
                .push(built.map_err(|error| ParseError::new(position, error.to_string()))?);
        }
        Ok(())
    }

    /// Takes the operator on top, and of AND and OR all that stand there in a row: they make up one list.
    fn pop_run(&mut self, operator: Operator) -> usize {
        if matches!(operator, Operator::Skip | Operator::While) {
            self.operators.pop();
            self.nesting -= 1;
            return 1;
        }
        let before = self.operators.len();
        while self.operators.last().is_some_and(|(_, top)| *top == operator) {
            self.operators.pop();
        }
        before - self.operators.len()
    }

    fn finish(mut self, end: usize) -> Result<FilterSpec> {
        self.operand_needed(end, INCORRECT)?;
        loop {
            self.reduce_above(0)?;
            // A parenthesis left open.
            if self.operators.pop().is_none() {
                break;
            }
        }
        self.filters.pop().ok_or_else(|| ParseError::new(end, INCORRECT))
    }
}

#[cfg(test)]
pub(in crate::filter) mod tests;
