//! Calls of HBase's REST interface as scripts write them.
//!
//! The interface is described like the Thrift services, so that scripts can print, read and shrink its
//! calls. A method is one of HTTP on one resource; the fields are what a client chooses, and the sender of
//! the call writes path, headers and body from them:
//!
//! - keys, columns and values are bytes. `encoding` is the parameter `e`, or with `encodingHeader` the header
//!   `Encoding`; without it keys are percent-encoded.
//! - `accept` and `body` are names of media types ([`super::media::Media::NAMES`]) or a header as it is sent.
//!   Without `accept` there is no such header.
//! - `gzip` packs the body, and accepts packed answers.
//! - cells, schemas and scanners are the same in each media type, so that one call is sent in all of them.
//!
//! An answer with a status of success is a [`REPLY`], any other one the exception `http`.

use basalt_idl::call::ServiceDescriptor;
use basalt_idl::schema::TypeDescriptor;

use crate::described::{message, method};

use TypeDescriptor::{Binary, Bool, I32, I64, List, Map, String, Struct};

const OPTIONS: TypeDescriptor = Map(&Binary, &Binary);

message! {
    /// `row[,stop]` or `row*`, then columns and times: `to`, or `from,to`.
    ROW_PATH "RowPath" Struct {
        "row": Binary, required;
        "stop": Binary;
        "prefix": Bool;
        "columns": List(&Binary);
        "from": I64;
        "to": I64;
    }
}

message! {
    CELL "Cell" Struct {
        "column": Binary;
        "timestamp": I64;
        "value": Binary, required;
    }
}

message! {
    ROW "Row" Struct {
        "key": Binary;
        "cells": List(&Struct(&CELL)), required;
    }
}

message! {
    FAMILY "ColumnSchema" Struct {
        "name": Binary, required;
        "options": OPTIONS;
    }
}

message! {
    SCHEMA "TableSchema" Struct {
        "name": Binary;
        "options": OPTIONS;
        "families": List(&Struct(&FAMILY));
    }
}

message! {
    SCANNER "Scanner" Struct {
        "startRow": Binary;
        "endRow": Binary;
        "columns": List(&Binary);
        "batch": I32;
        "startTime": I64;
        "endTime": I64;
        "filter": String;
        "maxVersions": I32;
        "caching": I32;
        "cacheBlocks": Bool;
    }
}

message! {
    REGION "Region" Struct {
        "name": Binary;
        "id": I64;
        "startKey": Binary, required;
        "endKey": Binary, required;
        "location": Binary;
    }
}

message! {
    /// The parts that an answer has. `type` is the header Content-Type, `location` the path of the header,
    /// `unreadable` says that the body is not what the type promises.
    REPLY "Reply" Struct {
        "status": I32, required;
        "type": Binary;
        "location": Binary;
        "noCache": Bool;
        "row": Binary;
        "column": Binary;
        "timestamp": I64;
        "value": Binary;
        "rows": List(&Struct(&ROW));
        "names": List(&Binary);
        "schema": Struct(&SCHEMA);
        "regions": List(&Struct(&REGION));
        "properties": OPTIONS;
        "unreadable": String;
    }
}

message! {
    /// An answer whose status is not one of success; its text is for people.
    FAILURE "HttpStatus" Exception {
        "status": I32, required;
        "message": String;
    }
}

message! {
    GET_ARGS "Get" Struct {
        "table": Binary, required;
        "path": Struct(&ROW_PATH), required;
        "versions": I32;
        "nocache": Bool;
        "head": Bool;
        "encoding": Binary;
        "encodingHeader": Bool;
        "accept": Binary;
        "gzip": Bool;
    }
}

message! {
    GET_ROWS_ARGS "MultiGet" Struct {
        "table": Binary, required;
        "columns": List(&Binary);
        "rows": List(&Struct(&ROW_PATH)), required;
        "versions": I32;
        "filter": Binary;
        "filterEncoded": Bool;
        "encoding": Binary;
        "accept": Binary;
        "gzip": Bool;
    }
}

message! {
    PUT_ARGS "Put" Struct {
        "table": Binary, required;
        "path": Struct(&ROW_PATH), required;
        "rows": List(&Struct(&ROW)), required;
        "check": Binary;
        "returns": Bool;
        "post": Bool;
        "encoding": Binary;
        "body": Binary, required;
        "accept": Binary;
        "gzip": Bool;
    }
}

message! {
    PUT_VALUE_ARGS "PutValue" Struct {
        "table": Binary, required;
        "path": Struct(&ROW_PATH), required;
        "value": Binary, required;
        "xRow": Binary;
        "xColumn": Binary;
        "xTimestamp": I64;
        "post": Bool;
        "encoding": Binary;
    }
}

message! {
    DELETE_ARGS "Delete" Struct {
        "table": Binary, required;
        "path": Struct(&ROW_PATH), required;
        "check": Binary;
        "encoding": Binary;
    }
}

