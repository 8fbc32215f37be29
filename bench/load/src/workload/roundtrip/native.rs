//! The calls over HBase's native protocol, as bytes.
//!
//! A message has its place among the messages as its call id, since a server may answer calls of one
//! connection in any order. A scan's reply has a new scanner id each time, so it is known by its cells.

use basalt_idl::native::cells::{CellType, LATEST_TIMESTAMP, WireCell};
use basalt_idl::native::frame::{Request, Response, put_connection_header};
use basalt_idl::native::messages::{
    Action, Column, ConnectionHeader, Get, GetRequest, GetResponse, MultiRequest, MultiResponse,
    MutateRequest, MutateResponse, MutationProto, RegionAction, RegionSpecifier, RequestHeader, Scan,
    ScanRequest, ScanResponse, UserInformation, VersionInfo, mutation_proto::MutationType,
    region_specifier::RegionSpecifierType,
};
use bytes::{Buf, Bytes};
use prost::Message;

use super::kinds::{BATCH, FAMILY, Kind, QUALIFIER, ROWS, key, value};
use crate::error::{Error, Result};

/// The call id of the first message. All ids have two bytes as a varint, so messages have one length.
const FIRST_ID: u32 = 1_000;

/// The bytes that begin a connection.
pub(super) fn opening() -> Vec<u8> {
    let header = ConnectionHeader {
        user_info: Some(UserInformation {
            effective_user: "basalt-bench".to_owned(),
            ..UserInformation::default()
        }),
        service_name: Some("ClientService".to_owned()),
        cell_block_codec_class: Some("org.apache.hadoop.hbase.codec.KeyValueCodec".to_owned()),
        version_info: Some(VersionInfo {
            version: "2.6.0".to_owned(),
            version_major: Some(2),
            version_minor: Some(6),
            ..VersionInfo::default()
        }),
        ..ConnectionHeader::default()
    };
    let mut out = b"HBas\0\x50".to_vec();
    put_connection_header(&header, &mut out);
    out
}

/// Makes the messages of one region.
#[derive(Debug)]
pub(super) struct Messages {
    pub(super) region: Bytes,
    pub(super) value_bytes: usize,
}

impl Messages {
    /// The messages of this kind; an error if the protocol does not have it.
    pub(super) fn of(&self, kind: Kind) -> Result<Vec<Vec<u8>>> {
        if kind == Kind::FilteredScan {
            return Err(Error::Usage("filtered-scan does not have native RPC".to_owned()));
        }
        Ok((0..ROWS).map(|row| self.message(kind, row)).collect())
    }

    /// Messages that write every row once.
    pub(super) fn every_row(&self) -> Vec<Vec<u8>> {
        let rows: Vec<usize> = (0..ROWS).collect();
        let batches = rows.chunks(ROWS / 4).enumerate();
        batches
            .map(|(place, rows)| self.puts(place, rows.iter().copied()))
            .collect()
    }

    fn message(&self, kind: Kind, row: usize) -> Vec<u8> {
        match kind {
            Kind::Get => {
                let get = Get {
                    row: key(row),
                    ..Get::default()
                };
                let region = self.region();
                frame(row, "Get", &GetRequest { region, get }, &[])
            }
            Kind::Put => self.mutate(
                row,
                MutationType::Put,
                QUALIFIER,
                &value(row, self.value_bytes),
                1,
            ),
            Kind::Increment => {
                let one = 1_i64.to_be_bytes();
                self.mutate(row, MutationType::Increment, b"counter", &one, LATEST_TIMESTAMP)
            }
            // Each message has rows of its own, as over Thrift.
            Kind::PutBatch => self.puts(row, row * BATCH..(row + 1) * BATCH),
            Kind::Scan | Kind::FilteredScan => {
                let call = self.scan(row);
                frame(row, "Scan", &call, &[])
            }
        }
    }

    /// A mutation of one cell, in the cell block.
    fn mutate(
        &self,
        row: usize,
        kind: MutationType,
        qualifier: &[u8],
        value: &[u8],
        timestamp: i64,
    ) -> Vec<u8> {
        let mut cells = Vec::new();
        put_cell(&key(row), qualifier, value, timestamp, &mut cells);
        let call = MutateRequest {
            region: self.region(),
            mutation: mutation(row, kind),
            ..MutateRequest::default()
        };
        frame(row, "Mutate", &call, &cells)
    }

    fn puts(&self, place: usize, rows: impl Iterator<Item = usize>) -> Vec<u8> {
        let mut cells = Vec::new();
        let actions = rows.enumerate().map(|(index, row)| {
            put_cell(&key(row), QUALIFIER, &value(row, self.value_bytes), 1, &mut cells);
            Action {
                index: Some(index as u32),
                mutation: Some(Box::new(mutation(row, MutationType::Put))),
                ..Action::default()
            }
        });
        let call = MultiRequest {
            region_action: vec![RegionAction {
                region: self.region(),
                action: actions.collect(),
                ..RegionAction::default()
            }],
            ..MultiRequest::default()
        };
        frame(place, "Multi", &call, &cells)
    }

    /// Opens a scanner, fetches and closes it, in one call.
    fn scan(&self, row: usize) -> ScanRequest {
        ScanRequest {
            region: Some(self.region()),
            scan: Some(Scan {
                column: vec![Column {
                    family: Bytes::from_static(FAMILY.as_bytes()),
                    qualifier: vec![Bytes::from_static(QUALIFIER)],
                }],
                start_row: Some(key(row % (ROWS - BATCH))),
                max_versions: Some(1),
                max_result_size: Some(2 << 20),
                caching: Some(BATCH as u32),
                ..Scan::default()
            }),
            number_of_rows: Some(BATCH as u32),
            limit_of_rows: Some(BATCH as u32),
            close_scanner: Some(true),
            client_handles_partials: Some(true),
            client_handles_heartbeats: Some(true),
            ..ScanRequest::default()
        }
    }

