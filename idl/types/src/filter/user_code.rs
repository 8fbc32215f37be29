//! Filters of users' classes, which only a host of user code can apply.

use std::sync::Arc;

use super::{Filter, ReturnCode};
use crate::cell::Cell;
use crate::{Error, Result};

/// Stands for such a filter where no host is asked, and fails: nothing is read as if there were no filter.
#[derive(Debug)]
pub(super) struct NotApplicable(pub(super) Arc<str>);

impl NotApplicable {
    fn error(&self) -> Error {
        Error::DoNotRetry(format!(
            "Filter class {} is of a user: it is applied in gets, scans and conditions over native RPC, and not here",
            self.0
        ))
    }
}

impl Filter for NotApplicable {
    fn filter_row_key(&mut self, _: &[u8]) -> Result<bool> {
        Err(self.error())
    }

    fn filter_cell(&mut self, _: Cell<'_>) -> Result<ReturnCode> {
        Err(self.error())
    }
}
