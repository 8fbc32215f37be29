//! The fuzzy row filter: row keys with wildcards.
//!
//! Only the first min(row length, key length) bytes are compared, as in HBase: a row shorter than the key can
//! match, and a longer one matches by its beginning. For a row that matches no key, the filter names the
//! nearest row ahead that could, so a scan jumps instead of reading everything.

use std::sync::Arc;

use super::row::first_row_behind;
use super::{Filter, ReturnCode};
use crate::cell::{Cell, KeyBuf};
use crate::{Error, Result};

/// The forms in which masks come, in a mask as HBase's client has worked on it. In one that it has not, 0 is
/// fixed and 1 is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskForm {
    /// 0xFF is fixed, 0 is free. Clients that do not say `is_mask_v2`; old ones among them send the other
    /// form all the same.
    One,
    /// 0xFF is fixed, 2 is free.
    Two,
}

/// In a mask that HBase's client has worked on already: this byte is fixed.
const PREPROCESSED_FIXED: u8 = 0xff;

impl MaskForm {
    /// The value for a free byte in a mask that HBase's client has worked on.
    fn free(self) -> u8 {
        match self {
            Self::One => 0,
            Self::Two => 2,
        }
    }
}

/// A row key with wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuzzyKey {
    /// The bytes; zero where free.
    key: Vec<u8>,
    /// Whether the byte at that place must be the key's.
    fixed: Vec<bool>,
}

impl FuzzyKey {
    /// From key and mask. A mask of only 0xFF and the form's free byte is one that HBase's client has worked
    /// on. In any other, 0 and 0xFF are fixed and everything else is free.
    pub fn new(key: &[u8], mask: &[u8], form: MaskForm) -> Result<Self> {
        if key.len() != mask.len() {
            return Err(Error::InvalidArgument(format!(
                "FuzzyRowFilter: fuzzy key has {} bytes and its mask {}, they must be of one length",
                key.len(),
                mask.len()
            )));
        }
        let preprocessed = mask
            .iter()
            .all(|byte| *byte == PREPROCESSED_FIXED || *byte == form.free());
        let is_fixed = |byte: &u8| *byte == PREPROCESSED_FIXED || !preprocessed && *byte == 0;
        let fixed: Vec<bool> = mask.iter().map(is_fixed).collect();
        let mut key = key.to_vec();
        for (byte, fixed) in key.iter_mut().zip(&fixed) {
            if !fixed {
                *byte = 0;
            }
        }
        Ok(Self { key, fixed })
    }

    /// The key, with zeros where it is free.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The mask of 0 and 1, which means the same in [`MaskForm::Two`] only.
    pub fn mask(&self) -> Vec<u8> {
        self.fixed.iter().map(|fixed| u8::from(!fixed)).collect()
    }

    /// The first place where the row is not as wanted.
    fn mismatch(&self, row: &[u8]) -> Option<usize> {
        (0..row.len().min(self.key.len())).find(|place| self.fixed[*place] && row[*place] != self.key[*place])
    }

    /// The smallest row above `row`, which does not match, that does.
    fn next_match(&self, row: &[u8]) -> Option<Vec<u8>> {
        let place = self.mismatch(row)?;
        let (keep, byte) = if row[place] < self.key[place] {
            (place, self.key[place])
        } else {
            // Only a free byte before that place can be raised.
            let raised = (0..place).rfind(|free| !self.fixed[*free] && row[*free] < 0xff)?;
            (raised, row[raised] + 1)
        };
        let mut next = row[..keep].to_vec();
        next.push(byte);
        Some(next)
    }

    /// A row at or below `row`, which does not match, such that every match below `row` is at or below it.
    fn previous_bound(&self, row: &[u8]) -> Option<Vec<u8>> {
        let place = self.mismatch(row)?;
        if row[place] > self.key[place] {
            let mut greatest = row[..place].to_vec();
            greatest.push(self.key[place]);
            let rest = (place + 1)..self.key.len();
            greatest.extend(rest.map(|place| if self.fixed[place] { self.key[place] } else { 0xff }));
            return first_row_behind(&greatest);
        }
        // The matches below begin differently before that place; or they end there, being shorter than the
        // key.
        (place > 0).then(|| row[..place].to_vec())
    }
}

/// Rows that match one of several keys with wildcards.
#[derive(Debug)]
pub(super) struct FuzzyRowFilter {
    keys: Arc<[FuzzyKey]>,
    reversed: bool,
    /// The key that matched last; rows that match one after the other often match the same key.
    last_found: usize,
    /// The row's hint.
    hint: Option<Vec<u8>>,
    /// No row ahead can match.
    done: bool,
    filter_row: bool,
}

impl FuzzyRowFilter {
    pub(super) fn new(keys: Arc<[FuzzyKey]>) -> Self {
        Self {
            keys,
            reversed: false,
            last_found: 0,
            hint: None,
            done: false,
            filter_row: false,
        }
    }

