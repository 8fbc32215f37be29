//! Options of `basalt move` and `basalt replication`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::login::Login;
use super::rate::rate;

/// A table that is to be moved to another cluster.
#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "options of a command line")]
pub(crate) struct Move {
    /// The table.
    pub(crate) table: String,
    /// The other cluster: zk1,zk2:2181:/hbase, of a Basalt host:9090:/hbase, or hbase+rpc://host:port. Needed
    /// when the move begins.
    #[arg(long, value_name = "CLUSTER")]
    pub(crate) to: Option<String>,
    /// Address of the running server's main port [default: that of the settings].
    #[arg(long, value_name = "ADDR")]
    pub(crate) from: Option<String>,
    /// Address of the running server's HTTP port [default: that of the settings].
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<String>,
    /// Stop after this step.
    #[arg(long, value_name = "STEP", conflicts_with_all = ["switch", "undo", "finish"])]
    pub(crate) until: Option<MoveStep>,
    /// Do what is left, and the switch: the table becomes read only here, and clients go to the other
    /// cluster.
    #[arg(long, conflicts_with_all = ["undo", "finish"])]
    pub(crate) switch: bool,
    /// Take everything back. After the switch: let the clients come back here.
    #[arg(long, conflicts_with = "finish")]
    pub(crate) undo: bool,
    /// Days after the switch: remove the peers of the move, and the scopes that it has set.
    #[arg(long)]
    pub(crate) finish: bool,
    /// File with the state of the move [default: basalt-move-TABLE.json].
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Key by which the other cluster reaches this server [default: HOST:PORT:/hbase with the address that
    /// this server gives to clients].
    #[arg(long, value_name = "CLUSTER", conflicts_with = "no_back_peer")]
    pub(crate) back_peer: Option<String>,
    /// Make no peer from the other cluster back to this server. After the switch there is no way back then.
    #[arg(long)]
    pub(crate) no_back_peer: bool,
    /// Most bytes per second of the first copy: 50MB.
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    pub(crate) max_rate: Option<u64>,
    /// Regions that are copied or compared at a time, 1 to 16.
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) parallel: u8,
    /// Longest wait until the other cluster has what was written meanwhile.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = humantime::parse_duration)]
    pub(crate) catch_up_max: Duration,
    /// Longest time of the switch. When it is over, the table is writable again, and nothing has happened.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = humantime::parse_duration)]
    pub(crate) read_only_max: Duration,
    #[command(flatten)]
    pub(crate) login: Login,
}

/// The steps before the switch, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum MoveStep {
    /// Both clusters answer, and the table can move.
    Check,
    /// Families with scope 1, and a disabled peer.
    Peer,
    /// The table at the other cluster.
    Table,
    /// The first copy.
    Copy,
    /// The peer is enabled, and catches up.
    CatchUp,
    /// Both tables are compared.
    Compare,
    /// The peer back.
    BackPeer,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReplicationCommand {
    /// Wait until a peer has everything that was written before; exit 0 only then.
    Wait {
        /// The peer's id.
        peer: String,
        /// Address of the running server's HTTP port [default: that of the settings].
        #[arg(long, value_name = "ADDR")]
        http: Option<String>,
        /// Longest wait [default: none].
        #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
        limit: Option<Duration>,
        #[command(flatten)]
        login: Login,
    },
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        wanted: Move,
    }

    fn parse(words: &str) -> Result<Move, String> {
        let parsed = Program::try_parse_from(["move"].into_iter().chain(words.split_whitespace()));
        parsed
            .map(|program| program.wanted)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn options_that_exclude_each_other_are_refused() {
        for (words, named) in [
            ("", "<TABLE>"),
            ("t --until switch", "back-peer"),
            ("t --switch --undo", "--undo"),
            ("t --switch --finish", "--finish"),
            ("t --undo --finish", "--finish"),
            ("t --until copy --switch", "--switch"),
            ("t --back-peer h:1:/hbase --no-back-peer", "--no-back-peer"),
            ("t --parallel 0", "1..=16"),
            ("t --max-rate fast", "\"fast\""),
            ("t --read-only-max soon", "soon"),
            ("t --user ada --token f", "--token"),
        ] {
            let error = parse(words).unwrap_err();
            assert!(error.contains(named), "{words}: {error}");
        }
    }

    #[test]
    fn steps_and_times_are_read() {
        let wanted = parse("t --to z:1:/hbase --until catch-up --max-rate 50MB --read-only-max 5s").unwrap();
        assert_eq!(
            (wanted.until, wanted.max_rate),
            (Some(MoveStep::CatchUp), Some(50_000_000))
        );
        assert_eq!(wanted.read_only_max, Duration::from_secs(5));
        assert_eq!(
            (wanted.catch_up_max, wanted.parallel),
            (Duration::from_hours(1), 4)
        );
        assert!(MoveStep::Check < MoveStep::Copy && MoveStep::Copy < MoveStep::BackPeer);
    }
}
