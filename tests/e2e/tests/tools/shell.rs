//! `basalt-shell`: scripts on its standard input, commands on its command line, and a person at a terminal.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use basalt_test_support::{Python, Server, binary, happybase};

use super::text;

/// Runs the shell with this text on its standard input. After an error the shell continues, and
/// exits with 1 at the end.
pub(super) fn piped(server: &Server, input: &str) -> Output {
    let mut shell = Command::new(binary("basalt-shell"))
        .args(["--target", &server.thrift.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built");
    let mut stdin = shell.stdin.take().expect("standard input is piped");
    stdin
        .write_all(input.as_bytes())
        .expect("the shell reads its input");
    drop(stdin);
    shell.wait_with_output().expect("the shell ends")
}

/// Runs these commands and returns their output; panics when one fails.
pub(super) fn shell(server: &Server, input: &str) -> String {
    let output = piped(server, input);
    assert!(output.status.success(), "{input}\n{output:?}");
    text(&output.stdout)
}

/// Standard error without the lines that say how long commands took.
fn without_times(stderr: &[u8]) -> String {
    let text = text(stderr);
    let lines = text.split_inclusive('\n');
    lines.filter(|line| !line.starts_with("Took ")).collect()
}

/// Moving regions of a rehearsal, and quotas, with the words of HBase's shell.
#[test]
fn the_shell_rehearses_and_sets_quotas() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["rehearsal.servers=2"]);
    let regions = shell(&server, "create 't', 'f', SPLITS => ['m']\nlist_regions 't'");
    // The encoded name of the second region: what stands between the last two dots of its name.
    let second = regions
        .lines()
        .find(|line| line.contains(" t,m,"))
        .and_then(|line| line.split(" | ").nth(1)?.trim().split('.').nth(1))
        .unwrap_or_else(|| panic!("{regions}"));
    let on = |server: u16| format!("HOST                       REGION\n rehearsal-{server}:");
    let located = "locate_region 't', 'z'";
    for (commands, expected) in [
        ("status".to_owned(), "2 servers, 0 dead, 1.0000 average load"),
        ("status".to_owned(), "a rehearsal: this one server presents itself as 2 virtual servers"),
        (located.to_owned(), &on(2)),
        (format!("move '{second}', 'rehearsal-1'\n{located}"), &on(1)),
        ("balancer".to_owned(), "moved 1 regions"),
        ("balance".to_owned(), "moved 0 regions"),
        (format!("move '{second}'\n{located}"), "rehearsal-"),
        (format!("unassign '{second}'"), ""),
        (format!("assign '{second}'\nput 't', 'z', 'f:q', 'v'\ncount 't'"), "1 row(s)"),
        (
            "set_quota TYPE => THROTTLE, THROTTLE_TYPE => WRITE, USER => 'u1', TABLE => 't', LIMIT => '10req/sec'\n\
             set_quota TYPE => THROTTLE, TABLE => 't', LIMIT => '10M/min'\nlist_quotas"
                .to_owned(),
            " USER => u1, TABLE => t    TYPE => THROTTLE, THROTTLE_TYPE => WRITE_NUMBER, LIMIT => 10req/sec, SCOPE => MACHINE\n2 row(s)",
        ),
        ("list_quotas TABLE => '.*'".to_owned(), "THROTTLE_TYPE => REQUEST_SIZE, LIMIT => 10M/min, SCOPE => MACHINE\n1 row(s)"),
        (
            "set_quota TYPE => THROTTLE, USER => 'u1', TABLE => 't', LIMIT => NONE\n\
             set_quota TYPE => THROTTLE, THROTTLE_TYPE => REQUEST, TABLE => 't', LIMIT => NONE\nlist_quotas"
                .to_owned(),
            "0 row(s)",
        ),
    ] {
        let output = shell(&server, &commands);
        assert!(output.contains(expected), "{commands}\n{output}");
    }
    let refused = piped(&server, &format!("unassign '{second}'\nget 't', 'z'"));
    assert!(!refused.status.success());
    let why = text(&refused.stderr);
    assert!(why.contains("is not online on rehearsal-"), "{why}");
}

