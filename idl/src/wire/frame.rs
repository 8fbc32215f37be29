//! Frames: a four-byte big-endian length before each message.

/// A frame whose body is longer than its length field can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("frame of {len} bytes is longer than the {max} bytes that Thrift can express", max = i32::MAX)]
pub struct FrameError {
    /// Bytes in the body.
    pub len: usize,
}

/// Appends room for a frame's length and returns where it stands, for [`end_frame`].
#[inline]
pub fn begin_frame(buf: &mut Vec<u8>) -> usize {
    let at = buf.len();
    buf.extend_from_slice(&[0; 4]);
    at
}

/// Fills in the length of the frame that began at `at`: everything behind its length field.
#[inline]
pub fn end_frame(buf: &mut [u8], at: usize) -> Result<(), FrameError> {
    let len = buf.len().saturating_sub(at).saturating_sub(4);
    let announced = i32::try_from(len).map_err(|_| FrameError { len })?;
    if let Some(place) = buf.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<4>) {
        *place = announced.to_be_bytes();
    }
    Ok(())
}