    fn region(&self) -> RegionSpecifier {
        RegionSpecifier {
            r#type: RegionSpecifierType::RegionName.into(),
            value: self.region.clone(),
        }
    }
}

fn mutation(row: usize, kind: MutationType) -> MutationProto {
    MutationProto {
        row: Some(key(row)),
        mutate_type: Some(kind.into()),
        associated_cell_count: Some(1),
        ..MutationProto::default()
    }
}

fn put_cell(row: &[u8], qualifier: &[u8], value: &[u8], timestamp: i64, out: &mut Vec<u8>) {
    let cell = WireCell {
        row,
        family: FAMILY.as_bytes(),
        qualifier,
        timestamp,
        cell_type: CellType::Put,
        value,
        tags: b"",
    };
    cell.encode(out);
}

fn frame(place: usize, method: &str, call: &impl Message, cells: &[u8]) -> Vec<u8> {
    let header = RequestHeader {
        call_id: Some(FIRST_ID + place as u32),
        method_name: Some(method.to_owned()),
        timeout: Some(60_000),
        ..RequestHeader::default()
    };
    let mut out = Vec::new();
    Request::encode(&header, call, cells, &mut out);
    out
}

/// The length of the frame at the start of `bytes`; `None` until its length prefix is complete.
pub(super) fn frame_len(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_be_bytes(*bytes.first_chunk::<4>()?);
    Some(4 + length as usize)
}

/// The index of the message that a frame answers.
pub(super) fn place_of(frame: &[u8]) -> Option<usize> {
    let mut bytes = frame.get(4..)?;
    let _header_len = prost::encoding::decode_varint(&mut bytes).ok()?;
    // Field 1, a varint: the call id comes first.
    if !bytes.has_remaining() || bytes.get_u8() != 0x08 {
        return None;
    }
    let id = prost::encoding::decode_varint(&mut bytes).ok()?;
    usize::try_from(id).ok()?.checked_sub(FIRST_ID as usize)
}

/// Fails unless the call succeeded. Returns the size of the reply's cells in bytes.
pub(super) fn check(kind: Kind, reply: &Bytes) -> Result<usize> {
    let different = |what: String| Error::Different(format!("reply to {}: {what}", kind.name()));
    let response = Response::decode(reply.slice(4..)).map_err(|error| different(error.to_string()))?;
    if let Some(exception) = response.header.exception {
        return Err(different(exception.stack_trace.unwrap_or_default()));
    }
    let result = response.result;
    let well = match kind {
        Kind::Get => decoded::<GetResponse>(result, |message| message.result.is_some()),
        Kind::Put => decoded::<MutateResponse>(result, |message| message.processed == Some(true)),
        Kind::Increment => decoded::<MutateResponse>(result, |message| message.result.is_some()),
        Kind::PutBatch => decoded::<MultiResponse>(result, |message| {
            let mut groups = message.region_action_result.iter();
            groups.all(|group| {
                group.exception.is_none()
                    && group
                        .result_or_exception
                        .iter()
                        .all(|one| one.exception.is_none())
            })
        }),
        Kind::Scan | Kind::FilteredScan => {
            decoded::<ScanResponse>(result, |message| message.cells_per_result.len() == BATCH)
        }
    };
    match well {
        Ok(true) => Ok(response.cells.len()),
        Ok(false) => Err(different("it does not have the requested result".to_owned())),
        Err(error) => Err(different(error.to_string())),
    }
}

fn decoded<M: Message + Default>(
    result: Bytes,
    is_well: impl Fn(&M) -> bool,
) -> std::result::Result<bool, prost::DecodeError> {
    M::decode(result).map(|message| is_well(&message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 5] = [Kind::Get, Kind::Put, Kind::PutBatch, Kind::Increment, Kind::Scan];

    #[test]
    fn messages_of_a_kind_have_one_length_and_their_place() {
        let messages = Messages {
            region: Bytes::from("t,,1.0123456789abcdef0123456789abcdef."),
            value_bytes: 10,
        };
        for kind in KINDS {
            let of_kind = messages.of(kind).unwrap();
            assert_eq!(of_kind.len(), ROWS);
            for (place, message) in of_kind.iter().enumerate() {
                assert_eq!(message.len(), of_kind[0].len(), "{kind:?}");
                assert_eq!(frame_len(message), Some(message.len()));
                let request = Request::decode(Bytes::copy_from_slice(&message[4..])).unwrap();
                assert_eq!(request.header.call_id, Some(FIRST_ID + place as u32));
            }
        }
        assert!(messages.of(Kind::FilteredScan).is_err());
        assert_eq!(messages.every_row().len(), 4);
    }

    #[test]
    fn a_reply_names_its_message() {
        let mut reply = Vec::new();
        let call_id = FIRST_ID + 200;
        basalt_idl::native::frame::begin_response(call_id, &GetResponse::default(), 0, &mut reply);
        assert_eq!(place_of(&reply), Some(200));
        assert_eq!(frame_len(&reply), Some(reply.len()));
        assert_eq!(place_of(&reply[..5]), None);
        let error = check(Kind::Get, &Bytes::from(reply)).unwrap_err();
        assert!(
            error.to_string().contains("not have the requested result"),
            "{error}"
        );
    }
}