/// Snapshots, with the words of HBase's shell.
#[test]
fn the_shell_takes_snapshots() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    for (commands, expected) in [
        (
            "create 't', 'f'\nput 't', 'a', 'f:q', 'first'\nsnapshot 't', 's1'\nlist_snapshots",
            "SNAPSHOT                   TABLE + CREATION TIME + TTL(Sec)\n s1                        t (2",
        ),
        (
            "snapshot 't', 's2', {SKIP_FLUSH => true, TTL => 86400}\nlist_snapshots 's2'",
            ") 86400\n1 row(s)",
        ),
        ("list_snapshots 's1'", ") FOREVER\n1 row(s)"),
        ("list_snapshots 's'", "0 row(s)"),
        (
            "list_table_snapshots 't', '.*2'",
            " s2                        t (2",
        ),
        (
            "put 't', 'b', 'f:q', 'later'\nclone_snapshot 's1', 'c'\ncount 'c'",
            "1 row(s)",
        ),
        (
            "disable 't'\nrestore_snapshot 's1'\nis_disabled 't'\nenable 't'\ncount 't'",
            "1 row(s)",
        ),
        ("delete_snapshot 's1'\nlist_snapshots", "1 row(s)"),
        (
            "snapshot 'c', 'of-c'\ndelete_table_snapshots 'c'\nlist_snapshots",
            "1 snapshots successfully deleted.",
        ),
        ("delete_all_snapshot 'x.*'", "No snapshots matched the regex x.*"),
        (
            "delete_table_snapshots 'x'",
            "No snapshots matched the table name regular expression x and the snapshot name regular expression .*",
        ),
        (
            "snapshot 't', 's3'\ndelete_all_snapshot 's.*'\nlist_snapshots",
            "2 snapshots successfully deleted.",
        ),
        ("list_snapshots", "0 row(s)"),
    ] {
        let output = shell(&server, commands);
        assert!(output.contains(expected), "{commands}\n{output}");
    }
    for (commands, why) in [
        (
            "restore_snapshot 'x'",
            "ERROR: Snapshot 'x' doesn't exist on the filesystem",
        ),
        (
            "snapshot 'x', 's'",
            "ERROR: Table 'x' doesn't exist, can't take snapshot.",
        ),
        (
            "snapshot 't', 's'\nclone_snapshot 's', 'c'",
            "ERROR: Table already exists: c!",
        ),
        ("clone_snapshot 's', 'n:c'", "ERROR: Unknown namespace n!"),
        ("snapshot 't', 'a/b'", "ERROR: Illegal character code:47"),
        (
            "snapshot 't', 'b', {TLL => 1}",
            "unknown option TLL; known are SKIP_FLUSH, TTL",
        ),
    ] {
        let refused = piped(&server, commands);
        assert!(!refused.status.success(), "{commands}");
        let said = text(&refused.stderr);
        assert!(said.contains(why), "{commands}: {said}");
    }
    server.stop();
}

