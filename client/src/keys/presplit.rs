//! Split keys of HBase's `RegionSplitter` for tables whose keys are spread already.
//!
//! | algorithm | keys |
//! | --- | --- |
//! | `HexStringSplit` | eight hex digits, `00000000` to `FFFFFFFF`: for keys that start with a hash in hex |
//! | `DecimalStringSplit` | eight decimal digits, `00000000` to `99999999`: for keys that start with digits |
//! | `UniformSplit` | eight raw bytes: for keys that start with random bytes |
//!
//! The arithmetic is HBase's, so a table created here has the regions of one created by HBase's shell.

use super::{KeyError, check_regions};

/// One of HBase's algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitAlgorithm {
    /// Eight hex digits.
    HexString,
    /// Eight decimal digits.
    DecimalString,
    /// Eight raw bytes.
    Uniform,
}

impl SplitAlgorithm {
    /// The names HBase knows them by.
    pub const NAMES: [&str; 3] = ["HexStringSplit", "DecimalStringSplit", "UniformSplit"];

    /// The algorithm of this name in HBase, or of this Java class.
    pub fn from_name(name: &str) -> Option<SplitAlgorithm> {
        let inner = name.strip_prefix("org.apache.hadoop.hbase.util.RegionSplitter$");
        match inner.unwrap_or(name) {
            "HexStringSplit" => Some(SplitAlgorithm::HexString),
            "DecimalStringSplit" => Some(SplitAlgorithm::DecimalString),
            "UniformSplit" => Some(SplitAlgorithm::Uniform),
            _ => None,
        }
    }

    /// Keys that split a table into `regions` regions: one fewer than regions.
    pub fn split_keys(self, regions: usize) -> Result<Vec<Vec<u8>>, KeyError> {
        match self {
            SplitAlgorithm::HexString => {
                let keys = number_splits(regions, 0xffff_ffff)?;
                Ok(keys.map(|key| format!("{key:08x}").into_bytes()).collect())
            }
            SplitAlgorithm::DecimalString => {
                let keys = number_splits(regions, 99_999_999)?;
                Ok(keys.map(|key| format!("{key:08}").into_bytes()).collect())
            }
            SplitAlgorithm::Uniform => uniform_splits(regions),
        }
    }
}

/// HBase's `NumberStringSplit`: the size of a region is the whole range, both ends counted, divided
/// by the number of regions and rounded down, so the last region takes the remainder.
fn number_splits(regions: usize, last: u64) -> Result<impl Iterator<Item = u64>, KeyError> {
    check_regions(regions, u128::from(last) + 1)?;
    let region_size = (last + 1) / regions as u64;
    Ok((1..regions as u64).map(move |index| index * region_size))
}

/// HBase's `Bytes.split` from eight zero bytes to eight bytes `0xff`, without the ends. It takes the
/// difference of the two and adds one, because the end is inclusive.
fn uniform_splits(regions: usize) -> Result<Vec<Vec<u8>>, KeyError> {
    check_regions(regions, 1 << 32)?;
    let region_size = (u128::from(u64::MAX) + 1) / regions as u128;
    Ok((1..regions as u128)
        .map(|index| ((index * region_size) as u64).to_be_bytes().to_vec())
        .collect())
}

