//! One response: its message, and its cells in a cell block or inside the message.

use std::sync::Arc;

use basalt_engine::cell::{CellBatch, RowView};
use basalt_engine::schema::TableName;
use basalt_idl::native::cells::{CELL_OVERHEAD_MAX, put_stored_cell};
use basalt_idl::native::exception::ExceptionClass;
use basalt_idl::native::forms::Packing;
use basalt_idl::native::frame;
use basalt_idl::native::messages::{self, ExceptionResponse};
use bytes::Bytes;
use prost::Message;

use super::compress;
use super::peer::Codec;
use crate::limits::admission::{Admission, Class, MemoryPermit};
use crate::server::Server;
use crate::service::{Failure, Kind};

/// From this size on a cell block is sent from its own buffer; smaller ones are copied behind the message.
const OWN_BUFFER_BYTES: usize = 4 << 10;
/// Largest message without cells whose memory need not be reserved: a region has three rows in its name
/// and boundaries.
const UNRESERVED_BYTES: u64 = 128 << 10;

/// Package of the Java classes of answers. Clients decode the bytes without checking the class.
const PROTOS: &str = "org.apache.hadoop.hbase.protobuf.generated.";

/// Writes the response to one call.
#[derive(Debug)]
pub(super) struct Reply {
    call_id: u32,
    /// The frame to send, without `cells`.
    pub(super) out: Vec<u8>,
    /// The end of the frame: a cell block with a buffer of its own.
    pub(super) cells: Vec<u8>,
    /// The reservation for `out` and `cells`.
    pub(super) permit: Option<MemoryPermit>,
    /// The table of the scanner that the call has fetched from.
    pub(super) scanned: Option<TableName>,
    /// Whether the connection is closed instead of a response: the call has met such a fault.
    pub(super) is_cut: bool,
    packing: Option<Packing>,
    /// An encoded message and its cells, which are packed when the call has ended.
    to_pack: Option<(Vec<u8>, Vec<u8>)>,
}

impl Reply {
    pub(super) fn new(call_id: u32, packing: Option<Packing>) -> Self {
        Self {
            call_id,
            out: Vec::new(),
            cells: Vec::new(),
            permit: None,
            scanned: None,
            is_cut: false,
            packing,
            to_pack: None,
        }
    }

    /// Fills the reply on a thread that may block. After an error it is empty.
    pub(super) async fn fill_on_pool(
        &mut self,
        server: &Arc<Server>,
        fill: impl FnOnce(&mut Self) -> Result<(), Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        let mut filled = Self::new(self.call_id, self.packing);
        filled.permit = self.permit.take();
        *self = server
            .on_pool(move |_| fill(&mut filled).map(|()| filled))
            .await?;
        Ok(())
    }

    /// The reservation for an answer without cells, to be made before the answer is.
    pub(super) fn permit(&mut self, admission: &Admission) -> &mut MemoryPermit {
        self.permit
            .get_or_insert_with(|| MemoryPermit::empty(admission.memory()))
    }

    /// A message and its cell block.
    pub(super) fn with_cells(&mut self, result: &impl Message, cells: CellBlock) {
        self.permit = Some(cells.permit);
        if self.packing.is_some() && !cells.bytes.is_empty() {
            self.to_pack = Some((result.encode_to_vec(), cells.bytes));
            return;
        }
        if cells.bytes.len() >= OWN_BUFFER_BYTES {
            self.out = frame::response_head(self.call_id, result, cells.bytes.len());
            self.cells = cells.bytes;
            return;
        }
        frame::begin_response(self.call_id, result, cells.bytes.len(), &mut self.out);
        self.out.extend_from_slice(&cells.bytes);
    }

    /// A message that is encoded already, and its cell block.
    pub(super) fn with_encoded(&mut self, result: Vec<u8>, cells: CellBlock) {
        self.permit = Some(cells.permit);
        if self.packing.is_some() && !cells.bytes.is_empty() {
            self.to_pack = Some((result, cells.bytes));
        } else if cells.bytes.len() >= OWN_BUFFER_BYTES {
            self.out = frame::encoded_response_head(self.call_id, &result, cells.bytes.len());
            self.cells = cells.bytes;
        } else {
            frame::put_encoded_response(self.call_id, &result, &cells.bytes, &mut self.out);
        }
    }

    /// Packs the cell block, if the client has named a compressor or another form of cells. The
    /// reservation for two copies of the plain cells covers the compressed ones; that of a larger form is
    /// extended.
    pub(super) async fn pack_cells(&mut self, server: &Arc<Server>) -> Result<(), Failure> {
        let (Some(packing), Some((result, plain))) = (self.packing, self.to_pack.take()) else {
            return Ok(());
        };
        let class = self.scanned.as_ref().map_or(Class::User, Class::of_read);
        if packing.form.is_some()
            && let Some(permit) = &mut self.permit
        {
            let bytes = packing
                .plain_len(&plain)
                .map_err(|error| Failure::do_not_retry(format!("the response cannot be packed: {error}")))?;
            permit.raise(plain.capacity() + 2 * bytes).await?;
        }
        let packed = compress::pack(server, class, packing, plain).await?;
        frame::put_encoded_response(self.call_id, &result, &packed, &mut self.out);
        Ok(())
    }

