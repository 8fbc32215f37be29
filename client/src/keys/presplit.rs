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

    /// The algorithm of this name in HBase.
    pub fn from_name(name: &str) -> Option<SplitAlgorithm> {
        match name {
            "HexStringSplit" => Some(SplitAlgorithm::HexString),
            "DecimalStringSplit" => Some(SplitAlgorithm::DecimalString),
            "UniformSplit" => Some(SplitAlgorithm::Uniform),
            _ => None,
        }
    }

    /// Keys that split a table into so many regions: one fewer than regions.
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

/// HBase's `NumberStringSplit`: the size of a region is the whole range, both ends counted, divided by the number of
/// regions and rounded down, so the last region takes what is left over.
fn number_splits(regions: usize, last: u64) -> Result<impl Iterator<Item = u64>, KeyError> {
    check_regions(regions, u128::from(last) + 1)?;
    let region_size = (last + 1) / regions as u64;
    Ok((1..regions as u64).map(move |index| index * region_size))
}

/// HBase's `Bytes.split` from eight zero bytes to eight bytes `0xff`, without the ends. It takes the difference of the
/// two and adds one, because the end is inclusive.
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

    /// The keys that HBase's shell creates for these tables.
    #[test]
    fn keys_are_those_of_hbase() {
        let text = |algorithm: SplitAlgorithm, regions| {
            let keys = algorithm.split_keys(regions).unwrap();
            keys.into_iter()
                .map(|key| String::from_utf8(key).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            text(SplitAlgorithm::HexString, 4),
            ["40000000", "80000000", "c0000000"]
        );
        assert_eq!(text(SplitAlgorithm::HexString, 3), ["55555555", "aaaaaaaa"]);
        assert_eq!(
            text(SplitAlgorithm::DecimalString, 4),
            ["25000000", "50000000", "75000000"]
        );
        let uniform = SplitAlgorithm::Uniform.split_keys(4).unwrap();
        assert_eq!(
            uniform,
            [0x40, 0x80, 0xc0].map(|first: u8| vec![first, 0, 0, 0, 0, 0, 0, 0])
        );
    }

    #[test]
    fn one_region_has_no_key_and_none_is_an_error() {
        for name in SplitAlgorithm::NAMES {
            let algorithm = SplitAlgorithm::from_name(name).unwrap();
            assert!(algorithm.split_keys(1).unwrap().is_empty());
            assert!(algorithm.split_keys(0).is_err());
        }
    }
}
