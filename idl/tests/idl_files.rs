//! Goal: the `.thrift` files and the Rust declarations say the same, with nothing missing on either side.
//! Method: parse the files with a small parser, print both sides in one plain form, and compare.

use std::collections::BTreeMap;
use std::fmt::Write;

use basalt_idl::call::{MethodClass, MethodDescriptor, ServiceDescriptor};
use basalt_idl::schema::{EnumDescriptor, FieldDescriptor, Requiredness, StructDescriptor, StructKind};
use basalt_idl::{admin, thrift1, thrift2};

/// One line for each declaration, by its kind and name.
type Declarations = BTreeMap<String, String>;

/// The words and signs of a file, without comments.
fn tokens(source: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let len = if rest.starts_with("/*") {
            rest = &rest[rest.find("*/").expect("comment ends") + 2..];
            continue;
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first == '"' {
            rest[1..].find('"').expect("string ends") + 2
        } else if first.is_alphanumeric() || first == '_' || first == '-' {
            let word = |c: char| c.is_alphanumeric() || "_.-".contains(c);
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, behind) = rest.split_at(len);
        if !token.trim().is_empty() && !token.starts_with("//") {
            out.push(token.to_owned());
        }
        rest = behind;
    }
    out
}

struct Parser {
    tokens: Vec<String>,
    at: usize,
    typedefs: BTreeMap<String, String>,
}

impl Parser {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn next(&mut self) -> String {
        let token = self.peek().to_owned();
        assert!(!token.is_empty(), "the file ends inside a declaration");
        self.at += 1;
        token
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, token: &str) {
        let found = self.next();
        assert_eq!(found, token, "at token {}", self.at);
    }

    fn ty(&mut self) -> String {
        let name = self.next();
        if self.eat("<") {
            let mut of = vec![self.ty()];
            while self.eat(",") {
                of.push(self.ty());
            }
            self.expect(">");
            return format!("{name}<{}>", of.join(","));
        }
        self.typedefs.get(&name).cloned().unwrap_or(name)
    }

    /// `1: required type name = default` up to the closing sign, in plain form.
    fn fields(&mut self, close: &str) -> String {
        let mut out = String::new();
        while !self.eat(close) {
            let id = self.next();
            self.expect(":");
            let requiredness = match self.peek() {
                "required" | "optional" => self.next(),
                _ => "default".to_owned(),
            };
            let (ty, name) = (self.ty(), self.next());
            let default = if self.eat("=") {
                self.next()
            } else {
                "-".to_owned()
            };
            write!(out, "{id} {requiredness} {ty} {name} {default}; ").unwrap();
            self.eat(",");
        }
        out
    }

    fn method(&mut self, out: &mut Declarations, service: &str) {
        let (ty, name) = (self.ty(), self.next());
        self.expect("(");
        let args = self.fields(")");
        let throws = if self.eat("throws") {
            self.expect("(");
            self.fields(")")
        } else {
            String::new()
        };
        self.eat(",");
        let throws = throws.replace(" default ", " ").replace(" -;", ";");
        assert!(
            out.insert(
                format!("{service}.{name}"),
                format!("{ty} ({args}) throws ({throws})")
            )
            .is_none()
        );
    }

    fn file(mut self) -> Declarations {
        let mut out = Declarations::new();
        while self.at < self.tokens.len() {
            match self.next().as_str() {
                "namespace" => self.at += 2,
                "typedef" => {
                    let (ty, name) = (self.ty(), self.next());
                    self.typedefs.insert(name, ty);
                }
                "enum" => {
                    let name = self.next();
                    self.expect("{");
                    let mut values = String::new();
                    while !self.eat("}") {
                        let value = self.next();
                        self.expect("=");
                        write!(values, "{value} {}; ", self.next()).unwrap();
                        self.eat(",");
                    }
                    out.insert(format!("enum {name}"), values);
                }
                "service" => {
                    let name = self.next();
                    self.expect("{");
                    while !self.eat("}") {
                        self.method(&mut out, &name);
                    }
                }
                kind @ ("struct" | "union" | "exception") => {
                    let name = self.next();
                    self.expect("{");
                    let fields = self.fields("}");
                    out.insert(format!("{kind} {name}"), fields);
                }
                other => panic!("unexpected {other:?}"),
            }
        }
        out
    }
}

fn parse(source: &str) -> Declarations {
    Parser {
        tokens: tokens(source),
        at: 0,
        typedefs: BTreeMap::new(),
    }
    .file()
}

fn fields(fields: &[FieldDescriptor]) -> String {
    fields.iter().fold(String::new(), |mut out, field| {
        let requiredness = match field.requiredness {
            Requiredness::Required => "required",
            Requiredness::Optional => "optional",
            Requiredness::Default => "default",
        };
        let default = field.default.unwrap_or("-").replace(' ', "").replace("::", ".");
        let default = if default.starts_with(|c: char| c.is_ascii_digit()) {
            default.replace('_', "")
        } else {
            default
        };
        write!(
            out,
            "{} {requiredness} {} {} {default}; ",
            field.id, field.ty, field.name
        )
        .unwrap();
        out
    })
}

fn method(method: &MethodDescriptor) -> String {
    let throws = method.throws.iter().fold(String::new(), |mut out, throws| {
        write!(out, "{} {} {}; ", throws.id, throws.exception.name, throws.name).unwrap();
        out
    });
    format!(
        "{} ({}) throws ({throws})",
        method.returns,
        fields(method.args.fields)
    )
}

