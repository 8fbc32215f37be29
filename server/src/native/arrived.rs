//! A call that has arrived.

use std::time::Instant;

use basalt_idl::native::frame::Request;
use bytes::Bytes;
use prost::Message;

use super::deadline::Deadline;
use super::request;
use crate::service::Failure;

/// A call of a connection.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) id: u32,
    /// Whether it has a message.
    pub(super) has_message: bool,
    /// Its message.
    pub(super) parameter: Bytes,
    /// Its cell block.
    pub(super) cells: Bytes,
    /// Calls of its connection that were in flight when it began.
    pub(super) in_flight: usize,
    /// When it and those before it arrived.
    pub(super) at: Instant,
    /// When the client gives up.
    pub(super) deadline: Deadline,
}

impl Arrived {
    /// A call that arrived at `arrived`, behind `in_flight` others.
    pub(super) fn new(request: Request, arrived: Instant, in_flight: usize) -> Self {
        Self {
            id: request.header.call_id.unwrap_or_default(),
            has_message: request.header.request_param == Some(true),
            parameter: request.parameter,
            cells: request.cells,
            in_flight,
            at: arrived,
            deadline: Deadline::new(arrived, request.header.timeout),
        }
    }

    /// Decodes its message.
    pub(super) fn decode<M: Message + Default>(&self) -> Result<M, Failure> {
        Ok(request::decode(self.parameter.clone())?)
    }
}
