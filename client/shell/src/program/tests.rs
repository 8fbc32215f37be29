//! Statements against the commands that they run, and random text.

use proptest::prelude::*;

use super::*;
use crate::parse;

/// Runs a text. `answers` are the values of its commands, in order. Returns the commands as they
/// are echoed, and values as `=> value`.
fn run(text: &str, answers: &[Value]) -> Result<Vec<String>, String> {
    let statements = parse(text).map_err(|error| error.to_string())?;
    let mut program = Program::new(&statements);
    let mut variables = Variables::default();
    let mut answers = answers.iter();
    let mut found = Vec::new();
    loop {
        match program.next(&mut variables).map_err(|error| error.to_string())? {
            Step::Command(command) => {
                found.push(command.to_string());
                program.answer(answers.next().cloned());
            }
            Step::Value(value) => found.push(format!("=> {value}")),
            Step::End => return Ok(found),
        }
    }
}

fn table(name: &str) -> Value {
    Value::Table(name.to_owned())
}

/// The commands and values of a text whose commands have no values.
fn steps(text: &str) -> Vec<String> {
    run(text, &[]).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn loops_of_the_hbase_book_run() {
    for (text, expected) in [
        (
            "for i in 0..1 do put 't', \"row#{i}\", 'f:q', \"v#{i * 2}\" end",
            &[
                r#"put "t", "row0", "f:q", "v0""#,
                r#"put "t", "row1", "f:q", "v2""#,
            ][..],
        ),
        (
            "(1..2).each { |i| put 't', \"r\" + i.to_s, 'f:q', i }",
            &[r#"put "t", "r1", "f:q", 1"#, r#"put "t", "r2", "f:q", 2"#],
        ),
        (
            "2.times do |i|\n  put 't', \"%04d\" % i, 'f:q', 'v' # a row\nend\nlist",
            &[
                r#"put "t", "0000", "f:q", "v""#,
                r#"put "t", "0001", "f:q", "v""#,
                "list",
            ],
        ),
        (
            "for i in 'a'..'b' do for j in 'x'...'z' do put 't', \"row-#{i}#{j}\", \"f:#{j}\", j end end",
            &[
                r#"put "t", "row-ax", "f:x", "x""#,
                r#"put "t", "row-ay", "f:y", "y""#,
                r#"put "t", "row-bx", "f:x", "x""#,
                r#"put "t", "row-by", "f:y", "y""#,
            ],
        ),
        (
            "['a', 'b'].each { |n| disable n; drop n }",
            &[r#"disable "a""#, r#"drop "a""#, r#"disable "b""#, r#"drop "b""#],
        ),
        (
            "1.upto(2) { list }; 2.downto(1) { |i| get i }",
            &["list", "list", "get 2", "get 1"],
        ),
        ("1.step(5, 2) { |i| get i }", &["get 1", "get 3", "get 5"]),
        (
            "['x', 'y'].each_with_index { |n, i| get n, i }",
            &[r#"get "x", 0"#, r#"get "y", 1"#],
        ),
        ("(3..1).each { |i| get i }\n0.times { list }", &[]),
    ] {
        assert_eq!(steps(text), expected, "{text}");
    }
}

#[test]
fn tables_in_variables_have_methods() {
    let text = "t = get_table 'ns:t'\nt.put 'r', 'f:q', 'v'\nt.scan\nt.get('r', {VERSIONS => 2})\nt.scan LIMIT => 1\nt.name\nscan t\nt.help";
    let expected = [
        r#"get_table "ns:t""#,
        "=> Hbase::Table - ns:t",
        r#"put "ns:t", "r", "f:q", "v""#,
        r#"scan "ns:t""#,
        r#"get "ns:t", "r", {"VERSIONS" => 2}"#,
        r#"scan "ns:t", {"LIMIT" => 1}"#,
        r#"=> "ns:t""#,
        r#"scan "ns:t""#,
        "table_help",
    ];
    // Echoed, the table is the name that the command takes.
    assert_eq!(run(text, &[table("ns:t")]).unwrap(), expected);
    assert_eq!(
        run("t = get_table 't'; t.drop; t.enable", &[table("t")]).unwrap()[2..],
        [r#"drop "t""#, r#"enable "t""#]
    );
    assert_eq!(
        run("create('t', 'f').describe", &[table("t")]).unwrap()[1],
        r#"describe "t""#
    );
}

#[test]
fn values_of_commands_are_used() {
    let names = Value::Array(vec![Value::text("a"), Value::text("b")]);
    let text = "tables = list('t.*')\ntables.map { |t| disable t ; drop  t}\ntables.size\ntables[-1]";
    let expected = [
        r#"list "t.*""#,
        r#"=> ["a", "b"]"#,
        r#"disable "a""#,
        r#"drop "a""#,
        r#"disable "b""#,
        r#"drop "b""#,
        "=> 2",
        r#"=> "b""#,
    ];
    assert_eq!(run(text, std::slice::from_ref(&names)).unwrap(), expected);
    assert_eq!(
        run("list.each { |t| flush t }", &[names]).unwrap(),
        ["list", r#"flush "a""#, r#"flush "b""#]
    );
    assert_eq!(
        run("x = count 't'\nx + 1", &[Value::Integer(4)]).unwrap(),
        [r#"count "t""#, "=> 4", "=> 5"]
    );
}

#[test]
fn expressions_are_those_of_ruby() {
    for (text, expected) in [
        ("1 + 2 * 3 - 4 / 2", "5"),
        ("(1 + 2) * 3", "9"),
        ("-7 / 2", "-4"),
        ("-7 % 3", "2"),
        ("7 / -2", "-4"),
        ("1.5 * 2", "3.0"),
        ("x = 5\nx - 1", "4"),
        ("'a' + 'b' * 3", "\"abbb\""),
        ("\"#{1 + 1}-#{'x'}-#{nil}\"", "\"2-x-\""),
        (
            "'row%05d|%-4s|%x|%%|%3s' % [42, 'ab', 255, 'c']",
            "\"row00042|ab  |ff|%|  c\"",
        ),
        ("'%03d' % -5", "\"-05\""),
        (
            "7.to_s.rjust(3, '0') + 'ab'.ljust(4) + 'x'.upcase",
            "\"007ab  X\"",
        ),
        ("'12ab'.to_i + 'z'.to_i", "12"),
        ("65.chr + 'abc'.reverse", "\"Acba\""),
        ("[1, 2] + [3]", "[1, 2, 3]"),
        ("{'a' => 1}['a']", "1"),
        ("Bytes.toBytes(5)", "\"\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x05\""),
        ("org.apache.hadoop.hbase.util.Bytes.toBytes('ab')", "\"ab\""),
        ("Bytes.toBytesBinary('a\\x00\\\\x01')", "\"a\\x00\\x01\""),
        (
            "Bytes.toLong(\"\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x00\")",
            "256",
        ),
        ("Bytes.toStringBinary(\"\\xff\")", "\"\\x5CxFF\""),
        (
            "PrefixFilter.new(Bytes.toBytes(\"it's\"))",
            "\"PrefixFilter('it''s')\"",
        ),
        (
            "org.apache.hadoop.hbase.filter.ColumnPaginationFilter.new(1, 0)",
            "\"ColumnPaginationFilter(1, 0)\"",
        ),
    ] {
        let text = format!("y = {text}");
        let text = text.replacen("y = x = 5", "x = 5", 1);
        assert_eq!(steps(&text).last().unwrap(), &format!("=> {expected}"), "{text}");
    }
}

/// YCSB's instruction among them: the block of a map whose value is used is an expression.
#[test]
fn a_map_makes_an_array() {
    for (text, expected) in [
        (
            "n = 200\ncreate 't', 'f', {SPLITS => (1..n).map {|i| \"user#{1000+i*(9999-1000)/n}\"}[0]}",
            r#"create "t", "f", {"SPLITS" => "user1044"}"#,
        ),
        (
            "create 't', 'f', SPLITS => (1..3).map { |i| \"u#{-7 * i / 2}\" }",
            r#"create "t", "f", {"SPLITS" => ["u-4", "u-7", "u-11"]}"#,
        ),
        ("x %w(a b).map { |s| s + '!' }", r#"x ["a!", "b!"]"#),
        (
            "x ['a', 'b'].each_with_index.collect { |s, i| \"#{s}#{i}\" }.size",
            "x 2",
        ),
        ("y = (1..2).map { |i| i * 2 }", "=> [2, 4]"),
        ("y = [1, 2]; x y.map { |i| i + 1 }", "x [2, 3]"),
        ("%w(a b).each { |i| get i }", r#"get "b""#),
        ("(1..2).map { |i| get i }", "get 2"),
        ("i = 5; x (1..2).map { |i| i }; x i", "x 5"),
    ] {
        assert_eq!(steps(text).last().unwrap(), expected, "{text}");
    }
}

#[test]
fn constants_of_hbase_are_known() {
    for text in [
        "org.apache.hadoop.hbase.HConstants::ALL_VERSIONS",
        "HConstants::ALL_VERSIONS",
        "ALL_VERSIONS",
    ] {
        assert_eq!(
            steps(&format!("get {{VERSIONS => {text}}}")),
            [r#"get {"VERSIONS" => 2147483647}"#]
        );
    }
    assert_eq!(
        steps("x org.apache.hadoop.hbase.HConstants::FOREVER, HConstants::FOREVER"),
        ["x FOREVER, FOREVER"]
    );
}

#[test]
fn unsupported_ruby_has_a_reason() {
    for (text, why) in [
        (
            "x (1..9).map { |i| (1..9).map { |j| j } }",
            "a block in the block of map",
        ),
        (
            "x (1..9).map { |i| get i }",
            "the block of a map whose value is used is one expression",
        ),
        ("x (1..1000000).map { |i| i }", "at most 100000 rounds"),
        ("x (1..90000).map { |i| 'a' * 1000 }", "larger than"),
        ("x 'a'.map { |i| i }", "a loop goes over a range or an array"),
        ("y = org.apache.X::y", "X would be a Java class"),
        (
            "x = 1 + t.size",
            "'t' is no variable; a table gets one with t = get_table 'name'",
        ),
        (
            "get t, 'r'",
            "'t' has no meaning here (names are strings: write 't')",
        ),
        ("(1..1000000).each { |i| put 't', i }", "at most 100000 rounds"),
        ("300.times { 400.times { x = 1 } }", "at most 100000 rounds"),
        ("'x'.each { list }", "the method 'each' of a string"),
        ("x = 'a' + 1", "\"row#{i}\""),
        ("x = 1 / 0", "divided by 0"),
        ("x = 9223372036854775807 + 1", "outside of 64 bits"),
        ("x = 'a' * 99999999999", "larger than"),
        ("x = '%f' % 1.5", "the format %f is Ruby"),
        ("x = '%99999999d' % 1", "larger than"),
        ("x = '%d'", ""),
        ("x = '%d' % []", "fewer values"),
        ("x = 'aa'..'zz'", "single letters"),
        ("x = [3, 1].sort", "the method 'sort' of an array is Ruby"),
        ("x = Time.now.to_i", "a timestamp counts milliseconds since 1970"),
        (
            "Date.new(1218920189000).toString",
            "a timestamp counts milliseconds since 1970",
        ),
        (
            "java.text.SimpleDateFormat.new('yy')",
            "a timestamp counts milliseconds since 1970",
        ),
        ("java.lang.System.exit(1)", "System would be a Java class"),
        (
            "scan 't', {FILTER => org.apache.X.new(1)}",
            "X would be a Java class",
        ),
        (
            "scan 't', {FILTER => ValueFilter.new(1)}",
            "a filter is written as text: FILTER => \"PrefixFilter('x')\"",
        ),
        ("x = PrefixFilter.new([1])", "does not take an array"),
        ("x = Bytes.toLong('a')", "needs more bytes than the 1"),
        ("x = Bytes.toInteger('a')", "no converter"),
    ] {
        match run(text, &[]) {
            Err(error) => assert!(!why.is_empty() && error.contains(why), "{text}: {error}"),
            Ok(found) => assert!(why.is_empty(), "{text}: {found:?}"),
        }
    }
}

/// Pieces of which statements are made, so that random texts reach the evaluation.
const PIECES: &[&str] = &[
    "put ",
    "t",
    "x",
    " = ",
    "'a'",
    "\"b#{x}\"",
    "\"",
    "'",
    "#{",
    "}",
    "{",
    "[",
    "]",
    "(",
    ")",
    " do ",
    "|i|",
    " end",
    "for ",
    " in ",
    "0..9",
    "1...3",
    ".each",
    ".times ",
    ".upto(3)",
    ".to_s",
    ".map ",
    "%w(",
    "HConstants::ALL_VERSIONS",
    ".name",
    "\n",
    ";",
    ",",
    " => ",
    " + ",
    " - ",
    " * ",
    " % ",
    " / ",
    "-",
    "9223372036854775807",
    "0x",
    "1.5",
    "%05d",
    "Bytes.toBytes",
    "PrefixFilter.new",
    "org.apache.",
    "nil",
    "true",
    "LIMIT",
    ":",
    "::",
    "--once",
    "hbase> ",
    "\u{2018}",
    "\u{201d}",
    "\\x",
    "\\",
    "\u{e9}",
    "import ",
    "get_table ",
    "list",
];

proptest! {
    /// No text makes the shell panic, and every program ends.
    #[test]
    fn no_text_panics(text in prop_oneof![
        "\\PC*",
        proptest::collection::vec(proptest::sample::select(PIECES), 0..40).prop_map(|pieces| pieces.concat()),
    ]) {
        let answers = [table("t"), Value::Integer(1), Value::Array(vec![Value::Nil])];
        let _ = run(&text, &answers);
    }

    /// An echoed command can be typed again, and means the same.
    #[test]
    fn an_echoed_command_is_read_back(row: Vec<u8>, number: i64, key in "[A-Z]{1,9}") {
        let arguments = vec![Value::Bytes(row), Value::Integer(number), Value::Hash(vec![(key.into_bytes(), Value::Nil)])];
        let before = Command { name: "put".to_owned(), arguments };
        prop_assert_eq!(command(&before.to_string()), before);
    }
}
