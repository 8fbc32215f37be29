//! Filter strings.
//!
//! An accepted string is printed and parsed to the same filter; as protobuf the filter goes there and back
//! too. Then the filter is used on a few rows.

use basalt_engine::filter::FilterSpec;

use super::filters;
use crate::memory;

/// Feeds it one input. Panics when something does not hold.
pub fn run(input: &[u8]) {
    let parsed = memory::bounded(input.len(), filters::regex_bytes(input), || {
        FilterSpec::parse(input)
    });
    let spec = match parsed {
        Ok(spec) => spec,
        Err(error) => {
            assert!(
                error.position <= input.len(),
                "{error}: behind the end of the string"
            );
            return;
        }
    };
    if !filters::is_worth_more(input) {
        return;
    }
    let printed = spec.to_filter_string();
    let again = FilterSpec::parse(&printed);
    assert_eq!(again.as_ref(), Ok(&spec), "printed as {}", printed.escape_ascii());
    filters::same_as_protobuf(&spec);
    filters::used(&spec);
}