message! {
    /// A stateless scan.
    SCAN_ARGS "TableScan" Struct {
        "table": Binary, required;
        "prefix": Binary, required;
        "startRow": Binary;
        "endRow": Binary;
        "columns": List(&Binary);
        "limit": I64;
        "batchSize": I32;
        "maxVersions": I32;
        "startTime": I64;
        "endTime": I64;
        "cacheBlocks": Bool;
        "reversed": Bool;
        "filter": Binary;
        "filterEncoded": Bool;
        "accept": Binary, required;
        "gzip": Bool;
    }
}

message! {
    OPEN_ARGS "OpenScanner" Struct {
        "table": Binary, required;
        "scanner": Struct(&SCANNER), required;
        "post": Bool;
        "body": Binary, required;
    }
}

message! {
    /// `rows` and `cells` are the parameters `n` and `c`.
    FETCH_ARGS "FetchScanner" Struct {
        "scanner": I32, required;
        "rows": I32;
        "cells": I32;
        "accept": Binary;
        "gzip": Bool;
    }
}

message! {
    CLOSE_ARGS "CloseScanner" Struct {
        "scanner": I32, required;
    }
}

message! {
    /// The resource of a table or namespace, or of the server.
    NAMED_ARGS "Named" Struct {
        "name": Binary, required;
        "accept": Binary;
        "gzip": Bool;
    }
}

message! {
    UNNAMED_ARGS "Unnamed" Struct {
        "accept": Binary;
        "gzip": Bool;
    }
}

message! {
    SCHEMA_ARGS "PutSchema" Struct {
        "name": Binary, required;
        "schema": Struct(&SCHEMA), required;
        "post": Bool;
        "body": Binary, required;
    }
}

message! {
    NAMESPACE_ARGS "PutNamespace" Struct {
        "name": Binary, required;
        "properties": OPTIONS;
        "body": Binary;
    }
}

message! {
    /// Any request. A success is compared by its status and media type only.
    SEND_ARGS "Send" Struct {
        "method": Binary, required;
        "path": Binary, required;
        "accept": Binary;
        "type": Binary;
        "body": Binary;
    }
}

/// Declares methods of the service.
macro_rules! methods {
    ($($constant:ident $class:ident $name:literal($args:ident) -> $returns:expr;)*) => {
        $(method!("REST" $constant $class $name($args) -> $returns, "http" FAILURE);)*
        /// The resources of the interface.
        pub const SERVICE: ServiceDescriptor = ServiceDescriptor {
            name: "REST",
            methods: &[$(&$constant),*],
        };
    };
}

methods! {
    GET Read "get"(GET_ARGS) -> Struct(&REPLY);
    GET_ROWS Read "getRows"(GET_ROWS_ARGS) -> Struct(&REPLY);
    PUT Write "put"(PUT_ARGS) -> Struct(&REPLY);
    PUT_VALUE Write "putValue"(PUT_VALUE_ARGS) -> Struct(&REPLY);
    DELETE Write "delete"(DELETE_ARGS) -> Struct(&REPLY);
    SCAN Read "scan"(SCAN_ARGS) -> Struct(&REPLY);
    OPEN Read "openScanner"(OPEN_ARGS) -> I32;
    FETCH Read "getScanner"(FETCH_ARGS) -> Struct(&REPLY);
    CLOSE Read "closeScanner"(CLOSE_ARGS) -> Struct(&REPLY);
    EXISTS Read "exists"(NAMED_ARGS) -> Struct(&REPLY);
    REGIONS Read "getRegions"(NAMED_ARGS) -> Struct(&REPLY);
    GET_SCHEMA Read "getSchema"(NAMED_ARGS) -> Struct(&REPLY);
    PUT_SCHEMA Write "putSchema"(SCHEMA_ARGS) -> Struct(&REPLY);
    DELETE_TABLE Write "deleteTable"(NAMED_ARGS) -> Struct(&REPLY);
    LIST_TABLES Read "listTables"(UNNAMED_ARGS) -> Struct(&REPLY);
    LIST_NAMESPACES Read "listNamespaces"(UNNAMED_ARGS) -> Struct(&REPLY);
    LIST_NAMESPACE_TABLES Read "listNamespaceTables"(NAMED_ARGS) -> Struct(&REPLY);
    GET_NAMESPACE Read "getNamespace"(NAMED_ARGS) -> Struct(&REPLY);
    CREATE_NAMESPACE Write "createNamespace"(NAMESPACE_ARGS) -> Struct(&REPLY);
    MODIFY_NAMESPACE Write "modifyNamespace"(NAMESPACE_ARGS) -> Struct(&REPLY);
    DELETE_NAMESPACE Write "deleteNamespace"(NAMED_ARGS) -> Struct(&REPLY);
    SEND Write "send"(SEND_ARGS) -> Struct(&REPLY);
}
