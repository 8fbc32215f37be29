//! Media types, by the names that scripts have for them.

/// A media type of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// Lines for people.
    Text,
    /// XML.
    Xml,
    /// JSON.
    Json,
    /// Protobuf, by its older name or by the newer one.
    Protobuf,
    /// One value.
    Binary,
}

impl Media {
    /// The names in scripts, with the headers that they stand for.
    pub const NAMES: [(&'static str, &'static str); 7] = [
        ("text", "text/plain"),
        ("xml", "text/xml"),
        ("json", "application/json"),
        ("protobuf", "application/x-protobuf"),
        ("protobuf-ietf", "application/protobuf"),
        ("binary", "application/octet-stream"),
        ("any", "*/*"),
    ];

    /// The header that a name stands for; any other text is a header itself.
    pub(super) fn header(name: &str) -> &str {
        let known = Self::NAMES.iter().find(|(own, _)| *own == name);
        known.map_or(name, |(_, header)| header)
    }

    /// The media type of a header or of a name in scripts.
    pub(super) fn of(header: &str) -> Option<Self> {
        let header = Self::header(header);
        match header.split(';').next().unwrap_or_default().trim() {
            "text/plain" => Some(Self::Text),
            "text/xml" => Some(Self::Xml),
            "application/json" => Some(Self::Json),
            "application/x-protobuf" | "application/protobuf" => Some(Self::Protobuf),
            "application/octet-stream" => Some(Self::Binary),
            _ => None,
        }
    }
}
