//! A server's answers about itself: tables, regions, versions, and the status of the cluster.

use std::fmt::{Display, Write as _};

use prost::Message;
use serde::Serialize;

use super::namespace::{lines, to_json};
use super::to_i32;
use super::xml::Document;
use crate::encoding::encode_base64;
use crate::media::Media;

/// The names of tables.
#[derive(Clone, Debug, Default)]
pub struct Tables(pub Vec<String>);

#[derive(Serialize)]
struct JsonTables<'t> {
    table: Vec<JsonTable<'t>>,
}

#[derive(Serialize)]
struct JsonTable<'t> {
    name: &'t str,
}

#[derive(Clone, PartialEq, Message)]
struct PbTables {
    #[prost(string, repeated, tag = "1")]
    name: Vec<String>,
}

impl Tables {
    /// The body of an answer.
    pub fn encode(&self, media: Media) -> Vec<u8> {
        match media {
            Media::Json => to_json(&JsonTables {
                table: self.0.iter().map(|name| JsonTable { name }).collect(),
            }),
            Media::Xml => {
                let mut document = Document::new();
                document.begin("TableList", &[]);
                self.0
                    .iter()
                    .for_each(|name| document.empty("table", &[("name", name)]));
                document.end("TableList");
                document.finish().into_bytes()
            }
            Media::Protobuf | Media::ProtobufIetf => PbTables { name: self.0.clone() }.encode_to_vec(),
            Media::Text | Media::Binary => lines(&self.0).into_bytes(),
        }
    }
}

/// A region of a table.
#[derive(Clone, Debug, Default)]
pub struct Region {
    /// Its whole name.
    pub name: String,
    /// When it was made, in milliseconds.
    pub id: u64,
    /// Its first key.
    pub start_key: Vec<u8>,
    /// The key behind its last one.
    pub end_key: Vec<u8>,
    /// Host and port of its server.
    pub location: String,
}

/// The regions of a table.
#[derive(Clone, Debug, Default)]
pub struct TableRegions {
    /// Name of the table.
    pub name: String,
    /// Its regions, by key.
    pub regions: Vec<Region>,
}

#[derive(Serialize)]
struct JsonRegions<'t> {
    name: &'t str,
    #[serde(rename = "Region")]
    regions: Vec<JsonRegion<'t>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonRegion<'t> {
    id: u64,
    start_key: String,
    end_key: String,
    location: &'t str,
    name: &'t str,
}

#[derive(Clone, PartialEq, Message)]
struct PbRegions {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    regions: Vec<PbRegion>,
}

#[derive(Clone, PartialEq, Message)]
struct PbRegion {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(bytes = "vec", optional, tag = "2")]
    start_key: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    end_key: Option<Vec<u8>>,
    #[prost(int64, optional, tag = "4")]
    id: Option<i64>,
    #[prost(string, optional, tag = "5")]
    location: Option<String>,
}

impl TableRegions {
    /// The body of an answer.
    pub fn encode(&self, media: Media) -> Vec<u8> {
        match media {
            Media::Json => to_json(&JsonRegions {
                name: &self.name,
                regions: self.regions.iter().map(JsonRegion::of).collect(),
            }),
            Media::Xml => {
                let mut document = Document::new();
                document.begin("TableInfo", &[("name", &self.name)]);
                for region in &self.regions {
                    let shown = JsonRegion::of(region);
                    document.empty(
                        "Region",
                        &[
                            ("endKey", &shown.end_key),
                            ("id", &shown.id),
                            ("location", &shown.location),
                            ("name", &shown.name),
                            ("startKey", &shown.start_key),
                        ],
                    );
                }
                document.end("TableInfo");
                document.finish().into_bytes()
            }
            Media::Protobuf | Media::ProtobufIetf => PbRegions {
                name: self.name.clone(),
                regions: self.regions.iter().map(PbRegion::of).collect(),
            }
            .encode_to_vec(),
            Media::Text | Media::Binary => self.to_string().into_bytes(),
        }
    }
}

