//! How a command reaches a server that has users.

use std::path::PathBuf;

use clap::Args;

/// Login and TLS of a command.
#[derive(Clone, Debug, Args)]
pub(crate) struct Login {
    /// Log in as this user. The password is in BASALT_PASSWORD, or is asked for.
    #[arg(long, value_name = "NAME", conflicts_with = "token")]
    pub(crate) user: Option<String>,
    /// Log in with the token in this file, from `basalt token create`.
    #[arg(long, value_name = "FILE")]
    pub(crate) token: Option<PathBuf>,
    /// Use TLS, and trust this authority: a PEM file.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
}
