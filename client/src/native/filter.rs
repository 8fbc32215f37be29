//! The filter language of HBase as messages of its protocol, which has no such language itself.

use basalt_types::filter::FilterSpec;
use bytes::Bytes;

use crate::error::{Error, Result};

/// A filter in HBase's filter language, for example `PrefixFilter('x') AND KeyOnlyFilter()`, as HBase's
/// message `Filter`. [`Get::filter`](crate::Get::filter) and [`Scan::filter`](crate::Scan::filter) do this by
/// themselves. The error names the position of a mistake.
pub fn filter_message(text: &[u8]) -> Result<Bytes> {
    match FilterSpec::parse(text) {
        Ok(filter) => Ok(filter.encode().into()),
        Err(error) => Err(Error::InvalidRequest(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::filter_message;

    #[test]
    fn a_mistake_is_named_with_its_position() {
        assert!(filter_message(b"KeyOnlyFilter() AND PrefixFilter('a')").is_ok());
        let error = filter_message(b"KeyOnlyFilter() AND NoFilter()").unwrap_err();
        assert!(error.to_string().contains("position 20: "), "{error}");
    }
}
