//! Goal: every struct, every method's arguments and every result survives a round trip, in both
//! protocols, and Apache's own `thrift` crate reads our output and writes our input. Method: random
//! value trees are made from the descriptors. The crate encodes a tree, the Rust type decodes and
//! encodes it again, the crate decodes that, and the trees must be equal. A tree holds every
//! required field and every field with a default, as the Rust types write those always, and some of
//! the others.
//!
//! The Rust types as `TSerializable` of that crate: a value read from one of its protocols and
//! written to it again has the tree's bytes, and those of our codec.

use std::rc::Rc;

use basalt_idl::call::MethodDescriptor;
use basalt_idl::schema::{FieldDescriptor, Requiredness, StructDescriptor, StructKind, TypeDescriptor};
use basalt_idl::wire::Protocol;
use basalt_idl::{admin, apache, call, thrift1, thrift2};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Union;
use proptest::test_runner::{Config, TestRunner};
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TCompactInputProtocol, TCompactOutputProtocol,
    TFieldIdentifier, TInputProtocol, TListIdentifier, TMapIdentifier, TOutputProtocol, TSetIdentifier,
    TStructIdentifier, TType,
};

/// Any Thrift value. Fields, set elements and pairs are in the order of their encoding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Bool(bool),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    Binary(Vec<u8>),
    Struct(Vec<(i16, Value)>),
    List(TypeOf, Vec<Value>),
    Set(TypeOf, Vec<Value>),
    Map(TypeOf, TypeOf, Vec<(Value, Value)>),
}

/// The code of an element type; without one for an empty map in compact.
type TypeOf = u8;

fn ttype(ty: &TypeDescriptor) -> TType {
    match ty {
        TypeDescriptor::Void => TType::Void,
        TypeDescriptor::Bool => TType::Bool,
        TypeDescriptor::I8 => TType::I08,
        TypeDescriptor::I16 => TType::I16,
        TypeDescriptor::I32 | TypeDescriptor::Enum(_) => TType::I32,
        TypeDescriptor::I64 => TType::I64,
        TypeDescriptor::Binary | TypeDescriptor::String => TType::String,
        TypeDescriptor::List(_) => TType::List,
        TypeDescriptor::Set(_) => TType::Set,
        TypeDescriptor::Map(..) => TType::Map,
        TypeDescriptor::Struct(_) => TType::Struct,
    }
}

fn code(ty: TType) -> TypeOf {
    basalt_code(ty) as u8
}

fn basalt_code(ty: TType) -> basalt_idl::wire::WireType {
    use basalt_idl::wire::WireType;
    match ty {
        TType::Bool => WireType::Bool,
        TType::I08 => WireType::I8,
        TType::I16 => WireType::I16,
        TType::I32 => WireType::I32,
        TType::I64 => WireType::I64,
        TType::String => WireType::Binary,
        TType::Struct => WireType::Struct,
        TType::List => WireType::List,
        TType::Set => WireType::Set,
        TType::Map => WireType::Map,
        other => panic!("no interface has {other:?}"),
    }
}

fn ttype_of(code: TypeOf) -> TType {
    use TType::{Bool, I08, I16, I32, I64, List, Map, Set, String, Struct};
    [Bool, I08, I16, I32, I64, String, Struct, List, Set, Map]
        .into_iter()
        .find(|ty| self::code(*ty) == code)
        .unwrap()
}

fn ttype_of_value(value: &Value) -> TType {
    match value {
        Value::Bool(_) => TType::Bool,
        Value::I8(_) => TType::I08,
        Value::I16(_) => TType::I16,
        Value::I32(_) => TType::I32,
        Value::I64(_) => TType::I64,
        Value::Binary(_) => TType::String,
        Value::Struct(_) => TType::Struct,
        Value::List(..) => TType::List,
        Value::Set(..) => TType::Set,
        Value::Map(..) => TType::Map,
    }
}

