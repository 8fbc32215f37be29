//! A short description of a message's arguments: a walk over them that follows the interface's
//! declarations.

use std::fmt::Write as _;

use basalt_engine::schema::Escaped;
use basalt_idl::schema::{StructDescriptor, TypeDescriptor};
use basalt_idl::wire::{Reader, WireError};
use bytes::Bytes;

/// Most bytes of the printed arguments.
const ARGUMENTS_BYTES_MAX: usize = 1 << 10;
/// Most bytes printed of one value.
const VALUE_BYTES_MAX: usize = 64;
/// Most elements printed of one list, set or map.
const ELEMENTS_MAX: usize = 3;

/// Result of a walk over a message.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// Full name of the first table named.
    pub(super) table: Option<Vec<u8>>,
    /// The first row named.
    pub(super) row: Option<Bytes>,
    /// Gets of a call that takes several.
    pub(super) gets: usize,
    /// Puts, deletes or increments of a call that takes several.
    pub(super) mutations: usize,
    /// The arguments, shortened.
    pub(super) text: String,
}

impl Summary {
    /// Appends the fields of a struct, beginning with a message's arguments.
    pub(super) fn put_struct<R: Reader>(
        &mut self,
        reader: &mut R,
        of: &StructDescriptor,
    ) -> Result<(), WireError> {
        let mut separator = "";
        reader.struct_begin()?;
        while let Some(header) = reader.field_begin()? {
            let known = |id, ty: &TypeDescriptor| (id, ty.wire_type()) == (header.id, header.wire_type);
            let Some(field) = of.fields.iter().find(|field| known(field.id, &field.ty)) else {
                reader.skip(header.wire_type)?;
                continue;
            };
            self.put(format_args!("{separator}{}=", field.name));
            separator = ", ";
            self.put_value(reader, of.name, field.name, &field.ty)?;
        }
        reader.struct_end();
        Ok(())
    }

    /// Appends a value: that of the field `name` of the struct `within`, or an element of it.
    fn put_value<R: Reader>(
        &mut self,
        reader: &mut R,
        within: &str,
        name: &str,
        of: &TypeDescriptor,
    ) -> Result<(), WireError> {
        match of {
            TypeDescriptor::Void => {}
            TypeDescriptor::Bool => self.put(reader.bool()?),
            TypeDescriptor::I8 => self.put(reader.i8()?),
            TypeDescriptor::I16 => self.put(reader.i16()?),
            TypeDescriptor::I32 => self.put(reader.i32()?),
            TypeDescriptor::I64 => self.put(reader.i64()?),
            TypeDescriptor::Enum(of) => {
                let code = reader.i32()?;
                match of.values.iter().find(|(_, value)| *value == code) {
                    Some((name, _)) => self.put(name),
                    None => self.put(code),
                }
            }
            TypeDescriptor::Binary | TypeDescriptor::String => {
                let bytes = reader.binary()?;
                self.note(within, name, &bytes);
                let (shown, rest) = bytes.split_at(bytes.len().min(VALUE_BYTES_MAX));
                self.put(Escaped(shown));
                if !rest.is_empty() {
                    self.put(format_args!("... ({} bytes)", bytes.len()));
                }
            }
            TypeDescriptor::List(of) | TypeDescriptor::Set(of) => {
                let header = reader.list_begin()?;
                self.count(name, of, header.len);
                self.put("[");
                for index in 0..header.len {
                    if index < ELEMENTS_MAX && header.element == of.wire_type() {
                        self.put(if index == 0 { "" } else { ", " });
                        self.put_value(reader, within, name, of)?;
                    } else {
                        reader.skip(header.element)?;
                    }
                }
                self.put_rest(header.len);
                self.put("]");
                reader.container_end();
            }
            TypeDescriptor::Map(key, value) => {
                let header = reader.map_begin()?;
                let types = header.types.unwrap_or((key.wire_type(), value.wire_type()));
                self.put("{");
                for index in 0..header.len {
                    if index < ELEMENTS_MAX && types == (key.wire_type(), value.wire_type()) {
                        self.put(if index == 0 { "" } else { ", " });
                        self.put_value(reader, "", "", key)?;
                        self.put(": ");
                        self.put_value(reader, "", "", value)?;
                    } else {
                        reader.skip(types.0)?;
                        reader.skip(types.1)?;
                    }
                }
                self.put_rest(header.len);
                self.put("}");
                reader.container_end();
            }
            TypeDescriptor::Struct(of) => {
                self.put("{");
                self.put_struct(reader, of)?;
                self.put("}");
            }
        }
        Ok(())
    }

    fn put(&mut self, text: impl std::fmt::Display) {
        if self.text.len() < ARGUMENTS_BYTES_MAX {
            // Writing to a string cannot fail.
            let _ = write!(self.text, "{text}");
        }
    }

    fn put_rest(&mut self, len: usize) {
        if len > ELEMENTS_MAX {
            self.put(format_args!(", ... ({len} in all)"));
        }
    }

