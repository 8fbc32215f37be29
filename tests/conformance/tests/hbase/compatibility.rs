//! `docs/compatibility.md` and the code say the same: which methods, structs, filters, options and
//! attributes there are, and which test shows the page's statement on each.
//!
//! The code's side is taken from the interfaces' descriptors where there are some, and from the
//! literals of the sources that decide where there are none. Every method is called once on a real
//! server, with the least arguments that the interface allows: everything required, empty or zero;
//! it answers with a reply, a result or an exception that it declares.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use basalt_idl::call::{MethodDescriptor, ServiceDescriptor};
use basalt_idl::schema::{Requiredness, StructDescriptor, StructKind, TypeDescriptor};
use basalt_idl::wire::{BinaryReader, BinaryWriter, MessageKind, Reader, Writer};
use basalt_idl::{Decode, TApplicationException, admin, thrift1, thrift2};
use basalt_test_support::{Server, workspace};

/// A service, the heading of its table, and a method without arguments that no other service has: after it,
/// the connection means this service by the names that two services share.
const SERVICES: [(&ServiceDescriptor, &str, &str); 3] = [
    (&thrift1::SERVICE, "### Thrift 1, ", "getTableNames"),
    (&thrift2::SERVICE, "### Thrift 2, ", "listNamespaces"),
    (&admin::SERVICE, "### BasaltAdmin", "basaltServerStatus"),
];

const STRUCTS_1: &str = "### Structs of Thrift 1";
const STRUCTS_2: &str = "### Structs of Thrift 2";
const FAMILY_OPTIONS: &str = "## Family options";
const TABLE_OPTIONS: &str = "## Table options";
const FILTERS: &str = "### Filter classes";
const COMPARATORS: &str = "### Comparators";
const ATTRIBUTES: &str = "## Attributes";

const NATIVE_METHODS: &str = "### Native methods";
const NATIVE_ARGUMENTS: &str = "### Native arguments";
const ZOOKEEPER_NODES: &str = "### ZooKeeper nodes";

/// All tables of the page whose rows name tests.
const TABLES: [&str; 13] = [
    "### Thrift 1, ",
    "### Thrift 2, ",
    "### BasaltAdmin",
    STRUCTS_1,
    STRUCTS_2,
    NATIVE_METHODS,
    NATIVE_ARGUMENTS,
    ZOOKEEPER_NODES,
    FAMILY_OPTIONS,
    TABLE_OPTIONS,
    FILTERS,
    COMPARATORS,
    ATTRIBUTES,
];

const STATES: [&str; 3] = ["supported", "differs", "absent"];

/// One name of a table of the page, with its row: a row with several names states the same of each.
struct Row {
    name: String,
    state: String,
    test: String,
    /// The words behind the test.
    rest: Vec<String>,
}

fn read(path: &str) -> String {
    std::fs::read_to_string(workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rows of the table below a heading.
fn rows(heading: &str) -> Vec<Row> {
    let page = read("docs/compatibility.md");
    let (_, below) = page
        .split_once(&format!("\n{heading}"))
        .unwrap_or_else(|| panic!("docs/compatibility.md has no heading {heading:?}"));
    let chapter = below.split("\n#").next().unwrap_or_default();
    let rows: Vec<Row> = chapter
        .lines()
        .filter(|line| line.starts_with("| `"))
        .flat_map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [names, state, test, rest @ ..] = &cells[..] else {
                panic!("not a row of {heading:?}: {line}")
            };
            assert!(STATES.contains(state), "{names}: {state:?} is none of {STATES:?}");
            let explained = rest.iter().any(|cell| !cell.is_empty());
            assert!(
                explained || *state == "supported",
                "{names}: {state} without a word on how"
            );
            let row = |name: &str| Row {
                name: name.to_owned(),
                state: (*state).to_owned(),
                test: test.trim_matches('`').to_owned(),
                rest: rest.iter().map(|cell| (*cell).to_owned()).collect(),
            };
            quoted(names).map(row).collect::<Vec<_>>()
        })
        .collect();
    let names: BTreeSet<&str> = rows.iter().map(|row| &row.name[..]).collect();
    assert_eq!(names.len(), rows.len(), "{heading}: a name stands there twice");
    rows
}

