//! Methods on the wire: arguments, results, and the messages around both.
//!
//! ```text
//! call:   header(name, Call, seqid)       struct { id: argument, ... }
//! reply:  header(name, Reply, seqid)      struct { 0: result }    nothing inside for void
//!                                         struct { id: exception }
//! failed: header(name, Exception, seqid)  TApplicationException
//! ```
//!
//! Clients use [`write_call`] and [`read_reply`]. A server answers a call with the dispatch of its
//! service, see [`serve`](crate::serve).

#[cfg(feature = "recode")]
use crate::schema::Recode;
use crate::schema::{Decode, Encode, StructDescriptor, TypeDescriptor};
use crate::wire::{MessageKind, Reader, WireError, WireType, Writer};

#[allow(
    unused_imports,
    clippy::wildcard_imports,
    reason = "the names of Thrift's types, for the declarations below"
)]
use crate::schema::names::*;

thrift_enum! {
    /// Why a call failed outside its interface.
    pub enum TApplicationExceptionType {
        /// Nothing better is known.
        UNKNOWN = 0,
        /// The service has no such method.
        UNKNOWN_METHOD = 1,
        /// Neither a call nor oneway.
        INVALID_MESSAGE_TYPE = 2,
        /// The reply names another method.
        WRONG_METHOD_NAME = 3,
        /// The reply answers another call.
        BAD_SEQUENCE_ID = 4,
        /// The reply holds neither result nor exception.
        MISSING_RESULT = 5,
        /// The handler failed.
        INTERNAL_ERROR = 6,
        /// The bytes do not match the interface.
        PROTOCOL_ERROR = 7,
        /// The transform is not supported.
        INVALID_TRANSFORM = 8,
        /// The protocol is not supported.
        INVALID_PROTOCOL = 9,
        /// The client is not supported.
        UNSUPPORTED_CLIENT_TYPE = 10,
    }
}

thrift_struct! {
    /// The body of a message of kind exception: a failure that the interface does not declare.
    pub exception TApplicationException {
        1: optional string message,
        2: optional TApplicationExceptionType type as kind,
    }
}

impl TApplicationException {
    /// A failure with its text.
    pub fn new(kind: TApplicationExceptionType, message: impl Into<String>) -> Self {
        TApplicationException {
            message: Some(message.into()),
            kind: Some(kind),
        }
    }

    /// The answer to a method that no service has, worded as libthrift does.
    pub fn unknown_method(name: &str) -> Self {
        Self::new(
            TApplicationExceptionType::UNKNOWN_METHOD,
            format!("Invalid method name: '{}'", brief(name)),
        )
    }

    /// The answer to a failure that the interface does not declare, worded as libthrift does.
    pub fn internal_error(method: &str) -> Self {
        Self::new(
            TApplicationExceptionType::INTERNAL_ERROR,
            format!("Internal error processing {method}"),
        )
    }
}

/// Longest name of a method that an error reply repeats: more than any interface has.
const NAME_BYTES_MAX: usize = 128;

/// The beginning of a name of a method, all of it unless it is longer than any.
fn brief(name: &str) -> &str {
    &name[..name.floor_char_boundary(NAME_BYTES_MAX)]
}

/// The error reply to bytes that could not be decoded.
impl From<&WireError> for TApplicationException {
    fn from(error: &WireError) -> Self {
        let kind = match error {
            WireError::UnknownKind { .. } => TApplicationExceptionType::INVALID_MESSAGE_TYPE,
            WireError::MissingResult { .. } => TApplicationExceptionType::MISSING_RESULT,
            _ => TApplicationExceptionType::PROTOCOL_ERROR,
        };
        Self::new(kind, error.to_string())
    }
}

/// A method, named by the type of its arguments.
pub trait Call: Encode + Decode {
    /// Result of the method.
    type Success: Encode + Decode;
    /// Exceptions of the method's service, of which [`Call::METHOD`] names the declared ones.
    type Exception: ServiceException;
    /// The method as data.
    const METHOD: MethodDescriptor;
}

