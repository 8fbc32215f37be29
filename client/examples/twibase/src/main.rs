//! `basalt-twibase`: the example application [`basalt_twibase`] from a terminal.
//!
//! Each command is a few calls on its tables. A failure is one line on standard error and exit code
//! 1; the answer no to a question is printed, and exit code 0.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use basalt_client::{Client, Error, Result};
use basalt_twibase::{Person, Twibase, Twit, User};
use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;

/// A Twitter-like application on six tables of Basalt or HBase.
#[derive(Debug, Parser)]
#[command(name = "basalt-twibase", version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("BASALT_COMMIT"), ")"))]
struct Options {
    /// Where the server listens for Thrift 2.
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:9090",
        env = "BASALT_TARGET"
    )]
    target: String,
    /// The names of the tables begin so; it may have a namespace in front.
    #[arg(long, default_value = "twibase_")]
    prefix: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Call(Call),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write man pages.
    Man {
        /// An existing directory.
        dir: PathBuf,
    },
}

/// Commands that need a server.
#[derive(Debug, Subcommand)]
enum Call {
    /// Create the tables.
    Init {
        /// Regions of each table.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        regions: u16,
    },
    /// Drop the tables with all that is in them.
    Drop,
    /// Add a user.
    Join {
        name: String,
        /// Full name, for display.
        #[arg(long, default_value = "")]
        full_name: String,
        #[arg(long, default_value = "")]
        email: String,
    },
    /// Show a user.
    Show { name: String },
    /// Let one user follow another.
    Follow { follower: String, followed: String },
    /// End it.
    Unfollow { follower: String, followed: String },
    /// Whether one user follows another: yes or no.
    Follows { follower: String, followed: String },
    /// Whom a user follows.
    Following {
        name: String,
        #[command(flatten)]
        limit: Limit,
    },
    /// List the followers of a user.
    Followers {
        name: String,
        #[command(flatten)]
        limit: Limit,
    },
    /// Write a twit and copy it to all followers.
    Post {
        name: String,
        text: String,
        /// Make no copies: followers see it in a gathered feed only.
        #[arg(long)]
        no_copies: bool,
    },
    /// A user's newest twits.
    Twits {
        name: String,
        #[command(flatten)]
        limit: Limit,
    },
    /// The newest twits of those whom a user follows.
    Feed {
        name: String,
        #[command(flatten)]
        limit: Limit,
        /// Ask everyone who is followed, instead of reading the copies.
        #[arg(long)]
        gathered: bool,
    },
    /// The newest twits about a tag.
    Tag {
        /// Without the #.
        tag: String,
        #[command(flatten)]
        limit: Limit,
    },
}

#[derive(Debug, clap::Args)]
struct Limit {
    /// Most lines to show.
    #[arg(long, default_value_t = 20)]
    limit: usize,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let made = match &options.command {
        Command::Completions { shell } => Ok(completions(*shell)),
        Command::Man { dir } => clap_mangen::generate_to(Options::command(), dir)
            .map(|()| Vec::new())
            .map_err(|error| Error::InvalidRequest(format!("man pages in {}: {error}", dir.display()))),
        Command::Call(call) => run(&options, call).map(String::into_bytes),
    };
    let printed = made.and_then(|text| {
        let written = std::io::stdout().write_all(&text);
        written.map_err(|error| Error::InvalidRequest(format!("standard output: {error}")))
    });
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed, the message is lost.
            drop(writeln!(std::io::stderr(), "basalt-twibase: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// The file that the shell reads.
fn completions(shell: Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Options::command(), "basalt-twibase", &mut text);
    text
}

fn run(options: &Options, call: &Call) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Error::InvalidRequest(format!("the runtime cannot start: {error}")))?;
    runtime.block_on(async {
        let client = Client::connect(&options.target).await?;
        let twibase = Twibase::new(&client, &options.prefix)?;
        carry_out(&twibase, call).await
    })
}

/// Carries the call out and returns its output.
async fn carry_out(twibase: &Twibase, call: &Call) -> Result<String> {
    match call {
        Call::Init { regions } => {
            twibase.create_tables(usize::from(*regions)).await?;
            Ok("created 6 tables\n".to_owned())
        }
        Call::Drop => {
            twibase.drop_tables().await?;
            Ok("dropped the tables\n".to_owned())
        }
        Call::Join {
            name,
            full_name,
            email,
        } => {
            let user = User {
                full_name: full_name.clone(),
                email: email.clone(),
                ..User::new(name)
            };
            if twibase.join(&user).await? {
                return Ok(format!("{name} joined\n"));
            }
            Err(Error::InvalidRequest(format!("the name {name} is taken")))
        }
        Call::Show { name } => match twibase.user(name).await? {
            Some(user) => Ok(format!(
                "{}\nfull name: {}\nemail: {}\ntwits: {}\n",
                user.name, user.full_name, user.email, user.twits
            )),
            None => Err(Error::InvalidRequest(format!(
                "there is no user with the name {name}"
            ))),
        },
        Call::Follow { follower, followed } => {
            twibase.follow(follower, followed).await?;
            Ok(format!("{follower} follows {followed}\n"))
        }
        Call::Unfollow { follower, followed } => {
            twibase.unfollow(follower, followed).await?;
            Ok(format!("{follower} does not follow {followed}\n"))
        }
        Call::Follows { follower, followed } => {
            let follows = twibase.is_following(follower, followed).await?;
            Ok(if follows { "yes\n" } else { "no\n" }.to_owned())
        }
        Call::Following { name, limit } => Ok(people(&twibase.following(name, limit.limit).await?)),
        Call::Followers { name, limit } => Ok(people(&twibase.followers(name, limit.limit).await?)),
        Call::Post {
            name,
            text,
            no_copies,
        } => {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let now_ms = i64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(i64::MAX);
            let twit = twibase.publish(name, text, now_ms).await?;
            let copies = if *no_copies {
                0
            } else {
                twibase.deliver(&twit).await?
            };
            Ok(format!("twit {} of {name}, {copies} copies\n", twit.number))
        }
        Call::Twits { name, limit } => Ok(twits(&twibase.twits_of(name, limit.limit).await?)),
        Call::Feed {
            name,
            limit,
            gathered,
        } => Ok(twits(&if *gathered {
            twibase.feed_gathered(name, limit.limit).await?
        } else {
            twibase.feed(name, limit.limit).await?
        })),
        Call::Tag { tag, limit } => Ok(twits(&twibase.tagged(tag, limit.limit).await?)),
    }
}

fn people(people: &[Person]) -> String {
    lines(people.iter().map(|person| person.name.clone()))
}

fn twits(twits: &[Twit]) -> String {
    lines(twits.iter().map(|twit| {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(twit.time_ms.unsigned_abs());
        let time = humantime::format_rfc3339_seconds(time);
        format!("{time} {}: {}", twit.author, twit.text)
    }))
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.fold(String::new(), |text, line| text + &line + "\n")
}