fn names(heading: &str) -> BTreeSet<String> {
    rows(heading).into_iter().map(|row| row.name).collect()
}

/// The texts in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// All sources of the workspace with their text.
fn sources() -> BTreeMap<String, String> {
    fn walk(folder: &Path, found: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(folder).expect("a folder of the workspace") {
            let path = entry.expect("a folder can be listed").path();
            if path.is_dir() && !path.ends_with("target") {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source is text");
                found.insert(path.display().to_string(), text);
            }
        }
    }
    let mut found = BTreeMap::new();
    for folder in ["idl", "server", "client", "bench", "tests"] {
        walk(&workspace().join(folder), &mut found);
    }
    found
}

/// The file that has each test. A test that is generated is named in its macro like any other.
fn tests(sources: &BTreeMap<String, String>) -> BTreeMap<&str, Vec<&str>> {
    let mut tests: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (file, text) in sources {
        for after in text.split("#[test]").skip(1) {
            let declared = after.split_once("fn ").map(|(_, rest)| rest);
            let name = declared
                .and_then(|rest| rest.split_once('('))
                .map(|(name, _)| name);
            tests.entry(name.unwrap_or_default()).or_default().push(text);
            assert!(name.is_some(), "{file} has a #[test] without a function");
        }
    }
    tests
}