/// The exceptions of a service. Each has one field id in every method that throws it.
pub trait ServiceException: std::error::Error + Clone + Send + Sync + Sized + 'static {
    /// Field ids and names of the exceptions.
    const DECLARED: &'static [(i16, &'static str)];

    /// The field id in a result.
    fn id(&self) -> i16;

    /// Writes the exception as a field of a result.
    fn encode_field<W: Writer>(&self, writer: &mut W);

    /// Reads the exception with this field id; `None`, and nothing read, if there is none.
    fn decode_id<R: Reader>(id: i16, reader: &mut R) -> Result<Option<Self>, WireError>;
}

/// A service as data.
#[derive(Clone, Copy, Debug)]
pub struct ServiceDescriptor {
    /// The name in the IDL.
    pub name: &'static str,
    /// In the order of the IDL, legacy methods last.
    pub methods: &'static [&'static MethodDescriptor],
}

/// A method as data.
#[derive(Clone, Copy, Debug)]
pub struct MethodDescriptor {
    /// The name of its service.
    pub service: &'static str,
    /// The name in the IDL.
    pub name: &'static str,
    /// The arguments.
    pub args: &'static StructDescriptor,
    /// Type of the result.
    pub returns: TypeDescriptor,
    /// The declared exceptions.
    pub throws: &'static [ThrowsDescriptor],
    /// The kind of work.
    pub class: MethodClass,
    /// Whether calling it twice has the effect of calling it once.
    pub idempotent: bool,
    /// Whether it is frequent, and tried from memory on a server's network thread.
    pub inline: bool,
    /// Whether HBase's newest IDL no longer has it.
    pub legacy: bool,
    /// Decodes and encodes a result struct.
    #[cfg(feature = "recode")]
    pub recode_result: Recode,
}

/// Kinds of work that methods do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodClass {
    /// Reads data, or says what there is and where.
    Read,
    /// Writes data.
    Write,
    /// Changes schema, or looks after the server.
    Admin,
}

/// An exception that a method declares.
#[derive(Clone, Copy, Debug)]
pub struct ThrowsDescriptor {
    /// The field id in a result.
    pub id: i16,
    /// The name in the IDL.
    pub name: &'static str,
    /// The exception.
    pub exception: &'static StructDescriptor,
}

/// Why a call had no success.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError<E: std::error::Error + 'static> {
    /// An exception that the interface declares.
    #[error(transparent)]
    Declared(E),
    /// A failure outside the interface.
    #[error(transparent)]
    Application(TApplicationException),
}

/// Writes a whole call message.
pub fn write_call<C: Call, W: Writer>(writer: &mut W, seqid: i32, args: &C) {
    writer.message_begin(C::METHOD.name, MessageKind::Call, seqid);
    args.encode(writer);
}

/// Writes a whole reply message.
pub fn write_reply<C: Call, W: Writer>(
    writer: &mut W,
    seqid: i32,
    result: &Result<C::Success, C::Exception>,
) {
    writer.message_begin(C::METHOD.name, MessageKind::Reply, seqid);
    encode_result::<C, W>(writer, result);
}

/// Writes a successful reply. `write_result` writes the result as field 0, or nothing for void.
#[inline]
pub fn write_reply_with<W: Writer>(
    writer: &mut W,
    method: &str,
    seqid: i32,
    write_result: impl FnOnce(&mut W),
) {
    writer.message_begin(method, MessageKind::Reply, seqid);
    writer.struct_begin();
    write_result(writer);
    writer.struct_end();
}

/// Writes a reply that carries a declared exception.
pub fn write_exception_reply<E: ServiceException, W: Writer>(
    writer: &mut W,
    method: &str,
    seqid: i32,
    thrown: &E,
) {
    writer.message_begin(method, MessageKind::Reply, seqid);
    writer.struct_begin();
    thrown.encode_field(writer);
    writer.struct_end();
}

