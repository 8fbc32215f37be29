//! The arguments of `putMultiple` as places in the message.
//!
//! Bulk writes are batches of small rows. A struct of reference-counted slices for each cell would
//! cost more than decoding it: each slice is two atomic operations, and each row an allocation. So
//! the usual form of these arguments is read into two lists of numbers, and the engine's mutations
//! borrow from the message.
//!
//! Without it, batches of 100 rows have 0.88 of their rate. A call with one row has few slices: their
//! reference counts are 0.6 % of a get, so other arguments are not borrowed.
//!
//! Unusual forms are left to the interface's own decoder: attributes, a cell visibility, a field
//! that comes twice, one that is missing, anything malformed. So both decoders agree on the meaning
//! of a message, and errors come from the interface's; only a list that it refuses for the memory
//! of its decoded form may be accepted here, since it takes less.

use basalt_engine::op::{RowMutation, Write};
use basalt_idl::thrift2::TDurability;
use basalt_idl::wire::{Reader, WireType};
use bytes::Bytes;

use super::writes::durability;
use super::{Failure, check_row, write_time};
use crate::service::writes;

/// A piece of the message.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: u32,
    to: u32,
}

impl Piece {
    /// Reads a binary; `None` if it is malformed.
    #[inline]
    fn read<R: Reader>(reader: &mut R) -> Option<Self> {
        let bytes = reader.binary_slice().ok()?.len();
        let to = reader.position();
        Some(Self {
            from: u32::try_from(to - bytes).ok()?,
            to: u32::try_from(to).ok()?,
        })
    }

    #[inline]
    fn of(self, message: &[u8]) -> &[u8] {
        &message[self.from as usize..self.to as usize]
    }
}

/// A `TPut`; its cells end here in the list of all, and begin where those of the row before end.
#[derive(Clone, Copy, Debug)]
struct Row {
    key: Piece,
    values_to: u32,
    timestamp: Option<i64>,
    durability: Option<TDurability>,
}

/// A `TColumnValue`.
#[derive(Clone, Copy, Debug)]
struct Cell {
    family: Piece,
    qualifier: Piece,
    value: Piece,
    timestamp: Option<i64>,
}

/// Arguments of `putMultiple`.
#[derive(Debug)]
pub(in crate::thrift) struct Puts {
    message: Bytes,
    table: Piece,
    rows: Vec<Row>,
    values: Vec<Cell>,
}

/// Sets a field. `None` if it has a value already.
fn once<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.is_none().then(|| *place = Some(value))
}

impl Puts {
    /// Reads the arguments if they have the usual form. `reader` stands in front of them, in `message`.
    pub(in crate::thrift) fn decode<R: Reader>(reader: &mut R, message: &Bytes) -> Option<Self> {
        let (mut table, mut rows, mut values) = (None, None, Vec::new());
        reader.struct_begin().ok()?;
        while let Some(field) = reader.field_begin().ok()? {
            match (field.id, field.wire_type) {
                (1, WireType::Binary) => once(&mut table, Piece::read(reader)?)?,
                (2, WireType::List) => {
                    let mut list = Vec::new();
                    read_list(reader, &mut list, |reader| read_row(reader, &mut values))?;
                    once(&mut rows, list)?;
                }
                (_, other) => reader.skip(other).ok()?,
            }
        }
        reader.struct_end();
        Some(Self {
            message: message.clone(),
            table: table?,
            rows: rows?,
            values,
        })
    }

    pub(in crate::thrift) fn table(&self) -> Bytes {
        self.message
            .slice(self.table.from as usize..self.table.to as usize)
    }

    /// The writes, as [`super::put`] decodes each.
    pub(in crate::thrift) fn mutations(&self) -> Result<Vec<RowMutation<'_>>, Failure> {
        let mut mutations = Vec::with_capacity(self.rows.len());
        let mut values = self.values.iter();
        let mut from = 0;
        for row in &self.rows {
            let key = check_row(row.key.of(&self.message))?;
            let count = row.values_to - from;
            from = row.values_to;
            if count == 0 {
                return Err(Failure::illegal_argument("No columns to insert"));
            }
            mutations.push(writes::mutation(key, durability(row.durability)));
            let Some(mutation) = mutations.last_mut() else {
                continue;
            };
            for value in values.by_ref().take(count as usize) {
                mutation.writes.push(Write::Put {
                    family: value.family.of(&self.message),
                    qualifier: value.qualifier.of(&self.message),
                    timestamp: write_time(value.timestamp.or(row.timestamp))?,
                    value: value.value.of(&self.message),
                    ttl_ms: None,
                });
            }
        }
        Ok(mutations)
    }
}