    /// The nearest row ahead at which a match is possible.
    fn nearest(&self, row: &[u8]) -> Option<Vec<u8>> {
        if self.reversed {
            self.keys.iter().filter_map(|key| key.previous_bound(row)).max()
        } else {
            self.keys.iter().filter_map(|key| key.next_match(row)).min()
        }
    }
}

impl Filter for FuzzyRowFilter {
    fn set_reversed(&mut self, reversed: bool) {
        self.reversed = reversed;
    }

    fn reset(&mut self) {
        self.filter_row = false;
        self.hint = None;
    }

    fn filter_all_remaining(&self) -> bool {
        self.done
    }

    fn filter_cell(&mut self, cell: Cell<'_>) -> Result<ReturnCode> {
        let row = cell.key.row();
        let count = self.keys.len();
        let found = (0..count)
            .map(|step| (self.last_found + step) % count)
            .find(|index| self.keys[*index].mismatch(row).is_none());
        if let Some(index) = found {
            self.last_found = index;
            return Ok(ReturnCode::Include);
        }
        self.filter_row = true;
        if self.hint.is_none() {
            self.hint = self.nearest(row);
        }
        self.done = self.hint.is_none();
        // A reversed hint may name the very row when the match can be the row just before it.
        let ahead = self.hint.as_ref().is_some_and(|hint| hint != row);
        Ok(if ahead {
            ReturnCode::SeekNextUsingHint
        } else {
            ReturnCode::NextRow
        })
    }

    fn filter_row(&mut self) -> bool {
        self.filter_row
    }

    fn gives_hints(&self) -> bool {
        true
    }

    fn next_cell_hint(&mut self, cell: Cell<'_>) -> Option<KeyBuf> {
        let row = self.hint.as_deref()?;
        Some(KeyBuf::first_on_row(row, cell.key.family()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against every row of up to three letters: the hint is ahead, and no match lies between the row and it.
    #[test]
    fn hints_jump_over_no_match() {
        let letters = [0u8, 1, 2, 0xff];
        let mut rows: Vec<Vec<u8>> = vec![vec![]];
        for length in 0..3 {
            let shorter: Vec<_> = rows.iter().filter(|row| row.len() == length).cloned().collect();
            rows.extend(
                shorter
                    .iter()
                    .flat_map(|row| letters.map(|letter| [row.as_slice(), &[letter]].concat())),
            );
        }
        rows.sort();
        for (key, mask) in [
            ([1, 0, 2], [0, 1, 0]),
            ([0, 1, 0], [1, 0, 1]),
            ([0, 0, 0xff], [1, 1, 0]),
            ([2, 0, 0], [0, 0, 1]),
        ] {
            let key = FuzzyKey::new(&key, &mask, MaskForm::Two).unwrap();
            for row in rows.iter().filter(|row| key.mismatch(row).is_some()) {
                let matching = |other: &&Vec<u8>| key.mismatch(other).is_none();
                let above = rows.iter().filter(|other| *other > row).find(matching);
                let next = key.next_match(row);
                assert!(
                    next.as_ref()
                        .is_none_or(|next| next > row && key.mismatch(next).is_none())
                );
                assert!(
                    above.is_none_or(|above| next.as_ref().is_some_and(|next| next <= above)),
                    "{key:?} {row:?}"
                );
                let below = rows.iter().filter(|other| *other < row).rfind(matching);
                let bound = key.previous_bound(row);
                assert!(
                    bound.as_ref().is_none_or(|bound| bound <= row),
                    "{key:?} {row:?} {bound:?}"
                );
                // A bound that comes of an increment is itself no match; the empty row is no row.
                let reaches = |below: &Vec<u8>| bound.as_ref().is_some_and(|bound| bound >= below);
                assert!(
                    below.is_none_or(|below| below.is_empty() || reaches(below)),
                    "{key:?} {row:?}"
                );
            }
        }
    }

    #[test]
    fn masks_in_both_forms() {
        let key = |mask: &[u8], form| FuzzyKey::new(b"a?c", mask, form).unwrap();
        let plain = key(&[0, 1, 0], MaskForm::Two);
        assert_eq!(plain, key(&[0xff, 2, 0xff], MaskForm::Two));
        assert_eq!(plain, key(&[0, 1, 0], MaskForm::One));
        assert_eq!(plain, key(&[0xff, 0, 0xff], MaskForm::One));
        // Masks of clients before `is_mask_v2`.
        assert_eq!(plain, key(&[0xff, 2, 0xff], MaskForm::One));
        assert_eq!(key(&[0, 0, 0], MaskForm::Two).mask(), [0, 0, 0]);
        assert_eq!(key(&[0, 0, 0], MaskForm::One).mask(), [1, 1, 1]);
        assert_eq!(plain.key(), b"a\0c");
        assert_eq!(plain.mask(), [0, 1, 0]);
        let text = FuzzyKey::new(b"ab", &[0], MaskForm::Two).unwrap_err().to_string();
        assert!(text.contains("2 bytes and its mask 1"), "{text}");
    }
}
