//! Calls of the filter language: the filters by name, and the types of their arguments.

use super::lexer::{Argument, Call, repeated};
use super::{ParseError, Result};
use crate::filter::{ColumnRange, Comparator, CompareOp, Comparison, FilterSpec, SingleColumnValue};

/// The filter that a call describes.
pub(super) fn build(call: &Call<'_>) -> Result<FilterSpec> {
    let arguments = Arguments(call);
    match call.name {
        b"KeyOnlyFilter" => {
            let len_as_value = arguments.count(&[0, 1])? == 1 && arguments.boolean(0)?;
            Ok(FilterSpec::key_only(len_as_value))
        }
        b"FirstKeyOnlyFilter" => {
            arguments.count(&[0])?;
            Ok(FilterSpec::first_key_only())
        }
        b"PrefixFilter" => arguments.only_string().map(FilterSpec::prefix),
        b"ColumnPrefixFilter" => arguments.only_string().map(FilterSpec::column_prefix),
        b"InclusiveStopFilter" => arguments.only_string().map(FilterSpec::inclusive_stop),
        b"MultipleColumnPrefixFilter" => {
            let prefixes = (0..call.arguments.len()).map(|index| arguments.string(index));
            arguments.checked(FilterSpec::multiple_column_prefix(
                prefixes.collect::<Result<_>>()?,
            ))
        }
        b"ColumnCountGetFilter" => {
            arguments.count(&[1])?;
            arguments.checked(FilterSpec::column_count_get(arguments.int(0)?))
        }
        b"PageFilter" => {
            arguments.count(&[1])?;
            arguments.checked(FilterSpec::page(arguments.long(0)?))
        }
        b"ColumnPaginationFilter" => {
            arguments.count(&[2])?;
            arguments.checked(FilterSpec::column_pagination(
                arguments.int(0)?,
                arguments.int(1)?,
            ))
        }
        b"TimestampsFilter" => {
            let timestamps = (0..call.arguments.len()).map(|index| arguments.long(index));
            arguments.checked(FilterSpec::timestamps(timestamps.collect::<Result<_>>()?, false))
        }
        b"RowFilter" => arguments.only_comparison().map(FilterSpec::row),
        b"FamilyFilter" => arguments.only_comparison().map(FilterSpec::family),
        b"QualifierFilter" => arguments.only_comparison().map(FilterSpec::qualifier),
        b"ValueFilter" => arguments.only_comparison().map(FilterSpec::value),
        b"ColumnRangeFilter" => arguments.column_range().map(FilterSpec::column_range),
        b"SingleColumnValueFilter" => Ok(FilterSpec::single_column_value(
            arguments.single_column_value()?,
            false,
        )),
        b"SingleColumnValueExcludeFilter" => Ok(FilterSpec::single_column_value(
            arguments.single_column_value()?,
            true,
        )),
        b"DependentColumnFilter" => arguments.dependent_column(),
        b"ColumnValueFilter" => {
            arguments.count(&[4])?;
            let comparison = arguments.order_comparison(2)?;
            Ok(FilterSpec::column_value(
                arguments.string(0)?,
                arguments.string(1)?,
                comparison,
            ))
        }
        unknown => Err(ParseError::new(
            call.position,
            format!("Filter Name {} not supported", repeated(unknown)),
        )),
    }
}

/// The arguments of a call, by number.
/// REQUIRES, of the methods that take an index: the count was checked.
struct Arguments<'c, 't>(&'c Call<'t>);

impl Arguments<'_, '_> {
    /// How many there are, one of `allowed`.
    fn count(&self, allowed: &[usize]) -> Result<usize> {
        let count = self.0.arguments.len();
        if allowed.contains(&count) {
            return Ok(count);
        }
        let name = repeated(self.0.name);
        let allowed: Vec<_> = allowed.iter().map(usize::to_string).collect();
        let expected = allowed.join(" or ");
        let message = format!("Incorrect argument list: {name} takes {expected} arguments, not {count}");
        Err(ParseError::new(self.0.position, message))
    }

    /// An error of a filter's constructor is one of the whole call.
    fn checked(&self, built: crate::Result<FilterSpec>) -> Result<FilterSpec> {
        built.map_err(|error| ParseError::new(self.0.position, error.to_string()))
    }

    fn string(&self, index: usize) -> Result<Vec<u8>> {
        let argument = &self.0.arguments[index];
        if !argument.quoted {
            return Err(refuse(
                argument,
                "removeQuotesFromByteArray needs a quoted byte array",
            ));
        }
        Ok(argument.bytes.to_vec())
    }

    fn only_string(&self) -> Result<Vec<u8>> {
        self.count(&[1])?;
        self.string(0)
    }

    /// HBase reads up to the digit that overflows, so the range of the type decides, not its number of
    /// digits.
    fn int(&self, index: usize) -> Result<i32> {
        let argument = &self.0.arguments[index];
        let (negative, digits) = digits_of(argument)?;
        let number = digits.iter().fold(0i64, |number, digit| {
            number.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
        });
        let number = if negative { -number } else { number };
        i32::try_from(number).map_err(|_| {
            refuse(
                argument,
                if negative {
                    "Integer Argument too small"
                } else {
                    "Integer Argument too large"
                },
            )
        })
    }

