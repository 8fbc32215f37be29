//! The connection header: service, codec, compressor and version of a client.

use basalt_engine::schema::limits::Brief;
use basalt_idl::native::compress::Compressor;
use basalt_idl::native::exception::ExceptionClass;
use basalt_idl::native::forms::{CellForm, Packing};
use basalt_idl::native::messages::{
    AdminServiceMethod, BootstrapNodeServiceMethod, ClientMetaServiceMethod, ClientServiceMethod,
    ConnectionHeader, MasterServiceMethod,
};

/// The service that a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are HBase's")]
pub enum Service {
    Client,
    Master,
    Admin,
    ClientMeta,
    BootstrapNode,
}

impl Service {
    /// All services.
    pub const ALL: [Self; 5] = [
        Self::Client,
        Self::Master,
        Self::Admin,
        Self::ClientMeta,
        Self::BootstrapNode,
    ];

    /// Name of the service in connection headers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => ClientServiceMethod::SERVICE,
            Self::Master => MasterServiceMethod::SERVICE,
            Self::Admin => AdminServiceMethod::SERVICE,
            Self::ClientMeta => ClientMetaServiceMethod::SERVICE,
            Self::BootstrapNode => BootstrapNodeServiceMethod::SERVICE,
        }
    }

    /// The names of its methods.
    pub fn methods(self) -> Vec<&'static str> {
        match self {
            Self::Client => ClientServiceMethod::ALL
                .iter()
                .map(|method| method.name())
                .collect(),
            Self::Master => MasterServiceMethod::ALL
                .iter()
                .map(|method| method.name())
                .collect(),
            Self::Admin => AdminServiceMethod::ALL
                .iter()
                .map(|method| method.name())
                .collect(),
            Self::ClientMeta => ClientMetaServiceMethod::ALL
                .iter()
                .map(|method| method.name())
                .collect(),
            Self::BootstrapNode => BootstrapNodeServiceMethod::ALL
                .iter()
                .map(|method| method.name())
                .collect(),
        }
    }

    /// Number of its first method among the methods of all services.
    pub fn first_method(self) -> usize {
        Self::ALL
            .iter()
            .take_while(|service| **service != self)
            .map(|service| service.count())
            .sum()
    }

    fn count(self) -> usize {
        match self {
            Self::Client => ClientServiceMethod::ALL.len(),
            Self::Master => MasterServiceMethod::ALL.len(),
            Self::Admin => AdminServiceMethod::ALL.len(),
            Self::ClientMeta => ClientMetaServiceMethod::ALL.len(),
            Self::BootstrapNode => BootstrapNodeServiceMethod::ALL.len(),
        }
    }
}

/// A method of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the services")]
pub enum Method {
    Client(ClientServiceMethod),
    Master(MasterServiceMethod),
    Admin(AdminServiceMethod),
    ClientMeta(ClientMetaServiceMethod),
    BootstrapNode(BootstrapNodeServiceMethod),
}

impl Method {
    /// Finds a method of `service` by its name.
    pub fn find(service: Service, name: &str) -> Option<Self> {
        Some(match service {
            Service::Client => Self::Client(ClientServiceMethod::from_name(name)?),
            Service::Master => Self::Master(MasterServiceMethod::from_name(name)?),
            Service::Admin => Self::Admin(AdminServiceMethod::from_name(name)?),
            Service::ClientMeta => Self::ClientMeta(ClientMetaServiceMethod::from_name(name)?),
            Service::BootstrapNode => Self::BootstrapNode(BootstrapNodeServiceMethod::from_name(name)?),
        })
    }

    /// Name of the method.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client(method) => method.name(),
            Self::Master(method) => method.name(),
            Self::Admin(method) => method.name(),
            Self::ClientMeta(method) => method.name(),
            Self::BootstrapNode(method) => method.name(),
        }
    }

    /// Number of the method among the methods of all services.
    pub fn number(self, service: Service) -> usize {
        let own = match self {
            Self::Client(method) => method as usize,
            Self::Master(method) => method as usize,
            Self::Admin(method) => method as usize,
            Self::ClientMeta(method) => method as usize,
            Self::BootstrapNode(method) => method as usize,
        };
        service.first_method() + own
    }
}

