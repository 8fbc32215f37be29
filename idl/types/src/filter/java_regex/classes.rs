//! How much a pattern's character classes name, known before it is compiled.
//!
//! The compiler's limit counts the compiled automaton only. A class like `\p{L}` takes 7 KB in the form
//! before it, and 45 KB when case does not matter: a pattern of nothing else took 15 KB for each of its bytes
//! before it was refused. So the classes are counted in the syntax tree, where each is still as small as its
//! text.

use regex_syntax::ast::{Ast, ClassSetItem, ClassSetRange, Visitor, visit};

/// Most characters that the classes of one pattern name together. Each takes 16 bytes at most: a range of two
/// numbers of 32 bits, in a list with room for twice as many.
pub(super) const CLASS_CHARACTERS_MAX: usize = 16 * WHOLE;

/// A class is counted with at most this: Unicode's letters with case are fewer, so that more characters do
/// not take more memory.
const WHOLE: usize = 3_000;

/// Checks that the classes of a pattern stay below [`CLASS_CHARACTERS_MAX`].
pub(super) fn check(pattern: &Ast) -> Result<(), String> {
    visit(pattern, Count(0))
}

/// Characters named so far.
struct Count(usize);

impl Count {
    fn add(&mut self, characters: usize) -> Result<(), String> {
        self.0 += characters.min(WHOLE);
        if self.0 > CLASS_CHARACTERS_MAX {
            return Err(format!(
                "its character classes name more than {CLASS_CHARACTERS_MAX} characters, which is the limit (one like \\p{{L}} counts as {WHOLE})"
            ));
        }
        Ok(())
    }
}

impl Visitor for Count {
    type Output = ();
    type Err = String;

    fn finish(self) -> Result<(), String> {
        Ok(())
    }

    fn visit_pre(&mut self, node: &Ast) -> Result<(), String> {
        match node {
            Ast::ClassUnicode(_) | Ast::ClassPerl(_) => self.add(WHOLE),
            _ => Ok(()),
        }
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), String> {
        match item {
            ClassSetItem::Literal(_) => self.add(1),
            ClassSetItem::Range(range) => self.add(length(range)),
            ClassSetItem::Unicode(_) | ClassSetItem::Perl(_) | ClassSetItem::Ascii(_) => self.add(WHOLE),
            ClassSetItem::Empty(_) | ClassSetItem::Bracketed(_) | ClassSetItem::Union(_) => Ok(()),
        }
    }
}

/// Characters of a range, both ends with it.
fn length(range: &ClassSetRange) -> usize {
    (u32::from(range.end.c) - u32::from(range.start.c)) as usize + 1
}