fn values(ty: &'static TypeDescriptor) -> BoxedStrategy<Value> {
    match *ty {
        TypeDescriptor::Void => unreachable!("only results are void, and they have no field then"),
        TypeDescriptor::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        TypeDescriptor::I8 => any::<i8>().prop_map(Value::I8).boxed(),
        TypeDescriptor::I16 => any::<i16>().prop_map(Value::I16).boxed(),
        // Enum codes without a name must survive, too.
        TypeDescriptor::I32 | TypeDescriptor::Enum(_) => {
            prop_oneof![any::<i32>(), -3..9_i32, Just(i32::MAX), Just(i32::MIN)]
                .prop_map(Value::I32)
                .boxed()
        }
        TypeDescriptor::I64 => prop_oneof![any::<i64>(), -70..70_i64, Just(i64::MAX), Just(i64::MIN)]
            .prop_map(Value::I64)
            .boxed(),
        TypeDescriptor::Binary => vec(any::<u8>(), 0..20).prop_map(Value::Binary).boxed(),
        TypeDescriptor::String => "\\PC{0,8}"
            .prop_map(|text| Value::Binary(text.into_bytes()))
            .boxed(),
        TypeDescriptor::List(of) => {
            let element = code(ttype(of));
            // Fifteen and more elements have another header in compact.
            let len = if matches!(of, TypeDescriptor::Struct(_)) {
                0..4
            } else {
                0..18_usize
            };
            vec(values(of), len)
                .prop_map(move |list| Value::List(element, list))
                .boxed()
        }
        TypeDescriptor::Set(of) => {
            let element = code(ttype(of));
            vec(values(of), 0..4)
                .prop_map(move |mut set| {
                    // The order of the Rust type's set is not the tree's, so one element at most.
                    set.truncate(1);
                    Value::Set(element, set)
                })
                .boxed()
        }
        TypeDescriptor::Map(key, value) => {
            let (key_code, value_code) = (code(ttype(key)), code(ttype(value)));
            proptest::collection::btree_map(values(key), values(value), 0..4)
                .prop_map(move |map| {
                    // Pairs in the order of the Rust type, which is that of the keys' bytes.
                    Value::Map(key_code, value_code, map.into_iter().collect())
                })
                .boxed()
        }
        TypeDescriptor::Struct(of) => structs(of),
    }
}

fn structs(of: &'static StructDescriptor) -> BoxedStrategy<Value> {
    if of.kind == StructKind::Union {
        let members = of.fields.iter().map(|field| {
            let id = field.id;
            values(&field.ty)
                .prop_map(move |value| Value::Struct(vec![(id, value)]))
                .boxed()
        });
        return Union::new(members).boxed();
    }
    let mut all: BoxedStrategy<Vec<(i16, Value)>> = Just(Vec::new()).boxed();
    for field in of.fields {
        all = (all, field_values(field))
            .prop_map(|(mut fields, field)| {
                fields.extend(field);
                fields
            })
            .boxed();
    }
    all.prop_map(Value::Struct).boxed()
}

fn field_values(field: &'static FieldDescriptor) -> BoxedStrategy<Option<(i16, Value)>> {
    let id = field.id;
    let value = values(&field.ty).prop_map(move |value| (id, value));
    if field.requiredness == Requiredness::Required || field.default.is_some() {
        value.prop_map(Some).boxed()
    } else {
        proptest::option::of(value).boxed()
    }
}

fn write(out: &mut dyn TOutputProtocol, value: &Value) -> thrift::Result<()> {
    match value {
        Value::Bool(value) => out.write_bool(*value),
        Value::I8(value) => out.write_i8(*value),
        Value::I16(value) => out.write_i16(*value),
        Value::I32(value) => out.write_i32(*value),
        Value::I64(value) => out.write_i64(*value),
        Value::Binary(value) => out.write_bytes(value),
        Value::Struct(fields) => {
            out.write_struct_begin(&TStructIdentifier::new("any"))?;
            for (id, value) in fields {
                out.write_field_begin(&TFieldIdentifier::new("any", ttype_of_value(value), *id))?;
                write(out, value)?;
                out.write_field_end()?;
            }
            out.write_field_stop()?;
            out.write_struct_end()
        }
        Value::List(of, list) => {
            out.write_list_begin(&TListIdentifier::new(
                ttype_of(*of),
                i32::try_from(list.len()).unwrap(),
            ))?;
            list.iter().try_for_each(|value| write(out, value))?;
            out.write_list_end()
        }
        Value::Set(of, set) => {
            out.write_set_begin(&TSetIdentifier::new(
                ttype_of(*of),
                i32::try_from(set.len()).unwrap(),
            ))?;
            set.iter().try_for_each(|value| write(out, value))?;
            out.write_set_end()
        }
        Value::Map(key, value, map) => {
            let (key, value) = (ttype_of(*key), ttype_of(*value));
            out.write_map_begin(&TMapIdentifier::new(
                key,
                value,
                i32::try_from(map.len()).unwrap(),
            ))?;
            for (key, value) in map {
                write(out, key)?;
                write(out, value)?;
            }
            out.write_map_end()
        }
    }
}

