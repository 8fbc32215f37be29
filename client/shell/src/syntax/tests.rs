//! Commands as text against their meaning, written in Rust's debug form.

use super::{Command, Value, parse};

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
    let commands = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(commands.len(), 1, "{text}");
    commands.into_iter().next().unwrap().arguments
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
        let commands = parse(text).unwrap();
        commands
            .into_iter()
            .map(|Command { name, .. }| name)
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
            "get t, 'r'",
            "line 1, column 5: 't' has no meaning here (names are strings: write 't')",
        ),
        (
            "scan 't', {FILTER => org.apache.X.new(1)}",
            "line 1, column 22: 'org.' would be a Java object, and this shell is not Java (a filter is written as text: FILTER => \"PrefixFilter('x')\")",
        ),
        (
            "list 't' 'u'",
            "line 1, column 10: expected the end of the command, found '\\'' (arguments are separated by commas, commands by newlines or ';')",
        ),
        (
            "LIST",
            "line 1, column 1: 'LIST' is no command (commands are in lower case: list)",
        ),
        (
            "list\nput 't', \"#{x}\"",
            "line 2, column 11: interpolation is Ruby and not available (write \\# for the character itself)",
        ),
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
        assert_eq!(error.to_string(), expected, "{text}");
        assert!(!error.incomplete, "{text}");
    }
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
    ] {
        assert!(parse(text).unwrap_err().incomplete, "{text}");
    }
}

#[test]
fn deep_brackets_are_refused() {
    let text = format!("x {}", "[".repeat(100_000));
    assert!(parse(&text).unwrap_err().to_string().contains("deeper than 64"));
}
