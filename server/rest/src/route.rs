//! Which resource a path means.
//!
//! Literal words win over rows, and are compared before anything is decoded: `%73chema` and `//schema`
//! are rows. A trailing slash and everything behind a semicolon are left out, as in HBase.

use crate::encoding::decode_percent;
use crate::row_path::cut_star;

/// A resource. Names of tables and namespaces are decoded; columns, rows and prefixes are not, since their
/// encoding may be in the query or in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `/`: the tables.
    Tables,
    /// `/version`, `/version/rest`.
    Version,
    /// `/version/cluster`.
    ClusterVersion,
    /// `/status/cluster`.
    Status,
    /// `/namespaces`.
    Namespaces,
    /// `/namespaces/{namespace}`.
    Namespace(String),
    /// `/namespaces/{namespace}/tables`.
    NamespaceTables(String),
    /// `/{table}/exists`.
    Exists(Vec<u8>),
    /// `/{table}/regions`.
    Regions(Vec<u8>),
    /// `/{table}/schema`.
    Schema(Vec<u8>),
    /// `/{table}/multiget`, with the columns.
    Multiget(Vec<u8>, String),
    /// `/{table}/scanner`.
    Scanners(Vec<u8>),
    /// `/{table}/scanner/{id}`.
    Scanner(Vec<u8>, String),
    /// `/{table}/{prefix}*`, with the prefix.
    Scan(Vec<u8>, String),
    /// `/{table}/{row}[/{columns}[/{times}]]`.
    Rows(Vec<u8>, String),
    /// Nothing.
    Unknown,
}

impl Route {
    /// The resource of a path, still percent-encoded.
    pub fn of(path: &str) -> Self {
        let path = without_parameters(path);
        let path = path.strip_prefix('/').unwrap_or(&path);
        let path = path.strip_suffix('/').unwrap_or(path);
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        match (first, rest) {
            ("", "") => Self::Tables,
            ("version", "" | "rest") => Self::Version,
            ("version", "cluster") => Self::ClusterVersion,
            ("status", "cluster") => Self::Status,
            ("namespaces", "") => Self::Namespaces,
            ("namespaces", rest) => of_namespace(rest),
            ("version" | "", _) | (_, "") => Self::Unknown,
            (table, rest) => of_table(decode_percent(table.as_bytes()), rest),
        }
    }
}

impl Route {
    /// The table of the resource, if it is one of a table.
    pub fn table(&self) -> Option<&[u8]> {
        match self {
            Self::Exists(table)
            | Self::Regions(table)
            | Self::Schema(table)
            | Self::Multiget(table, _)
            | Self::Scanners(table)
            | Self::Scanner(table, _)
            | Self::Scan(table, _)
            | Self::Rows(table, _) => Some(table),
            _ => None,
        }
    }
}

fn of_namespace(rest: &str) -> Route {
    let name = |text: &str| String::from_utf8_lossy(&decode_percent(text.as_bytes())).into_owned();
    match rest.split_once('/') {
        None => Route::Namespace(name(rest)),
        Some((namespace, "tables")) => Route::NamespaceTables(name(namespace)),
        Some(_) => Route::Unknown,
    }
}

fn of_table(table: Vec<u8>, rest: &str) -> Route {
    let (first, below) = match rest.split_once('/') {
        None => (rest, None),
        Some((first, below)) => (first, Some(below)),
    };
    match (first, below) {
        ("exists", None) => Route::Exists(table),
        ("regions", None) => Route::Regions(table),
        ("schema", None) => Route::Schema(table),
        ("scanner", None) => Route::Scanners(table),
        ("scanner", Some(id)) if !id.contains('/') => Route::Scanner(table, id.to_owned()),
        ("exists" | "regions" | "schema" | "scanner", _) => Route::Unknown,
        (multiget, columns) if multiget.starts_with("multiget") => {
            Route::Multiget(table, columns.unwrap_or_default().to_owned())
        }
        _ => match cut_star(rest.as_bytes()) {
            // The star is ASCII, so the cut is between letters.
            Some(prefix) => Route::Scan(table, rest[..prefix.len()].to_owned()),
            None => Route::Rows(table, rest.to_owned()),
        },
    }
}

/// The path without the part of each segment that is behind a semicolon.
fn without_parameters(path: &str) -> std::borrow::Cow<'_, str> {
    if !path.contains(';') {
        return path.into();
    }
    let segments: Vec<&str> = path
        .split('/')
        .map(|segment| segment.split(';').next().unwrap_or_default())
        .collect();
    segments.join("/").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_words_win_before_decoding() {
        let t = || b"t".to_vec();
        let text = |text: &str| text.to_owned();
        for (path, route) in [
            ("/", Route::Tables),
            ("", Route::Tables),
            ("/version", Route::Version),
            ("/version/", Route::Version),
            ("/version/rest", Route::Version),
            ("/version/cluster", Route::ClusterVersion),
            ("/version/r", Route::Unknown),
            (
                "/default:version/r",
                Route::Rows(b"default:version".to_vec(), text("r")),
            ),
            ("/status/cluster", Route::Status),
            ("/status/r", Route::Rows(b"status".to_vec(), text("r"))),
            ("/namespaces", Route::Namespaces),
            ("/namespaces/n", Route::Namespace(text("n"))),
            ("/namespaces/n/tables", Route::NamespaceTables(text("n"))),
            ("/namespaces/n/x", Route::Unknown),
            ("/t", Route::Unknown),
            ("/t/exists", Route::Exists(t())),
            ("/t/regions/", Route::Regions(t())),
            ("/ns%3At/schema", Route::Schema(b"ns:t".to_vec())),
            ("/t/schema;x=1", Route::Schema(t())),
            ("/t/schema/x", Route::Unknown),
            ("/t/%73chema", Route::Rows(t(), text("%73chema"))),
            ("/t//schema", Route::Rows(t(), text("/schema"))),
            ("/t/scanner", Route::Scanners(t())),
            ("/t/scanner/17ab", Route::Scanner(t(), text("17ab"))),
            ("/t/multiget", Route::Multiget(t(), String::new())),
            ("/t/multiget/f:a,g", Route::Multiget(t(), text("f:a,g"))),
            ("/t/*", Route::Scan(t(), String::new())),
            ("/t/p*", Route::Scan(t(), text("p"))),
            ("/t/p%2A", Route::Scan(t(), text("p"))),
            ("/t/p*/f:q", Route::Rows(t(), text("p*/f:q"))),
            ("/t/r/f:q/5", Route::Rows(t(), text("r/f:q/5"))),
            ("/t/r/", Route::Rows(t(), text("r"))),
            ("/t;a/r;b=2/f:q", Route::Rows(t(), text("r/f:q"))),
        ] {
            assert_eq!(Route::of(path), route, "{path}");
        }
    }
}