impl Display for TableRegions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for region in &self.regions {
            writeln!(
                f,
                "{} [\n  id={}\n  startKey='{}'\n  endKey='{}'\n  location='{}'\n]",
                region.name,
                region.id,
                region.start_key.escape_ascii(),
                region.end_key.escape_ascii(),
                region.location
            )?;
        }
        Ok(())
    }
}

impl<'r> JsonRegion<'r> {
    fn of(region: &'r Region) -> Self {
        Self {
            id: region.id,
            start_key: encode_base64(&region.start_key),
            end_key: encode_base64(&region.end_key),
            location: &region.location,
            name: &region.name,
        }
    }
}

impl PbRegion {
    fn of(region: &Region) -> Self {
        Self {
            name: region.name.clone(),
            start_key: Some(region.start_key.clone()),
            end_key: Some(region.end_key.clone()),
            id: Some(region.id as i64),
            location: Some(region.location.clone()),
        }
    }
}

/// The version of the REST interface and of the program behind it.
#[derive(Clone, Debug)]
pub struct Version {
    /// Name and version of the server, where HBase has its servlet container.
    pub server: String,
    /// The version of the program.
    pub version: String,
    /// The commit that was built.
    pub revision: String,
    /// The runtime that it names, as HBase names its Java machine.
    pub jvm: String,
    /// The operating system.
    pub os: String,
}

/// HBase's version of the REST interface.
pub const REST_VERSION: &str = "0.0.3";

#[derive(Serialize)]
struct JsonVersion<'v> {
    #[serde(rename = "Server")]
    server: &'v str,
    #[serde(rename = "Jersey")]
    jersey: &'v str,
    #[serde(rename = "Version")]
    version: &'v str,
    #[serde(rename = "Revision")]
    revision: &'v str,
    #[serde(rename = "REST")]
    rest: &'v str,
    #[serde(rename = "JVM")]
    jvm: &'v str,
    #[serde(rename = "OS")]
    os: &'v str,
}

#[derive(Clone, PartialEq, Message)]
struct PbVersion {
    #[prost(string, tag = "1")]
    rest: String,
    #[prost(string, tag = "2")]
    jvm: String,
    #[prost(string, tag = "3")]
    os: String,
    #[prost(string, tag = "4")]
    server: String,
    #[prost(string, tag = "5")]
    jersey: String,
    #[prost(string, tag = "6")]
    version: String,
    #[prost(string, tag = "7")]
    revision: String,
}

impl Version {
    /// The body of an answer.
    pub fn encode(&self, media: Media) -> Vec<u8> {
        match media {
            Media::Json => to_json(&JsonVersion {
                server: &self.server,
                jersey: "",
                version: &self.version,
                revision: &self.revision,
                rest: REST_VERSION,
                jvm: &self.jvm,
                os: &self.os,
            }),
            Media::Xml => {
                let mut document = Document::new();
                document.empty(
                    "Version",
                    &[
                        ("JVM", &self.jvm),
                        ("Jersey", &""),
                        ("OS", &self.os),
                        ("REST", &REST_VERSION),
                        ("Revision", &self.revision),
                        ("Server", &self.server),
                        ("Version", &self.version),
                    ],
                );
                document.finish().into_bytes()
            }
            Media::Protobuf | Media::ProtobufIetf => PbVersion {
                rest: REST_VERSION.to_owned(),
                jvm: self.jvm.clone(),
                os: self.os.clone(),
                server: self.server.clone(),
                jersey: String::new(),
                version: self.version.clone(),
                revision: self.revision.clone(),
            }
            .encode_to_vec(),
            Media::Text | Media::Binary => format!(
                "rest {REST_VERSION} [JVM: {}] [OS: {}] [Server: {}] [Jersey: ] [Version: {}] [Revision: {}]\n",
                self.jvm, self.os, self.server, self.version, self.revision
            )
            .into_bytes(),
        }
    }
}

