//! Cells of rows in an answer, written row by row into a buffer, so that an answer may be longer than
//! memory.
//!
//! Protobuf has two forms. A CellSet is a repeated field, so its rows can be written one after the other.
//! The stateless scan has frames instead: two bytes of length, big-endian, then a CellSet. The length is a
//! signed number for HBase's clients, so a frame has at most [`FRAME_BYTES_MAX`]: rows that are longer are
//! cut between cells.

use prost::encoding::{encode_varint, encoded_len_varint};

use super::xml;
use crate::encoding::put_base64;
use crate::media::Media;

/// Largest CellSet in a frame.
pub const FRAME_BYTES_MAX: usize = (1 << 15) - 1;
/// Most rows in a frame, as in HBase.
const FRAME_ROWS_MAX: usize = 10;

/// A cell of an answer.
#[derive(Clone, Copy, Debug)]
pub struct CellRef<'a> {
    /// Name of the family.
    pub family: &'a [u8],
    /// Qualifier.
    pub qualifier: &'a [u8],
    /// Milliseconds.
    pub timestamp: i64,
    /// Value.
    pub value: &'a [u8],
}

/// A cell does not fit into a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a cell of {0} bytes does not fit into a frame of a scan in protobuf, which has at most {FRAME_BYTES_MAX}: ask for JSON or XML"
)]
pub struct FrameTooLarge(pub usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Xml,
    Protobuf,
    Frames,
}

/// Writes the rows of an answer.
#[derive(Debug)]
pub struct CellSetWriter {
    form: Form,
    rows: u64,
    /// The CellSet of the frame that is filled.
    frame: Vec<u8>,
    frame_rows: usize,
    column: Vec<u8>,
}

impl CellSetWriter {
    /// A writer of this media type. REQUIRES: it is XML, JSON or protobuf.
    pub fn new(media: Media) -> Self {
        Self::of(match media {
            Media::Json => Form::Json,
            Media::Protobuf | Media::ProtobufIetf => Form::Protobuf,
            Media::Xml | Media::Text | Media::Binary => Form::Xml,
        })
    }

    /// A writer of a stateless scan, which has protobuf in frames.
    pub fn of_scan(media: Media) -> Self {
        match Self::new(media) {
            Self {
                form: Form::Protobuf, ..
            } => Self::of(Form::Frames),
            writer => writer,
        }
    }

    fn of(form: Form) -> Self {
        Self {
            form,
            rows: 0,
            frame: Vec::new(),
            frame_rows: 0,
            column: Vec::new(),
        }
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes a row.
    pub fn row<'a>(
        &mut self,
        key: &[u8],
        cells: impl Iterator<Item = CellRef<'a>> + Clone,
        out: &mut Vec<u8>,
    ) -> Result<(), FrameTooLarge> {
        match self.form {
            Form::Json => self.json_row(key, cells, out),
            Form::Xml => self.xml_row(key, cells, out),
            Form::Protobuf => put_row(key, cells, out),
            Form::Frames => self.frame_row(key, cells, out)?,
        }
        self.rows += 1;
        Ok(())
    }

