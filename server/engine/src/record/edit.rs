//! The rows of a write, as they stand in the WAL.
//!
//! One *edit* holds the cells that one writer logs at once for one region: rows that become visible
//! together. Numbers are LEB128 varints:
//!
//! ```text
//! edit  = region id | row count | row* | nonce*
//! row   = cell count | cell*
//! cell  = key length | flat key (see `cell`) | value length | value | tags length | tags
//! nonce = group u64 le | number u64 le | milliseconds of lived time (see `nonces`)
//! ```
//!
//! Nonces have no count: they extend to the end of the edit. Each is the client's name of an
//! operation in the edit, or of one whose edit is about to be removed from the log (then the edit
//! has no cells and the region [`NO_REGION`]); or the place of a standby ([`Mark`]).
//!
//! Sequence ids are not stored with the rows: the first row of an edit has the edit's, each later row the
//! next one. Edits stand in a frame as *entries*, one after the other to the end:
//!
//! ```text
//! entry = gap | edit length | edit
//! ```
//!
//! A frame that says when it was written has entries with the clusters that an edit has passed:
//!
//! ```text
//! entry   = gap * 2 + (1 if there are clusters) | [cluster count | uuid*] | edit length | edit
//! ```
//!
//! The first entry's gap counts from the frame's `first_seq`, that of a later one from the sequence
//! id after the last row before it. It is zero unless unlogged rows (SKIP_WAL) took sequence ids in
//! between.
//!
//! Reading checks everything and never panics; an error is a text, to which the caller adds file
//! and offset.

use crate::cell::{Cell, CellType, Key, KeyBuf};
use crate::codec::{Cursor, put_prefixed, put_varint};
use crate::id::{Nonce, ORIGIN_CLUSTERS_MAX, RegionId, SeqId, Uuid};

/// Longest LEB128 varint of a u64.
const VARINT_BYTES_MAX: usize = 10;

/// Room kept before the rows for region id and row count, which are known only when the rows are.
const HEAD_BYTES: usize = 2 * VARINT_BYTES_MAX;

/// Maximum bytes that a nonce takes in an edit.
pub(crate) const NONCE_BYTES_MAX: usize = 2 * size_of::<u64>() + VARINT_BYTES_MAX;

/// The region of an edit that has nonces only. Regions are numbered from 1.
pub(crate) const NO_REGION: RegionId = RegionId(0);

/// Most bytes that an entry has besides its edit and its clusters.
pub(crate) const ENTRY_OVERHEAD_BYTES: usize = 3 * VARINT_BYTES_MAX;

/// Bytes of these clusters in an entry, without their count.
pub(crate) const fn origin_bytes(clusters: usize) -> usize {
    clusters * size_of::<Uuid>()
}

/// Most bytes that an entry's clusters have.
pub(crate) const ORIGIN_BYTES_MAX: usize = origin_bytes(ORIGIN_CLUSTERS_MAX);

/// How far a database has followed another one, as it stands in the log beside the last row of before: as a
/// nonce with the number 0, which no operation of a client has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Number of the copy that follows: those of another one say nothing of this one.
    pub copy: u16,
    /// The next row of the database that is followed. 48 bits, so that the nonce has room for the copy.
    pub next: SeqId,
}

impl Mark {
    const NEXT_BITS: u32 = 48;

    /// The mark as it stands in the log.
    pub(crate) fn to_nonce(self) -> Nonce {
        Nonce {
            group: u64::from(self.copy) << Self::NEXT_BITS | self.next.0,
            number: 0,
        }
    }

    /// The mark that a nonce is; `None` for one of a client.
    pub(crate) fn of(nonce: Nonce) -> Option<Self> {
        (nonce.number == 0).then_some(Self {
            copy: (nonce.group >> Self::NEXT_BITS) as u16,
            next: SeqId(nonce.group & ((1 << Self::NEXT_BITS) - 1)),
        })
    }
}