/// Writes a message of kind exception.
pub fn write_application_exception<W: Writer>(
    writer: &mut W,
    method: &str,
    seqid: i32,
    exception: &TApplicationException,
) {
    writer.message_begin(brief(method), MessageKind::Exception, seqid);
    exception.encode(writer);
}

/// Writes the result struct of a method.
pub fn encode_result<C: Call, W: Writer>(writer: &mut W, result: &Result<C::Success, C::Exception>) {
    writer.struct_begin();
    match result {
        Ok(success) => success.encode_field(0, writer),
        Err(thrown) => thrown.encode_field(writer),
    }
    writer.struct_end();
}

/// Reads the result struct of a method. A declared exception wins over a result that is there as well, as in
/// generated clients.
pub fn decode_result<C: Call, R: Reader>(
    reader: &mut R,
) -> Result<Result<C::Success, C::Exception>, WireError> {
    use crate::schema::WireTyped;
    let mut success = None;
    let mut thrown = None;
    reader.struct_begin()?;
    while let Some(header) = reader.field_begin()? {
        let declared = || C::METHOD.throws.iter().any(|throws| throws.id == header.id);
        if header.id == 0 && header.wire_type == <C::Success as WireTyped>::WIRE_TYPE {
            success = Some(C::Success::decode(reader)?);
        } else if header.wire_type == WireType::Struct && declared() {
            thrown = C::Exception::decode_id(header.id, reader)?;
        } else {
            reader.skip(header.wire_type)?;
        }
    }
    reader.struct_end();
    if let Some(thrown) = thrown {
        return Ok(Err(thrown));
    }
    match success.or_else(C::Success::if_absent) {
        Some(success) => Ok(Ok(success)),
        None => Err(WireError::MissingResult {
            method: C::METHOD.name,
        }),
    }
}

/// Reads a whole reply message to the call with this sequence id.
pub fn read_reply<C: Call, R: Reader>(
    reader: &mut R,
    seqid: i32,
) -> Result<Result<C::Success, CallError<C::Exception>>, WireError> {
    let header = reader.message_begin()?;
    let failed = |kind, message: String| {
        Ok(Err(CallError::Application(TApplicationException::new(
            kind, message,
        ))))
    };
    if header.kind == MessageKind::Exception {
        return Ok(Err(CallError::Application(TApplicationException::decode(
            reader,
        )?)));
    }
    if header.kind != MessageKind::Reply {
        let text = format!(
            "{} was answered with a message of kind {:?}",
            C::METHOD.name,
            header.kind
        );
        return failed(TApplicationExceptionType::INVALID_MESSAGE_TYPE, text);
    }
    if header.name() != C::METHOD.name {
        let text = format!(
            "{} was answered with a reply to {}",
            C::METHOD.name,
            header.name()
        );
        return failed(TApplicationExceptionType::WRONG_METHOD_NAME, text);
    }
    if header.seqid != seqid {
        let text = format!(
            "call {seqid} of {} was answered with a reply to call {}",
            C::METHOD.name,
            header.seqid
        );
        return failed(TApplicationExceptionType::BAD_SEQUENCE_ID, text);
    }
    Ok(decode_result::<C, R>(reader)?.map_err(CallError::Declared))
}

/// See [`MethodDescriptor::recode_result`].
#[cfg(feature = "recode")]
pub(crate) fn recode_result<C: Call>(
    protocol: crate::wire::Protocol,
    bytes: bytes::Bytes,
) -> Result<Vec<u8>, WireError> {
    use crate::wire::{BinaryReader, BinaryWriter, CompactReader, CompactWriter, Protocol};
    let mut out = Vec::new();
    if protocol == Protocol::Compact {
        let result = decode_result::<C, _>(&mut CompactReader::new(bytes))?;
        encode_result::<C, _>(&mut CompactWriter::new(&mut out), &result);
    } else {
        let result = decode_result::<C, _>(&mut BinaryReader::new(bytes))?;
        encode_result::<C, _>(&mut BinaryWriter::new(&mut out), &result);
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
