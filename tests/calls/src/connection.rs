//! A connection that calls any method by its descriptor, in the unframed binary protocol, the
//! default of HBase's gateways.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use basalt_idl::call::{MethodDescriptor, TApplicationException};
use basalt_idl::schema::Decode;
use basalt_idl::wire::{
    BinaryReader, BinaryWriter, MessageKind, MessageScanner, Protocol, Reader, Scan, Writer,
};

use super::{Value, wire};

/// Longest time without a byte of an answer.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// A server's answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The result.
    Success(Value),
    /// An exception that the method declares, by its name in the IDL's throws clause.
    Thrown(&'static str, Value),
    /// An exception outside the interface.
    Application(TApplicationException),
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// The connection is broken.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The answer does not match the interface.
    #[error("the answer to {0}: {1}")]
    Malformed(&'static str, String),
    /// The call does not match the interface.
    #[error(transparent)]
    WrongType(#[from] wire::WrongType),
    /// The fields of a native call do not fit its messages.
    #[error("the script: {0}")]
    Script(String),
}

/// A connection to a server. After [`NoAnswer`] it is of no more use.
#[derive(Debug)]
pub struct Connection {
    socket: TcpStream,
    seqid: i32,
}

impl Connection {
    /// Connects.
    pub fn open(server: SocketAddr) -> std::io::Result<Self> {
        let socket = TcpStream::connect(server)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        Ok(Connection { socket, seqid: 0 })
    }

    /// Sends a call and waits for its answer.
    pub fn call(
        &mut self,
        method: &'static MethodDescriptor,
        args: &[(&'static str, Value)],
    ) -> Result<Answer, NoAnswer> {
        self.seqid += 1;
        let mut message = Vec::new();
        let mut writer = BinaryWriter::new(&mut message);
        writer.message_begin(method.name, MessageKind::Call, self.seqid);
        wire::encode_struct(&mut writer, method.args, args)?;
        self.socket.write_all(&message)?;
        let message = self.receive(method)?;
        self.answer(method, message)
    }

    fn receive(&mut self, method: &'static MethodDescriptor) -> Result<Vec<u8>, NoAnswer> {
        let malformed = |error: &dyn std::fmt::Display| NoAnswer::Malformed(method.name, error.to_string());
        let mut scanner = MessageScanner::new(Protocol::BinaryStrict, ANSWER_BYTES_MAX);
        let mut message = Vec::new();
        let mut piece = vec![0; 64 << 10];
        loop {
            match self.socket.read(&mut piece)? {
                0 => return Err(NoAnswer::Io(std::io::ErrorKind::UnexpectedEof.into())),
                len => message.extend_from_slice(&piece[..len]),
            }
            if let Scan::Complete { len } = scanner.feed(&message).map_err(|error| malformed(&error))? {
                if len != message.len() {
                    return Err(malformed(&"more bytes than one answer has"));
                }
                return Ok(message);
            }
        }
    }

    fn answer(&self, method: &'static MethodDescriptor, message: Vec<u8>) -> Result<Answer, NoAnswer> {
        let malformed = |error: &dyn std::fmt::Display| NoAnswer::Malformed(method.name, error.to_string());
        let reader = &mut BinaryReader::new(message.into());
        let header = reader.message_begin().map_err(|error| malformed(&error))?;
        if header.seqid != self.seqid || header.name() != method.name {
            let text = format!("is of call {} of {}", header.seqid, header.name());
            return Err(malformed(&text));
        }
        if header.kind == MessageKind::Exception {
            let exception = TApplicationException::decode(reader).map_err(|error| malformed(&error))?;
            return Ok(Answer::Application(exception));
        }
        result(method, reader).map_err(|error| malformed(&error))
    }
}

fn result(
    method: &'static MethodDescriptor,
    reader: &mut impl Reader,
) -> Result<Answer, basalt_idl::wire::WireError> {
    let mut answer = None;
    reader.struct_begin()?;
    while let Some(header) = reader.field_begin()? {
        let thrown = method.throws.iter().find(|throws| throws.id == header.id);
        if header.id == 0 && header.wire_type == method.returns.wire_type() {
            answer = Some(Answer::Success(wire::decode(reader, &method.returns)?));
        } else if let Some(thrown) = thrown {
            let fields = wire::decode_struct(reader, thrown.exception)?;
            answer = Some(Answer::Thrown(thrown.name, Value::Struct(fields)));
        } else {
            reader.skip(header.wire_type)?;
        }
    }
    reader.struct_end();
    // A method that returns nothing answers with no field; another that answers so has sent a null.
    Ok(answer.unwrap_or(Answer::Success(Value::Void)))
}
