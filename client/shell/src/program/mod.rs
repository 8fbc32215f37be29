//! Runs statements: hands out one command after the other, with its arguments evaluated.
//!
//! 1. [`Program::next`] evaluates up to the next command and returns it.
//! 2. The caller runs the command and gives its value to [`Program::answer`].
//! 3. The next call goes on with that value: it is assigned, looped over, or shown.
//!
//! Nothing here does I/O. A text has at most [`ROUNDS_MAX`] rounds of its loops, so every program
//! ends.

mod checks;
mod evaluate;
mod format;
mod methods;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::slice::Iter;

use super::syntax::{Block, MethodCall, Source, Statement, Value};
use super::value::separated;
use super::{ShellError, ShellResult};
use evaluate::{evaluate, evaluate_all, of_package};
pub(super) use methods::is_known_class;

/// Maximum number of rounds of all loops of a text.
pub const ROUNDS_MAX: usize = 100_000;

/// A command and its arguments. [`Display`] prints it as it could be typed.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// The command.
    pub name: String,
    /// Arguments of the command; pairs without braces are a hash at the end.
    pub arguments: Vec<Value>,
}

impl Display for Command {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if !self.arguments.is_empty() {
            f.write_str(" ")?;
        }
        separated(f, self.arguments.iter(), |value, f| match value {
            Value::Table(name) => Value::text(name).fmt(f),
            value => value.fmt(f),
        })
    }
}

/// The next step of a program's caller.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Run this command.
    Command(Command),
    /// Show the value of a statement that is not the body of a loop.
    Value(Value),
    /// Nothing is left.
    End,
}

/// The variables of a session.
#[derive(Clone, Debug, Default)]
pub struct Variables(BTreeMap<String, Value>);

impl Variables {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }
}

/// Statements that run.
#[derive(Debug)]
pub struct Program<'s> {
    /// The statements and loops that are not over, the innermost last.
    frames: Vec<Frame<'s>>,
    /// The statement whose command runs, and the number of its methods that were called.
    running: Option<(&'s Statement, usize)>,
    /// Value of the command that ran last.
    answer: Value,
    rounds: usize,
}

