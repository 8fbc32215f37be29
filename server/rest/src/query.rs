//! The parameters behind the question mark.

use std::fmt::Display;
use std::str::FromStr;

use crate::encoding::{decode_percent, shown};
use crate::{Malformed, Result};

/// Parameters in the order given, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(Vec<u8>, Vec<u8>)>);

impl Query {
    /// The parameters of the text behind the question mark.
    pub fn parse(text: &str) -> Self {
        let parts = text.split('&').filter(|part| !part.is_empty());
        Self(
            parts
                .map(|part| {
                    let (name, value) = part.split_once('=').unwrap_or((part, ""));
                    (decode_percent(name.as_bytes()), decode_percent(value.as_bytes()))
                })
                .collect(),
        )
    }

    /// All values of a parameter.
    pub fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q [u8]> {
        let named = self.0.iter().filter(move |(own, _)| own == name.as_bytes());
        named.map(|(_, value)| &value[..])
    }

    /// The first value of a parameter.
    pub fn get<'q>(&'q self, name: &'q str) -> Option<&'q [u8]> {
        self.all(name).next()
    }

    /// Whether there is such a parameter, with or without a value.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The first value of a parameter as text.
    pub fn text<'q>(&'q self, name: &'q str) -> Result<Option<&'q str>> {
        let text = |value| {
            std::str::from_utf8(value)
                .map_err(|_| Malformed(format!("the parameter {name} is not UTF-8: {}", shown(value))))
        };
        self.get(name).map(text).transpose()
    }

    /// A parameter that is a number; an empty value counts as absent.
    pub fn number<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>> {
        let Some(text) = self.text(name)?.filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|error| {
            Malformed(format!(
                "the parameter {name} must be a number, not {}: {error}",
                shown(text.as_bytes())
            ))
        })
    }

    /// A parameter that is `true` or something else, as Java reads it.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name)
            .map_or(default, |value| value.eq_ignore_ascii_case(b"true"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_may_repeat() {
        let query = Query::parse("row=a%2Fb&row=c+d&nocache&v=3&reversed=TRUE&bad=x&empty=&=&%FF=1");
        assert_eq!(query.all("row").collect::<Vec<_>>(), [&b"a/b"[..], b"c d"]);
        assert!(query.has("nocache") && !query.has("cache"));
        assert_eq!(query.number::<i32>("v"), Ok(Some(3)));
        assert_eq!(query.number::<i32>("w"), Ok(None));
        assert_eq!(query.number::<i32>("empty"), Ok(None));
        assert!(query.flag("reversed", false) && query.flag("other", true));
        let error = query.number::<i64>("bad").unwrap_err();
        assert!(error.0.contains("bad must be a number, not \"x\""), "{error}");
        assert_eq!(query.text("bad"), Ok(Some("x")));
        assert!(Query::parse("v=%FF").text("v").is_err());
        assert_eq!(Query::parse(""), Query::default());
    }
}
