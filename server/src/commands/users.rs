//! `basalt user`, `token` and `certificate`: users, tokens and certificates of a data directory.
//!
//! They change files that a running server reads again within seconds, so they work whether it runs or
//! not. The first user switches authentication on, at the server's next start.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use basalt_security::Secret;
use basalt_security::certificate::Authority;
use basalt_security::certificate::authority::{CA_CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY};
use basalt_security::password::PasswordHash;
use basalt_security::rights::{Grantee, RightsFile};
use basalt_security::token::TokenFile;
use basalt_security::users::{NewUser, ProxyRule, UserFile};

use super::command_line::{CertificateCommand, TokenCommand, UserCommand, YesNo};
use super::{Outcome, print};
use crate::config::security_dir;
use crate::security::CLUSTER_ID_FILE;

/// Longest line that is read as a password.
const LINE_BYTES_MAX: u64 = 4 << 10;

pub(super) fn user(command: UserCommand) -> Outcome {
    match command {
        UserCommand::Create {
            name,
            superuser,
            groups,
            no_password,
            dir,
        } => {
            let password = (!no_password).then(|| new_password(&name)).transpose()?;
            let users = users(&dir.data_dir)?;
            let new = NewUser {
                superuser,
                groups,
                password,
            };
            let ((), all, _) = users.update(|users| users.create_user(&name, new))?;
            if all.users().count() == 1 {
                say(
                    "This is the first user: from the server's next start on, users must prove who they are \
                     (security.authentication).",
                );
            }
            Ok(ExitCode::SUCCESS)
        }
        UserCommand::Change {
            name,
            password,
            groups,
            superuser,
            disabled,
            dir,
        } => {
            let password = password.then(|| new_password(&name)).transpose()?;
            if password.is_none() && groups.is_none() && superuser.is_none() && disabled.is_none() {
                return Err("nothing to change: give --password, --groups, --superuser or --disabled".into());
            }
            users(&dir.data_dir)?.update(|users| {
                if password.is_some() {
                    users.set_password(&name, password)?;
                }
                if let Some(groups) = groups {
                    users.set_groups(&name, groups)?;
                }
                if let Some(superuser) = superuser {
                    users.set_superuser(&name, superuser == YesNo::Yes)?;
                }
                if let Some(disabled) = disabled {
                    users.set_disabled(&name, disabled == YesNo::Yes)?;
                }
                Ok(())
            })?;
            Ok(ExitCode::SUCCESS)
        }
        UserCommand::Remove { name, dir } => {
            users(&dir.data_dir)?.update(|users| users.remove_user(&name))?;
            let rights = RightsFile::in_dir(&security_dir(&dir.data_dir));
            rights.update(|rights| {
                rights.drop_grantee(&Grantee::User(name));
                Ok(())
            })?;
            Ok(ExitCode::SUCCESS)
        }
        UserCommand::List { dir } => {
            let (users, _) = users(&dir.data_dir)?.load()?;
            let mut text = String::new();
            for (name, user) in users.users() {
                let mut marks = Vec::new();
                marks.extend(user.superuser.then_some("superuser".to_owned()));
                marks.extend(user.disabled.then_some("disabled".to_owned()));
                marks.extend((!user.has_password()).then_some("no password".to_owned()));
                marks.extend((!user.groups.is_empty()).then(|| format!("groups {}", user.groups.join(","))));
                text.push_str(&line(name, &marks.join(", ")));
            }
            print(text.as_bytes())
        }
        UserCommand::Proxy {
            name,
            users: of_users,
            groups,
            hosts,
            remove,
            dir,
        } => {
            let hosts = hosts
                .iter()
                .map(|host| host.parse())
                .collect::<Result<Vec<_>, _>>()?;
            if !remove && (hosts.is_empty() || of_users.is_empty() && groups.is_empty()) {
                return Err("a rule needs --hosts, and --users or --groups".into());
            }
            users(&dir.data_dir)?.update(|users| {
                if remove {
                    return users.remove_proxy(&name);
                }
                users.set_proxy(ProxyRule {
                    proxy: name,
                    users: of_users,
                    groups,
                    hosts,
                })
            })?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

pub(super) fn token(command: TokenCommand) -> Outcome {
    match command {
        TokenCommand::Create {
            name,
            lifetime,
            text,
            dir,
        } => {
            let users = users(&dir.data_dir)?;
            let cluster_id = (!text).then(|| cluster_id(&dir.data_dir)).transpose()?;
            let now = SystemTime::now();
            let ((number, token), ..) = users.update(|users| users.issue_token(&name, lifetime, now))?;
            let until = humantime::format_rfc3339_seconds(now + lifetime);
            say(&format!(
                "Token {number} of {name}, valid until {until}. Whoever has it is {name}."
            ));
            match cluster_id {
                Some(cluster_id) => print(&TokenFile::of(&token, &cluster_id).to_bytes()),
                None => print(format!("{}\n", token.to_text().as_str()).as_bytes()),
            }
        }
        TokenCommand::Revoke { number, user, dir } => {
            users(&dir.data_dir)?.update(|users| match (number, &user) {
                (Some(number), _) => users.revoke_token(number),
                (None, Some(user)) => users.revoke_tokens_of(user).map(drop),
                (None, None) => Ok(()),
            })?;
            Ok(ExitCode::SUCCESS)
        }
        TokenCommand::List { dir } => {
            let (users, _) = users(&dir.data_dir)?.load()?;
            let now = SystemTime::now();
            let mut text = String::new();
            for (number, record) in users.tokens() {
                let expires = UNIX_EPOCH + Duration::from_millis(record.expires_ms);
                let state = match (record.revoked, expires <= now) {
                    (true, _) => ", revoked",
                    (false, true) => ", expired",
                    (false, false) => "",
                };
                let until = humantime::format_rfc3339_seconds(expires);
                text.push_str(&line(
                    &number.to_string(),
                    &format!("{} until {until}{state}", record.user),
                ));
            }
            print(text.as_bytes())
        }
    }
}

pub(super) fn certificate(command: CertificateCommand) -> Outcome {
    let now = SystemTime::now();
    match command {
        CertificateCommand::Create { name, lifetime, dir } => {
            let directory = directory(&dir.data_dir)?;
            let authority = if Authority::exists(&directory) {
                Authority::open(&directory)?
            } else {
                Authority::create(&directory, &name[0], now)?
            };
            authority.server(&name, lifetime, now)?;
            for (file, what) in [
                (CA_CERTIFICATE, "the authority: clients trust it"),
                (SERVER_CERTIFICATE, "the server's certificate"),
                (SERVER_KEY, "its key"),
            ] {
                say(&format!("{}  {what}", directory.join(file).display()));
            }
            Ok(ExitCode::SUCCESS)
        }
        CertificateCommand::Client {
            name,
            lifetime,
            to,
            dir,
        } => {
            let authority = Authority::open(&security_dir(&dir.data_dir))?;
            let path = authority.client(&name, lifetime, now, &to)?;
            print(format!("{}\n", path.display()).as_bytes())
        }
    }
}

/// The directory of users and certificates; creates both it and the data directory.
fn directory(data_dir: &Path) -> Result<PathBuf, std::io::Error> {
    std::fs::create_dir_all(data_dir)?;
    Ok(security_dir(data_dir))
}

fn users(data_dir: &Path) -> Result<UserFile, std::io::Error> {
    Ok(UserFile::in_dir(&directory(data_dir)?))
}

/// The id of the database, to which a token belongs.
fn cluster_id(data_dir: &Path) -> Result<String, String> {
    let path = security_dir(data_dir).join(CLUSTER_ID_FILE);
    let read = std::fs::read_to_string(&path);
    read.map(|text| text.trim().to_owned()).map_err(|error| {
        format!(
            "{}: {error}. A token belongs to a database: start the server once after its first user was created",
            path.display()
        )
    })
}

/// Asks for a new password twice, or reads it as a line of standard input.
fn new_password(name: &str) -> Result<PasswordHash, Box<dyn std::error::Error + Send + Sync>> {
    let secret = if std::io::stdin().is_terminal() {
        let [first, second] =
            ["Password", "Again"].map(|prompt| rpassword::prompt_password(format!("{prompt} of {name}: ")));
        let (first, second) = (Secret::new(first?), Secret::new(second?));
        if !first.matches(second.expose()) {
            return Err("the two passwords differ".into());
        }
        first
    } else {
        let mut line = Vec::new();
        std::io::Read::take(std::io::stdin().lock(), LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        while line.last().is_some_and(|last| matches!(last, b'\n' | b'\r')) {
            line.pop();
        }
        Secret::new(line)
    };
    Ok(PasswordHash::new(&secret)?)
}

fn line(name: &str, rest: &str) -> String {
    if rest.is_empty() {
        format!("{name}\n")
    } else {
        format!("{name}  {rest}\n")
    }
}

/// Says something to people: standard output is for results.
fn say(text: &str) {
    // A closed standard error cannot be reported anywhere else.
    let _ = writeln!(std::io::stderr(), "{text}");
}