/// Most elements that room is made for before they are there.
const RESERVE: usize = 256;

/// Appends a list of structs.
#[inline]
fn read_list<R: Reader, T>(
    reader: &mut R,
    elements: &mut Vec<T>,
    mut element: impl FnMut(&mut R) -> Option<T>,
) -> Option<()> {
    let list = reader.list_begin().ok()?;
    if list.len > 0 && list.element != WireType::Struct {
        return None;
    }
    reader.charge(list.len.saturating_mul(size_of::<T>())).ok()?;
    elements.reserve(list.len.min(RESERVE));
    for _ in 0..list.len {
        elements.push(element(reader)?);
    }
    reader.container_end();
    Some(())
}

fn read_row<R: Reader>(reader: &mut R, values: &mut Vec<Cell>) -> Option<Row> {
    let (mut key, mut values_to, mut timestamp, mut durability) = (None, None, None, None);
    reader.struct_begin().ok()?;
    while let Some(field) = reader.field_begin().ok()? {
        match (field.id, field.wire_type) {
            (1, WireType::Binary) => once(&mut key, Piece::read(reader)?)?,
            (2, WireType::List) => {
                read_list(reader, values, read_value)?;
                once(&mut values_to, u32::try_from(values.len()).ok()?)?;
            }
            (3, WireType::I64) => once(&mut timestamp, reader.i64().ok()?)?,
            (6, WireType::I32) => once(&mut durability, TDurability(reader.i32().ok()?))?,
            // Attributes and cell visibility.
            (5, WireType::Map) | (7, WireType::Struct) => return None,
            (_, other) => reader.skip(other).ok()?,
        }
    }
    reader.struct_end();
    Some(Row {
        key: key?,
        values_to: values_to?,
        timestamp,
        durability,
    })
}

#[inline]
fn read_value<R: Reader>(reader: &mut R) -> Option<Cell> {
    let (mut family, mut qualifier, mut value, mut timestamp) = (None, None, None, None);
    reader.struct_begin().ok()?;
    while let Some(field) = reader.field_begin().ok()? {
        match (field.id, field.wire_type) {
            (1, WireType::Binary) => once(&mut family, Piece::read(reader)?)?,
            (2, WireType::Binary) => once(&mut qualifier, Piece::read(reader)?)?,
            (3, WireType::Binary) => once(&mut value, Piece::read(reader)?)?,
            (4, WireType::I64) => once(&mut timestamp, reader.i64().ok()?)?,
            // Tags and type are not looked at in puts.
            (_, other) => reader.skip(other).ok()?,
        }
    }
    reader.struct_end();
    Some(Cell {
        family: family?,
        qualifier: qualifier?,
        value: value?,
        timestamp,
    })
}

#[cfg(test)]
mod tests {
    use basalt_idl::thrift2::{TCellVisibility, TColumnValue, TPut, args};
    use basalt_idl::wire::{BinaryReader, BinaryWriter, CompactReader, CompactWriter};
    use basalt_idl::{Decode, Encode};
    use proptest::prelude::*;

    use super::super::{all, put};
    use super::*;

    /// Results of both decoders: mutations or an error, as text. `None`: not of the usual form, or
    /// malformed.
    fn both<R: Reader + Clone>(reader: &R, message: &Bytes) -> (Option<String>, Option<String>) {
        let puts = Puts::decode(&mut reader.clone(), message);
        let ours = puts.as_ref().map(|puts| {
            let table = puts.table();
            format!(
                "{table:?} {:?}",
                puts.mutations().map_err(|failure| failure.message().to_owned())
            )
        });
        let theirs = args::PutMultiple::decode(&mut reader.clone())
            .ok()
            .map(|arguments| {
                let mutations = all(&arguments.tputs, put).map_err(|failure| failure.message().to_owned());
                format!("{:?} {mutations:?}", arguments.table)
            });
        (ours, theirs)
    }

    fn encoded(arguments: &args::PutMultiple, compact: bool) -> Bytes {
        let mut message = b"in front".to_vec();
        if compact {
            arguments.encode(&mut CompactWriter::new(&mut message));
        } else {
            arguments.encode(&mut BinaryWriter::new(&mut message));
        }
        message.into()
    }

    fn compared(message: &Bytes, compact: bool) -> (Option<String>, Option<String>) {
        /// Skips the bytes in front of the arguments.
        fn behind<R: Reader>(mut reader: R) -> R {
            for _ in b"in front" {
                reader.i8().unwrap();
            }
            reader
        }
        if compact {
            both(&behind(CompactReader::new(message.clone())), message)
        } else {
            both(&behind(BinaryReader::new(message.clone())), message)
        }
    }