/// Encoding of cells on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Inside the messages.
    Inline,
    /// In a cell block, without tags.
    KeyValue,
    /// In a cell block, with tags.
    KeyValueWithTags,
}

/// A client, as its connection header describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The service that its connection is for.
    pub service: Service,
    /// How it sends cells and expects them.
    pub codec: Codec,
    /// Whether the cells of a Get go inside the message, whatever the codec. Clients before HBase
    /// 1.3 and clients that send no version (gohbase, asynchbase) expect this.
    pub inline_gets: bool,
    /// The form and compression of cell blocks in both directions; `None`: those of the codec, plain.
    pub packing: Option<Packing>,
    /// Whether the client knows ScannerResetException (HBase 1.4).
    pub resets_scanners: bool,
}

const CODEC_PACKAGE: &str = "org.apache.hadoop.hbase.codec.";

impl Peer {
    /// Reads a connection header. The error is the exception class and text of the refusal.
    pub fn new(header: &ConnectionHeader) -> Result<Self, (ExceptionClass, String)> {
        let service = match header.service_name.as_deref() {
            Some(ClientServiceMethod::SERVICE) => Service::Client,
            Some(MasterServiceMethod::SERVICE) => Service::Master,
            Some(AdminServiceMethod::SERVICE) => Service::Admin,
            Some(ClientMetaServiceMethod::SERVICE) => Service::ClientMeta,
            Some(BootstrapNodeServiceMethod::SERVICE) => Service::BootstrapNode,
            other => {
                let name = Brief(other.unwrap_or("(none)").as_bytes());
                let message = format!("unknown service {name}");
                return Err((ExceptionClass::FatalConnection, message));
            }
        };
        let (codec, form) = codec(header)?;
        let version = header.version_info.as_ref();
        let is_at_least = |least| {
            version.is_some_and(|version| {
                let major = version.version_major.unwrap_or_default();
                (major, version.version_minor.unwrap_or_default()) >= least
            })
        };
        Ok(Self {
            service,
            codec,
            inline_gets: codec == Codec::Inline || !is_at_least((1, 3)),
            packing: Packing::new(form, compressor(header, codec)?),
            resets_scanners: is_at_least((1, 4)),
        })
    }
}

/// The codec that a header names, with the form of its cells.
fn codec(header: &ConnectionHeader) -> Result<(Codec, Option<CellForm>), (ExceptionClass, String)> {
    let class = header.cell_block_codec_class.as_deref().unwrap_or_default();
    if class.is_empty() {
        return Ok((Codec::Inline, None));
    }
    match class.strip_prefix(CODEC_PACKAGE) {
        Some("KeyValueCodec") => return Ok((Codec::KeyValue, None)),
        Some("KeyValueCodecWithTags") => return Ok((Codec::KeyValueWithTags, None)),
        _ => {}
    }
    let Some(form) = class.strip_prefix(CODEC_PACKAGE).and_then(CellForm::of_codec) else {
        let message = format!(
            "{class}; KeyValueCodec, KeyValueCodecWithTags, CellCodec, CellCodecWithTags and MessageCodec are \
             supported (hbase.client.rpc.codec)"
        );
        return Err((ExceptionClass::UnsupportedCellCodec, message));
    };
    let codec = if form.has_tags() {
        Codec::KeyValueWithTags
    } else {
        Codec::KeyValue
    };
    Ok((codec, Some(form)))
}

/// The compressor that a header names. As in HBase, it is ignored if there are no cell blocks.
fn compressor(
    header: &ConnectionHeader,
    codec: Codec,
) -> Result<Option<Compressor>, (ExceptionClass, String)> {
    let class = header.cell_block_compressor_class.as_deref().unwrap_or_default();
    if class.is_empty() || codec == Codec::Inline {
        return Ok(None);
    }
    Compressor::of_class(class).map(Some).ok_or_else(|| {
        let class = Brief(class.as_bytes());
        let message = format!(
            "{class}; Hadoop's DefaultCodec, GzipCodec, SnappyCodec, Lz4Codec and ZStandardCodec are \
             supported (hbase.client.rpc.compressor)"
        );
        (ExceptionClass::UnsupportedCompressionCodec, message)
    })
}

