//! Names of directories and files in HBase's root directory.

use std::path::{Path, PathBuf};

use basalt_engine::id::{SeqId, Uuid};
use basalt_engine::schema::TableName;

/// Where the descriptions of snapshots are.
pub(super) const SNAPSHOTS: &str = ".hbase-snapshot";
/// Snapshots that are being made.
pub(super) const UNFINISHED: &str = ".tmp";
pub(super) const SNAPSHOT_INFO: &str = ".snapshotinfo";
pub(super) const DATA_MANIFEST: &str = "data.manifest";
/// Begins the names of manifests of single regions, until HBase has made one of all.
pub(super) const REGION_MANIFEST: &str = "region-manifest.";

/// Where the files of a family of a region are, below a root or below its archive.
pub(super) fn store_dir(below: &Path, table: &TableName, region: &str, family: &str) -> PathBuf {
    below
        .join("data")
        .join(table.namespace())
        .join(table.qualifier())
        .join(region)
        .join(family)
}

/// The directory of files that no table has.
pub(super) fn archive(root: &Path) -> PathBuf {
    root.join("archive")
}

/// The name of a store file. HBase's block cache knows a file by its name alone, so it is made of the uuid.
/// All cells of a file with a sequence id in its name have that one.
pub(super) fn file_name(uuid: &Uuid, loaded: Option<SeqId>) -> String {
    let name = uuid.to_string().replace('-', "");
    match loaded {
        Some(seq) => format!("{name}_SeqId_{}_", seq.0),
        None => name,
    }
}

/// The sequence id in a file's name.
pub(super) fn loaded_seq(name: &str) -> Option<SeqId> {
    let (_, rest) = name.rsplit_once("_SeqId_")?;
    rest.strip_suffix('_')?.parse().ok().map(SeqId)
}

/// A store file's name taken apart: what is in the manifest of a region, or on the disk in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name<'a> {
    /// A file of the region.
    File,
    /// A link of a clone to a file of another table: `table=region-file`, with `namespace=` before it unless
    /// that is the default.
    Link {
        namespace: &'a str,
        table: &'a str,
        region: &'a str,
        file: &'a str,
    },
}

impl<'a> Name<'a> {
    /// Takes a name apart. `None` if it is no name of a store file.
    pub(super) fn parse(name: &'a str) -> Option<Self> {
        if is_file(name) {
            return Some(Self::File);
        }
        let (left, file) = name.rsplit_once('-')?;
        let (left, region) = left.rsplit_once('=')?;
        let (namespace, table) = left.split_once('=').unwrap_or(("default", left));
        (is_file(file) && is_hex(region)).then_some(Self::Link {
            namespace,
            table,
            region,
            file,
        })
    }
}

/// A reference of a daughter region to half of a file of its parent: `FILE.PARENT`.
pub(super) fn reference(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('.').filter(|(_, parent)| is_hex(parent))
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_file(name: &str) -> bool {
    let stem = match name.split_once("_SeqId_") {
        Some((stem, rest)) => {
            let digits = rest.strip_suffix('_').unwrap_or_default();
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return false;
            }
            stem
        }
        None => name,
    };
    is_hex(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_sequence_id() {
        let uuid = Uuid([0xab; 16]);
        let plain = "ab".repeat(16);
        assert_eq!(file_name(&uuid, None), plain);
        assert_eq!(file_name(&uuid, Some(SeqId(42))), format!("{plain}_SeqId_42_"));
        assert_eq!(loaded_seq(&format!("{plain}_SeqId_42_")), Some(SeqId(42)));
        for name in [plain.as_str(), "ab_SeqId_x_", "ab_SeqId_4"] {
            assert_eq!(loaded_seq(name), None, "{name}");
        }
    }

    #[test]
    fn names_are_taken_apart() {
        for name in ["abc0", "abc0_SeqId_4_"] {
            assert_eq!(Name::parse(name), Some(Name::File), "{name}");
        }
        let link = |namespace, table, file| {
            Some(Name::Link {
                namespace,
                table,
                region: "1f",
                file,
            })
        };
        assert_eq!(Name::parse("t-1=1f-abc"), link("default", "t-1", "abc"));
        assert_eq!(
            Name::parse("ns=t=1f-abc_SeqId_4_"),
            link("ns", "t", "abc_SeqId_4_")
        );
        for name in ["", "xyz", "t=1f", "=1f-", "abc_SeqId__", "../abc"] {
            assert_eq!(Name::parse(name), None, "{name}");
        }
        assert_eq!(reference("abc.1f"), Some(("abc", "1f")));
        assert_eq!(reference("t=2e-abc.1f"), Some(("t=2e-abc", "1f")));
        assert_eq!(reference("abc"), None);
    }
}