/// Commands on all tables that match, with the words of HBase's shell: whole names count, and one that fails
/// keeps none of the others.
#[test]
fn the_shell_changes_all_tables_that_match() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let states = "is_disabled 'a1'\nis_disabled 'a2'\nis_disabled 'n:a3'\nis_disabled 'ba'";
    let told = |commands: &str| -> Vec<String> {
        let printed = shell(&server, commands);
        let lines = printed.lines().filter(|line| !line.starts_with("Took"));
        lines.map(str::to_owned).collect()
    };
    shell(
        &server,
        "create_namespace 'n'\ncreate 'a1', 'f'\ncreate 'a2', 'f'\ncreate 'n:a3', 'f'\ncreate 'ba', 'f'",
    );
    for (commands, expected) in [
        ("disable_all 'a'", &["No tables matched the regex a"][..]),
        (
            "disable_all 'a.*'",
            &["a1", "a2", "2 tables successfully disabled"],
        ),
        (states, &["true", "true", "false", "false"]),
        ("disable_all 'n:.*'", &["n:a3", "1 tables successfully disabled"]),
        // A table that is enabled already counts, as with enable.
        (
            "enable_all '.*a[23]|ba'",
            &["a2", "ba", "n:a3", "3 tables successfully enabled"],
        ),
        (states, &["true", "false", "false", "false"]),
        ("drop_all 'x'", &["No tables matched the regex x"]),
    ] {
        assert_eq!(told(commands), expected, "{commands}");
    }
    let refused = piped(&server, "drop_all 'a.'\n");
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(
        text(&refused.stdout).contains("1 tables successfully dropped"),
        "{refused:?}"
    );
    assert_eq!(
        without_times(&refused.stderr),
        "ERROR: 1 tables not dropped due to an exception: a2: Table a2 is enabled. Disable it first.\n"
    );
    assert_eq!(told("list"), ["TABLE", "a2", "ba", "n:a3", "3 row(s)"]);
    let wrong = piped(&server, "drop_all '('");
    assert!(!wrong.status.success() && !wrong.stderr.is_empty(), "{wrong:?}");
    server.stop();
}

/// The names that the shell shows are those that the server knows.
#[test]
fn the_shell_shows_filters_that_the_server_knows() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let printed = shell(&server, "create 't', 'f'\nshow_filters");
    let names = printed.lines().filter(|line| line.ends_with("Filter"));
    let scan = |name: &str| piped(&server, &format!("scan 't', {{FILTER => \"{name}()\"}}"));
    let is_unknown =
        |name: &str| text(&scan(name).stderr).contains(&format!("Filter Name {name} not supported"));
    assert!(is_unknown("NoSuchFilter"), "{:?}", scan("NoSuchFilter"));
    let mut shown = 0;
    for name in names {
        assert!(!is_unknown(name), "{name}");
        shown += 1;
    }
    assert_eq!(shown, 19);
    server.stop();
}

/// Goal: the shell writes, lists, describes and drops a table whose name is in another script. The
/// error for an unknown namespace or compression lists the known ones.
#[test]
fn the_shell_takes_names_in_other_scripts() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let table = "\u{43f}\u{440}:\u{8868}_\u{e9}";
    let printed = shell(
        &server,
        &format!(
            "create_namespace '\u{43f}\u{440}'\ncreate '{table}', 'f', SPLITS => ['m']\nput '{table}', 'r', 'f:q', 'v'\n\
             list\ndescribe '{table}'\nlist_regions '{table}'\nscan '{table}'\nflush '{table}'\n\
             snapshot '{table}', 's_\u{8868}'\nlist_snapshots\nlist_namespace_tables '\u{43f}\u{440}'"
        ),
    );
    for expected in [
        format!("{table}\n"),
        format!("Table {table} is ENABLED"),
        "column=f:q".to_owned(),
        "s_\u{8868}".to_owned(),
        "\u{8868}_\u{e9}\n".to_owned(),
    ] {
        assert!(printed.contains(&expected), "{expected:?} is not in\n{printed}");
    }
    shell(
        &server,
        &format!("disable '{table}'\ndrop '{table}'\ndrop_namespace '\u{43f}\u{440}'"),
    );
    for (commands, why) in [
        (
            "create 'none:t', 'f'",
            "ERROR: Unknown namespace none! The namespaces are default, hbase; create_namespace 'none' makes it.",
        ),
        (
            "create 't', {NAME => 'f', COMPRESSION => 'LZO'}",
            "unknown value LZO; known are NONE, SNAPPY, LZ4, ZSTD, GZ",
        ),
    ] {
        let refused = piped(&server, commands);
        assert!(!refused.status.success(), "{commands}");
        let said = text(&refused.stderr);
        assert!(said.contains(why), "{commands}\n{said}");
    }
    server.stop();
}