    /// Keeps the first row and the first table that the message names.
    fn note(&mut self, within: &str, name: &str, bytes: &Bytes) {
        match (within, name) {
            (_, "row" | "startRow" | "startAndPrefix" | "rows") => {
                self.row.get_or_insert_with(|| bytes.clone());
            }
            ("TTableName", "ns") if !bytes.is_empty() => {
                self.table.get_or_insert_with(|| [bytes, &b":"[..]].concat());
            }
            ("TTableName", "qualifier") => match &mut self.table {
                Some(namespace) if namespace.ends_with(b":") => namespace.extend_from_slice(bytes),
                Some(_) => {}
                None => self.table = Some(bytes.to_vec()),
            },
            (_, "table" | "tableName" | "tableOrRegion") => {
                self.table.get_or_insert_with(|| bytes.to_vec());
            }
            _ => {}
        }
    }

    /// Counts the actions of a multi request, in HBase's sense.
    fn count(&mut self, name: &str, of: &TypeDescriptor, len: usize) {
        match (name, of) {
            ("rows" | "tgets", _) => self.gets += len,
            ("tputs" | "tdeletes" | "rowBatches" | "increments", _) => self.mutations += len,
            ("mutations", TypeDescriptor::Struct(of)) if of.name == "TMutation" => self.mutations += len,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use basalt_idl::call::write_call;
    use basalt_idl::wire::{BinaryReader, BinaryWriter, CompactReader, CompactWriter};
    use basalt_idl::{Call as _, thrift1, thrift2};

    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    /// The summary of a call, which must be the same in both protocols.
    fn summary<C: basalt_idl::Call>(args: &C) -> Summary {
        let (mut binary, mut compact) = (Vec::new(), Vec::new());
        write_call(&mut BinaryWriter::new(&mut binary), 1, args);
        write_call(&mut CompactWriter::new(&mut compact), 1, args);
        let (mut from_binary, mut from_compact) = (Summary::default(), Summary::default());
        let mut reader = BinaryReader::new(binary.into());
        reader.message_begin().unwrap();
        from_binary.put_struct(&mut reader, C::METHOD.args).unwrap();
        let mut reader = CompactReader::new(compact.into());
        reader.message_begin().unwrap();
        from_compact.put_struct(&mut reader, C::METHOD.args).unwrap();
        assert_eq!(format!("{from_binary:?}"), format!("{from_compact:?}"));
        from_binary
    }

    #[test]
    fn calls_are_described_by_their_arguments() {
        let get = summary(&thrift2::args::Get {
            table: bytes("ns:t"),
            tget: thrift2::TGet {
                row: bytes("r\0"),
                cache_blocks: Some(true),
                consistency: Some(thrift2::TConsistency::TIMELINE),
                attributes: Some([(bytes("k"), bytes("v"))].into()),
                ..Default::default()
            },
        });
        assert_eq!(
            get.text,
            "table=ns:t, tget={row=r\\x00, attributes={k: v}, consistency=TIMELINE, cacheBlocks=true}"
        );
        assert_eq!(
            (get.table.as_deref(), get.row),
            (Some(&b"ns:t"[..]), Some(bytes("r\0")))
        );

        let rows = summary(&thrift1::args::GetRows {
            table_name: Some(bytes("t")),
            rows: Some(["a", "b", "c", "d", "e"].map(bytes).to_vec()),
            attributes: None,
        });
        assert_eq!(rows.text, "tableName=t, rows=[a, b, c, ... (5 in all)]");
        assert_eq!((rows.gets, rows.mutations, rows.row), (5, 0, Some(bytes("a"))));

        let name = |ns: Option<&'static str>| thrift2::TTableName {
            ns: ns.map(bytes),
            qualifier: bytes("q"),
        };
        for (ns, full) in [(None, "q"), (Some(""), "q"), (Some("ns"), "ns:q")] {
            let table_name = name(ns);
            let disable = summary(&thrift2::args::DisableTable { table_name });
            assert_eq!(disable.table.as_deref(), Some(full.as_bytes()));
        }
    }

    #[test]
    fn a_description_is_short_however_long_the_call_is() {
        let tput = thrift2::TPut {
            row: bytes("r"),
            column_values: vec![
                thrift2::TColumnValue {
                    value: Bytes::from(vec![b'v'; 1 << 20]),
                    ..Default::default()
                };
                3
            ],
            ..Default::default()
        };
        let put = summary(&thrift2::args::PutMultiple {
            table: bytes("t"),
            tputs: vec![tput; 9],
        });
        assert_eq!(put.mutations, 9);
        assert!(put.text.contains("... (1048576 bytes)"), "{}", put.text);
        assert!(put.text.len() < ARGUMENTS_BYTES_MAX + 4 * VALUE_BYTES_MAX);
        assert_eq!(thrift2::args::PutMultiple::METHOD.name, "putMultiple");
    }
}
