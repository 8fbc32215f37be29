//! Accounts in the columns of one row: transfers move amounts between columns, so that the sum stays.

use bytes::Bytes;

use crate::Violation;
use crate::history::Columns;
use crate::notation;

/// Checks the result of a read of a row: this many accounts, numbers in eight bytes, with this sum.
pub fn check(row: &Bytes, columns: &Columns, accounts: usize, sum: i64) -> Result<(), Violation> {
    let wrong = |what: String| Violation {
        calls: notation::print_columns(columns),
        ..Violation::new("bank", row, what)
    };
    if columns.len() != accounts {
        return Err(wrong(format!("{} accounts instead of {accounts}", columns.len())));
    }
    let mut found: i64 = 0;
    for (column, value) in columns {
        let Ok(bytes) = <[u8; 8]>::try_from(&value[..]) else {
            return Err(wrong(format!(
                "account {} holds no number",
                notation::token(column)
            )));
        };
        found = found.wrapping_add(i64::from_be_bytes(bytes));
    }
    if found != sum {
        return Err(wrong(format!("the accounts hold {found} instead of {sum}")));
    }
    Ok(())
}
