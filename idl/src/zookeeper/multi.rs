//! Operations of a multi, and their results.
//!
//! ```text
//! request:   (int32 type | bool done = 0 | int32 error = -1 | operation)* | -1 | 1 | -1
//! response:  (int32 type | bool done = 0 | int32 error | result)*         | -1 | 1 | -1
//! operation: that of the single request
//! result:    that of the single response; of a failed operation, type -1, its error once more
//! ```

use super::{Change, PacketError, Reader, Stat, ZkError, put_buffer, put_stat};

/// Type of the result of a failed operation, and of the end.
const ERROR: i32 = -1;
const CHECK: i32 = 13;
const GET_DATA: i32 = 4;
const GET_CHILDREN: i32 = 8;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiOp<'a> {
    /// A change of a node.
    Change(Change<'a>),
    /// The version that a node should have; -1: any.
    Check {
        /// Path of the node.
        path: &'a [u8],
        /// Its version.
        version: i32,
    },
    /// A node's data.
    GetData(&'a [u8]),
    /// Names of a node's children.
    GetChildren(&'a [u8]),
}

/// The operations, first to last. Ends after the first error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiOps<'a> {
    rest: Reader<'a>,
    is_done: bool,
}

impl<'a> MultiOps<'a> {
    pub(super) fn new(rest: Reader<'a>) -> Self {
        Self { rest, is_done: false }
    }

    fn read(&mut self) -> Result<Option<MultiOp<'a>>, PacketError> {
        let rest = &mut self.rest;
        let kind = rest.int("type of an operation")?;
        let is_end = rest.bool("end of the operations")?;
        rest.int("error of an operation")?;
        if is_end {
            return Ok(None);
        }
        let path = rest.buffer("path")?;
        let change = |of_parent| MultiOp::Change(Change { path, of_parent });
        Ok(Some(match kind {
            1 | 15 | 19 | 21 => {
                rest.buffer("data")?;
                for _ in 0..rest.int("permissions")?.max(0) {
                    rest.int("permissions")?;
                    rest.buffer("scheme")?;
                    rest.buffer("user")?;
                }
                rest.int("flags")?;
                if kind == 21 {
                    rest.long("time to live")?;
                }
                change(true)
            }
            2 => {
                rest.int("version")?;
                change(true)
            }
            5 => {
                rest.buffer("data")?;
                rest.int("version")?;
                change(false)
            }
            CHECK => MultiOp::Check {
                path,
                version: rest.int("version")?,
            },
            GET_DATA | GET_CHILDREN => {
                rest.bool("watch")?;
                if kind == GET_DATA {
                    MultiOp::GetData(path)
                } else {
                    MultiOp::GetChildren(path)
                }
            }
            _ => return Err(PacketError("type of an operation")),
        }))
    }
}

#[expect(clippy::copy_iterator, reason = "two slices; a copy walks again")]
impl<'a> Iterator for MultiOps<'a> {
    type Item = Result<MultiOp<'a>, PacketError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let read = self.read().transpose();
        self.is_done = !matches!(read, Some(Ok(_)));
        read
    }
}

/// The result of one operation.
#[derive(Debug)]
pub enum MultiResult<'n> {
    /// It failed, or with `None` is not done because another one failed.
    Failed(Option<ZkError>),
    /// The check holds.
    Checked,
    /// A node's data.
    Data(&'n [u8], Stat),
    /// Names of a node's children.
    Children(&'n [String]),
}

impl MultiResult<'_> {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let (kind, error) = match self {
            Self::Failed(error) => (ERROR, error.map_or(0, |error| error as i32)),
            Self::Checked => (CHECK, 0),
            Self::Data(..) => (GET_DATA, 0),
            Self::Children(_) => (GET_CHILDREN, 0),
        };
        put_header(kind, false, error, out);
        match self {
            Self::Failed(_) => out.extend_from_slice(&error.to_be_bytes()),
            Self::Checked => {}
            Self::Data(data, stat) => {
                put_buffer(data, out);
                put_stat(*stat, out);
            }
            Self::Children(names) => {
                out.extend_from_slice(&(names.len() as i32).to_be_bytes());
                names.iter().for_each(|name| put_buffer(name.as_bytes(), out));
            }
        }
    }

    pub(super) fn put_end(out: &mut Vec<u8>) {
        put_header(ERROR, true, ERROR, out);
    }
}

fn put_header(kind: i32, is_end: bool, error: i32, out: &mut Vec<u8>) {
    out.extend_from_slice(&kind.to_be_bytes());
    out.push(u8::from(is_end));
    out.extend_from_slice(&error.to_be_bytes());
}
