//! Runs commands: evaluates a text, finds the method for each command, and prints the lines of
//! HBase's shell around its output.

use std::time::Instant;

use super::arguments::Arguments;
use super::program::{Command, Program, Step};
use super::session::{Next, Outcome, Session, say_more};
use super::syntax::parse;
use super::value::Value;
use super::{ShellError, ShellResult, commands, help};

impl Session {
    /// Runs the statements of a text up to the first error. The time that a command or loop took is
    /// printed beside the output.
    pub async fn execute(&mut self, text: &str) -> ShellResult<Next> {
        let statements = parse(text)?;
        let mut program = Program::new(&statements);
        let mut began = None;
        let outcome = loop {
            let step = match program.next(&mut self.variables) {
                Ok(step) => step,
                Err(error) => break Err(error),
            };
            if !matches!(step, Step::Command(_)) || !program.is_in_loop() {
                self.print_time(&mut began);
            }
            match step {
                Step::Command(command) => {
                    if command.name != "help" {
                        began.get_or_insert_with(Instant::now);
                    }
                    match self.run(command).await {
                        Ok(value) => program.answer(value),
                        Err(error) => break Err(error),
                    }
                    if let Some(exit) = self.exit.take() {
                        break Ok(exit);
                    }
                }
                Step::Value(value) if self.interactive => self.output.note(&format!("=> {value}"))?,
                Step::Value(_) => {}
                Step::End => break Ok(Next::Continue),
            }
        };
        let is_silent =
            |error: &ShellError| matches!(error, ShellError::Arguments(_)) || error.is_closed_output();
        if !outcome.as_ref().is_err_and(is_silent) {
            self.print_time(&mut began);
        }
        self.output.flush()?;
        outcome
    }

    fn print_time(&mut self, began: &mut Option<Instant>) {
        if let Some(began) = began.take() {
            let seconds = began.elapsed().as_secs_f64();
            self.output.beside(&format_args!("Took {seconds:.4} seconds"));
        }
    }

    /// Runs one command and prints its output.
    async fn run(&mut self, command: Command) -> Outcome {
        if self.echo {
            self.output.beside(&command);
        }
        let name = commands::canonical(&command.name);
        let Some(entry) = commands::find(name) else {
            return Err(match commands::absence(name) {
                Some(why) => ShellError::Refused(help::absent_command(name, why)),
                None => ShellError::Arguments(help::unknown_command(name)),
            });
        };
        if matches!(command.arguments.first(), Some(Value::Table(_))) && !commands::takes_table(name) {
            let text = format!("a table has no method '{name}'; table_help lists them");
            return Err(ShellError::Arguments(text));
        }
        let subject = match command.arguments.first() {
            Some(Value::Bytes(subject)) => String::from_utf8_lossy(subject).into_owned(),
            Some(Value::Table(name)) => name.clone(),
            _ => String::new(),
        };
        self.output.begin();
        let arguments = Arguments::new(name, command.arguments);
        let outcome = (entry.run)(self, arguments).await;
        // Results stand before the lines beside them where both go to one file.
        self.output.flush()?;
        outcome.map_err(|error| say_more(error, name, &subject))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::backend::Backend;
    use crate::output::Output;

    /// Goal: a table has the commands on tables as methods, and a name without meaning says how it
    /// gets one.
    #[tokio::test]
    async fn names_without_meaning_are_refused() {
        let mut session = Session::new(Backend::nowhere(), Output::new(Box::new(std::io::sink())), false);
        session.variables = crate::program::with_table("t", "name");
        for (text, why) in [
            ("t.frobnicate 1", "unknown command 'frobnicate'"),
            ("t.list", "a table has no method 'list'; table_help lists them"),
            ("u.scan", "u = get_table 'name' makes a variable"),
            ("x = rand(10)", "unknown command 'rand'"),
            ("t.scan", "127.0.0.1:1"),
        ] {
            let error = session.execute(text).await.unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    /// Values that arguments of commands are made of.
    const VALUES: [&str; 24] = [
        "'t'",
        "'t,,1'",
        "'f:q'",
        "'f:n:toLong'",
        "'0123456789abcdef0123456789abcdef'",
        "\"\\xff\\x00\"",
        "''",
        "-1",
        "1.5",
        "9223372036854775807",
        "true",
        "nil",
        "[]",
        "['a', [nil]]",
        "{}",
        "{LIMIT => -1, STARTROW => nil}",
        "{NAME => 'f', VERSIONS => 99999999999}",
        "{TIMERANGE => [2, 1], FILTER => 5}",
        "{SPLITS => ['b', 'a'], NUMREGIONS => 0}",
        "{TYPE => THROTTLE, USER => 'u', LIMIT => '9999999P/sec'}",
        "{METHOD => 'set', NAME => {}}",
        "1..3",
        "{INTERVAL => 0.1, SORT => 'x', CACHE => 0}",
        "'SPLIT'",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// Goal: no command panics, whatever its arguments are. Method: nothing listens at the
        /// server's address, so that each fails at its first call if not before.
        #[test]
        fn no_arguments_make_a_command_panic(
            name in proptest::sample::select(help::names().collect::<Vec<_>>()),
            values in proptest::collection::vec(proptest::sample::select(&VALUES[..]), 0..5),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let mut session = Session::new(Backend::nowhere(), Output::new(Box::new(std::io::sink())), true);
            let text = format!("{name} {}", values.join(", "));
            let _ = runtime.block_on(session.execute(&text));
        }
    }
}