    /// Ends the answer.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match (self.form, self.rows) {
            (Form::Json, 0) => out.extend_from_slice(b"{\"Row\":[]}"),
            (Form::Json, _) => out.extend_from_slice(b"]}"),
            (Form::Xml, 0) => {
                out.extend_from_slice(xml::head().as_bytes());
                out.extend_from_slice(b"<CellSet/>");
            }
            (Form::Xml, _) => out.extend_from_slice(b"</CellSet>"),
            (Form::Protobuf, _) => {}
            (Form::Frames, _) => self.end_frame(out),
        }
    }

    fn json_row<'a>(&mut self, key: &[u8], cells: impl Iterator<Item = CellRef<'a>>, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.rows == 0 { b"{\"Row\":[" } else { b"," });
        out.extend_from_slice(b"{\"key\":\"");
        put_base64(out, key);
        out.extend_from_slice(b"\",\"Cell\":[");
        for (number, cell) in cells.enumerate() {
            out.extend_from_slice(if number == 0 {
                b"{\"column\":\""
            } else {
                b",{\"column\":\""
            });
            self.put_column(cell, out);
            out.extend_from_slice(b"\",\"timestamp\":");
            out.extend_from_slice(cell.timestamp.to_string().as_bytes());
            out.extend_from_slice(b",\"$\":\"");
            put_base64(out, cell.value);
            out.extend_from_slice(b"\"}");
        }
        out.extend_from_slice(b"]}");
    }

    fn xml_row<'a>(&mut self, key: &[u8], cells: impl Iterator<Item = CellRef<'a>>, out: &mut Vec<u8>) {
        if self.rows == 0 {
            out.extend_from_slice(xml::head().as_bytes());
            out.extend_from_slice(b"<CellSet>");
        }
        out.extend_from_slice(b"<Row key=\"");
        put_base64(out, key);
        out.extend_from_slice(b"\">");
        for cell in cells {
            out.extend_from_slice(b"<Cell column=\"");
            self.put_column(cell, out);
            out.extend_from_slice(b"\" timestamp=\"");
            out.extend_from_slice(cell.timestamp.to_string().as_bytes());
            out.extend_from_slice(b"\">");
            put_base64(out, cell.value);
            out.extend_from_slice(b"</Cell>");
        }
        out.extend_from_slice(b"</Row>");
    }

    fn put_column(&mut self, cell: CellRef<'_>, out: &mut Vec<u8>) {
        self.column.clear();
        self.column.extend_from_slice(cell.family);
        self.column.push(b':');
        self.column.extend_from_slice(cell.qualifier);
        put_base64(out, &self.column);
    }

    /// Adds a row to the frame, in as many pieces as it needs.
    fn frame_row<'a>(
        &mut self,
        key: &[u8],
        cells: impl Iterator<Item = CellRef<'a>> + Clone,
        out: &mut Vec<u8>,
    ) -> Result<(), FrameTooLarge> {
        let mut rest = cells.peekable();
        while rest.peek().is_some() {
            let (mut content, mut count) = (field_len(key.len()), 0);
            let room = FRAME_BYTES_MAX - self.frame.len();
            for cell in rest.clone() {
                let with = content + field_len(cell_len(cell));
                if field_len(with) > room {
                    break;
                }
                (content, count) = (with, count + 1);
            }
            if count == 0 && self.frame.is_empty() {
                let cell = rest.peek().map_or(0, |cell| cell_len(*cell));
                return Err(FrameTooLarge(cell + key.len()));
            }
            if count > 0 {
                put_row(key, rest.clone().take(count), &mut self.frame);
                self.frame_rows += 1;
                rest.by_ref().take(count).for_each(drop);
            }
            if rest.peek().is_some() || self.frame_rows >= FRAME_ROWS_MAX {
                self.end_frame(out);
            }
        }
        Ok(())
    }

    fn end_frame(&mut self, out: &mut Vec<u8>) {
        if self.frame.is_empty() {
            return;
        }
        let length = self.frame.len() as u16;
        out.extend_from_slice(&length.to_be_bytes());
        out.append(&mut self.frame);
        self.frame_rows = 0;
    }
}

/// The length of a field with a length in front, whose number is at most 15.
fn field_len(content: usize) -> usize {
    1 + encoded_len_varint(content as u64) + content
}

fn cell_len(cell: CellRef<'_>) -> usize {
    field_len(column_len(cell)) + 1 + encoded_len_varint(cell.timestamp as u64) + field_len(cell.value.len())
}

fn column_len(cell: CellRef<'_>) -> usize {
    cell.family.len() + 1 + cell.qualifier.len()
}

/// Writes the beginning of a field that has a length: its number, then the length.
fn put_field(number: u8, length: usize, out: &mut Vec<u8>) {
    out.push(number << 3 | 2);
    encode_varint(length as u64, out);
}