/// String literals of a source in front of its tests.
fn literals(path: &str) -> BTreeSet<String> {
    let text = read(path);
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let without_comments: Vec<&str> = code
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect();
    let joined = without_comments.join("\n");
    joined.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_row_names_a_test_that_there_is() {
    let sources = sources();
    let tests = tests(&sources);
    let mut problems = Vec::new();
    for heading in TABLES {
        let rows = rows(heading);
        assert!(!rows.is_empty(), "{heading} has no rows");
        for row in rows {
            if !tests.contains_key(&row.test[..]) {
                problems.push(format!(
                    "{heading}, {}: there is no test {:?}",
                    row.name, row.test
                ));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_page_lists_every_method_of_every_service() {
    for (service, heading, _) in SERVICES {
        let declared: BTreeSet<String> = service
            .methods
            .iter()
            .map(|method| method.name.to_owned())
            .collect();
        assert_eq!(names(heading), declared, "{heading}");
    }
}

/// The methods of the native services as `native` has them; its test `methods` compares the states
/// with a server's answers.
#[test]
fn the_page_lists_every_native_method() {
    use basalt_idl::native::messages as native;
    macro_rules! names {
        ($($method:ident),*) => {
            [$(native::$method::ALL
                .iter()
                .map(|method| format!("{}.{}", native::$method::SERVICE, method.name()))
                .collect::<Vec<_>>()),*]
        };
    }
    let declared = names!(
        ClientServiceMethod,
        MasterServiceMethod,
        AdminServiceMethod,
        ClientMetaServiceMethod,
        BootstrapNodeServiceMethod
    );
    let declared: BTreeSet<String> = declared.into_iter().flatten().collect();
    assert_eq!(names(NATIVE_METHODS), declared);
}

/// Arguments of the native protocol that the server does not read are on the page, and no others. An argument
/// is read if its field is named anywhere in the server outside of tests and comments.
#[test]
fn the_page_lists_every_native_argument() {
    // Messages of requests that no method of the tables takes: those of methods that are refused, and of
    // other services of HBase.
    const NOT_TAKEN: [&str; 2] = ["GetReplicationPeerStateRequest", "RemoteProcedureRequest"];
    // Messages inside of requests.
    // Tests fill in all fields, and a text of HBase's has the name of one.
    const NOT_READING: [&str; 2] = ["native/permissions.rs", "service/admin/peers.rs"];
    const PARTS: [&str; 11] = [
        "Action",
        "ColumnValue",
        "Condition",
        "Get",
        "MutationProto",
        "ProcedureDescription",
        "RegionAction",
        "RequestHeader",
        "Scan",
        "SnapshotDescription",
        "TimedQuota",
    ];
    let absent: BTreeSet<String> = rows(NATIVE_METHODS)
        .into_iter()
        .filter(|row| row.state == "absent")
        .filter_map(|row| Some(format!("{}Request", row.name.split_once('.')?.1).to_ascii_lowercase()))
        .collect();
    let server: String = sources()
        .iter()
        .filter(|(path, _)| !NOT_READING.iter().any(|file| path.ends_with(file)))
        .filter(|(path, _)| {
            ["/native/", "/service/"]
                .iter()
                .any(|folder| path.contains(&format!("server/src{folder}")))
        })
        .flat_map(|(_, text)| text.split("#[cfg(test)]").next().unwrap_or_default().lines())
        .map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n")
        .collect();
    let words: BTreeSet<&str> = server
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .collect();
    let messages = read("idl/src/native/messages.rs");
    let mut unread = BTreeSet::new();
    for message in messages.split("\npub struct ").skip(1) {
        let Some((name, rest)) = message.split_once(" {\n") else {
            continue;
        };
        let is_request = name.ends_with("Request") && !absent.contains(&name.to_ascii_lowercase());
        if !(is_request || PARTS.contains(&name)) || NOT_TAKEN.contains(&name) {
            continue;
        }
        let body = rest.split("\n}").next().unwrap_or_default();
        let fields = body
            .lines()
            .filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(':'));
        for (field, _) in fields {
            let field = field.trim_start_matches("r#");
            if !words.contains(field) {
                unread.insert(format!("{name}.{field}"));
            }
        }
    }
    assert_eq!(names(NATIVE_ARGUMENTS), unread);
}

/// The test that a method's row names sends that method: its arguments stand in the test's file, or
/// in a file shared by all tests.
#[test]
fn the_tests_of_methods_call_them() {
    let sources = sources();
    let tests = tests(&sources);
    let shared = read("tests/e2e/tests/api/client.rs");
    let mut problems = Vec::new();
    for (service, heading, _) in SERVICES {
        for row in rows(heading) {
            let method = service.methods.iter().find(|method| method.name == row.name);
            let arguments = method.expect("compared elsewhere").args.name;
            let calls = |text: &str| {
                ["one::", "two::", "own::"]
                    .iter()
                    .any(|alias| text.contains(&format!("{alias}{arguments}")))
            };
            let files = tests.get(&row.test[..]).into_iter().flatten();
            if !files.into_iter().any(|text| calls(text)) && !calls(&shared) {
                problems.push(format!("{heading}, {}: {} does not call it", row.name, row.test));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Structs that methods take, return or throw, by name.
fn structs(service: &ServiceDescriptor) -> BTreeMap<&'static str, &'static StructDescriptor> {
    fn add(of: &TypeDescriptor, found: &mut BTreeMap<&'static str, &'static StructDescriptor>) {
        match of {
            TypeDescriptor::List(element) | TypeDescriptor::Set(element) => add(element, found),
            TypeDescriptor::Map(key, value) => {
                add(key, found);
                add(value, found);
            }
            TypeDescriptor::Struct(of) if found.insert(of.name, of).is_none() => {
                of.fields.iter().for_each(|field| add(&field.ty, found));
            }
            _ => {}
        }
    }
    let mut found = BTreeMap::new();
    for method in service.methods {
        let fields = method.args.fields.iter().map(|field| &field.ty);
        fields.chain([&method.returns]).for_each(|ty| add(ty, &mut found));
        for throws in method.throws {
            found.insert(throws.exception.name, throws.exception);
        }
    }
    found
}

#[test]
fn the_page_lists_every_field_of_every_struct() {
    for (service, heading) in [(&thrift1::SERVICE, STRUCTS_1), (&thrift2::SERVICE, STRUCTS_2)] {
        let structs = structs(service);
        let rows = rows(heading);
        let declared: BTreeSet<&str> = structs.keys().copied().collect();
        let documented: BTreeSet<&str> = rows.iter().map(|row| &row.name[..]).collect();
        assert_eq!(documented, declared, "{heading}");
        for row in &rows {
            let [same, other, ..] = &row.rest[..] else {
                panic!("{}: not five columns", row.name)
            };
            let as_in_hbase = same.split(", ").filter(|field| !field.is_empty());
            let mut fields: Vec<&str> = as_in_hbase.chain(quoted(other)).collect();
            fields.sort_unstable();
            let of = structs[&row.name[..]];
            let mut declared: Vec<&str> = of.fields.iter().map(|field| field.name).collect();
            declared.sort_unstable();
            assert_eq!(fields, declared, "{heading}, {}", row.name);
            let all_as_in_hbase = quoted(other).next().is_none();
            assert_eq!(row.state == "supported", all_as_in_hbase, "{}", row.name);
            assert!(of.kind != StructKind::Union || of.fields.len() == 2);
        }
    }
}

/// The filters and comparators that the two parsers know, and no others.
#[test]
fn the_page_lists_every_filter_and_comparator() {
    let known = |word: &str| -> BTreeSet<String> {
        let folder = "idl/types/src/filter";
        let in_strings = literals(&format!("{folder}/parse/calls.rs"));
        let in_protobuf = literals(&format!("{folder}/proto/decode.rs"));
        in_strings
            .into_iter()
            .chain(in_protobuf)
            .filter(|literal| literal.ends_with(word) || literal.starts_with(word))
            .filter(|literal| literal.chars().all(char::is_alphanumeric))
            .collect()
    };
    assert_eq!(names(FILTERS), known("Filter"));
    assert_eq!(names(COMPARATORS), known("Comparator"));
}

/// Every word in capitals that the server, the engine and the shell know of schemas, and every name of a
/// setting, is an option on the page, or stands in the note of one.
#[test]
fn the_page_lists_every_option() {
    let is_option = |literal: &String| {
        let shape = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        literal.len() > 2
            && literal.starts_with(|c: char| c.is_ascii_uppercase())
            && literal.chars().all(shape)
            || literal.starts_with("hbase.")
            || literal.contains("Policy.")
    };
    let mut known: BTreeSet<String> = [
        "server/src/service/schema.rs",
        "server/src/thrift/schema/mod.rs",
        "server/src/thrift/schema/family.rs",
        "idl/types/src/schema/family.rs",
        "idl/types/src/schema/table.rs",
        "idl/types/src/schema/split.rs",
        "idl/types/src/schema/cell_limit.rs",
        "idl/types/src/schema/normalizer.rs",
        "idl/types/src/schema/store_options.rs",
        "idl/types/src/schema/user_code.rs",
        "client/shell/src/schema_text.rs",
    ]
    .into_iter()
    .flat_map(literals)
    .filter(is_option)
    .collect();
    // Keywords of the shell: a family's name, its two maps, and a table's own options.
    for word in ["NAME", "CONFIGURATION", "METADATA", "TABLE_ATTRIBUTES"] {
        assert!(known.remove(word), "the shell knows {word}");
    }
    // States of tables, which are no options.
    for word in ["ENABLED", "DISABLED"] {
        assert!(known.remove(word), "{word} is a state");
    }
    let mut on_the_page = BTreeSet::new();
    for heading in [FAMILY_OPTIONS, TABLE_OPTIONS] {
        for row in rows(heading) {
            let values = row.rest.iter().flat_map(|note| quoted(note));
            on_the_page.extend(values.map(str::to_owned));
            on_the_page.insert(row.name);
        }
    }
    let missing: Vec<_> = known.difference(&on_the_page).collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");
}

/// The options whose row says that they are only stored are those of `without_effect`, of which the shell
/// warns, and no others.
#[test]
fn the_page_lists_every_option_without_effect() {
    use basalt_engine::schema::without_effect::{OF_FAMILY, OF_TABLE, SETTINGS};
    let stored = |heading: &str| -> BTreeSet<String> {
        let is_stored = |row: &Row| row.rest.iter().any(|note| note.starts_with("stored"));
        let rows = rows(heading).into_iter().filter(is_stored);
        rows.map(|row| row.name).collect()
    };
    let names = |options: &[(&str, &str)]| options.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut of_table: BTreeSet<String> = names(&OF_TABLE);
    of_table.extend(SETTINGS.map(str::to_owned));
    // A new table has it, so that the shell would warn of what nobody has set.
    of_table.insert("hbase.store.file-tracker.impl".to_owned());
    assert_eq!(stored(FAMILY_OPTIONS), names(&OF_FAMILY));
    assert_eq!(stored(TABLE_OPTIONS), of_table);
}

/// Attributes that the server looks at are on the page, and it looks at none that the page calls absent.
#[test]
fn the_page_lists_every_attribute() {
    let looked_at: BTreeSet<String> = ["mod.rs", "reads.rs", "writes.rs"]
        .into_iter()
        .flat_map(|file| literals(&format!("server/src/thrift/from_thrift/{file}")))
        .filter(|literal| literal.starts_with('_'))
        .collect();
    let rows = rows(ATTRIBUTES);
    let acted_on: BTreeSet<String> = rows
        .iter()
        .filter(|row| row.state == "supported" && row.name.starts_with('_'))
        .map(|row| row.name.clone())
        .collect();
    assert_eq!(looked_at, acted_on);
}

/// Writes a struct with everything that must be there, and at the top level everything that may.
fn put_struct(writer: &mut BinaryWriter<'_>, of: &StructDescriptor, is_top: bool) {
    writer.struct_begin();
    for field in of.fields {
        if is_top || field.requiredness == Requiredness::Required {
            writer.field_begin(field.id, field.ty.wire_type());
            put_least(writer, &field.ty);
        }
    }
    writer.struct_end();
}

/// Writes the least value of a type.
fn put_least(writer: &mut BinaryWriter<'_>, of: &TypeDescriptor) {
    match of {
        TypeDescriptor::Void => {}
        TypeDescriptor::Bool => writer.bool(false),
        TypeDescriptor::I8 => writer.i8(0),
        TypeDescriptor::I16 => writer.i16(0),
        TypeDescriptor::I32 | TypeDescriptor::Enum(_) => writer.i32(0),
        TypeDescriptor::I64 => writer.i64(0),
        TypeDescriptor::Binary | TypeDescriptor::String => writer.binary(b""),
        TypeDescriptor::List(element) => writer.list_begin(element.wire_type(), 0),
        TypeDescriptor::Set(element) => writer.set_begin(element.wire_type(), 0),
        TypeDescriptor::Map(key, value) => writer.map_begin(key.wire_type(), value.wire_type(), 0),
        TypeDescriptor::Struct(of) => put_struct(writer, of, false),
    }
}

/// A connection that speaks framed binary.
struct Wire(TcpStream);

impl Wire {
    fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("the main port is open");
        socket
            .set_read_timeout(Some(Duration::from_mins(1)))
            .expect("a socket has timeouts");
        Self(socket)
    }

    /// Calls a method with the least arguments: `None` for a reply, the exception otherwise.
    fn call(&mut self, method: &MethodDescriptor) -> Option<TApplicationException> {
        let mut message = vec![0; 4];
        let mut writer = BinaryWriter::new(&mut message);
        writer.message_begin(method.name, MessageKind::Call, 1);
        put_struct(&mut writer, method.args, true);
        let length = u32::try_from(message.len() - 4).expect("the message is short");
        message[..4].copy_from_slice(&length.to_be_bytes());
        self.0.write_all(&message).expect("the server reads");

        let mut length = [0; 4];
        self.0.read_exact(&mut length).expect("the server answers");
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut answer).expect("an answer is whole");
        let mut reader = BinaryReader::new(answer.into());
        let header = reader.message_begin().expect("an answer has a header");
        assert_eq!(header.name(), method.name);
        (header.kind == MessageKind::Exception)
            .then(|| TApplicationException::decode(&mut reader).expect("an exception can be read"))
    }
}

#[test]
fn the_server_answers_every_method() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    for (service, heading, own) in SERVICES {
        let mut wire = Wire::connect(server.thrift);
        let own = service
            .methods
            .iter()
            .find(|method| method.name == own)
            .expect("the service has it");
        assert_eq!(wire.call(own), None, "{}", own.name);
        for method in service.methods {
            assert_eq!(wire.call(method), None, "{heading}, {}", method.name);
        }
    }
    server.stop();
}
