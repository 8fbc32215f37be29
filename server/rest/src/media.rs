//! Media types, and the choice of one by the header Accept.
//!
//! The greatest `q` wins, then the more exact range, then the order of the client's list, then that of
//! the resource's. `text/html` and `application/xml` are not offered by any resource.

/// A media type of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// text/plain
    Text,
    /// text/xml
    Xml,
    /// application/json
    Json,
    /// application/x-protobuf
    Protobuf,
    /// application/protobuf, the same bytes
    ProtobufIetf,
    /// application/octet-stream: one value
    Binary,
}

impl Media {
    /// Lists of names and descriptions.
    pub const DESCRIPTIONS: &[Self] = &[
        Self::Text,
        Self::Xml,
        Self::Json,
        Self::Protobuf,
        Self::ProtobufIetf,
    ];
    /// The cluster's version.
    pub const CLUSTER_VERSION: &[Self] = &[Self::Text, Self::Xml, Self::Json];
    /// Cells of rows and of scanners.
    pub const CELLS: &[Self] = &[
        Self::Binary,
        Self::Xml,
        Self::Json,
        Self::Protobuf,
        Self::ProtobufIetf,
    ];
    /// Cells of a multiget and of a stateless scan.
    pub const SCANNED: &[Self] = &[Self::Xml, Self::Json, Self::Protobuf, Self::ProtobufIetf];

    /// The name in headers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text/plain",
            Self::Xml => "text/xml",
            Self::Json => "application/json",
            Self::Protobuf => "application/x-protobuf",
            Self::ProtobufIetf => "application/protobuf",
            Self::Binary => "application/octet-stream",
        }
    }

    /// The media type of a body, by its header Content-Type; `None` for one that is not read.
    pub fn of_content_type(value: &str) -> Option<Self> {
        let name = value.split(';').next().unwrap_or_default().trim();
        let all = [
            Self::Text,
            Self::Xml,
            Self::Json,
            Self::Protobuf,
            Self::ProtobufIetf,
            Self::Binary,
        ];
        all.into_iter()
            .find(|media| media.name().eq_ignore_ascii_case(name))
    }

    /// Whether it is one of the two names of protobuf.
    pub fn is_protobuf(self) -> bool {
        matches!(self, Self::Protobuf | Self::ProtobufIetf)
    }

    /// The offer that the values of the header Accept want most; the first without a header. `None` if they
    /// accept none.
    pub fn choose<'a>(accept: impl IntoIterator<Item = &'a str>, offers: &[Self]) -> Option<Self> {
        let ranges: Vec<Range<'_>> = accept
            .into_iter()
            .flat_map(|value| value.split(','))
            .filter_map(Range::parse)
            .collect();
        if ranges.is_empty() {
            return offers.first().copied();
        }
        let mut best = None;
        for offer in offers {
            let matching = ranges
                .iter()
                .enumerate()
                .filter_map(|(place, range)| Some((range.exactness(*offer)?, place, range.q)));
            // The most exact range decides the quality of an offer.
            let Some((exactness, place, q)) =
                matching.max_by_key(|(exactness, place, _)| (*exactness, usize::MAX - place))
            else {
                continue;
            };
            let rank = (q, exactness, usize::MAX - place);
            if q > 0 && best.is_none_or(|(_, before)| rank > before) {
                best = Some((*offer, rank));
            }
        }
        best.map(|(offer, _)| offer)
    }

    /// The names of offers, for an error.
    pub fn names(offers: &[Self]) -> String {
        let names: Vec<&str> = offers.iter().map(|offer| offer.name()).collect();
        names.join(", ")
    }
}

/// A range of media types in the header Accept.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    /// Quality in thousandths.
    q: u32,
}

impl<'a> Range<'a> {
    /// `None` for an empty part. `*` alone, which Java sends, is `*/*`.
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().filter(|name| !name.is_empty())?;
        let (kind, subtype) = name.split_once('/').unwrap_or((name, "*"));
        let q = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let q = q.and_then(|q| q.trim().parse::<f32>().ok()).unwrap_or(1.0);
        Some(Self {
            kind,
            subtype,
            q: (q.clamp(0.0, 1.0) * 1_000.0) as u32,
        })
    }

    /// How exactly the range names a media type; `None` if it does not contain it.
    fn exactness(&self, media: Media) -> Option<u8> {
        let (kind, subtype) = media.name().split_once('/')?;
        match (self.kind, self.subtype) {
            ("*", _) => Some(0),
            (own, "*") if own.eq_ignore_ascii_case(kind) => Some(1),
            (own, name) if own.eq_ignore_ascii_case(kind) && name.eq_ignore_ascii_case(subtype) => Some(2),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_chooses_among_the_offers() {
        let java = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2";
        for (accept, of_rows, of_tables) in [
            ("", Some(Media::Binary), Some(Media::Text)),
            ("*/*", Some(Media::Binary), Some(Media::Text)),
            ("text/*", Some(Media::Xml), Some(Media::Text)),
            ("application/*", Some(Media::Binary), Some(Media::Json)),
            ("application/json", Some(Media::Json), Some(Media::Json)),
            (
                "Application/JSON; charset=utf-8",
                Some(Media::Json),
                Some(Media::Json),
            ),
            (
                "text/xml;q=0.4, application/json;q=0.6",
                Some(Media::Json),
                Some(Media::Json),
            ),
            ("text/xml, application/json", Some(Media::Xml), Some(Media::Xml)),
            ("application/json, text/xml", Some(Media::Json), Some(Media::Json)),
            ("application/json, */*", Some(Media::Json), Some(Media::Json)),
            (
                "*/*, application/octet-stream;q=0",
                Some(Media::Xml),
                Some(Media::Text),
            ),
            ("text/plain", None, Some(Media::Text)),
            ("text/html", None, None),
            ("application/xml", None, None),
            (java, Some(Media::Binary), Some(Media::Text)),
        ] {
            assert_eq!(Media::choose([accept], Media::CELLS), of_rows, "{accept}");
            assert_eq!(
                Media::choose([accept], Media::DESCRIPTIONS),
                of_tables,
                "{accept}"
            );
        }
        assert_eq!(Media::choose([], Media::SCANNED), Some(Media::Xml));
        assert_eq!(
            Media::choose(["application/protobuf"], Media::CLUSTER_VERSION),
            None
        );
    }

    #[test]
    fn content_types_are_read_without_their_parameters() {
        assert_eq!(
            Media::of_content_type("text/xml; charset=UTF-8"),
            Some(Media::Xml)
        );
        assert_eq!(Media::of_content_type("application/x-www-form-urlencoded"), None);
    }
}
