//! Calls of the filter language as messages. Tags are those of HBase's `Filter.proto` and `Comparator.proto`.

use super::fields::Fields;
use super::lexer::{Argument, Call};
use super::{named, wrong};
use crate::error::{Error, Result};

/// The flag DOTALL of Java's patterns, which HBase sets for the filter language.
const DOTALL: i64 = 32;

/// HBase's code for no comparison.
const NO_OP: i64 = 6;

/// A comparison: HBase's code of the operator, and the message of the comparator.
type Comparison = (i64, Vec<u8>);

/// The message of a call.
pub(super) fn message(call: &Call<'_>) -> Result<Vec<u8>> {
    let name = String::from_utf8_lossy(call.name);
    let arguments = Arguments(call);
    let fields = match &*name {
        "KeyOnlyFilter" => {
            let len_as_value = arguments.count(&[0, 1])? == 1 && arguments.flag(0)?;
            Fields::new().flag(1, len_as_value)
        }
        "FirstKeyOnlyFilter" => {
            arguments.count(&[0])?;
            Fields::new()
        }
        "PrefixFilter" | "ColumnPrefixFilter" | "InclusiveStopFilter" => {
            arguments.count(&[1])?;
            Fields::new().bytes(1, arguments.string(0)?)
        }
        "MultipleColumnPrefixFilter" => (0..call.arguments.len())
            .try_fold(Fields::new(), |fields, index| {
                Ok::<_, Error>(fields.bytes(1, arguments.string(index)?))
            })?,
        "ColumnCountGetFilter" => {
            arguments.count(&[1])?;
            Fields::new().number(1, arguments.int(0)?)
        }
        "PageFilter" => {
            arguments.count(&[1])?;
            Fields::new().number(1, arguments.number(0)?)
        }
        "ColumnPaginationFilter" => {
            arguments.count(&[2])?;
            Fields::new()
                .number(1, arguments.int(0)?)
                .number(2, arguments.int(1)?)
        }
        "TimestampsFilter" => {
            let all = (0..call.arguments.len()).try_fold(Fields::new(), |fields, index| {
                Ok::<_, Error>(fields.number(1, arguments.number(index)?))
            });
            all?.flag(2, false)
        }
        "RowFilter" | "FamilyFilter" | "QualifierFilter" | "ValueFilter" => {
            arguments.count(&[2])?;
            Fields::new().bytes(1, &compare_filter(arguments.order_comparison(0)?))
        }
        "ColumnRangeFilter" => arguments.column_range()?,
        "SingleColumnValueFilter" => arguments.single_column_value()?,
        "SingleColumnValueExcludeFilter" => {
            Fields::new().bytes(1, &arguments.single_column_value()?.encoded())
        }
        "DependentColumnFilter" => arguments.dependent_column()?,
        "ColumnValueFilter" => {
            arguments.count(&[4])?;
            let (operator, comparator) = arguments.order_comparison(2)?;
            let column = Fields::new()
                .bytes(1, arguments.string(0)?)
                .bytes(2, arguments.string(1)?);
            column.number(3, operator).bytes(4, &comparator)
        }
        unknown => return Err(wrong(call.position, &format!("filter {unknown} is not known"))),
    };
    Ok(named(&name, fields))
}

fn compare_filter((operator, comparator): Comparison) -> Vec<u8> {
    Fields::new().number(1, operator).bytes(2, &comparator).encoded()
}

struct Arguments<'c, 't>(&'c Call<'t>);