#[cfg(test)]
mod tests {
    use basalt_idl::native::messages::VersionInfo;

    use super::*;

    fn header(service: &str, codec: Option<&str>, version: Option<(u32, u32)>) -> ConnectionHeader {
        ConnectionHeader {
            service_name: Some(service.to_owned()),
            cell_block_codec_class: codec.map(|codec| format!("{CODEC_PACKAGE}{codec}")),
            version_info: version.map(|(major, minor)| VersionInfo {
                version_major: Some(major),
                version_minor: Some(minor),
                ..VersionInfo::default()
            }),
            ..ConnectionHeader::default()
        }
    }

    #[test]
    fn clients_are_told_apart() {
        let java = Peer::new(&header("ClientService", Some("KeyValueCodec"), Some((2, 6)))).unwrap();
        assert_eq!(
            (java.service, java.codec, java.inline_gets),
            (Service::Client, Codec::KeyValue, false)
        );
        let asynchbase = Peer::new(&header("ClientService", Some("KeyValueCodec"), None)).unwrap();
        assert_eq!(
            (asynchbase.codec, asynchbase.inline_gets),
            (Codec::KeyValue, true)
        );
        let bare = Peer::new(&header("MasterService", None, Some((1, 2)))).unwrap();
        assert_eq!(
            (bare.service, bare.codec, bare.inline_gets),
            (Service::Master, Codec::Inline, true)
        );
    }

    #[test]
    fn methods_are_numbered_through_all_services() {
        let names: Vec<_> = Service::ALL.into_iter().flat_map(Service::methods).collect();
        for service in Service::ALL {
            for name in service.methods() {
                let number = Method::find(service, name).unwrap().number(service);
                assert_eq!(names[number], name);
            }
        }
        assert_eq!(Method::find(Service::Client, "get"), None);
    }

    #[test]
    fn headers_that_cannot_be_served_are_refused_by_name() {
        let refused = |header| Peer::new(&header).unwrap_err();
        assert_eq!(
            refused(header("LockService", None, None)),
            (
                ExceptionClass::FatalConnection,
                "unknown service LockService".to_owned()
            )
        );
        assert_eq!(
            refused(header("ClientService", Some("KryoCodec"), None)).0,
            ExceptionClass::UnsupportedCellCodec
        );
        let mut compressed = header("ClientService", Some("KeyValueCodec"), None);
        compressed.cell_block_compressor_class = Some("org.apache.hadoop.io.compress.BZip2Codec".into());
        let (class, message) = refused(compressed.clone());
        assert_eq!(class, ExceptionClass::UnsupportedCompressionCodec);
        assert!(message.contains("BZip2Codec; Hadoop's DefaultCodec"), "{message}");
        compressed.cell_block_codec_class = None;
        assert_eq!(Peer::new(&compressed).unwrap().packing, None);
    }

    #[test]
    fn a_compressor_is_found_by_its_class() {
        let mut compressed = header("ClientService", Some("KeyValueCodec"), Some((1, 4)));
        compressed.cell_block_compressor_class = Some("org.apache.hadoop.io.compress.GzipCodec".into());
        let peer = Peer::new(&compressed).unwrap();
        assert_eq!(
            (peer.packing, peer.resets_scanners),
            (Packing::new(None, Some(Compressor::Gzip)), true)
        );
    }

    #[test]
    fn a_codec_decides_on_the_form_of_cells_and_their_tags() {
        for (name, codec, form) in [
            ("KeyValueCodec", Codec::KeyValue, None),
            ("KeyValueCodecWithTags", Codec::KeyValueWithTags, None),
            ("CellCodec", Codec::KeyValue, Some(CellForm::Cell)),
            (
                "CellCodecWithTags",
                Codec::KeyValueWithTags,
                Some(CellForm::CellWithTags),
            ),
            ("MessageCodec", Codec::KeyValue, Some(CellForm::Message)),
        ] {
            let peer = Peer::new(&header("ClientService", Some(name), Some((2, 6)))).unwrap();
            assert_eq!(
                (peer.codec, peer.packing),
                (codec, Packing::new(form, None)),
                "{name}"
            );
        }
    }
}
