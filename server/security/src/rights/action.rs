//! Actions and sets of them.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result};

/// A kind of access (HBase: `Permission.Action`). The numbers are those of HBase's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads cells.
    Read = 0,
    /// Writes cells.
    Write = 1,
    /// Calls endpoints.
    Exec = 2,
    /// Creates and changes tables.
    Create = 3,
    /// Administers.
    Admin = 4,
}

impl Action {
    /// All actions, in the order of their letters: R, W, X, C, A.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Exec, Self::Create, Self::Admin];

    /// The action with this number in HBase's messages.
    pub fn from_number(number: i32) -> Option<Self> {
        usize::try_from(number)
            .ok()
            .and_then(|number| Self::ALL.get(number))
            .copied()
    }

    /// The word in HBase's texts.
    pub fn name(self) -> &'static str {
        ["READ", "WRITE", "EXEC", "CREATE", "ADMIN"][self as usize]
    }

    pub(super) fn letter(self) -> char {
        ['R', 'W', 'X', 'C', 'A'][self as usize]
    }
}

/// A set of actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Actions(u8);

impl Actions {
    /// No action.
    pub const NONE: Self = Self(0);
    /// All actions.
    pub const ALL: Self = Self(0b1_1111);

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether an action is in both sets.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Actions in one of the sets.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Actions in this set and not in the other.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The actions, in the order of their letters.
    pub fn iter(self) -> impl Iterator<Item = Action> {
        Action::ALL
            .into_iter()
            .filter(move |action| self.intersects(Self::from(*action)))
    }
}

impl From<Action> for Actions {
    fn from(action: Action) -> Self {
        Self(1 << action as u8)
    }
}

impl FromIterator<Action> for Actions {
    fn from_iter<I: IntoIterator<Item = Action>>(actions: I) -> Self {
        let sets = actions.into_iter().map(Self::from);
        sets.fold(Self::NONE, Self::union)
    }
}

/// The letters in HBase's order: `RWXCA`.
impl fmt::Display for Actions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter()
            .try_for_each(|action| write!(f, "{}", action.letter()))
    }
}

/// Letters in any order.
impl FromStr for Actions {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let action = |letter| Action::ALL.into_iter().find(|action| action.letter() == letter);
        let actions: Option<Self> = text.chars().map(action).collect();
        actions.ok_or_else(|| {
            let shown: String = text.chars().take(16).collect();
            Error::Invalid(format!(
                "{shown:?} is no set of rights: use the letters R, W, X, C and A"
            ))
        })
    }
}
