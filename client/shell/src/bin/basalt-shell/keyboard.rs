//! The keyboard of the terminal, key by key, for pictures that are live.

use std::io::{Read as _, Result, stdin, stdout};
use std::time::Duration;

use basalt_shell::session::Keys;
use rustix::termios::{OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Lines of a screen whose size is not known.
const LINES: usize = 24;

/// A terminal in raw mode: no echo, no signals, each key at once. Dropping it restores the mode.
struct Keyboard {
    before: Termios,
}

/// Puts the terminal of standard input into raw mode.
pub(crate) fn open() -> Result<Box<dyn Keys>> {
    let before = tcgetattr(stdin())?;
    Ok(Box::new(Keyboard { before }))
}

impl Keys for Keyboard {
    fn next(&mut self, within: Duration) -> Result<Option<u8>> {
        // The terminal counts tenths of a second, up to 25.5 s.
        let mut left = (within.as_millis() / 100).max(1);
        let mut key = [0];
        while left > 0 {
            let wait = u8::try_from(left).unwrap_or(u8::MAX);
            let mut raw = self.before.clone();
            raw.make_raw();
            raw.special_codes[SpecialCodeIndex::VMIN] = 0;
            raw.special_codes[SpecialCodeIndex::VTIME] = wait;
            tcsetattr(stdin(), OptionalActions::Now, &raw)?;
            if stdin().read(&mut key)? == 1 {
                return Ok(Some(key[0]));
            }
            left -= u128::from(wait);
        }
        Ok(None)
    }

    fn lines(&self) -> usize {
        tcgetwinsize(stdout()).map_or(LINES, |size| size.ws_row.into())
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // A terminal that is gone needs no mode.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
