//! Forms of commands that `basalt-shell` accepts: those of its help, of HBase's book and of HBase's
//! shell.

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

use basalt_test_support::{Server, binary};

use super::shell::{piped, shell};
use super::text;

/// Runs the shell with these arguments and an empty standard input.
fn with_arguments(server: &Server, arguments: &[&str]) -> Output {
    Command::new(binary("basalt-shell"))
        .args(["--target", &server.thrift.to_string()])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built")
}

/// The settings of a table, empty if it has none, and its families, as `describe` prints them.
fn described(server: &Server, table: &str) -> (String, Vec<String>) {
    let printed = shell(server, &format!("describe '{table}'"));
    let mut lines = printed.lines().skip(1);
    let settings = lines.next().expect("the settings of the table");
    let families = lines.filter(|line| line.starts_with('{')).map(str::to_owned);
    let settings = settings.strip_prefix(table).expect("the name comes first");
    (settings.to_owned(), families.collect())
}

/// The output of `describe` can be pasted behind `create`, and creates the same table.
#[test]
fn the_shell_reads_back_what_it_describes() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let first = "{NAME => 'a', VERSIONS => 3, MIN_VERSIONS => 1, TTL => '7 DAYS', COMPRESSION => 'ZSTD', BLOOMFILTER => 'ROWCOL', \
                 DATA_BLOCK_ENCODING => 'FAST_DIFF', KEEP_DELETED_CELLS => 'TTL', BLOCKSIZE => '32KB', BLOCKCACHE => false, IN_MEMORY => true, \
                 REPLICATION_SCOPE => 1, DFS_REPLICATION => 2, CACHE_DATA_ON_WRITE => true, CACHE_INDEX_ON_WRITE => true, \
                 CACHE_BLOOMS_ON_WRITE => true, EVICT_BLOCKS_ON_CLOSE => true, COMPRESS_TAGS => false, PREFETCH_BLOCKS_ON_OPEN => true, \
                 CONFIGURATION => {'hbase.hstore.blockingStoreFiles' => '10', 'k' => \"it's \\\"#1\\\"\"}, METADATA => {'mykey' => \"\\x00\\xff\"}}";
    let commands = format!(
        "create 'all', {first}, 'b', {{MAX_FILESIZE => '1GB', DURABILITY => 'ASYNC_WAL', OWNER => 'johndoe', METADATA => {{'x' => \"it's\"}}}}"
    );
    shell(&server, &commands);
    let (settings, families) = described(&server, "all");
    assert!(settings.contains("MAX_FILESIZE => '1073741824'"), "{settings}");
    assert!(
        families[0].contains("TTL => '604800 SECONDS (7 DAYS)'"),
        "{families:?}"
    );
    assert!(
        families[0].contains("METADATA => {'mykey' => \"\\x00\\xFF\"}"),
        "{families:?}"
    );
    assert!(
        families[0].contains("EVICT_BLOCKS_ON_CLOSE => 'true'"),
        "{families:?}"
    );
    shell(
        &server,
        &format!("create 'pasted'{settings}, {}", families.join(", ")),
    );
    assert_eq!(described(&server, "pasted"), (settings, families.clone()));
    // The families can also be pasted behind `alter`.
    shell(
        &server,
        &format!(
            "create 'changed', 'a', 'b'\nalter 'changed', {}",
            families.join(", ")
        ),
    );
    assert_eq!(described(&server, "changed").1, families);
    server.stop();
}