/// Encodes edits, one after the other, into one reused buffer: at steady state nothing is
/// allocated.
///
/// `begin`, then for each row `begin_row` and its cells, then `finish`.
#[derive(Debug, Default)]
pub struct EditBuilder {
    /// `HEAD_BYTES` of room, then the rows.
    bytes: Vec<u8>,
    region: RegionId,
    rows: u32,
    /// Where the open row's cell count stands: one byte, made longer when the row ends with more than 127
    /// cells.
    row_at: Option<usize>,
    row_cells: u64,
}

impl EditBuilder {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins an edit of `region`, discarding the previous content.
    pub fn begin(&mut self, region: RegionId) {
        self.bytes.clear();
        self.bytes.resize(HEAD_BYTES, 0);
        self.region = region;
        self.rows = 0;
        self.row_at = None;
        self.row_cells = 0;
    }

    /// Begins the next row: it takes the next sequence id, whether or not cells follow.
    /// REQUIRES: [`Self::begin`] was called.
    pub fn begin_row(&mut self) {
        assert!(self.bytes.len() >= HEAD_BYTES, "begin comes before begin_row");
        self.end_row();
        self.row_at = Some(self.bytes.len());
        self.bytes.push(0);
        self.rows += 1;
    }

    /// Adds a cell to the open row. Its sequence id is not looked at.
    pub fn cell(&mut self, cell: &Cell<'_>) {
        self.count_cell();
        put_prefixed(&mut self.bytes, cell.key.bytes());
        put_prefixed(&mut self.bytes, cell.value);
        put_prefixed(&mut self.bytes, cell.tags);
    }

    /// Adds a cell given by its parts to the open row.
    #[expect(clippy::too_many_arguments, reason = "a cell has that many parts")]
    pub fn cell_of(
        &mut self,
        row: &[u8],
        family: &[u8],
        qualifier: &[u8],
        timestamp: i64,
        cell_type: CellType,
        value: &[u8],
        tags: &[u8],
    ) {
        self.count_cell();
        let key_len = Key::len_of(row, family, qualifier);
        put_varint(&mut self.bytes, key_len as u64);
        KeyBuf::append(&mut self.bytes, row, family, qualifier, timestamp, cell_type);
        put_prefixed(&mut self.bytes, value);
        put_prefixed(&mut self.bytes, tags);
    }

    /// Adds the nonce of an operation that was applied at the lived time `applied_ms`.
    /// REQUIRES: no row is begun afterwards.
    pub fn nonce(&mut self, nonce: Nonce, applied_ms: u64) {
        self.end_row();
        self.bytes.extend_from_slice(&nonce.group.to_le_bytes());
        self.bytes.extend_from_slice(&nonce.number.to_le_bytes());
        put_varint(&mut self.bytes, applied_ms);
    }

    /// Rows begun since [`Self::begin`].
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Approximate bytes so far: the result of [`Self::finish`] is a little longer or shorter.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether no row was begun.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Ends the edit and returns its bytes. They stay until the next [`Self::begin`].
    /// REQUIRES: [`Self::begin`] was called.
    pub fn finish(&mut self) -> &[u8] {
        assert!(self.bytes.len() >= HEAD_BYTES, "begin comes before finish");
        self.end_row();
        // The head is written directly before the rows, so that no row has to move.
        let mut head = [0; HEAD_BYTES];
        let region_len = write_varint(&mut head, self.region.0);
        let head_len = region_len + write_varint(&mut head[region_len..], u64::from(self.rows));
        let start = HEAD_BYTES - head_len;
        self.bytes[start..HEAD_BYTES].copy_from_slice(&head[..head_len]);
        &self.bytes[start..]
    }

    fn count_cell(&mut self) {
        assert!(self.row_at.is_some(), "begin_row comes before a row's cells");
        self.row_cells += 1;
    }

    /// Writes the open row's cell count where its room is.
    fn end_row(&mut self) {
        let Some(at) = self.row_at.take() else { return };
        let mut count = [0; VARINT_BYTES_MAX];
        let len = write_varint(&mut count, self.row_cells);
        self.row_cells = 0;
        if len > 1 {
            let end = self.bytes.len();
            self.bytes.resize(end + len - 1, 0);
            self.bytes.copy_within(at + 1..end, at + len);
        }
        self.bytes[at..at + len].copy_from_slice(&count[..len]);
    }
}

