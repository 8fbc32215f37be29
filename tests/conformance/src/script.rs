//! Scripts: calls in their order, and HBase's answers.
//!
//! ```text
//! # A comment: the purpose of the script.
//! 2.put(table="tbl0", tput={row="r", columnValues=[{family="f", qualifier="q", value="v", timestamp=5}]})
//! = void
//! flush tbl0
//! $1 = 2.openScanner(table="tbl0", tscan={})
//! = $1
//! 2.get(table="tbl1", tget={row="r"})
//! ! io {message="org.apache.hadoop.hbase.TableNotFoundException: tbl1", canRetry=false}
//! ~ errors
//! 1.get(tableName="tbl0", row="", column="f:q", attributes={})
//! !! INTERNAL_ERROR "Row length is 0"
//! ~ known
//! 2.getScannerResults(table="tbl0", tscan={}, numRows=5)
//! = []
//! < = [{row="r", columnValues=[], stale=false, partial=false}]
//! ```
//!
//! A line is a step: `1.`, `2.`, `n.` and `r.` call a method of a service, `flush`, `compact`,
//! `major_compact` and `split tbl0 "row"` are operations for which HBase has no Thrift call. Behind a call
//! may stand HBase's answer: `=` a result, `!` an exception that the method declares, `!!` another one.
//! `~ rule` before a call says that Basalt's answer differs by this rule of [`super::explained`].
//! `~ known` marks an intended difference that generated scripts avoid: then `<` and Basalt's
//! answer follow.
//!
//! Names of tables begin with `tbl` and those of namespaces with `nsp`: a player replaces these letters, so
//! that one server can run a script many times.

use std::fmt::{Display, Formatter};

use basalt_calls::text::{ParseError, Parser, quoted, write_fields};
use basalt_calls::{Answer, Api, Value};
use basalt_idl::call::{MethodDescriptor, TApplicationException, TApplicationExceptionType};
use basalt_idl::schema::TypeDescriptor;

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Service of the call.
    pub api: Api,
    /// Method of the call.
    pub method: &'static MethodDescriptor,
    /// The arguments that are there.
    pub args: Vec<(&'static str, Value)>,
    /// The number by which later calls know the scanner that this one opens.
    pub opens: Option<u32>,
}

/// A step: a call, or an operation on the server.
#[derive(Clone, Debug)]
pub enum Step {
    /// A call.
    Call(Call),
    /// Memstores to store files.
    Flush(String),
    /// A minor compaction, awaited.
    Compact(String),
    /// A major compaction, awaited.
    MajorCompact(String),
    /// A split at a row, awaited.
    Split(String, Vec<u8>),
}

/// A step with its known answers.
#[derive(Clone, Debug)]
pub struct Line {
    /// The step.
    pub step: Step,
    /// HBase's answer, if there is one.
    pub answer: Option<Answer>,
    /// The name of the rule by which Basalt's answer differs, or [`KNOWN`].
    pub differs: Option<String>,
    /// Basalt's answer, if it is a known difference.
    pub ours: Option<Answer>,
}

/// Stands instead of a rule's name where a case has the answers of both servers.
pub const KNOWN: &str = "known";

impl Line {
    /// Whether the answers are known to differ here.
    pub fn is_known(&self) -> bool {
        self.differs.as_deref() == Some(KNOWN)
    }
}

/// Steps in their order.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Purpose of the script, for people.
    pub comment: String,
    /// The steps.
    pub lines: Vec<Line>,
}

impl Call {
    /// The number of the scanner that it uses.
    pub fn scanner(&self) -> Option<u32> {
        self.args.iter().find_map(|(_, value)| match value {
            Value::Scanner(number) => Some(*number),
            _ => None,
        })
    }
}

impl From<Step> for Line {
    fn from(step: Step) -> Self {
        Line {
            step,
            answer: None,
            differs: None,
            ours: None,
        }
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        if let Some(number) = self.opens {
            write!(f, "${number} = ")?;
        }
        write!(f, "{}.{}(", self.api.name(), self.method.name)?;
        write_fields(f, &self.args)?;
        f.write_str(")")
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Call(call) => call.fmt(f),
            Step::Flush(table) => write!(f, "flush {table}"),
            Step::Compact(table) => write!(f, "compact {table}"),
            Step::MajorCompact(table) => write!(f, "major_compact {table}"),
            Step::Split(table, row) => write!(f, "split {table} {}", quoted(row)),
        }
    }
}

impl Display for Script {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        for line in self.comment.lines() {
            writeln!(f, "# {line}")?;
        }
        for line in &self.lines {
            if let Some(rule) = &line.differs {
                writeln!(f, "~ {rule}")?;
            }
            writeln!(f, "{}", line.step)?;
            if let Some(answer) = &line.answer {
                writeln!(f, "{answer}")?;
            }
            if let Some(answer) = &line.ours {
                writeln!(f, "< {answer}")?;
            }
        }
        Ok(())
    }
}

