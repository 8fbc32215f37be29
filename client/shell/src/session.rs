//! Runs commands: finds the function for a name, prints the lines of HBase's shell around its
//! output.

use std::time::Instant;

use basalt_idl::thrift2::TLogType;

use super::arguments::Arguments;
use super::backend::Backend;
use super::output::Output;
use super::progress::Progress;
use super::syntax::{Command, Value};
use super::to_tables::ToTables;
use super::{ShellError, ShellResult, help};
use basalt_client::Error;
use basalt_client::admin::{Admin, BackgroundWork};
use basalt_client::native::RemoteException;

/// Reads a person's answer, a line.
pub type ReadAnswer = fn() -> std::io::Result<String>;

/// A client and an output. A session keeps no state between commands.
#[derive(Debug)]
pub struct Session {
    pub(super) client: Backend,
    pub(super) admin: Admin,
    /// Where output goes.
    pub output: Output,
    /// Told of rows while a scan runs, where the rows themselves are not seen.
    pub progress: Option<Progress>,
    /// Whether a person is there: values of commands are printed as `=> value` then.
    interactive: bool,
    /// Reads a person's answer to a question that was just printed. Without it, every question
    /// counts as confirmed.
    pub answer: Option<ReadAnswer>,
}

/// The caller's next step after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Continues with the next command.
    Continue,
    /// Ends the shell, with the exit code that the command named.
    Exit(Option<u8>),
}

/// The value of a command in Ruby's form, for commands that have one.
pub(super) type Outcome = ShellResult<Option<String>>;

