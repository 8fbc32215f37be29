//! A get of one row.

use std::ops::Range;

use basalt_idl::thrift2::{TAuthorization, TGet};

use super::{IntoBytes, check_row, check_time_range, check_versions, column, family, time_range};
use crate::error::Result;
use crate::options::Consistency;

/// A get of one row: by default the newest version of every column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get {
    inner: TGet,
}

impl Get {
    /// A get of the whole row.
    pub fn new(row: impl IntoBytes) -> Get {
        Get {
            inner: TGet {
                row: row.into_bytes(),
                ..TGet::default()
            },
        }
    }

    /// Also this family. In HBase the last one wins if a family and its columns are both named.
    #[must_use]
    pub fn family(mut self, name: impl IntoBytes) -> Get {
        self.inner.columns.get_or_insert_default().push(family(name));
        self
    }

    /// Also this column.
    #[must_use]
    pub fn column(mut self, family: impl IntoBytes, qualifier: impl IntoBytes) -> Get {
        let asked = column(family, qualifier);
        self.inner.columns.get_or_insert_default().push(asked);
        self
    }

    /// Up to this many versions of each column, as far as the family keeps them.
    #[must_use]
    pub fn versions(mut self, versions: i32) -> Get {
        self.inner.max_versions = Some(versions);
        self
    }

    /// Only this timestamp.
    #[must_use]
    pub fn timestamp(mut self, timestamp_ms: i64) -> Get {
        self.inner.timestamp = Some(timestamp_ms);
        self
    }

    /// Only these timestamps.
    #[must_use]
    pub fn time_range(mut self, range_ms: Range<i64>) -> Get {
        self.inner.time_range = Some(time_range(&range_ms));
        self
    }

    /// A filter in HBase's filter language, for example `ValueFilter(=, 'binary:x')`.
    #[must_use]
    pub fn filter(mut self, filter: impl IntoBytes) -> Get {
        self.inner.filter_string = Some(filter.into_bytes());
        self
    }

    /// A filter as HBase's protobuf message `Filter` with a class and its own message.
    #[must_use]
    pub fn filter_bytes(mut self, filter: impl IntoBytes) -> Get {
        self.inner.filter_bytes = Some(filter.into_bytes());
        self
    }

    /// At most this many cells of each family.
    #[must_use]
    pub fn cells_per_family(mut self, limit: i32) -> Get {
        self.inner.store_limit = Some(limit);
        self
    }

    /// Passes over this many cells of each family.
    #[must_use]
    pub fn cells_skipped_per_family(mut self, offset: i32) -> Get {
        self.inner.store_offset = Some(offset);
        self
    }

    /// Whether blocks that are read may enter the block cache: a hint.
    #[must_use]
    pub fn cache_blocks(mut self, cache: bool) -> Get {
        self.inner.cache_blocks = Some(cache);
        self
    }

    /// Sets an attribute of the request. HBase keeps some of its own options in attributes.
    #[must_use]
    pub fn attribute(mut self, name: impl IntoBytes, value: impl IntoBytes) -> Get {
        let attributes = self.inner.attributes.get_or_insert_default();
        attributes.insert(name.into_bytes(), value.into_bytes());
        self
    }

    /// Sets which replicas may answer: a hint, without effect on one node.
    #[must_use]
    pub fn consistency(mut self, consistency: Consistency) -> Get {
        self.inner.consistency = Some(consistency);
        self
    }

    /// Sets the replica that should answer: a hint, without effect on one node.
    #[must_use]
    pub fn replica_id(mut self, replica_id: i32) -> Get {
        self.inner.target_replica_id = Some(replica_id);
        self
    }

    /// Sets the reader's visibility labels, without effect on a server without labels.
    #[must_use]
    pub fn authorizations(mut self, labels: Vec<String>) -> Get {
        self.inner.authorizations = Some(TAuthorization { labels: Some(labels) });
        self
    }

    pub(crate) fn into_thrift(self) -> Result<TGet> {
        check_row(&self.inner.row)?;
        check_versions(self.inner.max_versions)?;
        check_time_range(self.inner.time_range.as_ref())?;
        Ok(self.inner)
    }
}