/// TTLs in words, in upper or lower case, also with the total in front (HBASE-28185).
#[test]
fn the_shell_reads_times_in_words() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    shell(&server, "create 't', 'f'");
    for (words, printed) in [
        ("7 DAYS", "'604800 SECONDS (7 DAYS)'"),
        ("604800 SECONDS (7 DAYS)", "'604800 SECONDS (7 DAYS)'"),
        ("30 days", "'2592000 SECONDS (30 DAYS)'"),
        (
            "1 DAY 2 HOURS 3 MINUTES 4 SECONDS",
            "'93784 SECONDS (1 DAY 2 HOURS 3 MINUTES 4 SECONDS)'",
        ),
        ("forever", "'FOREVER'"),
    ] {
        let output = shell(
            &server,
            &format!("alter 't', {{NAME => 'f', TTL => '{words}'}}\ndescribe 't'"),
        );
        assert!(output.contains(&format!("TTL => {printed}")), "{words}\n{output}");
    }
    let refused = piped(&server, "alter 't', {NAME => 'f', TTL => '7 WEEKS'}");
    let why = text(&refused.stderr);
    assert!(
        why.contains("TTL is '7 WEEKS'") && why.contains("'7 DAYS'"),
        "{why}"
    );
    server.stop();
}

/// Raw scans with tombstones, converters behind columns, and the options of gets, scans and writes
/// in HBase's help.
#[test]
fn the_shell_reads_with_hbases_options() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    shell(
        &server,
        "create 't', {NAME => 'f', VERSIONS => 3}\nput 't', 'r', 'f:a', 'old', 1000\ndelete 't', 'r', 'f:a', 1000\n\
         put 't', 's', 'f:v', 'some value'\nincr 't', 's', 'f:n', 13\nput 't', 's', 'f:i', \"\\x00\\x00\\x00\\x05\"",
    );
    let raw = shell(&server, "scan 't', {RAW => true, VERSIONS => 10, STOPROW => 's'}");
    let lines: Vec<&str> = raw.lines().filter(|line| line.starts_with(" r ")).collect();
    assert!(
        lines.len() == 2 && lines[0].ends_with("type=Delete") && lines[1].ends_with("value=old"),
        "{raw}"
    );
    for (command, expected) in [
        ("get 't', 's', 'f:n:toLong'", "value=13"),
        (
            "get 't', 's', {COLUMN => ['f:n:toLong', 'f:i']}",
            "value=\\x00\\x00\\x00\\x05",
        ),
        ("scan 't', {COLUMNS => ['f:n:toLong', 'f:i:toInt']}", "value=5"),
        (
            "get 't', 's', 'f:i:c(org.apache.hadoop.hbase.util.Bytes).toInt'",
            "value=5",
        ),
        (
            "get 't', 's', {COLUMN => 'f:v', FORMATTER => 'toString'}",
            "value=some value",
        ),
        (
            "get 't', 's', {COLUMN => 'f:i', FORMATTER => 'toHex'}",
            "value=00000005",
        ),
        // As in HBase, MAXLENGTH applies to the text of the whole cell.
        (
            "scan 't', {COLUMNS => 'f:v', MAXLENGTH => 4}",
            "column=f:v, time\n",
        ),
        (
            "get 't', 's', {COLUMN => 'f:v', MAXLENGTH => 4}",
            " f:v                       time\n",
        ),
        (
            "scan 't', {FORMATTER => 'toString', COLUMNS => 'f:v'}",
            "value=some value",
        ),
        (
            "scan 't', {CONSISTENCY => 'TIMELINE', REGION_REPLICA_ID => 0}",
            "1 row(s)",
        ),
        ("scan 't', {ISOLATION_LEVEL => 'READ_UNCOMMITTED'}", "1 row(s)"),
        (
            "scan 't', {MAX_RESULT_SIZE => 123456, ALLOW_PARTIAL_RESULTS => true}",
            "1 row(s)",
        ),
        (
            "scan 't', {READ_TYPE => 'PREAD', CACHE_BLOCKS => false}",
            "1 row(s)",
        ),
        ("scan 't', {AUTHORIZATIONS => ['PRIVATE']}", "1 row(s)"),
        (
            "scan 't', {ALL_METRICS => true}",
            "Thrift does not carry the metrics",
        ),
        ("get 't', 's', {CONSISTENCY => 'TIMELINE'}", "1 row(s)"),
        ("get 't', 's', {ATTRIBUTES => {'mykey' => 'myvalue'}}", "1 row(s)"),
        (
            "put 't', 'w', 'f:a', 'v', 1000, {ATTRIBUTES => {'mykey' => 'myvalue'}}",
            "",
        ),
        (
            "append 't', 'w', 'f:b', 'v', ATTRIBUTES => {'mykey' => 'myvalue'}",
            "CURRENT VALUE = v",
        ),
        (
            "incr 't', 'w', 'f:c', 2, {ATTRIBUTES => {'mykey' => 'myvalue'}}",
            "COUNTER VALUE = 2",
        ),
    ] {
        let output = shell(&server, command);
        assert!(output.contains(expected), "{command}\n{output}");
    }
    for (command, why) in [
        ("get 't', 's', 'f:n:toLnog'", "toLnog is no converter; known are"),
        (
            "get 't', 's', 'f:i:toLong'",
            "toLong needs more bytes than the 4 of f:i",
        ),
        (
            "get 't', 's', 'f:i:c(my.Class).show'",
            "the class my.Class is not available",
        ),
        (
            "put 't', 's', 'f:a', 'v', {VISIBILITY => 'A'}",
            "Basalt has no visibility labels",
        ),
        (
            "scan 't', {FILTER => org.apache.ValueFilter.new(1)}",
            "a filter is written as text",
        ),
        (
            "alter 't', 'coprocessor' => 'x|y'",
            "coprocessors are not supported",
        ),
    ] {
        let refused = piped(&server, command);
        assert!(!refused.status.success(), "{command}");
        let said = text(&refused.stderr);
        assert!(said.contains(why), "{command}: {said}");
    }
    server.stop();
}

