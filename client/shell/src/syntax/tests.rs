//! Commands as text against their meaning, and what is refused.

use super::{NOT_RUBY, Source, Value, parse};
use crate::program::command;

fn bytes(text: impl AsRef<[u8]>) -> Value {
    Value::Bytes(text.as_ref().to_vec())
}

fn hash(pairs: &[(&str, Value)]) -> Value {
    let pairs = pairs
        .iter()
        .map(|(key, value)| (key.as_bytes().to_vec(), value.clone()));
    Value::Hash(pairs.collect())
}

/// The arguments of the only command in `text`.
fn arguments(text: &str) -> Vec<Value> {
    let statements = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(statements.len(), 1, "{text}");
    command(text).arguments
}

#[test]
fn commands_of_the_hbase_book() {
    let name_f = ("NAME", bytes("f"));
    let table = [
        ("list", vec![]),
        ("create 't', 'f'", vec![bytes("t"), bytes("f")]),
        ("create('t', 'f')", vec![bytes("t"), bytes("f")]),
        (
            "create 't', {NAME => 'f', VERSIONS => 3}",
            vec![
                bytes("t"),
                hash(&[name_f.clone(), ("VERSIONS", Value::Integer(3))]),
            ],
        ),
        (
            "create 't', NAME => 'f', BLOCKCACHE => true",
            vec![
                bytes("t"),
                hash(&[name_f.clone(), ("BLOCKCACHE", Value::Bool(true))]),
            ],
        ),
        (
            "create 't', 'f', SPLITS => ['a', \"b\"]",
            vec![
                bytes("t"),
                bytes("f"),
                hash(&[("SPLITS", Value::Array(vec![bytes("a"), bytes("b")]))]),
            ],
        ),
        (
            "put 't','r','f:q','v',-5",
            vec![
                bytes("t"),
                bytes("r"),
                bytes("f:q"),
                bytes("v"),
                Value::Integer(-5),
            ],
        ),
        (
            "scan 't', {\n  STARTROW => 'a', # from here\n  LIMIT => 1_000 }",
            vec![
                bytes("t"),
                hash(&[("STARTROW", bytes("a")), ("LIMIT", Value::Integer(1000))]),
            ],
        ),
        (
            "alter 't', 'delete' => 'f'",
            vec![bytes("t"), hash(&[("delete", bytes("f"))])],
        ),
        (
            "create 't', {NAME => 'f', TTL => FOREVER, CONFIGURATION => {'a.b' => '1'}}",
            vec![
                bytes("t"),
                hash(&[
                    name_f,
                    ("TTL", Value::Constant("FOREVER".to_owned())),
                    ("CONFIGURATION", hash(&[("a.b", bytes("1"))])),
                ]),
            ],
        ),
        (
            "get 't', :r, versions: 2, FILTER => \"ValueFilter(=, 'binary:x')\"",
            vec![
                bytes("t"),
                bytes("r"),
                hash(&[
                    ("versions", Value::Integer(2)),
                    ("FILTER", bytes("ValueFilter(=, 'binary:x')")),
                ]),
            ],
        ),
        (
            "x [], {}, nil, 0xff, 1.5",
            vec![
                Value::Array(vec![]),
                Value::Hash(vec![]),
                Value::Nil,
                Value::Integer(255),
                Value::Float(1.5),
            ],
        ),
    ];
    for (text, expected) in table {
        assert_eq!(arguments(text), expected, "{text}");
    }
}

