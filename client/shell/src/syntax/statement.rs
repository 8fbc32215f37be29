//! Statements, blocks and loops.

use super::cursor::Cursor;
use super::{Block, Expression, MethodCall, Parsed, Source, Statement, SyntaxError};

/// Methods whose block is the body of a loop.
const LOOPS: [&str; 8] = [
    "each",
    "map",
    "collect",
    "times",
    "upto",
    "downto",
    "step",
    "each_with_index",
];

/// Ruby's assignments with an operator.
const ASSIGNMENTS: [&str; 6] = ["+=", "-=", "*=", "/=", "||=", "<<"];

impl Cursor<'_> {
    /// Statements up to the end of a block, `}` or `end`, or of the text.
    pub(super) fn statements(&mut self, close: Option<&str>) -> Parsed<Vec<Statement>> {
        let mut statements = Vec::new();
        loop {
            self.blanks(true);
            if self.take_if(";") {
                continue;
            }
            let is_closed = match close {
                Some("end") => self.take_word("end"),
                Some(close) => self.take_if(close),
                None => false,
            };
            match (close, self.peek()) {
                _ if is_closed => return Ok(statements),
                (None, None) => return Ok(statements),
                (Some(close), None) => return Err(self.unexpected(&format!("'{close}'"))),
                _ => {}
            }
            statements.push(self.statement()?);
            self.blanks(false);
            if !self.is_at_end() {
                return Err(self.behind_statement());
            }
        }
    }

    /// Whether a statement ends here.
    fn is_at_end(&self) -> bool {
        matches!(self.peek(), None | Some('\n' | ';' | '}')) || self.peek_word() == "end"
    }

    /// The error for text behind a complete statement.
    fn behind_statement(&self) -> SyntaxError {
        if let Err(error) = self.check_no_keyword(self.at, self.peek_word()) {
            return error;
        }
        if let Some(sign @ ('=' | '?' | '&' | '|' | '<' | '>' | '!' | '@' | '$')) = self.peek() {
            return self.not_ruby(self.at, &sign.to_string());
        }
        SyntaxError {
            hint: Some("arguments are separated by commas, commands by newlines or ';'".to_owned()),
            ..self.unexpected("the end of the command")
        }
    }

    /// Passes over the prompt of a shell that was copied with the command.
    fn prompt(&mut self) {
        let line = self.rest().split('\n').next().unwrap_or_default();
        let is_prompt = |behind: &str| {
            let inside = |c: char| c.is_ascii_digit() || "():* main".contains(c);
            behind.chars().all(inside)
        };
        for program in ["hbase", "basalt"] {
            if let Some(behind) = line.strip_prefix(program)
                && let Some((inside, _)) = behind.split_once('>')
                && is_prompt(inside)
            {
                self.at += program.len() + inside.len() + 1;
                self.blanks(false);
                return;
            }
        }
    }

    fn statement(&mut self) -> Parsed<Statement> {
        self.prompt();
        self.is_value = false;
        let begin = self.at;
        let name = self.word();
        if name == "for" {
            return self.for_loop();
        }
        if name == "import" {
            return self.import(begin);
        }
        let variable = (is_name(name) && self.takes_assignment()).then(|| name.to_owned());
        if variable.is_none() {
            self.at = begin;
        }
        self.is_value = variable.is_some();
        let (source, calls) = self.source()?;
        self.is_value = false;
        let may_have_block = !matches!(source, Source::Command(..)) || !calls.is_empty();
        let before = self.at;
        let block = if may_have_block { self.block()? } else { None };
        if block.is_some() && variable.is_some() {
            return Err(self.error_at(before, "the value of a loop cannot be assigned"));
        }
        Ok(Statement {
            variable,
            source,
            calls,
            block,
        })
    }

    /// Takes the `=` of an assignment, if it comes next.
    fn takes_assignment(&mut self) -> bool {
        self.blanks(false);
        let rest = self.rest();
        let there = rest.starts_with('=') && !rest.starts_with("==") && !rest.starts_with("=>");
        if there {
            self.take();
            self.blanks(true);
        }
        there
    }

    /// `import java.util.Date` names a class that a later line would use: the last name is kept.
    fn import(&mut self, begin: usize) -> Parsed<Statement> {
        self.blanks(false);
        let line = self.rest().split(['\n', ';']).next().unwrap_or_default();
        let class = line.trim().rsplit('.').next().unwrap_or_default();
        if !class.starts_with(|first: char| first.is_ascii_uppercase()) {
            return Err(self.not_ruby(begin, "import"));
        }
        self.at += line.len();
        let class = Expression::Literal(super::Value::Constant(class.to_owned()));
        Ok(Statement {
            variable: None,
            source: Source::Command("import".to_owned(), vec![class]),
            calls: Vec::new(),
            block: None,
        })
    }

    fn source(&mut self) -> Parsed<(Source, Vec<MethodCall>)> {
        let begin = self.at;
        let name = self.word();
        if !is_name(name) {
            self.at = begin;
            return self.expression_source();
        }
        self.check_no_keyword(begin, name)?;
        if self.peek() == Some('(') {
            let arguments = self.bracketed()?;
            let calls = self.last_calls()?;
            return Ok((Source::Command(name.to_owned(), arguments), calls));
        }
        let calls = self.last_calls()?;
        let end = self.at;
        self.blanks(false);
        if let Some(sign) = ASSIGNMENTS.iter().find(|sign| self.rest().starts_with(**sign)) {
            return Err(self.not_ruby(self.at, sign));
        }
        if self.is_at_operator(self.at == end) {
            self.at = begin;
            return self.expression_source();
        }
        if !calls.is_empty() || self.is_at_end() {
            return Ok((Source::Name(name.to_owned()), calls));
        }
        let arguments = self.arguments(None)?;
        Ok((Source::Command(name.to_owned(), arguments), Vec::new()))
    }

    fn expression_source(&mut self) -> Parsed<(Source, Vec<MethodCall>)> {
        let begin = self.at;
        match self.peek_word() {
            "" if !self.is_at_words() && self.peek().is_none_or(|c| "}])|=,&*%?!<>.^~".contains(c)) => {
                Err(self.unexpected("a command"))
            }
            word if word.starts_with(|first: char| first.is_ascii_uppercase()) => {
                let value = self.expression()?;
                if let Expression::Literal(_) = value {
                    let hint = format!("commands are in lower case: {}", word.to_ascii_lowercase());
                    return Err(SyntaxError {
                        hint: Some(hint),
                        ..self.error_at(begin, format!("'{word}' is no command"))
                    });
                }
                Ok((Source::Expression(value), Vec::new()))
            }
            _ => Ok((Source::Expression(self.expression()?), Vec::new())),
        }
    }

    /// Whether an operator makes the name before it, which it may be adjacent to, a part of an
    /// expression. As in Ruby, `x -5` is a command with an argument, `x - 5` and `x-5` are
    /// differences.
    fn is_at_operator(&self, is_adjacent: bool) -> bool {
        let behind = self.rest().chars().nth(1);
        match self.peek() {
            Some('+' | '-' | '*' | '/' | '%') => is_adjacent || behind == Some(' '),
            Some('.') => behind == Some('.'),
            _ => false,
        }
    }

    /// Calls, the last of which may have arguments without parentheses: `t.put 'r', 'f:q', 'v'`.
    fn last_calls(&mut self) -> Parsed<Vec<MethodCall>> {
        let mut calls = self.calls()?;
        let end = self.at;
        self.blanks(false);
        if let Some(last) = calls.last_mut()
            && last.arguments.is_empty()
            && self.at > end
            && !self.is_at_end()
            && !self.is_at_operator(false)
            && self.is_at_argument(&last.name)
        {
            last.arguments = self.arguments(None)?;
        } else {
            self.at = end;
        }
        Ok(calls)
    }

    fn is_at_argument(&self, method: &str) -> bool {
        match self.peek() {
            Some('{') => !LOOPS.contains(&method),
            Some('%') => self.is_at_words(),
            Some(next) => {
                let is_value =
                    next.is_alphanumeric() || "'\"[(:-_\u{2018}\u{2019}\u{201c}\u{201d}".contains(next);
                is_value && self.check_no_keyword(self.at, self.peek_word()).is_ok()
            }
            None => false,
        }
    }

    fn block(&mut self) -> Parsed<Option<Block>> {
        let before = self.at;
        self.blanks(false);
        let close = if self.take_if("{") {
            "}"
        } else if self.take_word("do") {
            "end"
        } else {
            self.at = before;
            return Ok(None);
        };
        self.nested(|cursor| {
            let variables = cursor.block_variables()?;
            let body = cursor.statements(Some(close))?;
            Ok(Some(Block { variables, body }))
        })
    }

    pub(super) fn block_variables(&mut self) -> Parsed<Vec<String>> {
        self.blanks(false);
        let mut variables = Vec::new();
        if !self.take_if("|") {
            return Ok(variables);
        }
        loop {
            self.blanks(false);
            variables.push(self.variable()?);
            self.blanks(false);
            if self.take_if("|") {
                return Ok(variables);
            }
            if !self.take_if(",") {
                return Err(self.unexpected("',' or '|'"));
            }
        }
    }

    fn variable(&mut self) -> Parsed<String> {
        let begin = self.at;
        let name = self.word();
        self.check_no_keyword(begin, name)?;
        if is_name(name) {
            Ok(name.to_owned())
        } else {
            Err(self.unexpected("the name of a variable"))
        }
    }

    /// `for name in expression do text end`, behind the `for`.
    fn for_loop(&mut self) -> Parsed<Statement> {
        self.blanks(false);
        let variable = self.variable()?;
        self.blanks(false);
        if !self.take_word("in") {
            return Err(self.unexpected("'in'"));
        }
        self.blanks(false);
        let items = self.expression()?;
        self.blanks(false);
        self.take_word("do");
        let body = self.nested(|cursor| cursor.statements(Some("end")))?;
        Ok(Statement {
            variable: None,
            source: Source::Expression(items),
            calls: Vec::new(),
            block: Some(Block {
                variables: vec![variable],
                body,
            }),
        })
    }
}

/// Whether a word can be a command or a variable.
fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && !["true", "false", "nil"].contains(&word)
}
