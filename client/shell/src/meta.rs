//! Cells of `hbase:meta` and `hbase:namespace` in words, as HBase's shell prints regions.

use basalt_idl::native::messages::table_state::State;
use basalt_idl::native::messages::{NamespaceDescriptor, RegionInfo, TableState};
use basalt_idl::native::znode::decode_protobuf;
use prost::Message;

use super::escape::printable;
use basalt_client::Cell;

/// A system table whose values are messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SystemTable {
    Meta,
    Namespace,
}

impl SystemTable {
    /// The system table of that name.
    pub(super) fn named(table: &str) -> Option<SystemTable> {
        match table {
            "hbase:meta" => Some(SystemTable::Meta),
            "hbase:namespace" => Some(SystemTable::Namespace),
            _ => None,
        }
    }

    /// The value of a cell in words; `None` for text, and for what is not understood.
    pub(super) fn value(self, row: &[u8], cell: &Cell) -> Option<String> {
        let (family, qualifier) = (&cell.family[..], &cell.qualifier[..]);
        match (self, family, qualifier) {
            (SystemTable::Meta, b"info", b"regioninfo" | b"splitA" | b"splitB") => region(row, &cell.value),
            (SystemTable::Meta, b"info", qualifier) if qualifier.starts_with(b"merge") => {
                region(b"", &cell.value)
            }
            (SystemTable::Meta, b"info", b"serverstartcode" | b"seqnumDuringOpen") => {
                let number = cell.value[..].try_into().ok()?;
                Some(i64::from_be_bytes(number).to_string())
            }
            (SystemTable::Meta, b"table", b"state") => {
                let state = TableState::decode(&cell.value[..]).ok()?;
                let name = match state.state() {
                    State::Enabled => "ENABLED",
                    State::Disabled => "DISABLED",
                    State::Disabling => "DISABLING",
                    State::Enabling => "ENABLING",
                };
                Some(name.to_owned())
            }
            (SystemTable::Namespace, b"info", b"d") => {
                let namespace: NamespaceDescriptor = NamespaceDescriptor::decode(&cell.value[..]).ok()?;
                let mut text = format!("{{NAME => '{}'", printable(&namespace.name));
                let pairs = namespace.configuration.iter();
                text.extend(pairs.map(|pair| format!(", {} => '{}'", pair.name, pair.value)));
                Some(text + "}")
            }
            _ => None,
        }
    }
}

/// A region as HBase's `RegionInfo.toString` has it. The name of the region of `row` is the row.
fn region(row: &[u8], value: &[u8]) -> Option<String> {
    let region: RegionInfo = decode_protobuf(value)?;
    let (start, end) = (
        region.start_key.unwrap_or_default(),
        region.end_key.unwrap_or_default(),
    );
    let encoded = row
        .strip_suffix(b".")
        .and_then(|row| row.rsplit(|byte| *byte == b'.').next());
    let name = match encoded {
        Some(encoded) => format!(
            "ENCODED => {}, NAME => '{}', ",
            printable(encoded),
            printable(row)
        ),
        None => String::new(),
    };
    let mut text = format!(
        "{{{name}STARTKEY => '{}', ENDKEY => '{}'",
        printable(&start),
        printable(&end)
    );
    if region.offline == Some(true) {
        text += ", OFFLINE => true";
    }
    if region.split == Some(true) {
        text += ", SPLIT => true";
    }
    let replica = region.replica_id.filter(|replica| *replica > 0);
    text.extend(replica.map(|replica| format!(", REPLICA_ID => {replica}")));
    Some(text + "}")
}

#[cfg(test)]
mod tests {
    use basalt_client::CellKind;
    use basalt_idl::native::znode::encode_protobuf;

    use super::*;

    fn cell(family: &'static str, qualifier: &'static str, value: Vec<u8>) -> Cell {
        Cell {
            family: family.into(),
            qualifier: qualifier.into(),
            value: value.into(),
            timestamp: 0,
            kind: CellKind::Put,
            tags: "".into(),
        }
    }

    #[test]
    fn regions_are_printed_as_hbase_does() {
        let mut value = Vec::new();
        let region = RegionInfo {
            start_key: Some("a\0".into()),
            end_key: Some("m".into()),
            ..RegionInfo::default()
        };
        encode_protobuf(&region, &mut value);
        let row = b"t,a\0,17.0123456789abcdef0123456789abcdef.";
        let text = SystemTable::Meta
            .value(row, &cell("info", "regioninfo", value.clone()))
            .unwrap();
        assert_eq!(
            text,
            "{ENCODED => 0123456789abcdef0123456789abcdef, \
             NAME => 't,a\\x00,17.0123456789abcdef0123456789abcdef.', STARTKEY => 'a\\x00', ENDKEY => 'm'}"
        );
        let merged = SystemTable::Meta
            .value(row, &cell("info", "merge0000", value))
            .unwrap();
        assert_eq!(merged, "{STARTKEY => 'a\\x00', ENDKEY => 'm'}");
    }

    #[test]
    fn numbers_states_and_namespaces_are_words() {
        let meta = |family, qualifier, value| SystemTable::Meta.value(b"r", &cell(family, qualifier, value));
        assert_eq!(
            meta("info", "serverstartcode", 17_i64.to_be_bytes().to_vec()).as_deref(),
            Some("17")
        );
        assert_eq!(meta("table", "state", vec![8, 0]).as_deref(), Some("ENABLED"));
        assert_eq!(meta("info", "server", b"host:1".to_vec()), None, "text");
        for broken in [
            ("info", "regioninfo"),
            ("info", "seqnumDuringOpen"),
            ("table", "state"),
        ] {
            assert_eq!(meta(broken.0, broken.1, b"\xff".to_vec()), None, "{broken:?}");
        }
        let namespace = NamespaceDescriptor {
            name: "ns".into(),
            ..NamespaceDescriptor::default()
        };
        let value = cell("info", "d", namespace.encode_to_vec());
        assert_eq!(
            SystemTable::Namespace.value(b"ns", &value).as_deref(),
            Some("{NAME => 'ns'}")
        );
        assert_eq!(SystemTable::named("t"), None);
    }
}