    /// The smallest i64 cannot be written, as in HBase.
    fn long(&self, index: usize) -> Result<i64> {
        let argument = &self.0.arguments[index];
        let (negative, digits) = digits_of(argument)?;
        let number = digits.iter().try_fold(0i64, |number, digit| {
            number.checked_mul(10)?.checked_add(i64::from(digit - b'0'))
        });
        let number = number.ok_or_else(|| refuse(argument, "Long Argument too large"))?;
        Ok(if negative { -number } else { number })
    }

    fn boolean(&self, index: usize) -> Result<bool> {
        let argument = &self.0.arguments[index];
        if !argument.quoted && argument.bytes.eq_ignore_ascii_case(b"true") {
            Ok(true)
        } else if !argument.quoted && argument.bytes.eq_ignore_ascii_case(b"false") {
            Ok(false)
        } else {
            Err(refuse(argument, "Incorrect Boolean Expression"))
        }
    }

    fn compare_op(&self, index: usize) -> Result<CompareOp> {
        let argument = &self.0.arguments[index];
        let op = if argument.quoted {
            None
        } else {
            CompareOp::from_symbol(&argument.bytes)
        };
        op.ok_or_else(|| refuse(argument, "Invalid compare operator"))
    }

    fn comparator(&self, index: usize) -> Result<Comparator> {
        let argument = &self.0.arguments[index];
        let bytes = self.string(index)?;
        let colon = bytes.iter().position(|byte| *byte == b':');
        let (kind, value) = bytes.split_at(colon.ok_or_else(|| refuse(argument, "Incorrect comparator"))?);
        let value = &value[1..];
        match kind {
            b"binary" => Ok(Comparator::Binary(value.to_vec())),
            b"binaryprefix" => Ok(Comparator::BinaryPrefix(value.to_vec())),
            b"substring" => Ok(Comparator::substring(&String::from_utf8_lossy(value))),
            b"regexstring" => Comparator::regex(&String::from_utf8_lossy(value))
                .map_err(|error| ParseError::new(argument.position, error.to_string())),
            _ => Err(refuse(argument, "Incorrect comparatorType")),
        }
    }

    fn comparison(&self, index: usize) -> Result<Comparison> {
        Ok(Comparison::new(
            self.compare_op(index)?,
            self.comparator(index + 1)?,
        ))
    }

    /// A comparison in which text searches go with `=` and `!=` only, since they know no order.
    fn order_comparison(&self, index: usize) -> Result<Comparison> {
        let comparison = self.comparison(index)?;
        let searches = matches!(
            &*comparison.comparator,
            Comparator::Regex(_) | Comparator::Substring(_)
        );
        if searches && !matches!(comparison.op, CompareOp::Equal | CompareOp::NotEqual) {
            let message = "A regexstring or substring comparator can only be used with EQUAL and NOT_EQUAL";
            return Err(refuse(&self.0.arguments[index], message));
        }
        Ok(comparison)
    }

    fn only_comparison(&self) -> Result<Comparison> {
        self.count(&[2])?;
        self.order_comparison(0)
    }

    fn column_range(&self) -> Result<ColumnRange> {
        self.count(&[4])?;
        let bound = |index| {
            self.string(index)
                .map(|bytes| (!bytes.is_empty()).then_some(bytes))
        };
        Ok(ColumnRange {
            min: bound(0)?,
            min_inclusive: self.boolean(1)?,
            max: bound(2)?,
            max_inclusive: self.boolean(3)?,
        })
    }

    fn single_column_value(&self) -> Result<SingleColumnValue> {
        let long_form = self.count(&[4, 6])? == 6;
        Ok(SingleColumnValue {
            family: self.string(0)?,
            qualifier: self.string(1)?,
            comparison: self.order_comparison(2)?,
            filter_if_missing: long_form && self.boolean(4)?,
            latest_version_only: !long_form || self.boolean(5)?,
        })
    }

    /// The one filter whose comparison is not checked for text searches with an order.
    fn dependent_column(&self) -> Result<FilterSpec> {
        let count = self.count(&[2, 3, 5])?;
        let (family, qualifier) = (self.string(0)?, self.string(1)?);
        let drop_dependent = count > 2 && self.boolean(2)?;
        let comparison = if count == 5 {
            Some(self.comparison(3)?)
        } else {
            None
        };
        Ok(FilterSpec::dependent_column(
            family,
            qualifier,
            drop_dependent,
            comparison,
        ))
    }
}

fn refuse(argument: &Argument<'_>, what: &str) -> ParseError {
    let quote = if argument.quoted { "'" } else { "" };
    ParseError::new(
        argument.position,
        format!("{what}: {quote}{}{quote}", repeated(&argument.bytes)),
    )
}

/// Whether there is a minus, and the digits.
fn digits_of<'a>(argument: &'a Argument<'_>) -> Result<(bool, &'a [u8])> {
    let (negative, digits) = match argument.bytes.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, &*argument.bytes),
    };
    if argument.quoted || digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(refuse(argument, "Byte Array should only contain digits"));
    }
    Ok((negative, digits))
}