    fn bytes(max: usize) -> impl Strategy<Value = Bytes> {
        prop::collection::vec(any::<u8>(), 0..max).prop_map(Bytes::from)
    }

    fn time() -> impl Strategy<Value = Option<i64>> {
        prop::option::of(prop_oneof![any::<i64>(), 0_i64..5, Just(i64::MAX)])
    }

    fn value() -> impl Strategy<Value = TColumnValue> {
        let parts = (
            bytes(3),
            bytes(9),
            bytes(200),
            time(),
            prop::option::of(bytes(5)),
            any::<Option<i8>>(),
        );
        parts.prop_map(
            |(family, qualifier, value, timestamp, tags, cell_type)| TColumnValue {
                family,
                qualifier,
                value,
                timestamp,
                tags,
                cell_type,
            },
        )
    }

    fn arguments() -> impl Strategy<Value = args::PutMultiple> {
        let durability = prop::option::of((-1_i32..6).prop_map(TDurability));
        // Most rows have a key and cells: an error of the first row would hide the rest.
        let key =
            prop_oneof![9 => prop::collection::vec(any::<u8>(), 1..20).prop_map(Bytes::from), 1 => bytes(2)];
        let cells = prop_oneof![9 => prop::collection::vec(value(), 1..4), 1 => Just(Vec::new())];
        let row =
            (key, cells, time(), durability).prop_map(|(row, column_values, timestamp, durability)| TPut {
                row,
                column_values,
                timestamp,
                durability,
                ..TPut::default()
            });
        (bytes(20), prop::collection::vec(row, 0..12))
            .prop_map(|(table, tputs)| args::PutMultiple { table, tputs })
    }

    proptest! {
        /// The usual form has the meaning that the interface's decoder gives it, in both protocols.
        #[test]
        fn the_usual_form_means_the_same(arguments in arguments(), compact: bool) {
            let (ours, theirs) = compared(&encoded(&arguments, compact), compact);
            prop_assert!(ours.is_some());
            prop_assert_eq!(ours, theirs);
        }

        /// Damaged arguments are not taken for something else: if they are accepted here, the
        /// interface's decoder gives the same.
        #[test]
        fn damage_is_left_to_the_interface(
            arguments in arguments(),
            compact: bool,
            at: prop::sample::Index,
            byte: u8,
            cut in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let mut message = encoded(&arguments, compact).to_vec();
            let front = b"in front".len();
            let at = front + at.index(message.len() - front);
            message[at] = byte;
            if let Some(cut) = cut {
                message.truncate(front + cut.index(message.len() - front));
            }
            let (ours, theirs) = compared(&message.into(), compact);
            if ours.is_some() {
                prop_assert_eq!(ours, theirs);
            }
        }
    }

    #[test]
    fn rare_forms_are_left_to_the_interface() {
        let cell = TColumnValue {
            family: Bytes::from_static(b"f"),
            ..TColumnValue::default()
        };
        let row = TPut {
            row: Bytes::from_static(b"r"),
            column_values: vec![cell],
            ..TPut::default()
        };
        let with_attributes = TPut {
            attributes: Some([(Bytes::from_static(b"_ttl"), Bytes::from_static(&[0; 8]))].into()),
            ..row.clone()
        };
        let with_visibility = TPut {
            cell_visibility: Some(TCellVisibility::default()),
            ..row.clone()
        };
        for (put, is_usual) in [(row, true), (with_attributes, false), (with_visibility, false)] {
            let arguments = args::PutMultiple {
                table: Bytes::from_static(b"t"),
                tputs: vec![put],
            };
            for compact in [false, true] {
                let (ours, theirs) = compared(&encoded(&arguments, compact), compact);
                assert_eq!(ours.is_some(), is_usual);
                assert!(theirs.is_some());
            }
        }
    }

    /// The last one counts, as in every Thrift library.
    #[test]
    fn a_field_that_comes_twice_is_left_to_the_interface() {
        let row = |row: u8| [&[11, 0, 1, 0, 0, 0, 1][..], &[row]].concat();
        let cells = [15, 0, 2, 12, 0, 0, 0, 0];
        let message = |rows: &[u8]| {
            let rows: Vec<u8> = rows.iter().flat_map(|name| row(*name)).collect();
            let put = [&rows[..], &cells, &[0]].concat();
            let head = [&b"in front"[..], &row(b't'), &[15, 0, 2, 12, 0, 0, 0, 1]].concat();
            Bytes::from([head, put, vec![0]].concat())
        };
        assert!(compared(&message(b"a"), false).0.is_some());
        let (ours, theirs) = compared(&message(b"ab"), false);
        assert!(ours.is_none() && theirs.is_some(), "{ours:?} {theirs:?}");
    }
}
