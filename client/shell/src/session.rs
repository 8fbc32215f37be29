//! Runs commands: evaluates a text, finds the method for each command, and prints the lines of
//! HBase's shell around its output.

use std::time::Instant;

use super::arguments::Arguments;
use super::backend::Backend;
use super::commands;
use super::output::Output;
use super::program::{Command, Program, Step, Variables};
use super::progress::Progress;
use super::syntax::{Value, parse};
use super::top::OpenKeys;
use super::{ShellError, ShellResult, help};
use basalt_client::Error;
use basalt_client::admin::Admin;
use basalt_client::native::RemoteException;

/// Reads a person's answer, a line.
pub type ReadAnswer = fn() -> std::io::Result<String>;

/// A client, an output, and the variables that commands were assigned to.
#[derive(Debug)]
pub struct Session {
    pub(super) client: Backend,
    pub(super) admin: Admin,
    /// Where output goes.
    pub output: Output,
    /// Told of rows while a scan runs, where the rows themselves are not seen.
    pub progress: Option<Progress>,
    /// Whether a person is there: values of statements are printed as `=> value` then.
    interactive: bool,
    /// Whether each command is printed beside the output before it runs.
    pub echo: bool,
    /// Reads a person's answer to a question that was just printed. Without it, every question
    /// counts as confirmed.
    pub answer: Option<ReadAnswer>,
    /// Opens the keyboard for pictures that are live. Without it, they are printed once.
    pub keys: Option<OpenKeys>,
    variables: Variables,
    /// The end of the shell, once `exit` has run.
    pub(super) exit: Option<Next>,
    /// Whether the server is Basalt, once it was asked.
    pub(super) is_basalt: Option<bool>,
}

/// The caller's next step after commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Continues with the next command.
    Continue,
    /// Ends the shell, with the exit code that the command named.
    Exit(Option<u8>),
}

/// The value of a command, for commands that have one.
pub(super) type Outcome = ShellResult<Option<Value>>;

impl Session {
    /// A session.
    pub fn new(client: Backend, output: Output, interactive: bool) -> Session {
        Session {
            admin: Admin::new(client.thrift()),
            client,
            output,
            progress: None,
            interactive,
            echo: false,
            answer: None,
            keys: None,
            variables: Variables::default(),
            exit: None,
            is_basalt: None,
        }
    }

    /// Asks a question; any answer that has a y means yes, as in HBase's shell.
    pub(super) fn is_agreed(&mut self, question: &str) -> ShellResult<bool> {
        let Some(answer) = self.answer else {
            return Ok(true);
        };
        self.output.line(question)?;
        self.output.flush()?;
        let answer = answer().map_err(|source| match source.kind() {
            std::io::ErrorKind::Interrupted => ShellError::Interrupted,
            _ => ShellError::Io {
                what: "cannot read the answer".to_owned(),
                source,
            },
        })?;
        Ok(answer.to_ascii_lowercase().contains('y'))
    }

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

    /// Prints the only result of a command, in words and as a value.
    pub(super) fn print_answer(&mut self, text: &str, value: Value) -> Outcome {
        self.output.answer(text, &value)?;
        Ok(Some(value))
    }

    /// Prints names below a header, and returns them.
    pub(super) fn print_names<T: AsRef<str>>(&mut self, header: &'static str, names: &[T]) -> Outcome {
        self.output.header(&[header])?;
        for name in names {
            self.output.texts(&[header], &[name.as_ref()])?;
        }
        self.print_count(names.len())?;
        Ok(Some(names.iter().map(AsRef::as_ref).collect()))
    }

    pub(super) fn print_count(&mut self, rows: usize) -> ShellResult<()> {
        Ok(self.output.note(&format!("{rows} row(s)"))?)
    }
}

/// HBase's Thrift 2 says only the name when a table or namespace is missing or exists already; its
/// shell adds the rest, and so does this one, with a remedy. `subject` is the first argument of the
/// command. Over native RPC the exception's class decides.
pub(super) fn say_more(error: ShellError, command: &str, subject: &str) -> ShellError {
    let message = match &error {
        ShellError::Client(Error::Server { message, .. }) => message,
        ShellError::Client(other) if !subject.is_empty() => {
            let class = other.remote().map(RemoteException::class_name);
            let sentence = class.and_then(|class| sentence_of(class, subject));
            return sentence.map_or(error, ShellError::Refused);
        }
        _ => return error,
    };
    let plain = |name: &str| name.strip_prefix("default:").unwrap_or(name).to_owned();
    if subject.is_empty() || plain(message) != plain(subject) {
        return error;
    }
    let class = match command {
        "create" => "TableExistsException",
        "create_namespace" => "NamespaceExistException",
        "drop_namespace" | "alter_namespace" | "describe_namespace" | "list_namespace_tables" => {
            "NamespaceNotFoundException"
        }
        _ => "TableNotFoundException",
    };
    sentence_of(class, subject).map_or(error, ShellError::Refused)
}

/// The text of HBase's shell for an exception of this class, and a remedy.
fn sentence_of(class: &str, subject: &str) -> Option<String> {
    Some(match class {
        "TableNotFoundException" => unknown_table(subject),
        "TableExistsException" => {
            format!("Table already exists: {subject}! describe shows it, disable and drop remove it")
        }
        "NamespaceNotFoundException" => format!("Unknown namespace {subject}! list_namespace shows all"),
        "NamespaceExistException" => {
            format!("Namespace already exists: {subject}! describe_namespace shows it")
        }
        _ => return None,
    })
}

/// The error for a table that does not exist.
pub(super) fn unknown_table(name: &str) -> String {
    format!("Unknown table {name}! list shows all")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Goal: nothing is done unless the user says yes; without a user, commands are executed.
    #[tokio::test]
    async fn questions_are_asked_of_people_only() {
        let mut session = Session::new(Backend::nowhere(), Output::new(Box::new(std::io::sink())), true);
        assert!(session.is_agreed("Sure?").unwrap());
        let answers: [(ReadAnswer, bool); 4] = [
            (|| Ok("y\n".into()), true),
            (|| Ok("YES\n".into()), true),
            (|| Ok("n\n".into()), false),
            (|| Ok(String::new()), false),
        ];
        for (answer, agreed) in answers {
            session.answer = Some(answer);
            assert_eq!(session.is_agreed("Sure?").unwrap(), agreed);
        }
        session.answer = Some(|| Err(std::io::ErrorKind::UnexpectedEof.into()));
        assert!(session.is_agreed("Sure?").is_err());
    }

    #[test]
    fn a_bare_name_becomes_a_sentence() {
        let said = |command, subject, message: &str| {
            let error = Error::Server {
                method: "get",
                message: message.to_owned(),
                can_retry: false,
            };
            say_more(error.into(), command, subject).to_string()
        };
        assert_eq!(said("get", "t", "t"), "Unknown table t! list shows all");
        assert_eq!(
            said("get", "default:t", "t"),
            "Unknown table default:t! list shows all"
        );
        assert!(said("create", "t", "t").starts_with("Table already exists: t! "));
        assert!(said("drop_namespace", "n", "n").starts_with("Unknown namespace n! "));
        assert_eq!(said("get", "t", "region of t is busy"), "region of t is busy");
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