/// Short forms of commands from HBase's shell.
#[test]
fn the_shell_reads_short_forms() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    shell(
        &server,
        "create 't', 'f', CONFIGURATION => {'hbase.hregion.majorcompaction' => '5'}, SPLITS => ['m']\n\
         put 't', 'ra', 'f:a', 'v', 1000\nput 't', 'rb', 'f:b', 'v', 3000",
    );
    for (commands, expected) in [
        ("describe 't'", "'hbase.hregion.majorcompaction' => '5'"),
        ("count 't', 1", "Current count: 2, row: rb"),
        (
            "list_regions 't', {}, ['START_KEY', 'end_key']",
            " START_KEY | END_KEY |",
        ),
        ("list_regions 't', {LOCALITY_THRESHOLD => 0.5}", " 0 rows"),
        ("list_regions 't', {SERVER_NAME => 'nowhere'}", " 0 rows"),
        ("list_regions 't', ''", " 2 rows"),
        (
            "deleteall 't', {ROWPREFIXFILTER => 'r'}, 'f:a', 500\ncount 't'",
            "2 row(s)",
        ),
        (
            "deleteall 't', {ROWPREFIXFILTER => 'r', CACHE => 1}, 1000\ncount 't'",
            "1 row(s)",
        ),
        ("deleteall 't', 'rb', 1000\ncount 't'", "1 row(s)"),
        (
            "deleteall 't', {ROWPREFIXFILTER => 'r'}, 'f:b'\ncount 't'",
            "0 row(s)",
        ),
    ] {
        let output = shell(&server, commands);
        assert!(output.contains(expected), "{commands}\n{output}");
    }
    let unset = "alter 't', METHOD => 'table_conf_unset', NAME => 'hbase.hregion.majorcompaction'";
    let output = shell(&server, &format!("{unset}\ndescribe 't'"));
    assert!(!output.contains("majorcompaction"), "{output}");
    let refused = piped(&server, unset);
    let why = "Could not find configuration: hbase.hregion.majorcompaction";
    assert!(text(&refused.stderr).contains(why), "{refused:?}");
    server.stop();
}

