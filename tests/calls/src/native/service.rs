//! Calls of HBase's native ClientService as scripts write them.
//!
//! The service is described like the Thrift services, so that scripts can print, read and shrink its
//! calls. Names and meanings of fields are those of HBase's protobuf messages, with three additions
//! that make a call independent of one server:
//!
//! - `table` stands for a region: the sender of the call looks regions up.
//! - `client` says how the connection presents itself (see [`ClientKind`]), which decides whether
//!   cells of answers come in a cell block or inside the message.
//! - `scan` is a whole scan, over all regions, in at most `calls` calls; its result has every answer.
//!
//! Filters and comparators are encoded protobuf messages: `hbase.pb.Filter`, `hbase.pb.Comparator`.

use basalt_idl::call::ServiceDescriptor;
use basalt_idl::schema::{EnumDescriptor, TypeDescriptor};

use crate::described::{message, method};

use TypeDescriptor::{Binary, Bool, Enum, I32, I64, List, Map, String, Struct};

/// The kind of client that a connection presents itself as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// With a codec and a version, as Java's client.
    Java = 0,
    /// With a codec and without a version, as gohbase and asynchbase.
    Versionless = 1,
    /// Without a codec: all cells are inside messages.
    Bare = 2,
}

impl ClientKind {
    /// All kinds, by their codes.
    pub const ALL: [ClientKind; 3] = [ClientKind::Java, ClientKind::Versionless, ClientKind::Bare];
}

/// An action of a scan beside fetching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Nothing.
    None = 0,
    /// Renews the lease after its first answer.
    Renew = 1,
    /// Ends with a call whose `next_call_seq` is not the next one.
    WrongSequence = 2,
    /// Closes its scanner after its first answer, and fetches again.
    UseAfterClose = 3,
}

impl Probe {
    /// All probes, by their codes.
    pub const ALL: [Probe; 4] = [
        Probe::None,
        Probe::Renew,
        Probe::WrongSequence,
        Probe::UseAfterClose,
    ];
}

const MUTATION_TYPE: EnumDescriptor = EnumDescriptor {
    name: "MutationType",
    values: &[("APPEND", 0), ("INCREMENT", 1), ("PUT", 2), ("DELETE", 3)],
};

const DELETE_TYPE: EnumDescriptor = EnumDescriptor {
    name: "DeleteType",
    values: &[
        ("DELETE_ONE_VERSION", 0),
        ("DELETE_MULTIPLE_VERSIONS", 1),
        ("DELETE_FAMILY", 2),
        ("DELETE_FAMILY_VERSION", 3),
    ],
};

const ATTRIBUTES: TypeDescriptor = Map(&Binary, &Binary);

message! {
    /// Timestamps in milliseconds, `to` exclusive.
    TIME_RANGE "TimeRange" Struct {
        "from": I64, required;
        "to": I64, required;
    }
}

message! {
    /// A time range that only one family has.
    FAMILY_RANGE "ColumnFamilyTimeRange" Struct {
        "family": Binary, required;
        "range": Struct(&TIME_RANGE), required;
    }
}

message! {
    /// A family, or some of its columns.
    COLUMN "Column" Struct {
        "family": Binary, required;
        "qualifiers": List(&Binary);
    }
}

message! {
    GET "Get" Struct {
        "row": Binary, required;
        "columns": List(&Struct(&COLUMN));
        "attributes": ATTRIBUTES;
        "filter": Binary;
        "timeRange": Struct(&TIME_RANGE);
        "maxVersions": I32;
        "cacheBlocks": Bool;
        "storeLimit": I32;
        "storeOffset": I32;
        "existenceOnly": Bool;
        "familyRanges": List(&Struct(&FAMILY_RANGE));
        "onDemand": Bool;
    }
}

message! {
    /// A cell to write. `delete` is for mutations that delete.
    WRITTEN_CELL "ColumnValue" Struct {
        "family": Binary, required;
        "qualifier": Binary;
        "value": Binary;
        "timestamp": I64;
        "delete": Enum(&DELETE_TYPE);
    }
}

message! {
    /// `inline` puts the cells inside the message, where Java's client puts those of single
    /// mutations; else they are in the cell block.
    MUTATION "MutationProto" Struct {
        "type": Enum(&MUTATION_TYPE), required;
        "row": Binary, required;
        "cells": List(&Struct(&WRITTEN_CELL));
        "timestamp": I64;
        "attributes": ATTRIBUTES;
        "durability": I32;
        "timeRange": Struct(&TIME_RANGE);
        "nonce": I64;
        "inline": Bool;
    }
}

message! {
    /// Either a filter, or a column and the operand of its comparison: `value` by its bytes,
    /// or a `comparator`.
    CONDITION "Condition" Struct {
        "row": Binary, required;
        "family": Binary;
        "qualifier": Binary;
        "compare": I32;
        "value": Binary;
        "comparator": Binary;
        "timeRange": Struct(&TIME_RANGE);
        "filter": Binary;
    }
}

message! {
    ACTION "Action" Struct {
        "mutation": Struct(&MUTATION);
        "get": Struct(&GET);
    }
}

message! {
    /// Actions of a batch are sent to the regions of their rows. An atomic group and one with a
    /// condition go to the region of their first row; actions on other regions' rows are left out.
    GROUP "RegionAction" Struct {
        "atomic": Bool;
        "condition": Struct(&CONDITION);
        "actions": List(&Struct(&ACTION)), required;
    }
}

