//! Arguments of the commands about standbys.

use clap::Subcommand;

use super::Login;

#[derive(Debug, Subcommand)]
pub(crate) enum StandbyCommand {
    /// Print what a running server is, and how far its standbys are.
    Status {
        /// Address of its HTTP port [default: that of the settings].
        #[arg(long, value_name = "ADDR")]
        http: Option<String>,
        #[command(flatten)]
        login: Login,
    },
    /// Keep no more log for a standby that does not come back.
    Remove {
        /// The standby.
        name: String,
        /// Address of the primary's HTTP port [default: that of the settings].
        #[arg(long, value_name = "ADDR")]
        http: Option<String>,
        #[command(flatten)]
        login: Login,
    },
}