/// Flushes and compactions of one region, by either of its names.
#[test]
fn the_shell_flushes_and_compacts_one_region() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let regions = shell(
        &server,
        "create 't', 'f', SPLITS => ['m']\nput 't', 'a', 'f:q', 'v'\nput 't', 'z', 'f:q', 'v'\nlist_regions 't'",
    );
    let name = regions.lines().find(|line| line.contains(" t,m,"));
    let name = name.and_then(|line| line.split(" | ").nth(1));
    let name = name.unwrap_or_else(|| panic!("{regions}")).trim();
    let encoded = name
        .split('.')
        .nth(1)
        .expect("a region's name ends in its hex digits");
    let files = || {
        let printed = shell(&server, "status");
        let count = printed.split(" store files").next();
        let count = count.and_then(|before| before.rsplit(' ').next()?.parse::<u32>().ok());
        count.unwrap_or_else(|| panic!("{printed}"))
    };
    for (region, expected) in [(name, 1), (encoded, 2)] {
        shell(&server, &format!("put 't', 'z', 'f:q', 'w'\nflush '{region}'"));
        assert_eq!(files(), expected, "{region}");
    }
    shell(&server, "flush 't'");
    assert_eq!(files(), 3, "the other region was not flushed before");
    shell(
        &server,
        &format!("compact '{name}'\nmajor_compact '{encoded}', 'f'"),
    );
    let refused = piped(&server, &format!("compact '{name}', 'g'"));
    assert!(text(&refused.stderr).contains('g'), "{refused:?}");
    server.stop();
}

/// Every command that the shell promises, piped in as a script does, each with the part of its output that
/// tells its effect.
#[test]
fn the_shell_runs_every_command() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &["slow_log.threshold_ms=0"]);
    for (commands, expected) in [
        (
            "create 't', {NAME => 'f', VERSIONS => 3}, SPLITS => ['m']",
            "Created table t",
        ),
        ("list", "t"),
        ("exists 't'", "Table t does exist"),
        ("compaction_switch false", " true\n"),
        ("compaction_switch true", " false\n"),
        ("flush_switch false\nprocesslist", "Flushes are paused."),
        ("flush_switch true\nprocesslist", " 0 jobs run;"),
        ("compaction_state 't'", "NONE"),
        ("describe 't'", "VERSIONS => '3'"),
        (
            // Two puts of one millisecond would be one version.
            "put 't', 'a', 'f:q', 'one', 1\nput 't', 'a', 'f:q', 'two', 2\nput 't', 'z', 'f:q', 'last'\n\
             get 't', 'a', {COLUMN => 'f:q', VERSIONS => 2}",
            "value=one",
        ),
        ("scan 't', {STARTROW => 'b'}", "value=last"),
        ("count 't'", "2 row(s)"),
        (
            "incr 't', 'n', 'f:c', 5\nget_counter 't', 'n', 'f:c'",
            "COUNTER VALUE = 5",
        ),
        ("append 't', 'a', 'f:q', '!'\nget 't', 'a'", "value=two!"),
        // As in HBase's shell, one version goes, and the one below it shows.
        ("delete 't', 'a', 'f:q'\nget 't', 'a'", "value=two\n"),
        ("deleteall 't', 'z'\ncount 't'", "2 row(s)"),
        (
            "alter 't', {NAME => 'g', BLOOMFILTER => 'ROWCOL'}\ndescribe 't'",
            "NAME => 'g'",
        ),
        ("flush 't'", ""),
        ("compact 't'\nmajor_compact 't'", ""),
        ("list_quota_table_sizes", "TABLE                      SIZE\n t  "),
        ("split 't', 'f'\nlist_regions 't'", "3 rows"),
        (
            "get 't', 'a'\nclear_block_cache 't'\nclear_block_cache",
            "evictedBlocks=",
        ),
        ("get_slowlog_responses '*', {'LIMIT' => 5}", "5 call(s)"),
        (
            "get_slowlog_responses '*', {TABLE_NAME => 't', LIMIT => 1000}",
            "createTable took",
        ),
        ("get_largelog_responses", "0 call(s)"),
        (
            "clear_slowlog_responses",
            "Cleared Slowlog responses from 1/1 RegionServers",
        ),
        ("alter_status 't'", "3/3 regions updated.\nDone."),
        (
            "clone_table_schema 't', 'copy'\nlist_regions 'copy'\ndescribe 'copy'",
            "VERSIONS => '3'",
        ),
        ("list_regions 'copy'", "3 rows"),
        (
            "clone_table_schema 't', 'one', false\nlist_regions 'one'",
            "1 rows",
        ),
        (
            "create_namespace 'n'\nalter_namespace 'n', {METHOD => 'set', 'k' => 'v'}\ndescribe_namespace 'n'",
            "k => 'v'",
        ),
        (
            "alter_namespace 'n', {METHOD => 'unset', NAME => 'k'}\ndescribe_namespace 'n'",
            "{NAME => 'n'}",
        ),
        (
            "count 't', INTERVAL => 1, CACHE => 1",
            "Current count: 1, row: a\n",
        ),
        ("status", "1 servers, 0 dead"),
        ("disable 't'\nis_disabled 't'", "true"),
        ("enable 't'\nis_enabled 't'", "true"),
        ("truncate 't'\ncount 't'", "0 row(s)"),
        (
            "snapshot 'copy', 's'\nlist_snapshot_sizes",
            "SNAPSHOT                   SIZE\n s                         0\n1 row(s)",
        ),
        ("show_filters", "\nSingleColumnValueFilter\n"),
        ("disable 't'\ndrop 't'\nexists 't'", "Table t does not exist"),
    ] {
        let printed = shell(&server, commands);
        assert!(printed.contains(expected), "{commands}\nprinted\n{printed}");
    }
    server.stop();
}