/// A syntax error of a script.
#[derive(Clone, Debug, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ScriptError {
    line: usize,
    what: String,
}

impl Script {
    /// The line that opened the scanner that this step uses.
    pub fn opening(&self, step: usize) -> Option<&Line> {
        let used = match &self.lines.get(step)?.step {
            Step::Call(call) => call.scanner()?,
            _ => return None,
        };
        self.lines
            .iter()
            .find(|line| matches!(&line.step, Step::Call(call) if call.opens == Some(used)))
    }

    /// Reads a script.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        let mut script = Script::default();
        let mut differs = None;
        for (index, line) in text.lines().enumerate() {
            let failed = |what: String| ScriptError {
                line: index + 1,
                what,
            };
            if let Some(comment) = line.strip_prefix('#') {
                script.comment.push_str(comment.trim_start());
                script.comment.push('\n');
            } else if let Some(rule) = line.strip_prefix("~ ") {
                differs = Some(rule.trim().to_owned());
            } else if line.starts_with(['=', '!', '<']) {
                let last = script.lines.last_mut().and_then(|last| match &last.step {
                    Step::Call(call) => Some((call.method, &mut last.answer, &mut last.ours)),
                    _ => None,
                });
                let (method, theirs, ours) =
                    last.ok_or_else(|| failed("an answer without a call".to_owned()))?;
                let (text, answer) = match line.strip_prefix("< ") {
                    Some(text) => (text, ours),
                    None => (line, theirs),
                };
                *answer = Some(parse_answer(method, text).map_err(|error| failed(error.to_string()))?);
            } else if !line.trim().is_empty() {
                let step = parse_step(line).map_err(failed)?;
                script.lines.push(Line {
                    differs: differs.take(),
                    ..Line::from(step)
                });
            }
        }
        Ok(script)
    }
}

fn parse_step(line: &str) -> Result<Step, String> {
    match line.split_once(' ') {
        Some(("flush", table)) => return Ok(Step::Flush(table.trim().to_owned())),
        Some(("compact", table)) => return Ok(Step::Compact(table.trim().to_owned())),
        Some(("major_compact", table)) => return Ok(Step::MajorCompact(table.trim().to_owned())),
        Some(("split", rest)) => return parse_split(rest),
        _ => {}
    }
    let (opens, call) = match line.strip_prefix('$') {
        Some(opening) => {
            let (number, call) = opening.split_once(" = ").ok_or("expected $number = call")?;
            (
                Some(number.parse().map_err(|_| format!("{number} is no number"))?),
                call,
            )
        }
        None => (None, line),
    };
    let (api, call) = call.split_once('.').ok_or("expected service.method(...)")?;
    let api = Api::from_name(api).ok_or_else(|| format!("there is no service {api}"))?;
    let (name, args) = call.split_once('(').ok_or("expected method(...)")?;
    let method = api
        .method(name)
        .ok_or_else(|| format!("service {} has no method {name}", api.name()))?;
    let mut parser = Parser::new(args);
    let parsed = parser.fields(method.args, b')');
    let args = parsed
        .and_then(|args| parser.end().map(|()| args))
        .map_err(|error| format!("arguments of {name}: {error}"))?;
    Ok(Step::Call(Call {
        api,
        method,
        args,
        opens,
    }))
}

fn parse_split(text: &str) -> Result<Step, String> {
    let (table, row) = text.split_once(' ').ok_or("expected split TABLE \"ROW\"")?;
    let mut parser = Parser::new(row);
    let row = parser.quoted().map_err(|error| error.to_string())?;
    parser.end().map_err(|error| error.to_string())?;
    Ok(Step::Split(table.to_owned(), row))
}

fn parse_answer(method: &'static MethodDescriptor, line: &str) -> Result<Answer, ParseError> {
    if let Some(text) = line.strip_prefix("!!") {
        let mut parser = Parser::new(text);
        let kind = parser.value(&TypeDescriptor::I32)?;
        let message = parser.quoted()?;
        parser.end()?;
        let kind = match kind {
            Value::Int(code) => i32::try_from(code).ok(),
            _ => None,
        };
        let kind = TApplicationExceptionType(kind.unwrap_or_default());
        let message = String::from_utf8_lossy(&message).into_owned();
        return Ok(Answer::Application(TApplicationException::new(kind, message)));
    }
    if let Some(text) = line.strip_prefix('!') {
        let mut parser = Parser::new(text);
        let name = parser.word()?;
        let Some(throws) = method.throws.iter().find(|throws| throws.name == name) else {
            return Err(parser.error(format!("{} does not throw {name}", method.name)));
        };
        let value = parser.value(&TypeDescriptor::Struct(throws.exception))?;
        parser.end()?;
        return Ok(Answer::Thrown(throws.name, value));
    }
    let mut parser = Parser::new(line.trim_start_matches('='));
    let value = parser.value_or_void(&method.returns)?;
    parser.end()?;
    Ok(Answer::Success(value))
}
