//! `docs/compatibility.md` and the server say the same: which methods there are, and which of them are served.
//!
//! Every method is called once on a real server, with the least arguments that the interface allows: everything required, empty
//! or zero. A served method answers with a reply (a result or an exception that it declares), one that is not served with
//! UNKNOWN_METHOD.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use basalt_idl::call::{MethodDescriptor, ServiceDescriptor};
use basalt_idl::schema::{Requiredness, StructDescriptor, TypeDescriptor};
use basalt_idl::wire::{BinaryReader, BinaryWriter, MessageKind, Reader, Writer};
use basalt_idl::{Decode, TApplicationException, TApplicationExceptionType, admin, thrift1, thrift2};
use basalt_tests::{Server, workspace};

/// A service, the heading of its table, and a method without arguments that no other service has: after it, the connection
/// means this service by the names that two services share.
const SERVICES: [(&ServiceDescriptor, &str, &str); 3] = [
    (&thrift1::SERVICE, "### Thrift 1", "getTableNames"),
    (&thrift2::SERVICE, "### Thrift 2", "listNamespaces"),
    (&admin::SERVICE, "### BasaltAdmin", "basaltServerStatus"),
];

/// What the second column of a table may say, and whether the server answers such a method.
const STATES: [(&str, bool); 3] = [("served", true), ("differs", true), ("not served", false)];

fn page() -> String {
    std::fs::read_to_string(workspace().join("docs/compatibility.md")).expect("the page is there")
}

/// The methods in the table below a heading, and whether they are served.
fn documented(page: &str, heading: &str) -> BTreeMap<String, bool> {
    let (_, below) = page
        .split_once(heading)
        .unwrap_or_else(|| panic!("docs/compatibility.md has no heading {heading:?}"));
    let table = below.split("\n#").next().unwrap_or_default();
    let mut methods = BTreeMap::new();
    for line in table.lines().filter(|line| line.starts_with("| `")) {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let (name, state) = (columns[1].trim_matches('`'), columns[2]);
        let (_, is_served) = STATES
            .into_iter()
            .find(|(word, _)| *word == state)
            .unwrap_or_else(|| panic!("{name}: {state:?} is none of {STATES:?}"));
        let twice = methods.insert(name.to_owned(), is_served);
        assert_eq!(twice, None, "{name} stands twice below {heading:?}");
    }
    methods
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
        let socket = TcpStream::connect(address).expect("the Thrift port is open");
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
fn the_page_lists_every_method_of_every_service() {
    let page = page();
    for (service, heading, _) in SERVICES {
        let documented: BTreeSet<String> = documented(&page, heading).into_keys().collect();
        let declared: BTreeSet<String> = service
            .methods
            .iter()
            .map(|method| method.name.to_owned())
            .collect();
        assert_eq!(documented, declared, "{heading}");
    }
}

#[test]
fn the_server_serves_what_the_page_says() {
    let page = page();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(&dir.path().join("data"), &[]);
    for (service, heading, own) in SERVICES {
        let documented = documented(&page, heading);
        let mut wire = Wire::connect(server.thrift);
        let own = service
            .methods
            .iter()
            .find(|method| method.name == own)
            .expect("the service has it");
        assert_eq!(wire.call(own), None, "{}", own.name);
        for method in service.methods {
            let answer = wire.call(method);
            let what = format!("{heading}, {}: {answer:?}", method.name);
            match documented.get(method.name) {
                Some(true) => assert_eq!(answer, None, "the page says that it is served: {what}"),
                Some(false) => assert_eq!(
                    answer.and_then(|exception| exception.kind),
                    Some(TApplicationExceptionType::UNKNOWN_METHOD),
                    "the page says that it is not served: {what}"
                ),
                None => panic!("not on the page: {what}"),
            }
        }
    }
    server.stop();
}
