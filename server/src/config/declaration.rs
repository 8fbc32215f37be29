//! The parts of a declaration of settings (`sections`): types of values, ranges, fields.

use std::path::PathBuf;

use super::units::Unit;
use super::{Address, OptionalAddress};

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A whole number; its unit is in the name.
    Number,
    /// A number with a fraction.
    Fraction,
    /// `true` or `false`.
    Flag,
    Text,
    Path,
    Address,
    List,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// A type that a setting can have.
pub(super) trait Described {
    /// How its values are written.
    const KIND: Kind;
}

macro_rules! described {
    ($($type:ty: $kind:expr),+ $(,)?) => {
        $(impl Described for $type {
            const KIND: Kind = $kind;
        })+
    };
}

described! {
    u8: Kind::Number,
    u32: Kind::Number,
    u64: Kind::Number,
    usize: Kind::Number,
    f64: Kind::Fraction,
    bool: Kind::Flag,
    String: Kind::Text,
    PathBuf: Kind::Path,
    Address: Kind::Address,
    OptionalAddress: Kind::Address,
    Vec<String>: Kind::List,
    Vec<PathBuf>: Kind::List,
}

/// The values that a number may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    min: u64,
    max: Option<u64>,
    /// Whether 0 has a meaning of its own.
    or_zero: bool,
}

impl Range {
    pub(super) const fn at_least(min: u64) -> Self {
        Self {
            min,
            max: None,
            or_zero: false,
        }
    }

    pub(super) const fn between(min: u64, max: u64) -> Self {
        Self {
            max: Some(max),
            ..Self::at_least(min)
        }
    }

    pub(super) const fn zero_or_at_least(min: u64) -> Self {
        Self {
            or_zero: true,
            ..Self::at_least(min)
        }
    }

    pub(super) const fn zero_or_between(min: u64, max: u64) -> Self {
        Self {
            or_zero: true,
            ..Self::between(min, max)
        }
    }

    pub(super) fn holds(self, number: u64) -> bool {
        (self.or_zero && number == 0) || (number >= self.min && self.max.is_none_or(|max| number <= max))
    }

    /// The range in words: `at least 1MiB`.
    pub(super) fn text(self, unit: Unit) -> String {
        let show = |number| unit.show(number);
        let bounds = match (self.min, self.max) {
            (0, Some(max)) => format!("at most {}", show(max)),
            (min, Some(max)) => format!("{} to {}", show(min), show(max)),
            (min, None) => format!("at least {}", show(min)),
        };
        if self.or_zero {
            format!("0, or {bounds}")
        } else {
            bounds
        }
    }
}

/// A setting as it is declared in its section.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) key: &'static str,
    /// Lines of its documentation, each as the compiler hands it over.
    pub(super) doc: &'static [&'static str],
    pub(super) kind: Kind,
    pub(super) range: Option<Range>,
}

/// A section with its settings.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) doc: &'static [&'static str],
    pub(super) fields: &'static [Field],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_checked_and_told() {
        let range = Range::zero_or_at_least(80);
        let holding = [0, 1, 79, 80, u64::MAX].map(|number| range.holds(number));
        assert_eq!(holding, [true, false, false, true, true]);
        assert_eq!(range.text(Unit::Count), "0, or at least 80");
        assert_eq!(Range::between(1, 2).text(Unit::Count), "1 to 2");
        assert_eq!(Range::between(0, 64).text(Unit::Count), "at most 64");
        assert_eq!(Range::at_least(1 << 20).text(Unit::Bytes), "at least 1MiB");
    }
}