/// Reads a value whose type is known, because an empty compact map does not name its types.
fn read(input: &mut dyn TInputProtocol, ty: &TypeDescriptor) -> thrift::Result<Value> {
    Ok(match ty {
        TypeDescriptor::Void => unreachable!("nothing is void on the wire"),
        TypeDescriptor::Bool => Value::Bool(input.read_bool()?),
        TypeDescriptor::I8 => Value::I8(input.read_i8()?),
        TypeDescriptor::I16 => Value::I16(input.read_i16()?),
        TypeDescriptor::I32 | TypeDescriptor::Enum(_) => Value::I32(input.read_i32()?),
        TypeDescriptor::I64 => Value::I64(input.read_i64()?),
        TypeDescriptor::Binary | TypeDescriptor::String => Value::Binary(input.read_bytes()?),
        TypeDescriptor::Struct(of) => read_fields(input, of.fields)?,
        TypeDescriptor::List(of) => {
            let header = input.read_list_begin()?;
            assert_eq!(header.element_type, ttype(of));
            let list = (0..header.size)
                .map(|_| read(input, of))
                .collect::<thrift::Result<_>>()?;
            input.read_list_end()?;
            Value::List(code(header.element_type), list)
        }
        TypeDescriptor::Set(of) => {
            let header = input.read_set_begin()?;
            assert_eq!(header.element_type, ttype(of));
            let set = (0..header.size)
                .map(|_| read(input, of))
                .collect::<thrift::Result<_>>()?;
            input.read_set_end()?;
            Value::Set(code(header.element_type), set)
        }
        TypeDescriptor::Map(key, value) => {
            let header = input.read_map_begin()?;
            let mut map = Vec::new();
            for _ in 0..header.size {
                map.push((read(input, key)?, read(input, value)?));
            }
            input.read_map_end()?;
            Value::Map(code(ttype(key)), code(ttype(value)), map)
        }
    })
}

fn read_fields(input: &mut dyn TInputProtocol, known: &[FieldDescriptor]) -> thrift::Result<Value> {
    let mut fields = Vec::new();
    input.read_struct_begin()?;
    loop {
        let header = input.read_field_begin()?;
        if header.field_type == TType::Stop {
            break;
        }
        let id = header.id.unwrap();
        let field = known
            .iter()
            .find(|field| field.id == id)
            .expect("only known fields are written");
        assert_eq!(header.field_type, ttype(&field.ty), "{}", field.name);
        fields.push((id, read(input, &field.ty)?));
        input.read_field_end()?;
    }
    input.read_struct_end()?;
    Ok(Value::Struct(fields))
}

fn apache_encode(protocol: Protocol, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    if protocol == Protocol::Compact {
        write(&mut TCompactOutputProtocol::new(&mut out), value).unwrap();
    } else {
        write(&mut TBinaryOutputProtocol::new(&mut out, true), value).unwrap();
    }
    out
}

fn apache_decode(protocol: Protocol, mut bytes: &[u8], fields: &[FieldDescriptor]) -> Value {
    let value = if protocol == Protocol::Compact {
        read_fields(&mut TCompactInputProtocol::new(&mut bytes), fields)
    } else {
        read_fields(&mut TBinaryInputProtocol::new(&mut bytes, true), fields)
    };
    assert!(bytes.is_empty(), "bytes were left over");
    value.unwrap()
}