message! {
    SCAN "Scan" Struct {
        "startRow": Binary;
        "stopRow": Binary;
        "includeStartRow": Bool;
        "includeStopRow": Bool;
        "columns": List(&Struct(&COLUMN));
        "attributes": ATTRIBUTES;
        "filter": Binary;
        "timeRange": Struct(&TIME_RANGE);
        "maxVersions": I32;
        "cacheBlocks": Bool;
        "batchSize": I32;
        "storeLimit": I32;
        "storeOffset": I32;
        "reversed": Bool;
        "caching": I32;
        "allowPartialResults": Bool;
        "familyRanges": List(&Struct(&FAMILY_RANGE));
        "readType": I32;
        "onDemand": Bool;
        "needCursorResult": Bool;
    }
}

message! {
    /// A cell of an answer. `row` is there only if it is not the result's row.
    READ_CELL "Cell" Struct {
        "row": Binary;
        "family": Binary, required;
        "qualifier": Binary, required;
        "timestamp": I64, required;
        "type": I32, required;
        "value": Binary, required;
        "tags": Binary;
    }
}

message! {
    /// `inline`: the cells were inside the message. `stale` and `partial` are there if true.
    RESULT "Result" Struct {
        "row": Binary;
        "cells": List(&Struct(&READ_CELL));
        "inline": Bool;
        "exists": Bool;
        "stale": Bool;
        "partial": Bool;
    }
}

message! {
    /// An exception inside an answer.
    FAILURE "NameBytesPair" Struct {
        "class": String, required;
        "message": String;
    }
}

message! {
    MUTATED "MutateResponse" Struct {
        "processed": Bool;
        "result": Struct(&RESULT);
    }
}

message! {
    ACTION_RESULT "ResultOrException" Struct {
        "index": I32, required;
        "result": Struct(&RESULT);
        "exception": Struct(&FAILURE);
    }
}

message! {
    /// `results` stand in the order of their indices: servers may answer in another one.
    REGION_RESULT "RegionActionResult" Struct {
        "processed": Bool;
        "exception": Struct(&FAILURE);
        "results": List(&Struct(&ACTION_RESULT)), required;
    }
}

message! {
    MULTI_RESULT "MultiResponse" Struct {
        "processed": Bool;
        "regions": List(&Struct(&REGION_RESULT)), required;
    }
}

message! {
    /// One answer of a scan. `region` counts the regions that were scanned, from 0; `open` says
    /// that the answer has a scanner id. An exception is the last answer.
    FETCHED "ScanResponse" Struct {
        "region": I32, required;
        "open": Bool;
        "results": List(&Struct(&RESULT)), required;
        "moreResults": Bool;
        "moreResultsInRegion": Bool;
        "heartbeat": Bool;
        "cursor": Binary;
        "rowsScanned": I64;
        "rowsFiltered": I64;
        "exception": Struct(&EXCEPTION);
    }
}

message! {
    /// The exception of a response header.
    EXCEPTION "ExceptionResponse" Exception {
        "class": String, required;
        "doNotRetry": Bool, required;
        "message": String;
    }
}

message! {
    GET_ARGS "GetRequest" Struct {
        "table": Binary, required;
        "get": Struct(&GET), required;
        "client": I32;
    }
}

message! {
    MUTATE_ARGS "MutateRequest" Struct {
        "table": Binary, required;
        "mutation": Struct(&MUTATION), required;
        "condition": Struct(&CONDITION);
        "client": I32;
    }
}

message! {
    /// `oldCondition` moves the condition of the first group to the request, where clients before
    /// 2.4 put it.
    MULTI_ARGS "MultiRequest" Struct {
        "table": Binary, required;
        "groups": List(&Struct(&GROUP)), required;
        "oldCondition": Bool;
        "client": I32;
    }
}

message! {
    /// `rows` in each call, `limit` of them in the whole scan. `partials`: the client handles
    /// partial results and heartbeats. `probe`: a code of [`Probe`].
    SCAN_ARGS "ScanRequest" Struct {
        "table": Binary, required;
        "scan": Struct(&SCAN), required;
        "rows": I32, required;
        "calls": I32, required;
        "limit": I32;
        "partials": Bool;
        "metrics": Bool;
        "probe": I32;
        "client": I32;
    }
}

method!("ClientService" GET_METHOD Read "get"(GET_ARGS) -> Struct(&RESULT), "rpc" EXCEPTION);
method!("ClientService" MUTATE_METHOD Write "mutate"(MUTATE_ARGS) -> Struct(&MUTATED), "rpc" EXCEPTION);
method!("ClientService" MULTI_METHOD Write "multi"(MULTI_ARGS) -> Struct(&MULTI_RESULT), "rpc" EXCEPTION);
method!("ClientService" SCAN_METHOD Read "scan"(SCAN_ARGS) -> List(&Struct(&FETCHED)), "rpc" EXCEPTION);

/// The data calls of ClientService.
pub const SERVICE: ServiceDescriptor = ServiceDescriptor {
    name: "ClientService",
    methods: &[&GET_METHOD, &MUTATE_METHOD, &MULTI_METHOD, &SCAN_METHOD],
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes in scripts are positions in these lists.
    #[test]
    fn codes_are_positions() {
        for (code, kind) in ClientKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, code);
        }
        for (code, probe) in Probe::ALL.into_iter().enumerate() {
            assert_eq!(probe as usize, code);
        }
    }
}