/// Writes a varint to the front of `out` and returns its length.
/// REQUIRES: `out` has room for [`VARINT_BYTES_MAX`] bytes.
fn write_varint(out: &mut [u8], mut value: u64) -> usize {
    let mut len = 0;
    while value >= 0x80 {
        out[len] = (value as u8) | 0x80;
        value >>= 7;
        len += 1;
    }
    out[len] = value as u8;
    len + 1
}

/// Walks the cells of one edit.
#[derive(Clone, Debug)]
pub struct EditReader<'a> {
    cursor: Cursor<'a>,
    region: RegionId,
    first_seq: SeqId,
    rows: u32,
    /// Rows whose cell count has been read.
    rows_begun: u32,
    /// Cells of the current row that have not been read.
    cells_left: u64,
    /// Nothing more comes: the end was reached or something was wrong.
    done: bool,
}

impl<'a> EditReader<'a> {
    /// Reads the head of an edit whose first row has the sequence id `first_seq`.
    pub fn new(edit: &'a [u8], first_seq: SeqId) -> Result<Self, &'static str> {
        let mut cursor = Cursor::new(edit);
        let region = cursor.varint().ok_or("an edit ends inside its region id")?;
        let rows = cursor.varint().ok_or("an edit ends inside its row count")?;
        let rows = u32::try_from(rows).map_err(|_| "an edit's row count is too large")?;
        // A row has at least its cell count, so no loop over rows is longer than the edit.
        if rows as usize > cursor.rest().len() {
            return Err("an edit has more rows than bytes");
        }
        if first_seq.0.checked_add(u64::from(rows)).is_none() {
            return Err("an edit's sequence ids overflow");
        }
        Ok(Self {
            cursor,
            region: RegionId(region),
            first_seq,
            rows,
            rows_begun: 0,
            cells_left: 0,
            done: false,
        })
    }

    /// The region that the rows belong to.
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// Number of rows.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The sequence id of the first row.
    pub fn first_seq(&self) -> SeqId {
        self.first_seq
    }

    /// The sequence id after that of the last row.
    pub fn next_seq(&self) -> SeqId {
        SeqId(self.first_seq.0 + u64::from(self.rows))
    }

    /// The nonces behind the rows, each with the time at which its operation was applied.
    /// REQUIRES: the iterator has returned `None` for the end, not for an error.
    pub fn nonces(&self) -> impl Iterator<Item = (Nonce, u64)> + use<'a> {
        let mut rest = self.cursor;
        std::iter::from_fn(move || read_nonce(&mut rest))
    }

    /// Whether nothing stands behind the rows.
    /// REQUIRES: as [`Self::nonces`].
    pub(crate) fn has_no_nonces(&self) -> bool {
        self.cursor.is_empty()
    }

