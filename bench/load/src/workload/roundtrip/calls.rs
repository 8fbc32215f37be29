//! The calls as bytes, over Thrift 2 here and over native RPC in [`native`]. All messages of a kind
//! have one length, and so have their replies over Thrift, so that a reply is known to be complete
//! by its length alone.

use basalt_idl::call::{Call, read_reply, write_call};
use basalt_idl::thrift2::{TColumn, TColumnIncrement, TColumnValue, TGet, TIncrement, TPut, TScan, args};
use basalt_idl::wire::{BinaryReader, BinaryWriter};
use bytes::Bytes;

pub(super) use super::kinds::{BATCH, FAMILY, Kind, QUALIFIER, ROWS, key, value};
use super::native;
use crate::error::{Error, Result};

/// The sequence id of every message: the next one is sent when the reply is there.
const SEQUENCE_ID: i32 = 1;

/// The framing of messages and replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// Binary Thrift 2.
    Thrift,
    /// HBase's native protocol.
    Native,
}

impl Wire {
    /// Fails unless the call succeeded. Returns the check of later replies to the same message.
    pub(super) fn check(self, kind: Kind, reply: &Bytes) -> Result<Known> {
        match self {
            Wire::Thrift => kind.check(reply.clone()).map(|()| kind.known()),
            Wire::Native => {
                let cells = native::check(kind, reply)?;
                Ok(if kind == Kind::Scan {
                    Known::Tail(cells)
                } else {
                    kind.known()
                })
            }
        }
    }
}

/// The check of a reply against an earlier reply to the same call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Both are equal.
    Equal,
    /// Both have the same length: a counter's value changes.
    Length,
    /// The last bytes of both are equal: a scanner's id changes.
    Tail(usize),
}

impl Kind {
    /// The check of replies to the same call over Thrift.
    fn known(self) -> Known {
        match self {
            Kind::Increment => Known::Length,
            _ => Known::Equal,
        }
    }

    /// The messages of this kind.
    pub(super) fn messages(self, table: &str, value_bytes: usize) -> Vec<Vec<u8>> {
        let table = Bytes::copy_from_slice(table.as_bytes());
        let message = |row: usize| match self {
            Kind::Get => message(&args::Get {
                table: table.clone(),
                tget: TGet {
                    row: key(row),
                    ..TGet::default()
                },
            }),
            Kind::Put => message(&args::Put {
                table: table.clone(),
                tput: put(row, value_bytes),
            }),
            Kind::PutBatch => message(&args::PutMultiple {
                table: table.clone(),
                // Each message has rows of its own, so that connections do not wait for each other's row
                // locks.
                tputs: (row * BATCH..(row + 1) * BATCH)
                    .map(|row| put(row, value_bytes))
                    .collect(),
            }),
            Kind::Increment => message(&args::Increment {
                table: table.clone(),
                tincrement: TIncrement {
                    row: key(row),
                    columns: vec![TColumnIncrement {
                        family: Bytes::from_static(FAMILY.as_bytes()),
                        qualifier: Bytes::from_static(b"counter"),
                        ..TColumnIncrement::default()
                    }],
                    ..TIncrement::default()
                },
            }),
            Kind::Scan | Kind::FilteredScan => message(&args::GetScannerResults {
                table: table.clone(),
                tscan: TScan {
                    start_row: Some(key(row % (ROWS - BATCH))),
                    columns: Some(vec![value_column()]),
                    caching: Some(BATCH as i32),
                    filter_string: (self == Kind::FilteredScan)
                        .then(|| format!("PageFilter({BATCH})").into()),
                    ..TScan::default()
                },
                num_rows: BATCH as i32,
            }),
        };
        (0..ROWS).map(message).collect()
    }

    /// Fails unless the reply is that of a call that went well.
    pub(super) fn check(self, reply: Bytes) -> Result<()> {
        match self {
            Kind::Get => succeeded::<args::Get>(reply),
            Kind::Put => succeeded::<args::Put>(reply),
            Kind::PutBatch => succeeded::<args::PutMultiple>(reply),
            Kind::Increment => succeeded::<args::Increment>(reply),
            Kind::Scan | Kind::FilteredScan => succeeded::<args::GetScannerResults>(reply),
        }
    }
}

/// Messages that write every row once.
pub(super) fn every_row(table: &str, value_bytes: usize) -> Vec<Vec<u8>> {
    let rows: Vec<usize> = (0..ROWS).collect();
    let batches = rows.chunks(ROWS / 4).map(|rows| {
        message(&args::PutMultiple {
            table: Bytes::copy_from_slice(table.as_bytes()),
            tputs: rows.iter().map(|row| put(*row, value_bytes)).collect(),
        })
    });
    batches.collect()
}

