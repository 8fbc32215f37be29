//! The state of a shell, and what its commands share: answers, lists, and errors in HBase's words.

use std::time::Duration;

use super::backend::Backend;
use super::output::Output;
use super::program::Variables;
use super::progress::Progress;
use super::value::Value;
use super::{ShellError, ShellResult};
use basalt_client::Error;
use basalt_client::admin::Admin;
use basalt_client::native::RemoteException;

/// Reads a person's answer, a line.
pub type ReadAnswer = fn() -> std::io::Result<String>;

/// A keyboard.
pub trait Keys {
    /// The next key; `None` if none is pressed within this time.
    fn next(&mut self, within: Duration) -> std::io::Result<Option<u8>>;

    /// Lines of the screen.
    fn lines(&self) -> usize;
}

/// Opens the keyboard.
pub type OpenKeys = fn() -> std::io::Result<Box<dyn Keys>>;

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
    pub(super) interactive: bool,
    /// Whether each command is printed beside the output before it runs.
    pub echo: bool,
    /// Reads a person's answer to a question that was just printed. Without it, every question
    /// counts as confirmed.
    pub answer: Option<ReadAnswer>,
    /// Opens the keyboard for pictures that are live. Without it, they are printed once.
    pub keys: Option<OpenKeys>,
    pub(super) variables: Variables,
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
}
