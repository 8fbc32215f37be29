//! Text to statements: the part of Ruby that people use in HBase's shell.
//!
//! ```text
//! text       = [ statement ] { ( newline | ";" ) [ statement ] }
//! statement  = [ name "=" ] source { call } [ block ] | "for" name "in" expression [ "do" ] text "end"
//! source     = name arguments | name | expression
//! arguments  = "(" [ args ] ")" | args
//! args       = arg { "," arg }            pairs without braces are one hash, the last argument
//! arg        = expression [ "=>" expression ] | name ":" expression
//! block      = "{" [ "|" names "|" ] text "}" | "do" [ "|" names "|" ] text "end"
//! expression = sum [ ( ".." | "..." ) sum ]
//! sum        = product { ( "+" | "-" ) product }
//! product    = term { ( "*" | "/" | "%" ) term }
//! term       = value { call }
//! call       = "." name [ "(" [ args ] ")" ] | "[" expression "]"      the last one of a statement also: "." name args
//! value      = string | symbol | number | true | false | nil | CONSTANT | name | "[" ... "]" | "{" pairs "}"
//!            | "(" expression ")" | "--" name | "%w(" words ")"
//! mapped     = value "." ( "map" | "collect" ) "{" [ "|" names "|" ] expression "}"     a term, where its value is used
//! ```
//!
//! A newline does not end a statement inside brackets, after a comma, an operator and `=>`. `#`
//! starts a comment, and the prompt of a shell in front of a statement is skipped. Strings are
//! bytes: in double quotes with Ruby's escapes (`\n`, `\x00`, `\0`, `\u00e9`, ...) and
//! `#{expression}`, in single quotes only `\\` and `\'`. Typographic quotes count as plain ones.
//! Constants stand for their names.
//!
//! All else of Ruby is refused by name. [`program`](super::program) runs statements.

mod cursor;
mod expression;
mod literal;
mod statement;

use std::fmt;

pub use super::value::Value;
use cursor::Cursor;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The variable that gets the value.
    pub variable: Option<String>,
    /// The first value.
    pub source: Source,
    /// Methods, each called on the value before.
    pub calls: Vec<MethodCall>,
    /// The block that runs for each item of the value.
    pub block: Option<Block>,
}

/// Where the value of a statement comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A command with its arguments.
    Command(String, Vec<Expression>),
    /// A variable, or a command without arguments.
    Name(String),
    /// An expression without commands.
    Expression(Expression),
}

/// A method with its arguments. `[]` is the method of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodCall {
    /// The method.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<Expression>,
}

/// Statements that run for each item, which the variables get.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// None, one, or several for the elements of an item.
    pub variables: Vec<String>,
    /// The statements.
    pub body: Vec<Statement>,
}

/// Text with a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A value.
    Literal(Value),
    /// A variable.
    Variable(String),
    /// A string with `#{expression}` in it: its parts.
    Text(Vec<Expression>),
    /// `[...]`
    Array(Vec<Expression>),
    /// `{...}`
    Hash(Vec<(Vec<u8>, Expression)>),
    /// From the first up to the second, which is excluded if the third is true.
    Range(Box<(Expression, Expression, bool)>),
    /// A value with operators and values, applied from left to right.
    Operations(Box<Expression>, Vec<(Operator, Expression)>),
    /// Methods, each called on the value before.
    Calls(Box<Expression>, Vec<MethodCall>),
    /// `value.map { |names| expression }`: the expression for each item, which the names get.
    Map(Box<Expression>, Vec<String>, Box<Expression>),
}

/// An arithmetic operator; [`Operator::Add`] also joins strings, and [`Operator::Modulo`] formats
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
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

impl SyntaxError {
    /// Adds the way to run all of Ruby: text that this shell cannot read may be right there.
    fn with_remedy(mut self) -> Self {
        self.hint = Some(match self.hint.take() {
            Some(hint) if hint.contains(NOT_RUBY) => hint,
            Some(hint) => format!("{hint}; {NOT_RUBY}"),
            None => NOT_RUBY.to_owned(),
        });
        self
    }
}

type Parsed<T> = Result<T, SyntaxError>;

/// The remedy for all of Ruby that this shell does not run.
pub(super) const NOT_RUBY: &str = "this shell is not Ruby: it runs commands, variables and simple loops; HBase's own shell is \
                                   Ruby and works with this server unmodified";

/// The statements in a text. Every error says that this shell is not Ruby, and which one is.
pub fn parse(text: &str) -> Parsed<Vec<Statement>> {
    let statements = Cursor::new(text).statements(None);
    statements.map_err(SyntaxError::with_remedy)
}

#[cfg(test)]
mod tests;