#[derive(Debug)]
enum Frame<'s> {
    Body(Iter<'s, Statement>),
    Loop(&'s Block, Items),
}

/// The items of a loop that are left.
#[derive(Debug)]
enum Items {
    Range(std::ops::RangeInclusive<i64>),
    Array(std::vec::IntoIter<Value>),
}

impl Items {
    fn next(&mut self) -> Option<Value> {
        match self {
            Items::Range(range) => range.next().map(Value::Integer),
            Items::Array(values) => values.next(),
        }
    }
}

impl<'s> Program<'s> {
    /// A program that has not begun.
    pub fn new(statements: &'s [Statement]) -> Program<'s> {
        Program {
            frames: vec![Frame::Body(statements.iter())],
            running: None,
            answer: Value::Nil,
            rounds: 0,
        }
    }

    /// Whether the command that was returned last is the body of a loop.
    pub fn is_in_loop(&self) -> bool {
        self.frames.len() > 1
    }

    /// Takes the value of the command that was returned last.
    pub fn answer(&mut self, value: Option<Value>) {
        self.answer = value.unwrap_or(Value::Nil);
    }

    /// Goes on to the next command or value.
    pub fn next(&mut self, variables: &mut Variables) -> ShellResult<Step> {
        if let Some((statement, called)) = self.running.take() {
            let value = std::mem::replace(&mut self.answer, Value::Nil);
            if let Some(step) = self.resume(statement, called, value, variables)? {
                return Ok(step);
            }
        }
        while let Some(frame) = self.frames.last_mut() {
            match frame {
                Frame::Body(rest) => match rest.next() {
                    None => drop(self.frames.pop()),
                    Some(statement) => {
                        if let Some(step) = self.begin(statement, variables)? {
                            return Ok(step);
                        }
                    }
                },
                Frame::Loop(block, items) => match items.next() {
                    None => drop(self.frames.pop()),
                    Some(item) => {
                        let block = *block;
                        self.rounds += 1;
                        if self.rounds > ROUNDS_MAX {
                            return Err(too_many_rounds());
                        }
                        assign(variables, &block.variables, item);
                        self.frames.push(Frame::Body(block.body.iter()));
                    }
                },
            }
        }
        Ok(Step::End)
    }

    /// Begins a statement; `None` if it is over and has nothing to show.
    fn begin(&mut self, statement: &'s Statement, variables: &mut Variables) -> ShellResult<Option<Step>> {
        let (name, arguments) = match &statement.source {
            Source::Command(name, arguments) => (name, evaluate_all(arguments, variables)?),
            Source::Name(name) => match variables.get(name) {
                Some(value) => {
                    let value = value.clone();
                    return self.resume(statement, 0, value, variables);
                }
                None if !statement.calls.is_empty() && methods::is_package(name) => {
                    let value = of_package(name, &statement.calls, variables)?;
                    return self.resume(statement, statement.calls.len(), value, variables);
                }
                None => (name, Vec::new()),
            },
            Source::Expression(expression) => {
                let value = evaluate(expression, variables)?;
                return self.resume(statement, 0, value, variables);
            }
        };
        self.running = Some((statement, 0));
        let name = name.clone();
        Ok(Some(Step::Command(Command { name, arguments })))
    }

    /// Goes on with a statement whose source and first calls have this value.
    fn resume(
        &mut self,
        statement: &'s Statement,
        mut called: usize,
        mut value: Value,
        variables: &mut Variables,
    ) -> ShellResult<Option<Step>> {
        while let Some(call) = statement.calls.get(called) {
            called += 1;
            let arguments = evaluate_all(&call.arguments, variables)?;
            if let Value::Table(table) = value {
                if call.name == "name" {
                    value = Value::text(table);
                    continue;
                }
                self.running = Some((statement, called));
                let command = table_command(table, call, arguments);
                return Ok(Some(Step::Command(command)));
            }
            value = methods::call(value, &call.name, &arguments)?;
        }
        if let Some(block) = &statement.block {
            let items = items(value)?;
            self.frames.push(Frame::Loop(block, items));
            return Ok(None);
        }
        if let Some(variable) = &statement.variable {
            variables.set(variable, value.clone());
        }
        let is_shown = value != Value::Nil && !self.is_in_loop();
        Ok(is_shown.then_some(Step::Value(value)))
    }
}

fn too_many_rounds() -> ShellError {
    ShellError::Arguments(format!(
        "loops have at most {ROUNDS_MAX} rounds in this shell; ImportTsv or a client loads more, and faster"
    ))
}

/// The items of a value that is looped over.
fn items(value: Value) -> ShellResult<Items> {
    match value {
        Value::Range(first, last) if last.saturating_sub(first) >= ROUNDS_MAX as i64 => {
            Err(too_many_rounds())
        }
        Value::Range(first, last) => Ok(Items::Range(first..=last)),
        Value::Array(values) => Ok(Items::Array(values.into_iter())),
        other => Err(ShellError::Arguments(format!(
            "a loop goes over a range or an array, not over {}: 10.times {{ |i| ... }}",
            other.kind()
        ))),
    }
}

/// Gives an item to the variables of a block; to several, its elements.
fn assign(variables: &mut Variables, names: &[String], item: Value) {
    match (names, item) {
        ([name], item) => variables.set(name, item),
        (names, Value::Array(values)) => {
            let values = values.into_iter().chain(std::iter::repeat(Value::Nil));
            for (name, value) in names.iter().zip(values) {
                variables.set(name, value);
            }
        }
        (names, item) => {
            if let Some(name) = names.first() {
                variables.set(name, item);
            }
        }
    }
}

/// The command behind a method of a table: `t.put 'r', ...` is `put 't', 'r', ...`.
fn table_command(table: String, call: &MethodCall, mut arguments: Vec<Value>) -> Command {
    let mut name = call.name.clone();
    if name == "help" {
        name.insert_str(0, "table_");
    } else {
        arguments.insert(0, Value::Table(table));
    }
    Command { name, arguments }
}

/// A variable with a table, for tests.
#[cfg(test)]
pub(super) fn with_table(variable: &str, table: &str) -> Variables {
    let mut variables = Variables::default();
    variables.set(variable, Value::Table(table.to_owned()));
    variables
}

/// The only command of a text, for tests.
#[cfg(test)]
pub(super) fn command(text: &str) -> Command {
    let statements = super::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    match Program::new(&statements).next(&mut Variables::default()) {
        Ok(Step::Command(command)) => command,
        other => panic!("{text}: {other:?}"),
    }
}

#[cfg(test)]
mod tests;
