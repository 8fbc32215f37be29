//! Runs the tests of this program again on a server whose tables are in another Basalt, which it reaches by
//! native RPC. This shows that the server uses its tables through one boundary only.

use std::process::Command;

/// Set in the process that runs the tests on such a server.
const VARIABLE: &str = "TESTS_ON_TABLES_OF_ANOTHER";

/// Whether tests are to use such a server.
pub(crate) fn is_tested() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Tests and groups of tests that cannot pass there, with the reason.
const OTHERS: &[(&str, &str)] = &[
    ("cluster::", "this test itself"),
    ("options::tables_do_what_their_options_say", FIGURES),
    ("quotas::quotas_hold_until_they_are_taken_away", QUOTAS),
    ("quotas::quotas_of_users", QUOTAS),
    ("reads2::a_batch_of_gets_reads_its_blocks_together", FIGURES),
    ("regions::a_block_cache_is_cleared", FILES),
    ("regions::flushes_and_compactions_are_paused", FILES),
    ("regions::hot_rows_have_names", FIGURES),
    ("regions::hot_rows_need_the_visualizer", FIGURES),
    ("regions::regions_are_split_and_merged_by_name", FILES),
    ("regions::upkeep_of_exactly_one_region", FILES),
    (
        "rehearsal::",
        "virtual servers are of the server that has the tables, and have no addresses",
    ),
    (
        "scans::a_scanner_that_waits_holds_no_memory",
        "a scan of several regions has a read point in each, as in HBase",
    ),
    ("scans::scans_end_with_their_client", FIGURES),
    ("slow_log::a_fetch_has_the_arguments_of_its_scan", FIGURES),
    ("snapshots::", "snapshots are taken by calls of BasaltAdmin"),
    ("tables::long_names_are_refused", "it takes a snapshot"),
    ("tables::names_in_other_scripts", FILES),
];
const FIGURES: &str = "the figures that it reads are those of the server that has the tables";
const FILES: &str = "calls of BasaltAdmin on regions and files go to the server that has them";
const QUOTAS: &str = "quotas are those of the server that has the tables, which lists them";

#[test]
fn all_tests_pass_on_the_tables_of_another_server() {
    let program = std::env::current_exe().expect("this program has a path");
    let listed = Command::new(&program).arg("--list").output().expect("it runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut run = Command::new(&program);
    for (name, reason) in OTHERS {
        assert!(
            listed.lines().any(|line| line.starts_with(name)),
            "no test {name} ({reason})"
        );
        run.args(["--skip", name]);
    }
    let output = run.env(VARIABLE, "1").output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
}