#[test]
fn strings_are_bytes() {
    let table: [(&str, &[u8]); 10] = [
        (r#""\x00\xfF\x1""#, b"\x00\xff\x01"),
        (r#""\0\101\377""#, b"\x00A\xff"),
        (r#""\n\t\\\"\'\q\#""#, b"\n\t\\\"'q#"),
        (r#""\u00e9\u{1F600}""#, "\u{e9}\u{1f600}".as_bytes()),
        (r"'\x00'", br"\x00"),
        (r"'it\'s \\ \n'", br"it's \ \n"),
        ("'\u{e9}'", "\u{e9}".as_bytes()),
        ("'a\nb'", b"a\nb"),
        ("''", b""),
        (r#""a'b""#, b"a'b"),
    ];
    for (text, expected) in table {
        assert_eq!(arguments(&format!("x {text}")), [bytes(expected)], "{text}");
    }
}

#[test]
fn several_commands() {
    let names = |text| {
        let name = |source| match source {
            Source::Command(name, _) | Source::Name(name) => name,
            Source::Expression(value) => panic!("{value:?}"),
        };
        let statements = parse(text).unwrap().into_iter();
        statements
            .map(|statement| name(statement.source))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names("list; version\n\n # nothing\nstatus;"),
        ["list", "version", "status"]
    );
    assert_eq!(names("put 't',\n 'r'\nlist"), ["put", "list"]);
    assert_eq!(names(" # only a comment"), [] as [&str; 0]);
}

#[test]
fn mistakes_have_a_place_and_a_hint() {
    let table = [
        (
            "list 't' 'u'",
            "line 1, column 10: expected the end of the command, found '\\'' (arguments are separated by commas, commands by newlines or ';')",
        ),
        (
            "LIST",
            "line 1, column 1: 'LIST' is no command (commands are in lower case: list)",
        ),
        (
            "list\nput 't', \"#{x\"",
            "line 2, column 14: expected '}', found '\\\"'",
        ),
        (
            "list /t.*/",
            "line 1, column 6: expected a value, found '/' (a regular expression is a string: 'abc.*')",
        ),
        (
            "disable(list())",
            "line 1, column 9: 'list(' is a command inside of another (its value can be used after it has a name: x = list(...))",
        ),
        ("}", "line 1, column 1: expected a command, found '}'"),
        (
            "x A => 1, 'b'",
            "line 1, column 11: a value stands behind a pair without braces (pairs come last; put braces around them: { KEY => value })",
        ),
        (
            "x {'a'}",
            "line 1, column 3: braces hold a value that is no pair (write { KEY => value })",
        ),
        (
            "x 99999999999999999999",
            "line 1, column 3: '99999999999999999999' is no number of 64 bits",
        ),
        ("x \"\\xg\"", "line 1, column 4: \\x is followed by no hex digit"),
        ("x \"\\400\"", "line 1, column 4: octal escape is above \\377"),
        (
            "x [1] => 2",
            "line 1, column 3: a key is a string, a symbol or a constant",
        ),
        ("x -", "line 1, column 3: '-' is no number of 64 bits"),
    ];
    for (text, expected) in table {
        let error = parse(text).unwrap_err();
        let shown = error.to_string();
        assert_eq!(shown.matches(NOT_RUBY).count(), 1, "{text}: {shown}");
        let own = shown.replace(&format!("; {NOT_RUBY}"), "");
        let own = own.replace(&format!(" ({NOT_RUBY})"), "");
        assert_eq!(own, expected, "{text}");
        assert!(!error.incomplete, "{text}");
    }
}

#[test]
fn words_are_an_array() {
    for (text, words) in [
        ("x %w(a b c)", &["a", "b", "c"][..]),
        ("x(%w[ a\n b ])", &["a", "b"]),
        ("x %w<a <b> c>", &["a", "<b>", "c"]),
        ("x %w|a\\ b c\\|d|", &["a b", "c|d"]),
        ("x %w()", &[]),
    ] {
        let expected = Value::Array(words.iter().map(bytes).collect());
        assert_eq!(arguments(text), [expected], "{text}");
    }
    assert!(parse("x %w(a").unwrap_err().incomplete);
    assert!(parse("x %W(a)").unwrap_err().to_string().contains(NOT_RUBY));
}

/// A person at the prompt may go on in the next line.
#[test]
fn text_that_stops_early_is_incomplete() {
    for text in [
        "put 't',",
        "scan 't', {",
        "scan 't', {A =>",
        "x [1,",
        "x 'abc",
        "x \"abc\\",
        "x(",
        "for i in 0..9 do",
        "10.times {",
        "t.each do |x|\n put 't'",
        "x = ",
        "put 't', \"#{i",
    ] {
        assert!(parse(text).unwrap_err().incomplete, "{text}");
    }
}

/// Goal: what this shell lacks of Ruby is refused by name, with one sentence that says what to do.
#[test]
fn ruby_is_refused_by_name() {
    for (text, what) in [
        ("if exists 't'\n list\nend", "if"),
        ("list if true", "if"),
        ("while true do list end", "while"),
        ("def f\nend", "def"),
        ("require 'date'", "require"),
        ("include Java", "include"),
        ("@shell.hbase.configuration.get('x')", "@"),
        ("$x = 1", "$"),
        ("x = 1 == 2", "="),
        ("i += 1", "+="),
        ("IRB.conf[:ECHO] = false", "="),
        ("x = true ? 1 : 2", "?"),
        ("import foo", "import"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.message, format!("'{what}' is Ruby"), "{text}");
        let hint = error.hint.unwrap();
        assert!(
            hint.contains("HBase's own shell is Ruby and works with this server"),
            "{hint}"
        );
    }
}

/// Commands that were copied with the prompt, from a page with typographic quotes, or with an
/// option of a program.
#[test]
fn copied_text_is_read() {
    for (text, name, values) in [
        (
            "hbase(main):001:0> get \u{2018}t\u{2019}, 'r'",
            "get",
            &["t", "r"][..],
        ),
        ("hbase(main):011 > list", "list", &[]),
        ("hbase:001:0> list 'a'", "list", &["a"]),
        ("hbase> scan \u{201c}t\u{201d}", "scan", &["t"]),
        ("basalt> top --once", "top", &["--once"]),
        (
            "put \u{2018}r1\u{2019} ,\u{2019}f\u{2019}, \u{2018}v\u{2019}",
            "put",
            &["r1", "f", "v"],
        ),
    ] {
        let found = command(text);
        assert_eq!(found.name, name, "{text}");
        let values: Vec<Value> = values.iter().map(bytes).collect();
        assert_eq!(found.arguments, values, "{text}");
    }
}

#[test]
fn deep_brackets_are_refused() {
    for (begin, bracket) in [
        ("x ", "["),
        ("x ", "("),
        ("x ", "{A => "),
        ("x ", "\"#{"),
        ("x ", "-("),
        ("", "3.times { "),
        ("", "x["),
        ("", "for i in 1..2 do "),
    ] {
        let text = format!("{begin}{}", bracket.repeat(100_000));
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.contains("deeper than 64"), "{bracket}: {error}");
    }
}
