//! Filters as protobuf, as HBase's Java client sends them.
//!
//! An accepted filter goes to bytes and back unchanged, can be printed, and is used on a few rows.

use basalt_engine::filter::FilterSpec;

use super::filters;
use crate::memory;

/// Feeds it one input. Panics when something does not hold.
pub fn run(input: &[u8]) {
    let decoded = memory::bounded(input.len(), filters::regex_bytes(input), || {
        FilterSpec::decode(input, filters::SEED)
    });
    let Ok(spec) = decoded else {
        return;
    };
    if !filters::is_worth_more(input) {
        return;
    }
    filters::same_as_protobuf(&spec);
    // Not every filter can be expressed in the filter language; the printed form must not upset the
    // parser all the same.
    let _ = FilterSpec::parse(&spec.to_filter_string());
    filters::used(&spec);
}