    fn read(&mut self) -> Result<Option<(u32, Cell<'a>)>, &'static str> {
        while self.cells_left == 0 {
            if self.rows_begun == self.rows {
                let mut rest = self.cursor;
                while !rest.is_empty() {
                    read_nonce(&mut rest).ok_or("an edit ends inside a nonce")?;
                }
                return Ok(None);
            }
            self.cells_left = self
                .cursor
                .varint()
                .ok_or("an edit ends inside a row's cell count")?;
            self.rows_begun += 1;
        }
        self.cells_left -= 1;
        let key = self.cursor.prefixed().ok_or("an edit ends inside a key")?;
        let key = Key::parse(key).ok_or("an edit has a malformed key")?;
        let value = self.cursor.prefixed().ok_or("an edit ends inside a value")?;
        let tags = self.cursor.prefixed().ok_or("an edit ends inside tags")?;
        let row = self.rows_begun - 1;
        let seq = SeqId(self.first_seq.0 + u64::from(row));
        Ok(Some((
            row,
            Cell {
                key,
                value,
                tags,
                seq,
            },
        )))
    }
}

/// Each cell with its row's number in the edit; the cell carries the row's sequence id. Ends after the first
/// error.
impl<'a> Iterator for EditReader<'a> {
    type Item = Result<(u32, Cell<'a>), &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let item = self.read().transpose();
        self.done = !matches!(item, Some(Ok(_)));
        item
    }
}

fn read_nonce(cursor: &mut Cursor<'_>) -> Option<(Nonce, u64)> {
    let nonce = Nonce {
        group: cursor.u64_le()?,
        number: cursor.u64_le()?,
    };
    Some((nonce, cursor.varint()?))
}

/// Appends an entry: an edit whose first sequence id comes `gap` after the one that would be next, and which
/// has passed the clusters `origin`.
/// REQUIRES: `gap` is less than 2^63; at most [`ORIGIN_CLUSTERS_MAX`] clusters.
pub fn put_entry(out: &mut Vec<u8>, gap: u64, origin: &[Uuid], edit: &[u8]) {
    put_varint(out, gap << 1 | u64::from(!origin.is_empty()));
    if !origin.is_empty() {
        put_varint(out, origin.len() as u64);
        for cluster in origin {
            out.extend_from_slice(&cluster.0);
        }
    }
    put_prefixed(out, edit);
}

/// The clusters of an entry, as they stand in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoggedOrigin<'a>(&'a [u8]);

impl LoggedOrigin<'_> {
    /// The clusters, in the order in which the edit has passed them.
    pub fn clusters(&self) -> impl ExactSizeIterator<Item = Uuid> + '_ {
        let (uuids, _) = self.0.as_chunks::<{ size_of::<Uuid>() }>();
        uuids.iter().map(|uuid| Uuid(*uuid))
    }

    /// Whether the edit was made here.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An entry read back.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// The edit.
    pub edit: EditReader<'a>,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The clusters that the edit has passed.
    pub origin: LoggedOrigin<'a>,
}

/// Walks the entries of a frame. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    cursor: Cursor<'a>,
    /// The sequence id that the next entry has if its gap is zero.
    next_seq: SeqId,
    /// Whether entries may have clusters.
    has_origins: bool,
    done: bool,
}

impl<'a> Entries<'a> {
    /// The entries in `bytes`, of a frame whose `first_seq` is that. `has_origins` says that they are
    /// entries as [`put_entry`] writes them; those of older logs have no clusters.
    pub fn new(bytes: &'a [u8], first_seq: SeqId, has_origins: bool) -> Self {
        Self {
            cursor: Cursor::new(bytes),
            next_seq: first_seq,
            has_origins,
            done: false,
        }
    }

    /// The sequence id after that of the last row walked over.
    pub fn next_seq(&self) -> SeqId {
        self.next_seq
    }

    /// Bytes walked over.
    pub fn position(&self) -> usize {
        self.cursor.position()
    }

    fn read(&mut self) -> Result<Entry<'a>, &'static str> {
        let mut gap = self.cursor.varint().ok_or("a frame ends inside an entry's gap")?;
        let mut origin = LoggedOrigin::default();
        if self.has_origins {
            if gap & 1 == 1 {
                origin = self.read_origin()?;
            }
            gap >>= 1;
        }
        let edit = self.cursor.prefixed().ok_or("a frame ends inside an edit")?;
        let first = self
            .next_seq
            .0
            .checked_add(gap)
            .ok_or("an entry's sequence id overflows")?;
        let reader = EditReader::new(edit, SeqId(first))?;
        self.next_seq = reader.next_seq();
        Ok(Entry {
            edit: reader,
            bytes: edit,
            origin,
        })
    }

    fn read_origin(&mut self) -> Result<LoggedOrigin<'a>, &'static str> {
        let what = "a frame ends inside an entry's clusters";
        let count = self.cursor.varint().ok_or(what)?;
        let count = usize::try_from(count)
            .ok()
            .filter(|count| (1..=ORIGIN_CLUSTERS_MAX).contains(count))
            .ok_or("an entry lists no cluster, or too many")?;
        let uuids = self.cursor.bytes(origin_bytes(count)).ok_or(what)?;
        Ok(LoggedOrigin(uuids))
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done || self.cursor.is_empty() {
            return None;
        }
        let item = self.read();
        self.done = item.is_err();
        Some(item)
    }
}