    /// Removes the message and its cells.
    pub(super) fn clear(&mut self) {
        self.out.clear();
        self.cells = Vec::new();
        self.to_pack = None;
    }

    /// Length of the frame.
    pub(super) fn len(&self) -> usize {
        self.out.len() + self.cells.len()
    }

    /// An exception instead of a message.
    pub(super) fn failure(&mut self, failure: &Failure) {
        self.clear();
        frame::put_exception(self.call_id, exception(failure), &mut self.out);
    }
}

/// The class and text of a failure for a client. A class that HBase's clients cannot make is the beginning of
/// the text, in one that they can.
pub(super) fn class_and_text(failure: &Failure) -> (ExceptionClass, String) {
    let text = failure.with_class();
    match ExceptionClass::named(failure.class()) {
        Some(ExceptionClass::Constraint) if failure.kind() != Kind::CatalogTable => {}
        Some(class) => return (class, text),
        None => {}
    }
    let class = if failure.can_retry() {
        ExceptionClass::Io
    } else {
        ExceptionClass::DoNotRetryIo
    };
    (class, format!("{}: {text}", class.name()))
}

impl basalt_idl::native::Reply for Reply {
    /// A message without cells.
    fn message(&mut self, response: &impl Message) {
        let reserved = self.permit.as_ref().map_or(0, MemoryPermit::bytes);
        debug_assert!(
            response.encoded_len() as u64 <= reserved + UNRESERVED_BYTES,
            "the memory of an answer of {} bytes is not reserved: native::listed",
            response.encoded_len()
        );
        frame::begin_response(self.call_id, response, 0, &mut self.out);
    }
}

/// A failure in the form of a response header.
pub(super) fn exception(failure: &Failure) -> ExceptionResponse {
    let (class, text) = class_and_text(failure);
    ExceptionResponse {
        exception_class_name: Some(class.name().to_owned()),
        stack_trace: Some(text),
        do_not_retry: Some(!failure.can_retry()),
        ..ExceptionResponse::default()
    }
}

/// A failure in the form of an action's result.
pub(super) fn exception_pair(failure: &Failure) -> messages::NameBytesPair {
    let (class, text) = class_and_text(failure);
    messages::NameBytesPair {
        name: class.name().to_owned(),
        value: Some(Bytes::from(text)),
    }
}

/// An answer with its Java class, without the package of HBase's messages.
pub(super) fn endpoint_answer(class: &str, answer: &impl Message) -> messages::NameBytesPair {
    messages::NameBytesPair {
        name: format!("{PROTOS}{class}"),
        value: Some(Bytes::from(answer.encode_to_vec())),
    }
}

/// Collects the cells of a response, within the memory for calls.
#[derive(Debug)]
pub(super) struct CellBlock {
    codec: Codec,
    bytes: Vec<u8>,
    /// Encoded size of the Results that have their cells inside.
    inline_bytes: usize,
    /// Memory of these Results.
    inline_memory: usize,
    permit: MemoryPermit,
}

impl CellBlock {
    /// `permit` is empty.
    pub(super) fn new(codec: Codec, permit: MemoryPermit) -> Self {
        Self {
            codec,
            bytes: Vec::new(),
            inline_bytes: 0,
            inline_memory: 0,
            permit,
        }
    }

    /// Bytes that the cells so far add to the response.
    pub(super) fn response_bytes(&self) -> usize {
        self.bytes.len() + self.inline_bytes
    }

    /// The first row of a batch as a Result, or an empty Result for an empty batch. Fails, and adds
    /// nothing, when its memory cannot be reserved.
    pub(super) async fn first(&mut self, batch: &mut CellBatch) -> Result<messages::Result, Failure> {
        let before = self.bytes.len();
        let Some(row) = batch.rows().next() else {
            return Ok(empty());
        };
        let result = self.result(&row);
        let reserved = self.reserve(batch).await;
        if reserved.is_err() {
            self.bytes.truncate(before);
        }
        reserved.map(|()| result)
    }

    /// All rows of a batch as one Result that has their cells inside, whatever the codec.
    pub(super) async fn merged(&mut self, batch: &mut CellBatch) -> Result<messages::Result, Failure> {
        let (mut merged, mut cells) = (empty(), Vec::new());
        for row in batch.rows() {
            merged = inline(&row);
            cells.append(&mut merged.cell);
        }
        merged.cell = cells;
        let encoded = merged.encoded_len();
        self.inline_bytes += encoded;
        self.inline_memory += encoded + merged.cell.len() * size_of::<messages::Cell>();
        self.reserve(batch).await?;
        Ok(merged)
    }

    /// Takes over the batch's reservation, and extends it to the cells so far: here and in the
    /// response.
    pub(super) async fn reserve(&mut self, batch: &mut CellBatch) -> Result<(), Failure> {
        self.permit.take_over(batch.give(batch.data_bytes()) as u64);
        self.add_message(0).await
    }

