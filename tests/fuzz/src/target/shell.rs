//! Commands of `basalt-shell`.

use basalt_shell::arguments::Arguments;
use basalt_shell::parse;
use basalt_shell::program::{Program, Step, Variables};

use crate::memory;

/// A parsed statement takes up to this, in bytes, for the two bytes that are its least text: `x;`.
const PER_TEXT_BYTE: usize = 512;

/// Commands of a program that are looked at. Loops have more.
const COMMANDS: usize = 1_000;

/// Feeds it one input. Panics when something does not hold.
pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let statements = match memory::bounded(input.len(), input.len() * PER_TEXT_BYTE, || parse(text)) {
        Ok(statements) => statements,
        Err(error) => {
            let lines = text.matches('\n').count() + 1;
            assert!(
                (1..=lines).contains(&error.line),
                "{error}: there is no such line"
            );
            assert!(
                (1..=text.chars().count() + 1).contains(&error.column),
                "{error}: there is no such column"
            );
            return;
        }
    };
    let (mut program, mut variables) = (Program::new(&statements), Variables::default());
    for _ in 0..COMMANDS {
        match program.next(&mut variables) {
            Ok(Step::Command(command)) => {
                // Wrong arguments are refused by name; that is all that is asked here.
                let mut arguments = Arguments::new(&command.name, command.arguments);
                let _ = arguments.bytes("a name").is_ok()
                    && arguments.options().is_ok()
                    && arguments.end().is_ok();
            }
            Ok(Step::Value(_)) => {}
            Ok(Step::End) | Err(_) => break,
        }
    }
}