/// The body of an answer with the cluster's version.
pub fn encode_cluster_version(version: &str, media: Media) -> Vec<u8> {
    #[derive(Serialize)]
    struct Json<'v> {
        #[serde(rename = "Version")]
        version: &'v str,
    }
    match media {
        Media::Json => to_json(&Json { version }),
        Media::Xml => {
            let mut document = Document::new();
            document.empty("ClusterVersion", &[("Version", &version)]);
            document.finish().into_bytes()
        }
        _ => format!("{version}\n").into_bytes(),
    }
}

/// The status of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// Its servers.
    pub nodes: Vec<Node>,
}

/// A server of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Host and port.
    pub name: String,
    /// When it started, in milliseconds.
    pub start_code: i64,
    /// Requests in a second.
    pub requests: u64,
    /// Memory in use.
    pub heap_size_mb: u64,
    /// Memory that it may use.
    pub max_heap_size_mb: u64,
    /// The loads of its regions.
    pub regions: Vec<RegionLoad>,
}

/// The load of a region.
#[derive(Clone, Debug, Default)]
pub struct RegionLoad {
    /// Its whole name.
    pub name: Vec<u8>,
    /// Families.
    pub stores: u64,
    /// Store files.
    pub storefiles: u64,
    /// Their size.
    pub storefile_size_mb: u64,
    /// Their root indexes.
    pub storefile_index_size_kb: u64,
    /// Rows read.
    pub read_requests: u64,
    /// Rows written.
    pub write_requests: u64,
    /// Root indexes.
    pub root_index_size_kb: u64,
    /// All indexes.
    pub total_static_index_size_kb: u64,
    /// Bloom filters.
    pub total_static_bloom_size_kb: u64,
    /// Memory of its memstores.
    pub memstore_size_mb: u64,
}

#[derive(Serialize)]
struct JsonStatus<'s> {
    #[serde(rename = "LiveNodes")]
    live: Vec<JsonNode<'s>>,
    #[serde(rename = "DeadNodes")]
    dead: [&'static str; 0],
    regions: usize,
    requests: u64,
    #[serde(rename = "averageLoad")]
    average_load: f64,
}

#[derive(Serialize)]
struct JsonNode<'s> {
    name: &'s str,
    #[serde(rename = "startCode")]
    start_code: i64,
    requests: u64,
    #[serde(rename = "heapSizeMB")]
    heap_size_mb: u64,
    #[serde(rename = "maxHeapSizeMB")]
    max_heap_size_mb: u64,
    #[serde(rename = "Region")]
    regions: Vec<JsonLoad>,
}

#[derive(Serialize)]
struct JsonLoad {
    name: String,
    stores: u64,
    storefiles: u64,
    #[serde(rename = "storefileSizeMB")]
    storefile_size_mb: u64,
    #[serde(rename = "storefileIndexSizeKB")]
    storefile_index_size_kb: u64,
    #[serde(rename = "readRequestsCount")]
    read_requests: u64,
    #[serde(rename = "writeRequestsCount")]
    write_requests: u64,
    #[serde(rename = "rootIndexSizeKB")]
    root_index_size_kb: u64,
    #[serde(rename = "totalStaticIndexSizeKB")]
    total_static_index_size_kb: u64,
    #[serde(rename = "totalStaticBloomSizeKB")]
    total_static_bloom_size_kb: u64,
    #[serde(rename = "totalCompactingKVs")]
    total_compacting_kvs: u64,
    #[serde(rename = "currentCompactedKVs")]
    current_compacted_kvs: u64,
    #[serde(rename = "memStoreSizeMB")]
    memstore_size_mb: u64,
}

