//! The body of a frame: big-endian numbers, and bytes and texts behind a length of four bytes.

/// Why bytes are not the body that they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadBody(pub &'static str);

/// Writes a body.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty body.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a byte.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes.push(value);
        self
    }

    /// Appends a number of four bytes.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// Appends a number of four bytes that may be negative.
    pub fn i32(&mut self, value: i32) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// Appends a number of eight bytes.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// Appends a length of four bytes.
    ///
    /// # Panics
    ///
    /// If it does not fit: a frame is far smaller, and [`crate::frame::write`] refuses larger ones.
    pub fn count(&mut self, count: usize) -> &mut Self {
        self.u32(u32::try_from(count).expect("a part of a body is smaller than 4 GiB"))
    }

    /// Appends bytes behind their length.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.count(value.len()).raw(value)
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, value: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(value);
        self
    }

    /// The body so far.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Reads a body.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader of the whole body.
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    /// The next bytes, without a length before them.
    pub fn raw(&mut self, count: usize) -> Result<&'a [u8], BadBody> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(BadBody("a frame ends within a field"))?;
        self.rest = rest;
        Ok(taken)
    }

    /// A byte.
    pub fn u8(&mut self) -> Result<u8, BadBody> {
        Ok(self.raw(1)?[0])
    }

    /// A byte that is 0 or 1.
    pub fn flag(&mut self) -> Result<bool, BadBody> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(BadBody("a flag is neither 0 nor 1")),
        }
    }

    /// A number of four bytes.
    pub fn u32(&mut self) -> Result<u32, BadBody> {
        let bytes = self.raw(4)?.try_into().expect("four bytes were taken");
        Ok(u32::from_be_bytes(bytes))
    }

    /// A number of things that take at least `least` bytes each in the body: no larger than can follow.
    pub fn count(&mut self, least: usize) -> Result<usize, BadBody> {
        let count = self.u32()? as usize;
        if count > self.rest.len() / least.max(1) {
            return Err(BadBody("a frame claims more things than it has bytes for"));
        }
        Ok(count)
    }

    /// Bytes behind their length.
    pub fn bytes(&mut self) -> Result<&'a [u8], BadBody> {
        let count = self.count(1)?;
        self.raw(count)
    }

    /// A text. Bytes that are not UTF-8 become the replacement character.
    pub fn text(&mut self) -> Result<String, BadBody> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    /// Fails unless everything was read.
    pub fn end(self) -> Result<(), BadBody> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(BadBody("bytes follow the end of a body"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_as_it_was_written() {
        let mut body = Writer::new();
        body.u8(1).u32(7).u64(1 << 40).i32(-2).bytes(b"row");
        let mut read = Reader::new(body.as_slice());
        assert_eq!(read.flag(), Ok(true));
        assert_eq!(read.u32(), Ok(7));
        assert_eq!(read.raw(8), Ok(&(1_u64 << 40).to_be_bytes()[..]));
        assert_eq!(read.u32(), Ok(u32::MAX - 1));
        assert_eq!(read.bytes(), Ok(&b"row"[..]));
        assert_eq!(read.end(), Ok(()));
    }

    #[test]
    fn a_count_is_no_larger_than_what_follows() {
        let mut body = Writer::new();
        body.u32(3).raw(&[0; 11]);
        assert_eq!(Reader::new(body.as_slice()).count(3), Ok(3));
        assert!(Reader::new(body.as_slice()).count(4).is_err());
        assert!(Reader::new(&[0xff; 4]).bytes().is_err());
        assert!(Reader::new(&[2]).flag().is_err());
        assert!(Reader::new(&[2]).end().is_err());
    }
}