impl<'c> Arguments<'c, '_> {
    fn count(&self, allowed: &[usize]) -> Result<usize> {
        let count = self.0.arguments.len();
        if allowed.contains(&count) {
            return Ok(count);
        }
        let name = String::from_utf8_lossy(self.0.name);
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        let what = format!("{name} has {count} arguments instead of {}", allowed.join(" or "));
        Err(wrong(self.0.position, &what))
    }

    fn at(&self, index: usize) -> &'c Argument {
        &self.0.arguments[index]
    }

    fn string(&self, index: usize) -> Result<&'c [u8]> {
        match self.at(index) {
            argument if argument.is_quoted => Ok(&argument.bytes),
            argument => Err(wrong(
                argument.position,
                "the argument is a text and needs quotes",
            )),
        }
    }

    fn number(&self, index: usize) -> Result<i64> {
        let argument = self.at(index);
        let text = std::str::from_utf8(&argument.bytes)
            .ok()
            .filter(|_| !argument.is_quoted);
        text.and_then(|text| text.parse().ok())
            .ok_or_else(|| wrong(argument.position, "the argument is not a number of its type"))
    }

    fn int(&self, index: usize) -> Result<i64> {
        let number = self.number(index)?;
        match i32::try_from(number) {
            Ok(_) => Ok(number),
            Err(_) => Err(wrong(
                self.at(index).position,
                "the argument is not a number of its type",
            )),
        }
    }

    fn flag(&self, index: usize) -> Result<bool> {
        let argument = self.at(index);
        match argument.bytes.to_ascii_lowercase().as_slice() {
            b"true" if !argument.is_quoted => Ok(true),
            b"false" if !argument.is_quoted => Ok(false),
            _ => Err(wrong(argument.position, "the argument is not true or false")),
        }
    }

    fn operator(&self, index: usize) -> Result<i64> {
        let argument = self.at(index);
        match argument.bytes.as_slice() {
            b"<" => Ok(0),
            b"<=" => Ok(1),
            b"=" => Ok(2),
            b"!=" => Ok(3),
            b">=" => Ok(4),
            b">" => Ok(5),
            _ => Err(wrong(argument.position, "the argument is no compare operator")),
        }
    }

    fn comparison(&self, index: usize) -> Result<Comparison> {
        Ok((self.operator(index)?, self.comparator(index + 1)?.1))
    }

    /// A comparison whose comparator must have an order unless it is one of equality.
    fn order_comparison(&self, index: usize) -> Result<Comparison> {
        let (operator, (has_order, comparator)) = (self.operator(index)?, self.comparator(index + 1)?);
        if !has_order && !matches!(operator, 2 | 3) {
            let what = "regexstring and substring have only the operators = and !=";
            return Err(wrong(self.at(index).position, what));
        }
        Ok((operator, comparator))
    }

    /// The message of a comparator, and whether it has an order.
    fn comparator(&self, index: usize) -> Result<(bool, Vec<u8>)> {
        let (bytes, position) = (self.string(index)?, self.at(index).position);
        let Some(colon) = bytes.iter().position(|byte| *byte == b':') else {
            return Err(wrong(position, "the comparator has no type: write 'binary:...'"));
        };
        let (kind, value) = (&bytes[..colon], &bytes[colon + 1..]);
        // A comparable is a message with a message of one field.
        let comparable = || Fields::new().bytes(1, &Fields::new().bytes(1, value).encoded());
        let (has_order, class, fields) = match kind {
            b"binary" => (true, "BinaryComparator", comparable()),
            b"binaryprefix" => (true, "BinaryPrefixComparator", comparable()),
            b"substring" => {
                let lower = String::from_utf8_lossy(value).to_lowercase();
                (
                    false,
                    "SubstringComparator",
                    Fields::new().bytes(1, lower.as_bytes()),
                )
            }
            b"regexstring" => (false, "RegexStringComparator", regex(value)),
            _ => return Err(wrong(position, "the comparator's type is not known")),
        };
        Ok((has_order, named(class, fields)))
    }

    fn column_range(&self) -> Result<Fields> {
        self.count(&[4])?;
        let bound = |fields: Fields, tag, index| {
            let column = self.string(index)?;
            Ok::<_, Error>(if column.is_empty() {
                fields
            } else {
                fields.bytes(tag, column)
            })
        };
        let fields = bound(Fields::new(), 1, 0)?.flag(2, self.flag(1)?);
        Ok(bound(fields, 3, 2)?.flag(4, self.flag(3)?))
    }

    fn single_column_value(&self) -> Result<Fields> {
        let long_form = self.count(&[4, 6])? == 6;
        let (operator, comparator) = self.order_comparison(2)?;
        let column = Fields::new().bytes(1, self.string(0)?).bytes(2, self.string(1)?);
        let compared = column.number(3, operator).bytes(4, &comparator);
        let filter_if_missing = long_form && self.flag(4)?;
        Ok(compared
            .flag(5, filter_if_missing)
            .flag(6, !long_form || self.flag(5)?))
    }

    fn dependent_column(&self) -> Result<Fields> {
        let count = self.count(&[2, 3, 5])?;
        let compare_filter = match count {
            5 => compare_filter(self.comparison(3)?),
            _ => Fields::new().number(1, NO_OP).encoded(),
        };
        let column = Fields::new()
            .bytes(1, &compare_filter)
            .bytes(2, self.string(0)?)
            .bytes(3, self.string(1)?);
        Ok(column.flag(4, count > 2 && self.flag(2)?))
    }
}

fn regex(pattern: &[u8]) -> Fields {
    let pattern = String::from_utf8_lossy(pattern);
    let pattern = Fields::new().bytes(1, pattern.as_bytes()).number(2, DOTALL);
    pattern.bytes(3, b"UTF-8").bytes(4, b"JAVA")
}