impl Session {
    /// A session.
    pub fn new(client: impl Into<Backend>, output: Output, interactive: bool) -> Session {
        let client = client.into();
        Session {
            admin: Admin::new(client.thrift()),
            client,
            output,
            progress: None,
            interactive,
            answer: None,
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

    /// Runs one command and prints its output.
    pub async fn run(&mut self, command: Command) -> ShellResult<Next> {
        let name = help::canonical(&command.name);
        if name == "exit" {
            return exit_code(Arguments::new(name, command.arguments)).map(Next::Exit);
        }
        let began = Instant::now();
        let subject = match command.arguments.first() {
            Some(Value::Bytes(subject)) => String::from_utf8_lossy(subject).into_owned(),
            _ => String::new(),
        };
        let arguments = Arguments::new(name, command.arguments);
        let outcome = self.dispatch(name, arguments).await;
        let outcome = outcome.map_err(|error| say_more(error, name, &subject));
        if name != "help" && !matches!(outcome, Err(ShellError::Arguments(_))) {
            let seconds = began.elapsed().as_secs_f64();
            self.output.line(&format!("Took {seconds:.4} seconds"))?;
        }
        if let Some(value) = outcome?
            && self.interactive
        {
            self.output.line(&format!("=> {value}"))?;
        }
        self.output.flush()?;
        Ok(Next::Continue)
    }

    async fn dispatch(&mut self, name: &str, arguments: Arguments) -> Outcome {
        match name {
            "create" => self.create(arguments).await,
            "alter" => self.alter(arguments).await,
            "describe" => self.describe(arguments).await,
            "list" => self.list(arguments).await,
            "exists" => self.exists(arguments).await,
            "enable" => self.enable(arguments).await,
            "disable" => self.disable(arguments).await,
            "is_enabled" => self.is_enabled(arguments).await,
            "is_disabled" => self.is_disabled(arguments).await,
            "alter_status" => self.alter_status(arguments).await,
            "clone_table_schema" => self.clone_table_schema(arguments).await,
            "drop" => self.drop_table(arguments).await,
            "enable_all" => self.change_all(arguments, ToTables::Enable).await,
            "disable_all" => self.change_all(arguments, ToTables::Disable).await,
            "drop_all" => self.change_all(arguments, ToTables::Drop).await,
            "show_filters" => self.show_filters(arguments),
            "truncate" => self.truncate(arguments, false).await,
            "truncate_preserve" => self.truncate(arguments, true).await,
            "put" => self.put(arguments).await,
            "get" => self.get(arguments).await,
            "scan" => self.scan(arguments).await,
            "count" => self.count(arguments).await,
            "delete" => self.delete(arguments).await,
            "deleteall" => self.delete_all(arguments).await,
            "incr" => self.increment(arguments).await,
            "get_counter" => self.get_counter(arguments).await,
            "append" => self.append(arguments).await,
            "list_namespace" => self.list_namespaces(arguments).await,
            "create_namespace" => self.create_namespace(arguments).await,
            "alter_namespace" => self.alter_namespace(arguments).await,
            "drop_namespace" => self.drop_namespace(arguments).await,
            "describe_namespace" => self.describe_namespace(arguments).await,
            "list_namespace_tables" => self.list_namespace_tables(arguments).await,
            "list_regions" => self.list_regions(arguments).await,
            "get_splits" => self.get_splits(arguments).await,
            "locate_region" => self.locate_region(arguments).await,
            "flush" => self.flush(arguments).await,
            "compact" => self.compact(arguments, false).await,
            "major_compact" => self.compact(arguments, true).await,
            "compaction_switch" => self.switch(arguments, BackgroundWork::COMPACTIONS).await,
            "flush_switch" => self.switch(arguments, BackgroundWork::FLUSHES).await,
            "compaction_state" => self.compaction_state(arguments).await,
            "processlist" => self.process_list(arguments).await,
            "clear_block_cache" => self.clear_block_cache(arguments).await,
            "get_slowlog_responses" => self.slow_log(arguments, TLogType::SLOW_LOG).await,
            "get_largelog_responses" => self.slow_log(arguments, TLogType::LARGE_LOG).await,
            "clear_slowlog_responses" => self.clear_slow_log(arguments).await,
            "split" => self.split(arguments).await,
            "merge_region" => self.merge_regions(arguments).await,
            "move" => self.move_region(arguments).await,
            "assign" => self.assign(arguments).await,
            "unassign" => self.unassign(arguments).await,
            "balancer" => self.balancer(arguments).await,
            "set_quota" => self.set_quota(arguments).await,
            "list_quotas" => self.list_quotas(arguments).await,
            "list_quota_table_sizes" => self.list_table_sizes(arguments).await,
            "list_snapshot_sizes" => self.list_snapshot_sizes(arguments).await,
            "snapshot" => self.snapshot(arguments).await,
            "list_snapshots" => self.list_snapshots(arguments).await,
            "list_table_snapshots" => self.list_table_snapshots(arguments).await,
            "clone_snapshot" => self.clone_snapshot(arguments).await,
            "restore_snapshot" => self.restore_snapshot(arguments).await,
            "delete_snapshot" => self.delete_snapshot(arguments).await,
            "delete_all_snapshot" => self.delete_all_snapshots(arguments).await,
            "delete_table_snapshots" => self.delete_table_snapshots(arguments).await,
            "status" => self.status(arguments).await,
            "version" => self.version(arguments).await,
            "help" => self.help(arguments),
            unknown => Err(ShellError::Arguments(help::unknown_command(unknown))),
        }
    }

    fn help(&mut self, mut arguments: Arguments) -> Outcome {
        let command = match arguments.optional_bytes("a command")? {
            Some(name) => Some(super::arguments::text(name, "a command")?),
            None => None,
        };
        arguments.end()?;
        self.output.line(&help::text(command.as_deref())?)?;
        Ok(None)
    }

    pub(super) fn print_count(&mut self, rows: usize) -> ShellResult<()> {
        Ok(self.output.line(&format!("{rows} row(s)"))?)
    }
}

/// Parses the exit code of `exit` and `exit 3`, as in Ruby.
fn exit_code(mut arguments: Arguments) -> ShellResult<Option<u8>> {
    let code = arguments.optional_integer("the exit code")?;
    arguments.end()?;
    let code = code.map(|code| {
        u8::try_from(code)
            .map_err(|_| ShellError::Arguments(format!("the exit code {code} is not in 0 to 255")))
    });
    code.transpose()
}

/// HBase's Thrift 2 says only the name when a table or namespace is missing or exists already; its
/// shell adds the rest, and so does this one. `subject` is the first argument of the command. Over
/// native RPC the exception's class decides.
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
    ShellError::Refused(match command {
        "create" => format!("Table already exists: {subject}!"),
        "create_namespace" => format!("Namespace already exists: {subject}!"),
        "drop_namespace" | "alter_namespace" | "describe_namespace" | "list_namespace_tables" => {
            format!("Unknown namespace {subject}!")
        }
        _ => format!("Unknown table {subject}!"),
    })
}

/// The text of HBase's shell for an exception of this class.
fn sentence_of(class: &str, subject: &str) -> Option<String> {
    Some(match class {
        "TableNotFoundException" => format!("Unknown table {subject}!"),
        "TableExistsException" => format!("Table already exists: {subject}!"),
        "NamespaceNotFoundException" => format!("Unknown namespace {subject}!"),
        "NamespaceExistException" => format!("Namespace already exists: {subject}!"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use basalt_client::Client;

    /// Goal: nothing is done unless the user says yes; without a user, commands are executed.
    #[tokio::test]
    async fn questions_are_asked_of_people_only() {
        let client = Client::new("127.0.0.1:1".to_owned(), basalt_client::PoolOptions::default()).unwrap();
        let mut session = Session::new(client, Output::new(Box::new(std::io::sink())), true);
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
        assert_eq!(said("get", "t", "t"), "Unknown table t!");
        assert_eq!(said("get", "default:t", "t"), "Unknown table default:t!");
        assert_eq!(said("create", "t", "t"), "Table already exists: t!");
        assert_eq!(said("drop_namespace", "n", "n"), "Unknown namespace n!");
        assert_eq!(said("get", "t", "region of t is busy"), "region of t is busy");
    }
}