    /// Adds a message of `bytes` bytes to the response, in addition to the cells, and reserves its memory.
    pub(super) async fn add_message(&mut self, bytes: usize) -> Result<(), Failure> {
        self.inline_bytes += bytes;
        self.inline_memory += bytes;
        Ok(self
            .permit
            .raise(2 * (self.bytes.capacity() + self.inline_memory))
            .await?)
    }

    /// A row as a Result. Its cells go into the block, or into the Result if the codec is inline.
    pub(super) fn result(&mut self, row: &RowView<'_>) -> messages::Result {
        if self.codec == Codec::Inline {
            let result = inline(row);
            let encoded = result.encoded_len();
            self.inline_bytes += encoded;
            self.inline_memory += encoded + row.len() * size_of::<messages::Cell>();
            return result;
        }
        self.put(row);
        messages::Result {
            associated_cell_count: Some(row.len() as i32),
            stale: Some(false),
            ..messages::Result::default()
        }
    }

    /// Appends the cells of all rows to the block. The batch may be empty then.
    pub(super) fn put_all(&mut self, batch: &mut CellBatch) {
        if self.bytes.is_empty()
            && let Some(bytes) = batch.take_cell_block()
        {
            // The batch has reserved its buffer and a response of the same size.
            self.permit.take_over(batch.give(2 * bytes.capacity()) as u64);
            self.bytes = bytes;
            return;
        }
        self.bytes
            .reserve(batch.data_bytes() + batch.cell_count() * CELL_OVERHEAD_MAX);
        if let Some(pieces) = batch.cell_block() {
            pieces.for_each(|piece| self.bytes.extend_from_slice(piece));
            return;
        }
        for row in batch.rows() {
            self.put(&row);
        }
    }

    /// Appends the cells of a row to the block.
    fn put(&mut self, row: &RowView<'_>) {
        let has_tags = self.codec == Codec::KeyValueWithTags;
        for cell in row.cells() {
            let tags = if has_tags { cell.tags } else { &[] };
            put_stored_cell(cell.key.bytes(), cell.value, tags, &mut self.bytes);
        }
    }
}

/// A Result without cells.
pub(super) fn empty() -> messages::Result {
    messages::Result {
        associated_cell_count: Some(0),
        ..messages::Result::default()
    }
}

/// A row as a Result with its cells inside.
fn inline(row: &RowView<'_>) -> messages::Result {
    let copy = |bytes: &[u8]| Some(Bytes::copy_from_slice(bytes));
    let cells = row.cells().map(|cell| messages::Cell {
        row: copy(cell.key.row()),
        family: copy(cell.key.family()),
        qualifier: copy(cell.key.qualifier()),
        timestamp: Some(cell.key.timestamp() as u64),
        cell_type: Some(i32::from(cell.key.type_code())),
        value: copy(cell.value),
        tags: None,
    });
    messages::Result {
        cell: cells.collect(),
        stale: Some(false),
        partial: Some(row.partial),
        ..messages::Result::default()
    }
}

#[cfg(test)]
mod tests {
    use basalt_engine::Error;

    use super::*;

    /// Goal: a class that clients cannot make begins the text of one that they can; others stay.
    #[test]
    fn classes_that_clients_lack_are_wrapped() {
        let rendered = |failure: Failure| {
            let (class, text) = class_and_text(&failure);
            assert!(text.starts_with(&format!("{}: ", class.name())), "{text}");
            let header = exception(&failure);
            assert_eq!(header.exception_class_name.as_deref(), Some(class.name()));
            assert_eq!(header.do_not_retry, Some(class.do_not_retry()));
            assert_eq!(exception_pair(&failure).name, class.name());
            (
                class,
                text.rsplit_once("org.apache.")
                    .map_or(text.clone(), |(_, end)| end.to_owned()),
            )
        };
        let (class, text) = rendered(Error::Constraint("no".into()).into());
        assert_eq!(
            (class, text.as_str()),
            (
                ExceptionClass::DoNotRetryIo,
                "hadoop.hbase.constraint.ConstraintException: no"
            )
        );
        let (class, _) = rendered(Error::CatalogTable("Cannot disable hbase:meta".into()).into());
        assert_eq!(class, ExceptionClass::Constraint);
        let (class, text) = rendered(Failure::illegal_argument("Row length is 0"));
        assert_eq!(class, ExceptionClass::DoNotRetryIo);
        assert!(
            text.ends_with("java.lang.IllegalArgumentException: Row length is 0"),
            "{text}"
        );
        let corrupt = Error::corrupt("f", 7, "a checksum is wrong");
        assert_eq!(rendered(corrupt.into()).0, ExceptionClass::DoNotRetryIo);
        for (error, class) in [
            (Error::QuotaExceeded("full".into()), ExceptionClass::QuotaExceeded),
            (Error::RowTooBig("large".into()), ExceptionClass::RowTooBig),
            (
                Error::SnapshotExpired("s".into()),
                ExceptionClass::SnapshotTtlExpired,
            ),
            (Error::RegionTooBusy("busy".into()), ExceptionClass::RegionTooBusy),
        ] {
            assert_eq!(rendered(error.into()).0, class);
        }
    }
}
