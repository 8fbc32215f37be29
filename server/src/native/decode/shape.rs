//! Shapes of messages, from which the memory of their decoded form is reckoned.

/// Factor for a growing `Vec`: it has up to twice the room of its elements, and while it grows its
/// old buffer as well.
pub(super) const GROWTH: usize = 3;
/// Memory of a decoded filter for each byte of its message.
const FILTER_FACTOR: usize = 8;

/// A message without nested messages and repeated fields.
pub(super) static LEAF: Shape = Shape(&[]);

/// The nested messages and repeated fields of a message.
pub(super) struct Shape(pub(super) &'static [Field]);

pub(super) struct Field {
    pub(super) tag: u32,
    /// Memory of one element, beside its own nested messages.
    pub(super) element: usize,
    /// Memory for each byte of an element.
    pub(super) factor: usize,
    pub(super) shape: &'static Shape,
    /// Whether the element is bytes for the decoder of this message. A message in them is decoded
    /// later, by itself.
    pub(super) is_bytes: bool,
}

pub(super) const fn field(tag: u32, element: usize, shape: &'static Shape) -> Field {
    Field {
        tag,
        element,
        factor: 0,
        shape,
        is_bytes: false,
    }
}

/// An element of a repeated field that has texts; these are in the size of the message.
pub(super) const fn text(tag: u32, element: usize) -> Field {
    Field {
        tag,
        element,
        factor: 0,
        shape: &LEAF,
        is_bytes: false,
    }
}

pub(super) const fn message_in_bytes(tag: u32, shape: &'static Shape) -> Field {
    Field {
        tag,
        element: 0,
        factor: 0,
        shape,
        is_bytes: true,
    }
}

pub(super) const fn filter(tag: u32) -> Field {
    Field {
        tag,
        element: 0,
        factor: FILTER_FACTOR,
        shape: &LEAF,
        is_bytes: false,
    }
}