fn declared(
    structs: &[&StructDescriptor],
    enums: &[&EnumDescriptor],
    service: &ServiceDescriptor,
) -> Declarations {
    let mut out = Declarations::new();
    for of in structs {
        let kind = match of.kind {
            StructKind::Struct => "struct",
            StructKind::Union => "union",
            StructKind::Exception => "exception",
        };
        out.insert(format!("{kind} {}", of.name), fields(of.fields));
    }
    for of in enums {
        let values = of.values.iter().fold(String::new(), |mut out, (name, code)| {
            write!(out, "{name} {code}; ").unwrap();
            out
        });
        out.insert(format!("enum {}", of.name), values);
    }
    for of in service.methods.iter().filter(|method| !method.legacy) {
        out.insert(format!("{}.{}", service.name, of.name), method(of));
    }
    out
}

/// Compares one file with one module; gives the number of declarations.
fn check(file: &str, rust: &Declarations) -> usize {
    let idl = parse(file);
    let names = |of: &Declarations| of.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&idl), names(rust));
    for (name, declaration) in &idl {
        assert_eq!(declaration, &rust[name], "{name}");
    }
    idl.len()
}

const THRIFT1: &str = include_str!("../thrift1/Hbase.thrift");
const THRIFT2: &str = include_str!("../thrift2/hbase.thrift");
const BASALT: &str = include_str!("../basalt.thrift");

// The numbers of declarations of HBase's two files are those of its own: enums, structs, unions, exceptions,
// methods.

#[test]
fn thrift1_is_what_its_file_says() {
    let rust = declared(thrift1::STRUCTS, thrift1::ENUMS, &thrift1::SERVICE);
    assert_eq!(check(THRIFT1, &rust), 2 + 11 + 3 + 49);
}

#[test]
fn thrift2_is_what_its_file_says() {
    let rust = declared(thrift2::STRUCTS, thrift2::ENUMS, &thrift2::SERVICE);
    assert_eq!(check(THRIFT2, &rust), 13 + 24 + 1 + 2 + 51);
}

#[test]
fn admin_is_what_its_file_says() {
    let rust = declared(admin::STRUCTS, admin::ENUMS, &admin::SERVICE);
    assert_eq!(check(BASALT, &rust), 5 + 13 + 1 + 27);
}

/// The comparison must see a changed number, type, keyword, default and a lost field or method.
#[test]
fn a_difference_is_seen() {
    let good = parse(THRIFT2);
    for (from, to) in [
        ("1: required i64 minStamp", "2: required i64 minStamp"),
        ("1: required i64 minStamp", "1: required i32 minStamp"),
        ("1: required i64 minStamp", "1: optional i64 minStamp"),
        ("1: required i64 minStamp", "1: required i64 minStamp = 3"),
        ("1: required i64 minStamp,", ""),
        ("DELETE_FAMILY = 2", "DELETE_FAMILY = 7"),
        (
            "bool exists(1: required binary table, 2: required TGet tget) throws (1: TIOError io),",
            "",
        ),
        ("bool exists(1:", "i32 exists(1:"),
    ] {
        assert!(THRIFT2.contains(from), "{from}");
        assert_ne!(parse(&THRIFT2.replacen(from, to, 1)), good, "{from} -> {to}");
    }
}

#[test]
fn legacy_methods_are_marked() {
    let legacy = |service: &ServiceDescriptor| {
        service
            .methods
            .iter()
            .filter(|method| method.legacy)
            .map(|method| method.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(legacy(&thrift1::SERVICE), ["getRowOrBefore"]);
    assert_eq!(legacy(&thrift2::SERVICE), ["isTableAvailableWithSplit"]);
    assert_eq!(legacy(&admin::SERVICE), [""; 0]);
}

/// Idempotent methods change no data, and methods of administration do not run on network threads.
#[test]
fn attributes_agree_with_each_other() {
    let services = [&thrift1::SERVICE, &thrift2::SERVICE, &admin::SERVICE];
    for method in services.iter().flat_map(|service| service.methods) {
        let name = method.name;
        match method.class {
            // An open scanner is moved by each fetch.
            MethodClass::Read => {
                let moves = name == "getScannerRows" || name == "openScanner" || name == "closeScanner";
                assert_eq!(
                    method.idempotent,
                    !moves && !name.starts_with("scanner"),
                    "{name}"
                );
            }
            MethodClass::Write => assert!(!method.idempotent, "{name}"),
            MethodClass::Admin => assert!(!method.inline, "{name}"),
        }
    }
}

/// A result is decoded by field id alone, so each exception must have one id in all methods of its service.
#[test]
fn exceptions_have_one_id_in_a_service() {
    fn check<E: basalt_idl::call::ServiceException>(service: &ServiceDescriptor) {
        for throws in service.methods.iter().flat_map(|method| method.throws) {
            let declared = E::DECLARED
                .iter()
                .find(|(id, _)| *id == throws.id)
                .map(|(_, name)| *name);
            assert_eq!(declared, Some(throws.exception.name));
        }
    }
    check::<thrift1::HbaseException>(&thrift1::SERVICE);
    check::<thrift2::THBaseException>(&thrift2::SERVICE);
    check::<admin::BasaltException>(&admin::SERVICE);
}

/// Our methods must not hide HBase's on the shared port.
#[test]
fn admin_names_are_in_no_other_service() {
    for method in admin::Method::ALL {
        assert_eq!(admin::Method::from_name(method.name()), Some(*method));
        assert_eq!(thrift1::Method::from_name(method.name()), None);
        assert_eq!(thrift2::Method::from_name(method.name()), None);
    }
}