/// Messages and their replies.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) messages: Vec<Vec<u8>>,
    /// One for each message. Over Thrift all have one length.
    pub(super) replies: Vec<Bytes>,
    /// The check of later replies against these.
    pub(super) known: Known,
    pub(super) wire: Wire,
}

impl Exchange {
    /// An error unless all messages have one length, and all replies.
    pub(super) fn new(kind: Kind, messages: Vec<Vec<u8>>, replies: Vec<Bytes>) -> Result<Exchange> {
        let one_length = |mut lengths: Box<dyn Iterator<Item = usize> + '_>| {
            let first = lengths.next();
            lengths.all(|length| Some(length) == first)
        };
        if !one_length(Box::new(messages.iter().map(Vec::len)))
            || !one_length(Box::new(replies.iter().map(Bytes::len)))
        {
            return Err(Error::Different(format!(
                "{}: messages or replies differ in length",
                kind.name()
            )));
        }
        Ok(Exchange {
            messages,
            replies,
            known: kind.known(),
            wire: Wire::Thrift,
        })
    }

    /// Messages of native RPC, whose replies say how long they are.
    pub(super) fn native(messages: Vec<Vec<u8>>, replies: Vec<Bytes>, known: Known) -> Exchange {
        Exchange {
            messages,
            replies,
            known,
            wire: Wire::Native,
        }
    }

    /// Whether that is the reply to a message of that number, or could be.
    pub(super) fn is_known(&self, message: usize, reply: &[u8]) -> bool {
        let known = &self.replies[message];
        match self.known {
            Known::Equal => reply == known,
            Known::Length => reply.len() == known.len(),
            Known::Tail(bytes) => tail(reply, bytes) == tail(known, bytes),
        }
    }

    /// Bytes of a message and of a reply.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.messages[0].len(), self.replies[0].len())
    }

    /// These messages with the echo's replies.
    pub(super) fn echoed(&self) -> Exchange {
        let reply = Bytes::from(vec![0; self.replies[0].len()]);
        Exchange {
            messages: self.messages.clone(),
            replies: vec![reply; self.messages.len()],
            known: Known::Equal,
            wire: Wire::Thrift,
        }
    }
}

/// The last bytes; everything if there are fewer.
fn tail(bytes: &[u8], count: usize) -> &[u8] {
    &bytes[bytes.len().saturating_sub(count)..]
}

fn put(row: usize, value_bytes: usize) -> TPut {
    TPut {
        row: key(row),
        column_values: vec![TColumnValue {
            family: Bytes::from_static(FAMILY.as_bytes()),
            qualifier: Bytes::from_static(QUALIFIER),
            value: value(row, value_bytes),
            // A fixed one, so that a row's reply stays the same after it was written again.
            timestamp: Some(1),
            ..TColumnValue::default()
        }],
        ..TPut::default()
    }
}

fn value_column() -> TColumn {
    TColumn {
        family: Bytes::from_static(FAMILY.as_bytes()),
        qualifier: Some(Bytes::from_static(QUALIFIER)),
        ..Default::default()
    }
}

fn message<C: Call>(args: &C) -> Vec<u8> {
    let mut message = Vec::new();
    write_call(&mut BinaryWriter::new(&mut message), SEQUENCE_ID, args);
    message
}

fn succeeded<C: Call>(reply: Bytes) -> Result<()> {
    let method = C::METHOD.name;
    match read_reply::<C, _>(&mut BinaryReader::new(reply), SEQUENCE_ID) {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(Error::Different(format!("{method}: {error}"))),
        Err(error) => Err(Error::Different(format!("reply to {method}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn messages_of_a_kind_have_one_length() {
        for kind in Kind::value_variants() {
            let messages = kind.messages("t", 10);
            assert_eq!(messages.len(), ROWS);
            assert!(
                messages.iter().all(|message| message.len() == messages[0].len()),
                "{kind:?}"
            );
            let replies = vec![Bytes::from_static(b"x"); ROWS];
            Exchange::new(*kind, messages, replies).unwrap();
        }
        let unequal = vec![Bytes::from_static(b"x"), Bytes::from_static(b"yz")];
        Exchange::new(Kind::Get, Kind::Get.messages("t", 1), unequal).unwrap_err();
    }
}