/// A row as an element of the repeated field of a CellSet.
fn put_row<'a>(key: &[u8], cells: impl Iterator<Item = CellRef<'a>> + Clone, out: &mut Vec<u8>) {
    let values: usize = cells.clone().map(|cell| field_len(cell_len(cell))).sum();
    put_field(1, field_len(key.len()) + values, out);
    put_field(1, key.len(), out);
    out.extend_from_slice(key);
    for cell in cells {
        put_field(2, cell_len(cell), out);
        put_field(2, column_len(cell), out);
        out.extend_from_slice(cell.family);
        out.push(b':');
        out.extend_from_slice(cell.qualifier);
        // The field 3 is a number.
        out.push(3 << 3);
        encode_varint(cell.timestamp as u64, out);
        put_field(4, cell.value.len(), out);
        out.extend_from_slice(cell.value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cells::{self, Cell, Row};

    fn cell<'a>(qualifier: &'a [u8], value: &'a [u8]) -> CellRef<'a> {
        CellRef {
            family: b"f",
            qualifier,
            timestamp: 1,
            value,
        }
    }

    fn written(mut writer: CellSetWriter, rows: &[(&[u8], Vec<CellRef<'_>>)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (key, cells) in rows {
            writer.row(key, cells.iter().copied(), &mut out).unwrap();
        }
        writer.finish(&mut out);
        out
    }

    #[test]
    fn answers_have_hbases_form() {
        let rows: [(&[u8], _); 1] = [(b"k", vec![cell(b"a", b"v")])];
        let text = |media, rows: &[_]| String::from_utf8(written(CellSetWriter::new(media), rows)).unwrap();
        assert_eq!(
            text(Media::Json, &rows),
            r#"{"Row":[{"key":"aw==","Cell":[{"column":"Zjph","timestamp":1,"$":"dg=="}]}]}"#
        );
        assert_eq!(
            text(Media::Xml, &rows),
            "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><CellSet><Row key=\"aw==\"><Cell column=\"Zjph\" \
             timestamp=\"1\">dg==</Cell></Row></CellSet>"
        );
        assert_eq!(text(Media::Json, &[]), r#"{"Row":[]}"#);
        assert!(text(Media::Xml, &[]).ends_with("?><CellSet/>"));
        assert_eq!(written(CellSetWriter::of_scan(Media::Protobuf), &[]), b"");
    }

    /// Goal: what is written can be read, in each form.
    #[test]
    fn answers_are_read_back() {
        let rows: [(&[u8], _); 2] = [
            (b"\xff\x00", vec![cell(b"", b"\x00\xff"), cell(b"b:c", b"")]),
            (b"l", vec![cell(b"a", &[7; 300])]),
        ];
        let expected: Vec<Row> = rows
            .iter()
            .map(|(key, cells)| Row {
                key: Some(key.to_vec()),
                cells: cells
                    .iter()
                    .map(|cell| Cell {
                        column: Some([cell.family, b":", cell.qualifier].concat()),
                        timestamp: Some(cell.timestamp),
                        value: cell.value.to_vec(),
                    })
                    .collect(),
            })
            .collect();
        for media in [Media::Json, Media::Xml, Media::Protobuf] {
            let body = written(CellSetWriter::new(media), &rows);
            assert_eq!(cells::decode(media, &body).unwrap(), expected, "{media:?}");
        }
        assert_eq!(
            frames(&written(CellSetWriter::of_scan(Media::Protobuf), &rows)).concat(),
            expected
        );
    }

    /// The rows of each frame.
    fn frames(mut body: &[u8]) -> Vec<Vec<Row>> {
        let mut found = Vec::new();
        while let Some((length, rest)) = body.split_first_chunk::<2>() {
            let length = i16::from_be_bytes(*length);
            assert!(length > 0, "HBase's clients read a signed number");
            let (frame, rest) = rest.split_at(length as usize);
            found.push(cells::decode(Media::Protobuf, frame).unwrap());
            body = rest;
        }
        found
    }

    /// Goal: no frame has more bytes than its length can say, and no cell is lost. Method: rows of many
    /// sizes around the limit.
    #[test]
    fn long_rows_are_cut_between_cells() {
        let values: Vec<Vec<u8>> = [10, 20_000, 20_000, 32_700, 32_720, 1, 9_000]
            .map(|length| vec![1; length])
            .to_vec();
        let rows: Vec<(&[u8], Vec<CellRef<'_>>)> = vec![
            (b"a", values.iter().map(|value| cell(b"q", value)).collect()),
            (b"b", vec![cell(b"q", b"v"); 5_000]),
            (b"c", vec![cell(b"q", b"v")]),
        ];
        let found = frames(&written(CellSetWriter::of_scan(Media::ProtobufIetf), &rows));
        let mut whole: Vec<Row> = Vec::new();
        for row in found.iter().flatten() {
            match whole.last_mut() {
                Some(last) if last.key == row.key => last.cells.extend(row.cells.clone()),
                _ => whole.push(row.clone()),
            }
        }
        let counts: Vec<usize> = whole.iter().map(|row| row.cells.len()).collect();
        assert_eq!(counts, [values.len(), 5_000, 1]);
        let many: Vec<(&[u8], Vec<CellRef<'_>>)> = vec![(b"k", vec![cell(b"q", b"v")]); 25];
        let found = frames(&written(CellSetWriter::of_scan(Media::Protobuf), &many));
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 5]);
        let large = vec![0; FRAME_BYTES_MAX];
        let mut writer = CellSetWriter::of_scan(Media::Protobuf);
        let error = writer.row(b"k", [cell(b"q", &large)].into_iter(), &mut Vec::new());
        assert!(error.unwrap_err().to_string().contains("ask for JSON or XML"));
    }
}