/// A script continues after errors, and the shell exits with 1 at its end. With `-n` it stops at
/// the first error. `exit` with a number sets the exit code.
#[test]
fn the_shell_runs_scripts() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let reset = "#!/usr/bin/env basalt-shell\n# Makes the tables anew.\ndisable 'a'\ndrop 'a'\nput 'a' 'r'\ncreate 'a',\n  'f'\nlist\n";
    let output = piped(&server, reset);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stdout).contains("Created table a"), "{output:?}");
    let said = text(&output.stderr);
    assert_eq!(said.matches("Unknown table a!").count(), 2, "{said}");
    assert!(
        said.contains("line 5, column 9"),
        "the line is that of the script: {said}"
    );

    let file = dir.path().join("script.txt");
    let path = file.to_str().expect("a path in UTF-8");
    let run = |script: &str, arguments: &[&str]| {
        std::fs::write(&file, script).expect("the folder is ours");
        with_arguments(&server, &[arguments, &[path]].concat())
    };
    let output = run(
        "\u{feff}create 'b', 'f'\r\nput 'b', 'r', 'f:a', 'value1'\r\nscan 'b'\r\nexit\r\n",
        &[],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stdout).contains("value=value1"), "{output:?}");
    let wrong_then_list = "get 'c', 'r'\nlist\n";
    let output = run(wrong_then_list, &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stdout).contains("TABLE"), "{output:?}");
    let said = text(&output.stderr);
    assert!(
        said.contains("Unknown table c!") && said.contains("script.txt, line 1"),
        "{said}"
    );
    let output = run(wrong_then_list, &["-n"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!text(&output.stdout).contains("TABLE"), "{output:?}");
    for (script, code) in [
        ("get 'c', 'r'\nexit 0", 0),
        ("get 'c', 'r'\nexit", 1),
        ("exit 7\nlist", 7),
    ] {
        let output = run(script, &[]);
        assert_eq!(output.status.code(), Some(code), "{script}: {output:?}");
    }
    let missing = with_arguments(&server, &["no-such-file.txt"]);
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    let said = text(&missing.stderr);
    assert!(said.contains("cannot open the script no-such-file.txt"), "{said}");
    server.stop();
}

/// When the reader closes the output, the shell exits with 1 and prints no error, in scripts too.
#[test]
fn a_closed_output_ends_the_shell_quietly() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let rows: Vec<String> = (0..500)
        .map(|row| format!("put 't', '{row:0100}', 'f:q', 'v'"))
        .collect();
    shell(&server, &format!("create 't', 'f'\n{}\n", rows.join("\n")));
    for arguments in [&["-e", "scan 't'"][..], &["-"]] {
        let mut child = Command::new(binary("basalt-shell"))
            .args(["--target", &server.thrift.to_string()])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built");
        let mut stdout = child.stdout.take().expect("it is piped");
        let mut stdin = child.stdin.take().expect("it is piped");
        // With `-e` the shell does not read its standard input, so this may fail.
        let sent = stdin.write_all("scan 't'\n".repeat(50).as_bytes());
        drop(stdin);
        stdout.read_exact(&mut [0; 10]).expect("the scan prints");
        drop(stdout);
        let output = child.wait_with_output().expect("the shell ends");
        assert_eq!(output.status.code(), Some(1), "{output:?} {sent:?}");
        assert_eq!(text(&output.stderr), "", "{arguments:?}");
    }
    server.stop();
}

/// The shell accepts every form of every command in its help. The server may refuse it, because the
/// table does not exist.
#[test]
fn the_shell_takes_every_form_that_its_help_shows() {
    let dir = basalt_test_support::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    let overview = shell(&server, "help");
    let groups = overview
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_once(": "));
    let commands: Vec<&str> = groups.flat_map(|(_, names)| names.split(", ")).collect();
    assert!(commands.len() > 60, "{overview}");
    let mut forms = 0;
    for command in commands {
        let help = shell(&server, &format!("help '{command}'"));
        for form in help.lines().skip(2).map(str::trim) {
            if form.starts_with("further") || command == "exit" {
                continue;
            }
            let form = form.replace("timestamp", "1").replace("milliseconds", "1");
            let form = form.replace("[from, to]", "[1, 2]").replace("=> ts", "=> 1");
            let said = text(&with_arguments(&server, &["-e", &form]).stderr);
            for mistake in [
                "unknown",
                "too many",
                "see help",
                "line 1, column",
                " takes ",
                " needs ",
            ] {
                assert!(!said.contains(mistake), "{form}: {said}");
            }
            forms += 1;
        }
    }
    assert!(forms > 100, "{forms}");
    server.stop();
}