/// Points that cut the numbers of `width` bytes, at most 8, into even parts.
pub(super) fn even_points(regions: usize, width: usize) -> Result<Vec<Vec<u8>>, KeyError> {
    let numbers = 1u128 << (8 * width);
    check_regions(regions, numbers)?;
    Ok((1..regions as u128)
        .map(|index| {
            let point = (index * numbers / regions as u128).to_be_bytes();
            point[point.len() - width..].to_vec()
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::SplitAlgorithm;

    /// The first and last keys that HBase 2.6's `RegionSplitter` makes, also where the number of regions
    /// divides nothing evenly.
    #[test]
    fn keys_are_those_of_hbase() {
        let cases: &[(&str, usize, &[&str], &[&str])] = &[
            ("HexStringSplit", 2, &["80000000"], &["80000000"]),
            ("HexStringSplit", 3, &["55555555", "aaaaaaaa"], &[]),
            (
                "HexStringSplit",
                7,
                &["24924924", "49249248", "6db6db6c"],
                &["92492490", "b6db6db4", "db6db6d8"],
            ),
            (
                "HexStringSplit",
                16,
                &["10000000", "20000000"],
                &["e0000000", "f0000000"],
            ),
            (
                "HexStringSplit",
                100,
                &["028f5c28", "051eb850"],
                &["fae14750", "fd70a378"],
            ),
            (
                "HexStringSplit",
                257,
                &["00ff00ff", "01fe01fe"],
                &["fe01fe01", "ff00ff00"],
            ),
            (
                "HexStringSplit",
                1000,
                &["00418937", "0083126e"],
                &["ff7cec6a", "ffbe75a1"],
            ),
            ("DecimalStringSplit", 2, &["50000000"], &["50000000"]),
            ("DecimalStringSplit", 3, &["33333333", "66666666"], &[]),
            (
                "DecimalStringSplit",
                7,
                &["14285714", "28571428", "42857142"],
                &["57142856", "71428570", "85714284"],
            ),
            (
                "DecimalStringSplit",
                16,
                &["06250000", "12500000"],
                &["87500000", "93750000"],
            ),
            (
                "DecimalStringSplit",
                257,
                &["00389105", "00778210"],
                &["99221775", "99610880"],
            ),
            (
                "DecimalStringSplit",
                1000,
                &["00100000", "00200000"],
                &["99800000", "99900000"],
            ),
        ];
        for (name, regions, first, last) in cases {
            let keys = SplitAlgorithm::from_name(name)
                .unwrap()
                .split_keys(*regions)
                .unwrap();
            let keys: Vec<_> = keys
                .into_iter()
                .map(|key| String::from_utf8(key).unwrap())
                .collect();
            assert_eq!(keys.len(), regions - 1);
            assert_eq!(&keys[..first.len()], *first, "{name} {regions}");
            assert_eq!(&keys[keys.len() - last.len()..], *last, "{name} {regions}");
        }
    }

    /// Splits of raw bytes equal HBase's: the interval is that of 2^64 numbers, rounded down.
    #[test]
    fn raw_keys_are_those_of_hbase() {
        type Keys = &'static [&'static [u8]];
        let cases: &[(usize, Keys, Keys)] = &[
            (2, &[b"\x80\0\0\0\0\0\0\0"], &[]),
            (3, &[b"UUUUUUUU", &[0xaa; 8]], &[]),
            (5, &[b"33333333", b"ffffffff", &[0x99; 8], &[0xcc; 8]], &[]),
            (
                7,
                &[
                    b"$\x92I$\x92I$\x92",
                    b"I$\x92I$\x92I$",
                    b"m\xb6\xdbm\xb6\xdbm\xb6",
                    b"\x92I$\x92I$\x92H",
                    b"\xb6\xdbm\xb6\xdbm\xb6\xda",
                    b"\xdbm\xb6\xdbm\xb6\xdbl",
                ],
                &[],
            ),
            (
                100,
                &[b"\x02\x8f\x5c(\xf5\xc2\x8f\x5c", b"\x05\x1e\xb8Q\xeb\x85\x1e\xb8"],
                &[b"\xfa\xe1G\xae\x14z\xe18", b"\xfdp\xa3\xd7\x0a=p\x94"],
            ),
            (255, &[&[1; 8], &[2; 8]], &[&[0xfd; 8], &[0xfe; 8]]),
            (
                257,
                &[b"\0\xff\0\xff\0\xff\0\xff", b"\x01\xfe\x01\xfe\x01\xfe\x01\xfe"],
                &[b"\xfe\x01\xfe\x01\xfe\x01\xfe\x01", b"\xff\0\xff\0\xff\0\xff\0"],
            ),
            (
                1000,
                &[b"\0A\x897K\xc6\xa7\xef", b"\0\x83\x12n\x97\x8dO\xde"],
                &[b"\xff|\xed\x91hr\xad\xba", b"\xff\xbev\xc8\xb49U\xa9"],
            ),
        ];
        for (regions, first, last) in cases {
            let keys = SplitAlgorithm::Uniform.split_keys(*regions).unwrap();
            assert_eq!(keys.len(), regions - 1);
            assert_eq!(&keys[..first.len()], *first, "{regions}");
            assert_eq!(&keys[keys.len() - last.len()..], *last, "{regions}");
            assert!(keys.is_sorted_by(|left, right| left < right));
        }
    }

    #[test]
    fn one_region_has_no_key_and_none_is_an_error() {
        for name in SplitAlgorithm::NAMES {
            let algorithm = SplitAlgorithm::from_name(name).unwrap();
            assert!(algorithm.split_keys(1).unwrap().is_empty());
            assert!(algorithm.split_keys(0).is_err());
            let class = format!("org.apache.hadoop.hbase.util.RegionSplitter${name}");
            assert_eq!(SplitAlgorithm::from_name(&class), Some(algorithm));
        }
        assert_eq!(SplitAlgorithm::from_name("org.example.HexStringSplit"), None);
        assert!(
            SplitAlgorithm::DecimalString.split_keys(100_000_001).is_err(),
            "more regions than keys"
        );
    }
}
