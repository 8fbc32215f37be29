//! Tags compressed with a dictionary, as HBase writes them into encoded blocks (`COMPRESS_TAGS`). We read
//! them and do not write them.
//!
//! A tag is either `0xff, length varint, bytes` and becomes an entry of the dictionary, or the u16 BE number
//! of an entry. The dictionary holds 127 entries, starts empty in each block, and reuses the number of the
//! entry that was not used for longest.

use crate::codec::Cursor;

const ENTRIES_MAX: usize = 127;
const NOT_IN_DICTIONARY: u8 = 0xff;

/// The dictionary of one block.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    entries: Vec<Vec<u8>>,
    /// Numbers of entries, the longest unused first.
    order: Vec<u16>,
}

impl Dictionary {
    /// Reads tags that are `tags_bytes` long when uncompressed and appends them.
    pub(super) fn uncompress(
        &mut self,
        input: &mut Cursor<'_>,
        tags_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let end = out.len() + tags_bytes;
        while out.len() < end {
            let status = input.u8()?;
            let tag = if status == NOT_IN_DICTIONARY {
                let tag = input.prefixed()?;
                self.add(tag);
                tag
            } else {
                self.get(u16::from_be_bytes([status, input.u8()?]))?
            };
            out.extend_from_slice(&u16::try_from(tag.len()).ok()?.to_be_bytes());
            out.extend_from_slice(tag);
        }
        (out.len() == end).then_some(())
    }

    fn add(&mut self, tag: &[u8]) {
        if tag.is_empty() {
            return;
        }
        let number = if self.entries.len() < ENTRIES_MAX {
            self.entries.push(tag.to_vec());
            (self.entries.len() - 1) as u16
        } else {
            let number = self.order.remove(0);
            self.entries[usize::from(number)] = tag.to_vec();
            number
        };
        self.order.push(number);
    }

    fn get(&mut self, number: u16) -> Option<&[u8]> {
        let at = self.order.iter().position(|entry| *entry == number)?;
        self.order.remove(at);
        self.order.push(number);
        self.entries.get(usize::from(number)).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_reused_by_number_and_the_oldest_goes() {
        let mut packed = Vec::new();
        for tag in 0..=ENTRIES_MAX as u8 {
            packed.extend_from_slice(&[NOT_IN_DICTIONARY, 2, 8, tag]);
            if tag == 1 {
                packed.extend_from_slice(&[0, 0]);
            }
        }
        // Number 0 was used after number 1, so the tag that came when the dictionary was full took number 1.
        packed.extend_from_slice(&[0, 1, 0, 0]);
        let tags = ENTRIES_MAX + 4;
        let mut out = Vec::new();
        let mut input = Cursor::new(&packed);
        Dictionary::default()
            .uncompress(&mut input, tags * 4, &mut out)
            .unwrap();
        assert!(input.is_empty());
        assert_eq!(out[8..12], [0, 2, 8, 0]);
        assert_eq!(out[(tags - 2) * 4..], [0, 2, 8, ENTRIES_MAX as u8, 0, 2, 8, 0]);
        assert!(
            Dictionary::default()
                .uncompress(&mut Cursor::new(&[0, 0]), 4, &mut Vec::new())
                .is_none()
        );
    }
}