impl JsonLoad {
    fn of(load: &RegionLoad) -> Self {
        Self {
            name: encode_base64(&load.name),
            stores: load.stores,
            storefiles: load.storefiles,
            storefile_size_mb: load.storefile_size_mb,
            storefile_index_size_kb: load.storefile_index_size_kb,
            read_requests: load.read_requests,
            write_requests: load.write_requests,
            root_index_size_kb: load.root_index_size_kb,
            total_static_index_size_kb: load.total_static_index_size_kb,
            total_static_bloom_size_kb: load.total_static_bloom_size_kb,
            total_compacting_kvs: 0,
            current_compacted_kvs: 0,
            memstore_size_mb: load.memstore_size_mb,
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct PbStatus {
    #[prost(message, repeated, tag = "1")]
    live_nodes: Vec<PbNode>,
    #[prost(string, repeated, tag = "2")]
    dead_nodes: Vec<String>,
    #[prost(int32, optional, tag = "3")]
    regions: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    requests: Option<i64>,
    #[prost(double, optional, tag = "5")]
    average_load: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct PbNode {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int64, optional, tag = "2")]
    start_code: Option<i64>,
    #[prost(int64, optional, tag = "3")]
    requests: Option<i64>,
    #[prost(int32, optional, tag = "4")]
    heap_size_mb: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    max_heap_size_mb: Option<i32>,
    #[prost(message, repeated, tag = "6")]
    regions: Vec<PbLoad>,
}

#[derive(Clone, PartialEq, Message)]
struct PbLoad {
    #[prost(bytes = "vec", tag = "1")]
    name: Vec<u8>,
    #[prost(int32, optional, tag = "2")]
    stores: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    storefiles: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    storefile_size_mb: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    memstore_size_mb: Option<i32>,
    #[prost(int64, optional, tag = "6")]
    storefile_index_size_kb: Option<i64>,
    #[prost(int64, optional, tag = "7")]
    read_requests: Option<i64>,
    #[prost(int64, optional, tag = "8")]
    write_requests: Option<i64>,
    #[prost(int32, optional, tag = "9")]
    root_index_size_kb: Option<i32>,
    #[prost(int32, optional, tag = "10")]
    total_static_index_size_kb: Option<i32>,
    #[prost(int32, optional, tag = "11")]
    total_static_bloom_size_kb: Option<i32>,
    #[prost(int64, optional, tag = "12")]
    total_compacting_kvs: Option<i64>,
    #[prost(int64, optional, tag = "13")]
    current_compacted_kvs: Option<i64>,
}

impl PbLoad {
    fn of(load: &RegionLoad) -> Self {
        let int = |number| Some(to_i32(number));
        let long = |number: u64| Some(number as i64);
        Self {
            name: load.name.clone(),
            stores: int(load.stores),
            storefiles: int(load.storefiles),
            storefile_size_mb: int(load.storefile_size_mb),
            memstore_size_mb: int(load.memstore_size_mb),
            storefile_index_size_kb: long(load.storefile_index_size_kb),
            read_requests: long(load.read_requests),
            write_requests: long(load.write_requests),
            root_index_size_kb: int(load.root_index_size_kb),
            total_static_index_size_kb: int(load.total_static_index_size_kb),
            total_static_bloom_size_kb: int(load.total_static_bloom_size_kb),
            total_compacting_kvs: Some(0),
            current_compacted_kvs: Some(0),
        }
    }
}

impl Status {
    fn regions(&self) -> usize {
        self.nodes.iter().map(|node| node.regions.len()).sum()
    }

    fn requests(&self) -> u64 {
        self.nodes.iter().map(|node| node.requests).sum()
    }

    /// Regions of a server.
    fn average_load(&self) -> f64 {
        self.regions() as f64 / self.nodes.len().max(1) as f64
    }

    /// The body of an answer.
    pub fn encode(&self, media: Media) -> Vec<u8> {
        match media {
            Media::Json => to_json(&JsonStatus {
                live: self.nodes.iter().map(JsonNode::of).collect(),
                dead: [],
                regions: self.regions(),
                requests: self.requests(),
                average_load: self.average_load(),
            }),
            Media::Xml => self.to_xml().into_bytes(),
            Media::Protobuf | Media::ProtobufIetf => PbStatus {
                live_nodes: self.nodes.iter().map(PbNode::of).collect(),
                dead_nodes: Vec::new(),
                regions: Some(to_i32(self.regions() as u64)),
                requests: Some(self.requests() as i64),
                average_load: Some(self.average_load()),
            }
            .encode_to_vec(),
            Media::Text | Media::Binary => self.to_string().into_bytes(),
        }
    }

    fn to_xml(&self) -> String {
        let mut document = Document::new();
        document.begin(
            "ClusterStatus",
            &[
                ("averageLoad", &format_args!("{:?}", self.average_load())),
                ("regions", &self.regions()),
                ("requests", &self.requests()),
            ],
        );
        document.empty("DeadNodes", &[]);
        document.begin("LiveNodes", &[]);
        for node in &self.nodes {
            document.begin(
                "Node",
                &[
                    ("heapSizeMB", &node.heap_size_mb),
                    ("maxHeapSizeMB", &node.max_heap_size_mb),
                    ("name", &node.name),
                    ("requests", &node.requests),
                    ("startCode", &node.start_code),
                ],
            );
            for region in &node.regions {
                let load = JsonLoad::of(region);
                document.empty(
                    "Region",
                    &[
                        ("currentCompactedKVs", &load.current_compacted_kvs),
                        ("memStoreSizeMB", &load.memstore_size_mb),
                        ("name", &load.name),
                        ("readRequestsCount", &load.read_requests),
                        ("rootIndexSizeKB", &load.root_index_size_kb),
                        ("storefileIndexSizeKB", &load.storefile_index_size_kb),
                        ("storefileSizeMB", &load.storefile_size_mb),
                        ("storefiles", &load.storefiles),
                        ("stores", &load.stores),
                        ("totalCompactingKVs", &load.total_compacting_kvs),
                        ("totalStaticBloomSizeKB", &load.total_static_bloom_size_kb),
                        ("totalStaticIndexSizeKB", &load.total_static_index_size_kb),
                        ("writeRequestsCount", &load.write_requests),
                    ],
                );
            }
            document.end("Node");
        }
        document.end("LiveNodes");
        document.end("ClusterStatus");
        document.finish()
    }
}

impl<'s> JsonNode<'s> {
    fn of(node: &'s Node) -> Self {
        Self {
            name: &node.name,
            start_code: node.start_code,
            requests: node.requests,
            heap_size_mb: node.heap_size_mb,
            max_heap_size_mb: node.max_heap_size_mb,
            regions: node.regions.iter().map(JsonLoad::of).collect(),
        }
    }
}

impl PbNode {
    fn of(node: &Node) -> Self {
        Self {
            name: node.name.clone(),
            start_code: Some(node.start_code),
            requests: Some(node.requests as i64),
            heap_size_mb: Some(to_i32(node.heap_size_mb)),
            max_heap_size_mb: Some(to_i32(node.max_heap_size_mb)),
            regions: node.regions.iter().map(PbLoad::of).collect(),
        }
    }
}

impl Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{} live servers, 0 dead servers, {:.4} average load\n",
            self.nodes.len(),
            self.average_load()
        )?;
        for node in &self.nodes {
            writeln!(
                f,
                "{} {}\n    requests={}, regions={}, heapSizeMB={}, maxHeapSizeMB={}\n",
                node.name,
                node.start_code,
                node.requests,
                node.regions.len(),
                node.heap_size_mb,
                node.max_heap_size_mb
            )?;
            for region in &node.regions {
                writeln!(
                    f,
                    "    {}\n        stores={}, storefiles={}, storefileSizeMB={}, memStoreSizeMB={}, readRequestsCount={}, \
                     writeRequestsCount={}",
                    region.name.escape_ascii(),
                    region.stores,
                    region.storefiles,
                    region.storefile_size_mb,
                    region.memstore_size_mb,
                    region.read_requests,
                    region.write_requests
                )?;
            }
            f.write_char('\n')?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn tables_and_regions_have_hbases_forms() {
        let tables = Tables(vec!["t".to_owned()]);
        assert_eq!(text(tables.encode(Media::Json)), r#"{"table":[{"name":"t"}]}"#);
        assert!(text(tables.encode(Media::Xml)).ends_with("<TableList><table name=\"t\"/></TableList>"));
        assert_eq!(text(tables.encode(Media::Text)), "t\n");
        assert_eq!(tables.encode(Media::Protobuf), b"\n\x01t");
        let regions = TableRegions {
            name: "t".to_owned(),
            regions: vec![Region {
                name: "t,,1.ab.".to_owned(),
                id: 1,
                start_key: Vec::new(),
                end_key: b"\xff".to_vec(),
                location: "h:1".to_owned(),
            }],
        };
        assert_eq!(
            text(regions.encode(Media::Json)),
            r#"{"name":"t","Region":[{"id":1,"startKey":"","endKey":"/w==","location":"h:1","name":"t,,1.ab."}]}"#
        );
        assert!(
            text(regions.encode(Media::Xml)).contains("<Region endKey=\"/w==\" id=\"1\" location=\"h:1\"")
        );
        assert!(text(regions.encode(Media::Text)).contains("endKey='\\xff'"));
        assert_eq!(
            PbRegions::decode(&regions.encode(Media::Protobuf)[..])
                .unwrap()
                .regions[0]
                .id,
            Some(1)
        );
    }

    #[test]
    fn versions_have_hbases_forms() {
        let version = Version {
            server: "s".to_owned(),
            version: "v".to_owned(),
            revision: "r".to_owned(),
            jvm: "j".to_owned(),
            os: "o".to_owned(),
        };
        assert_eq!(
            text(version.encode(Media::Json)),
            r#"{"Server":"s","Jersey":"","Version":"v","Revision":"r","REST":"0.0.3","JVM":"j","OS":"o"}"#
        );
        assert_eq!(
            text(version.encode(Media::Text)),
            "rest 0.0.3 [JVM: j] [OS: o] [Server: s] [Jersey: ] [Version: v] [Revision: r]\n"
        );
        assert!(text(version.encode(Media::Xml)).ends_with("Revision=\"r\" Server=\"s\" Version=\"v\"/>"));
        assert_eq!(
            PbVersion::decode(&version.encode(Media::Protobuf)[..])
                .unwrap()
                .revision,
            "r"
        );
        assert_eq!(
            text(encode_cluster_version("2", Media::Json)),
            r#"{"Version":"2"}"#
        );
        assert!(text(encode_cluster_version("2", Media::Xml)).ends_with("<ClusterVersion Version=\"2\"/>"));
        assert_eq!(text(encode_cluster_version("2", Media::Text)), "2\n");
    }

    #[test]
    fn the_status_has_hbases_forms() {
        let status = Status {
            nodes: vec![Node {
                name: "h:1".to_owned(),
                start_code: 5,
                requests: 7,
                regions: vec![
                    RegionLoad {
                        name: b"t,,1.".to_vec(),
                        stores: 2,
                        ..RegionLoad::default()
                    };
                    3
                ],
                ..Node::default()
            }],
        };
        let json = text(status.encode(Media::Json));
        assert!(
            json.starts_with(r#"{"LiveNodes":[{"name":"h:1","startCode":5,"requests":7,"heapSizeMB":0,"#)
        );
        assert!(
            json.ends_with(r#""DeadNodes":[],"regions":3,"requests":7,"averageLoad":3.0}"#),
            "{json}"
        );
        let xml = text(status.encode(Media::Xml));
        assert!(xml.contains(
            "<ClusterStatus averageLoad=\"3.0\" regions=\"3\" requests=\"7\"><DeadNodes/><LiveNodes><Node"
        ));
        let read = PbStatus::decode(&status.encode(Media::ProtobufIetf)[..]).unwrap();
        assert_eq!(
            (read.regions, read.live_nodes[0].regions[0].stores),
            (Some(3), Some(2))
        );
        assert!(
            text(status.encode(Media::Text))
                .starts_with("1 live servers, 0 dead servers, 3.0000 average load\n")
        );
    }
}
