//! The output of a session, kept for a test.

use std::io::Write;
use std::sync::{Arc, Mutex};

/// Output of a session; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Printed(Arc<Mutex<Vec<u8>>>);

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no writer panics").write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Printed {
    /// All output since the last call.
    pub(crate) fn take(&self) -> String {
        let bytes = std::mem::take(&mut *self.0.lock().expect("no writer panics"));
        String::from_utf8(bytes).expect("output is text")
    }
}
