//! Commands of the shell itself: help, `puts`, `import` and `exit`.

use super::arguments::{Arguments, text};
use super::program::is_known_class;
use super::session::{Next, Outcome, Session};
use super::syntax::NOT_RUBY;
use super::value::Value;
use super::{ShellError, help};

/// The output of `table_help`.
const TABLE_HELP: &str = "\
A table in a variable has the commands on a table as methods; the table is their first argument:

  t = create 't', 'f'
  t = get_table 't'
  t.put 'r', 'f:q', 'v'
  t.get 'r'
  t.scan LIMIT => 10
  t.count
  t.describe
  t.flush
  t.disable
  t.drop

Loops have variables, in which \"row#{i}\" inserts a value:

  10.times { |i| t.put \"row#{i}\", 'f:q', \"v#{i}\" }
  for i in 'a'..'z' do t.put \"row-#{i}\", 'f:q', i end
  tables = list 'test.*'
  tables.each { |name| disable name; drop name }";

impl Session {
    pub(super) fn help(&mut self, mut arguments: Arguments) -> Outcome {
        let topic = arguments.optional_text("a command or group")?;
        arguments.end()?;
        self.output.line(&help::text(topic.as_deref())?)?;
        Ok(None)
    }

    pub(super) fn table_help(&mut self, mut arguments: Arguments) -> Outcome {
        arguments.end()?;
        self.output.line(TABLE_HELP)?;
        Ok(None)
    }

    pub(super) fn exit(&mut self, mut arguments: Arguments) -> Outcome {
        let code = arguments.optional_integer("the exit code")?;
        arguments.end()?;
        let code = code.map(|code| {
            u8::try_from(code)
                .map_err(|_| ShellError::Arguments(format!("the exit code {code} is not in 0 to 255")))
        });
        self.exit = Some(Next::Exit(code.transpose()?));
        Ok(None)
    }

    pub(super) fn puts(&mut self, mut arguments: Arguments) -> Outcome {
        while let Some(value) = arguments.take() {
            let line = match value {
                Value::Bytes(bytes) => text(bytes, "the text")?,
                other => other.to_string(),
            };
            self.output.line(&line)?;
        }
        Ok(None)
    }

    /// Checks that the shell has a class, which needs no import.
    pub(super) fn import(mut arguments: Arguments) -> Outcome {
        let class = arguments.text("a class")?;
        arguments.end()?;
        if is_known_class(&class) {
            return Ok(None);
        }
        Err(ShellError::Refused(format!(
            "{class} would be a Java class, which this shell has not; {NOT_RUBY}"
        )))
    }
}
