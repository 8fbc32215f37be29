//! The cells of one mutation.

use std::ops::{Deref, DerefMut};

use smallvec::SmallVec;

use super::Write;

/// The writes of one row, in the order given. Up to two are stored without an allocation, since
/// most mutations have one. Dereferences to a slice.
#[derive(Clone, Debug, Default)]
pub struct Writes<'a>(SmallVec<[Write<'a>; 2]>);

impl<'a> Writes<'a> {
    /// No writes yet.
    #[inline]
    pub fn new() -> Self {
        Self(SmallVec::new())
    }

    /// Adds a write after the others.
    #[inline]
    pub fn push(&mut self, write: Write<'a>) {
        self.0.push(write);
    }

    /// Keeps the writes for which `keep` returns true.
    #[inline]
    pub fn retain(&mut self, mut keep: impl FnMut(&Write<'a>) -> bool) {
        self.0.retain(|write| keep(write));
    }
}

impl<'a> Deref for Writes<'a> {
    type Target = [Write<'a>];

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Writes<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<'a, const N: usize> From<[Write<'a>; N]> for Writes<'a> {
    #[inline]
    fn from(writes: [Write<'a>; N]) -> Self {
        writes.into_iter().collect()
    }
}

impl<'a> FromIterator<Write<'a>> for Writes<'a> {
    #[inline]
    fn from_iter<I: IntoIterator<Item = Write<'a>>>(writes: I) -> Self {
        Self(writes.into_iter().collect())
    }
}

impl<'a> Extend<Write<'a>> for Writes<'a> {
    #[inline]
    fn extend<I: IntoIterator<Item = Write<'a>>>(&mut self, writes: I) {
        self.0.extend(writes);
    }
}

impl<'w, 'a> IntoIterator for &'w Writes<'a> {
    type Item = &'w Write<'a>;
    type IntoIter = std::slice::Iter<'w, Write<'a>>;

    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delete(timestamp: i64) -> Write<'static> {
        Write::DeleteRow {
            timestamp: Some(timestamp),
        }
    }

    fn timestamps(writes: &Writes<'_>) -> Vec<i64> {
        let timestamp = |write: &Write<'_>| match write {
            Write::DeleteRow { timestamp } => timestamp.unwrap(),
            other => panic!("{other:?} was never added"),
        };
        writes.into_iter().map(timestamp).collect()
    }

    #[test]
    fn writes_keep_their_order_beyond_the_inline_capacity() {
        let mut writes = Writes::from([delete(1)]);
        writes.push(delete(2));
        writes.extend([delete(3), delete(4)]);
        assert_eq!(timestamps(&writes), [1, 2, 3, 4]);
        writes.retain(|write| !matches!(write, Write::DeleteRow { timestamp: Some(2) }));
        assert_eq!(timestamps(&writes), [1, 3, 4]);
        assert_eq!(writes.len(), 3);
        assert!(Writes::new().is_empty());
    }
}