/// Runs one struct through both implementations in both protocols.
fn check(
    name: &str,
    fields: &[FieldDescriptor],
    recode: basalt_idl::schema::Recode,
    trees: impl Strategy<Value = Value>,
) {
    let mut runner = TestRunner::new(Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&trees, |tree| {
        for protocol in [Protocol::BinaryStrict, Protocol::Compact] {
            let encoded = apache_encode(protocol, &tree);
            let ours = recode(protocol, Bytes::from(encoded.clone()));
            let ours = ours.map_err(|error| TestCaseError::fail(format!("{protocol:?}: {error}")))?;
            prop_assert_eq!(
                apache_decode(protocol, &ours, fields),
                tree.clone(),
                "{:?}",
                protocol
            );
            // Both write fields in order, so the bytes are the same. In compact, the crate writes a field
            // that is 15 behind the last in the long form, and Java's library and ours in the short one.
            if protocol == Protocol::BinaryStrict {
                prop_assert_eq!(ours, encoded);
            }
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{name}: {error}");
    }
}

fn check_structs(all: &[&'static StructDescriptor]) {
    for of in all {
        check(of.name, of.fields, of.recode, structs(of));
    }
}

#[test]
fn thrift1_structs() {
    check_structs(thrift1::STRUCTS);
}

#[test]
fn thrift2_structs() {
    check_structs(thrift2::STRUCTS);
}

#[test]
fn admin_structs() {
    check_structs(admin::STRUCTS);
    check_structs(&[&call::TApplicationException::DESCRIPTOR]);
}

/// Arguments, and results with a success or one of the exceptions.
fn check_methods(methods: &[&'static MethodDescriptor]) {
    for method in methods {
        check(
            method.name,
            method.args.fields,
            method.args.recode,
            structs(method.args),
        );
        let field = |id, ty| FieldDescriptor {
            id,
            name: "any",
            ty,
            requiredness: Requiredness::Default,
            default: None,
        };
        let mut outcomes: Vec<FieldDescriptor> = method
            .throws
            .iter()
            .map(|throws| field(throws.id, TypeDescriptor::Struct(throws.exception)))
            .collect();
        let void = matches!(method.returns, TypeDescriptor::Void);
        if !void {
            outcomes.push(field(0, method.returns));
        }
        let outcomes: &'static [FieldDescriptor] = Vec::leak(outcomes);
        let mut trees: Vec<BoxedStrategy<Value>> = outcomes
            .iter()
            .map(|field| {
                let id = field.id;
                values(&field.ty)
                    .prop_map(move |value| Value::Struct(vec![(id, value)]))
                    .boxed()
            })
            .collect();
        if void {
            trees.push(Just(Value::Struct(Vec::new())).boxed());
        }
        check(
            &format!("result of {}", method.name),
            outcomes,
            method.recode_result,
            Rc::new(Union::new(trees)),
        );
    }
}

#[test]
fn thrift1_methods() {
    check_methods(thrift1::SERVICE.methods);
}

#[test]
fn thrift2_methods() {
    check_methods(thrift2::SERVICE.methods);
}

#[test]
fn admin_methods() {
    check_methods(admin::SERVICE.methods);
}

/// The bytes that a Rust type writes to a protocol of the crate after it has read the tree's bytes
/// from it.
fn through_apache(protocol: Protocol, of: &StructDescriptor, mut bytes: &[u8]) -> thrift::Result<Vec<u8>> {
    let mut out = Vec::new();
    if protocol == Protocol::Compact {
        let input = &mut TCompactInputProtocol::new(&mut bytes);
        apache::recode(of, input, &mut TCompactOutputProtocol::new(&mut out))?;
    } else {
        let input = &mut TBinaryInputProtocol::new(&mut bytes, true);
        apache::recode(of, input, &mut TBinaryOutputProtocol::new(&mut out, true))?;
    }
    assert!(bytes.is_empty(), "bytes were left over");
    Ok(out)
}

/// Whether a struct has a field whose number is 15 more than that of the field before: the one case in which
/// the two write compact differently (see [`check`]).
fn has_long_form(value: &Value) -> bool {
    match value {
        Value::Struct(fields) => {
            let ids = fields.iter().map(|(id, _)| *id);
            let before = std::iter::once(0).chain(ids.clone());
            before.zip(ids).any(|(before, id)| id - before == 15)
                || fields.iter().any(|(_, value)| has_long_form(value))
        }
        Value::List(_, values) | Value::Set(_, values) => values.iter().any(has_long_form),
        Value::Map(_, _, pairs) => pairs
            .iter()
            .any(|(key, value)| has_long_form(key) || has_long_form(value)),
        _ => false,
    }
}

fn check_serializable(of: &'static StructDescriptor) {
    let mut runner = TestRunner::new(Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&structs(of), |tree| {
        for protocol in [Protocol::BinaryStrict, Protocol::Compact] {
            let encoded = apache_encode(protocol, &tree);
            let written = through_apache(protocol, of, &encoded);
            let written = written.map_err(|error| TestCaseError::fail(format!("{protocol:?}: {error}")))?;
            prop_assert_eq!(&written, &encoded, "{:?}", protocol);
            let ours = (of.recode)(protocol, Bytes::from(encoded));
            if protocol == Protocol::BinaryStrict || !has_long_form(&tree) {
                prop_assert_eq!(ours.as_ref(), Ok(&written), "{:?}", protocol);
            }
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{}: {error}", of.name);
    }
}

#[test]
fn every_struct_is_serializable_over_the_crates_protocols() {
    let structs = [thrift1::STRUCTS, thrift2::STRUCTS, admin::STRUCTS].concat();
    let services = [thrift1::SERVICE, thrift2::SERVICE, admin::SERVICE];
    let methods = services.iter().flat_map(|service| service.methods);
    let arguments = methods.map(|method| method.args);
    structs.into_iter().chain(arguments).for_each(check_serializable);
}