/// With `-e` commands run in order. The first error is printed and ends the shell with 1.
#[test]
fn the_shell_stops_commands_of_its_own_at_the_first_error() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let run = |commands: &[&str]| {
        let mut shell = Command::new(binary("basalt-shell"));
        shell.args(["--target", &server.thrift.to_string()]);
        for command in commands {
            shell.args(["-e", command]);
        }
        shell.output().expect("the binary was built")
    };
    let output = run(&["create 't', 'f'", "put 't', 'r', 'f:q', 'v'", "get 't', 'r'"]);
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stdout).contains("value=v"), "{output:?}");
    let output = run(&["put 't', 'r', 'g:q', 'v'", "list_namespace"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output.stderr).contains("Column family g does not exist in table t"),
        "{output:?}"
    );
    assert!(!text(&output.stdout).contains("NAMESPACE"), "{output:?}");
    server.stop();
}

/// Opens a terminal, types into a shell there and prints the screen's content.
const TYPE: &str = r#"
import os, pty, sys
program, target, keys = sys.argv[1:]
child, terminal = pty.fork()
if child == 0:
    os.execv(program, [program, "--target", target])
screen = b""
for line in keys.split("|"):
    while not screen.endswith((b"> ", b"* ")) and b"> " not in screen[-40:]:
        screen += os.read(terminal, 4096)
    print(screen.decode(errors="replace"))
    screen = b""
    os.write(terminal, line.encode().replace(b"UP", b"\x1b[A").replace(b"TAB", b"\t") + b"\r")
try:
    while chunk := os.read(terminal, 4096):
        screen += chunk
except OSError:
    pass  # Linux's way to say that the other side is closed.
print(screen.decode(errors="replace"))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

fn typed(python: &Python, server: &Server, keys: &str) -> String {
    let shell = binary("basalt-shell");
    let shell = shell.to_str().expect("a path in UTF-8");
    python
        .run(TYPE, &[shell, &server.thrift.to_string(), keys])
        .unwrap_or_else(|error| panic!("{keys}\n{error}"))
}

