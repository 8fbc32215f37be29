//! Values.

/// Any Thrift value of HBase's interfaces. A descriptor gives its Thrift type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// `void`.
    Void,
    /// `bool`.
    Bool(bool),
    /// `byte`, `i16`, `i32`, `i64` and enums.
    Int(i64),
    /// `binary` and `string`.
    Bytes(Vec<u8>),
    /// `list` and `set`.
    List(Vec<Value>),
    /// `map`, ordered by key.
    Map(Vec<(Value, Value)>),
    /// A struct, union or exception: the fields that are there, by their names in the IDL.
    Struct(Vec<(&'static str, Value)>),
    /// An `i32` that the n-th opening of a scanner in a script returned.
    Scanner(u32),
    /// A timestamp that a server took from its clock: equal to any other such.
    Now,
}

impl Value {
    /// A byte string.
    pub fn bytes(bytes: impl AsRef<[u8]>) -> Value {
        Value::Bytes(bytes.as_ref().to_vec())
    }

    /// The field of a struct, if it is there.
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Struct(fields) => fields
                .iter()
                .find(|(field, _)| *field == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// Changes every value inside and then this one.
    pub fn for_each_mut(&mut self, change: &mut impl FnMut(&mut Value)) {
        match self {
            Value::List(values) => values.iter_mut().for_each(|value| value.for_each_mut(change)),
            Value::Map(pairs) => {
                for (key, value) in &mut *pairs {
                    key.for_each_mut(change);
                    value.for_each_mut(change);
                }
                pairs.sort();
            }
            Value::Struct(fields) => fields
                .iter_mut()
                .for_each(|(_, value)| value.for_each_mut(change)),
            _ => {}
        }
        change(self);
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::bytes(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(value)
    }
}

impl From<Vec<Value>> for Value {
    fn from(values: Vec<Value>) -> Value {
        Value::List(values)
    }
}
