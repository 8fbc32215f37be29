//! `dataintegrity=true`: YCSB's values that can be computed from where they are.
//!
//! A value is the row key, a colon and the field's name, and then colons and Java's hash codes of all that is
//! in front, up to its length:
//!
//! ```text
//! user1:field0:-1268391216:...
//! ```

use basalt_client::Row;
use bytes::Bytes;

/// The value of a field of a row.
pub(super) fn value(key: &[u8], field: &[u8], length: usize) -> Bytes {
    let mut value = [key, b":", field].concat();
    let (mut hash, mut hashed) = (0i32, 0);
    while value.len() < length {
        value.push(b':');
        // `String.hashCode`, gone on with from where it was: characters are ASCII.
        for byte in &value[hashed..] {
            hash = hash.wrapping_mul(31).wrapping_add(i32::from(*byte));
        }
        hashed = value.len();
        value.extend_from_slice(hash.to_string().as_bytes());
    }
    value.truncate(length);
    value.into()
}

/// The error in rows that were read by `key`, at most one; `None` if all is as written.
pub(super) fn difference(key: &[u8], rows: &[Row], length: usize) -> Option<String> {
    let key_text = key.escape_ascii();
    let Some(row) = rows.first() else {
        return Some(format!("row {key_text} is missing"));
    };
    let wrong = row
        .cells
        .iter()
        .find(|cell| cell.value != value(key, &cell.qualifier, length));
    if let Some(cell) = wrong {
        return Some(format!(
            "row {key_text} has another value in {} than was written: {} bytes that begin with {}",
            cell.qualifier.escape_ascii(),
            cell.value.len(),
            cell.value[..cell.value.len().min(40)].escape_ascii()
        ));
    }
    None
}