/// A person at a terminal: a wrong line does not end the shell, and the last session's lines come back with
/// the up key.
#[test]
fn the_shell_remembers_what_was_typed() {
    let Some(python) = happybase() else { return };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let python = python.with_home(dir.path());
    let screen = typed(&python, &server, "nonsense 1|create 'remembered', 'f'|exit");
    assert!(screen.contains("nonsense"), "{screen}");
    assert!(screen.contains("Created table remembered"), "{screen}");
    let screen = typed(&python, &server, "UPUP|exit");
    assert!(
        screen.contains("remembered already exists") || screen.contains("Table already exists"),
        "the create of the first session was not run again:\n{screen}"
    );
    server.stop();
}

/// The tab key completes a command, a table that the server has, and an option.
#[test]
fn the_shell_completes_what_is_typed() {
    let Some(python) = happybase() else { return };
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let python = python.with_home(dir.path());
    shell(
        &server,
        "create 'completed', 'f'\nput 'completed', 'a', 'f:q', 'one'\nput 'completed', 'b', 'f:q', 'two'",
    );
    let screen = typed(&python, &server, "scaTAB'compTAB, {LIMTAB1}|exit");
    assert!(
        screen.contains("scan 'completed', {LIMIT => ") && screen.contains("1 row(s)"),
        "{screen}"
    );
    assert!(
        screen.contains("value=one") && !screen.contains("value=two"),
        "{screen}"
    );
    server.stop();
}

/// Goal: a script means the same over either interface. Method: the output of both, without times, and the
/// errors.
#[test]
fn both_interfaces_print_the_same() {
    const SCRIPT: &str = "create 't', {NAME => 'f', VERSIONS => 2}, SPLITS => ['m']
put 't', 'a', 'f:q', '1', 5
put 't', 'z', 'f:q', '2', 6
get 't', 'a'
scan 't'
scan 't', {REVERSED => true, LIMIT => 1}
scan 't', FILTER => \"PrefixFilter('z')\"
count 't'
append 't', 'z', 'f:q', 'x'
incr 't', 'a', 'f:n', 3
get_counter 't', 'a', 'f:n'
delete 't', 'a', 'f:q', 5
deleteall 't', 'z'
count 't'
describe 't'
list
exists 't'
is_enabled 't'
get_splits 't'
create_namespace 'ns'
list_namespace
drop_namespace 'ns'
drop_namespace 'ns'
get 'missing', 'r'
create 't', 'f'
flush 't'
truncate 't'
disable 't'
is_disabled 't'
drop 't'
list
";
    let outputs = ["thrift2", "native"].map(|api| {
        let dir = basalt_test_support::tempdir().expect("a temporary folder");
        let server = Server::start(&dir.path().join("data"), &[]);
        let script = dir.path().join("script");
        std::fs::write(&script, SCRIPT).expect("written");
        let output = Command::new(binary("basalt-shell"))
            .args(["--target", &server.thrift.to_string(), "--api", api])
            .arg(&script)
            .output()
            .expect("the binary was built");
        server.stop();
        let lines = |bytes: &[u8]| {
            let text = text(bytes);
            let timeless = text.lines().filter(|line| !line.starts_with("Took "));
            timeless.map(str::to_owned).collect::<Vec<_>>()
        };
        // The rest of an error names the script; over Thrift it has a remedy, too.
        let to_mark = |line: &String| line.split_inclusive('!').next().unwrap_or_default().to_owned();
        let errors: Vec<_> = lines(&output.stderr).iter().map(to_mark).collect();
        (lines(&output.stdout), errors)
    });
    assert_eq!(outputs[0], outputs[1]);
    let errors = outputs[1].1.join("\n");
    for expected in [
        "Unknown namespace ns!",
        "Unknown table missing!",
        "Table already exists: t!",
    ] {
        assert!(errors.contains(expected), "{errors}");
    }
    assert!(
        outputs[1].0.iter().any(|line| line.contains("value=2")),
        "{:?}",
        outputs[1].0
    );
}
