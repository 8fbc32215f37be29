//! The Rust types of HBase's native protocol are those of `native/hbase.proto`.
//!
//! The test compiles the file again and compares the result with `src/native/messages.rs`, byte for byte.
//! After a change of the file, `BASALT_GENERATE=1 cargo test -p basalt-idl --test native_proto` writes the
//! types anew.

use std::fmt::Write as _;
use std::path::Path;

use prost_build::{Service, ServiceGenerator};

const HEAD: &str = "// Generated from native/hbase.proto by tests/native_proto.rs. Do not edit.\n";

#[test]
fn the_types_are_those_of_the_proto_file() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let committed = crate_dir.join("src/native/messages.rs");
    let generated = generate(&crate_dir.join("native"));
    if std::env::var_os("BASALT_GENERATE").is_some() {
        std::fs::write(&committed, &generated).unwrap();
    }
    let written = std::fs::read_to_string(&committed).unwrap();
    let differs = written
        .lines()
        .zip(generated.lines())
        .position(|(left, right)| left != right);
    assert!(
        written == generated,
        "src/native/messages.rs differs from native/hbase.proto at line {:?}; \
         BASALT_GENERATE=1 cargo test -p basalt-idl --test native_proto writes it anew",
        differs.map(|line| line + 1)
    );
}

fn generate(dir: &Path) -> String {
    let files = protox::compile(["hbase.proto"], [dir]).unwrap();
    let request: Vec<_> = files
        .file
        .into_iter()
        .map(|file| (prost_build::Module::from_protobuf_package_name("hbase.pb"), file))
        .collect();
    let mut config = prost_build::Config::new();
    config
        .bytes(["."])
        // Without boxes an empty action takes two bytes of a message and several hundred of memory.
        .boxed(".hbase.pb.Action.mutation")
        .boxed(".hbase.pb.Action.get")
        .boxed(".hbase.pb.Action.service_call")
        // Most results of a batch say no more than that the action was done.
        .boxed(".hbase.pb.ResultOrException.exception")
        .boxed(".hbase.pb.ResultOrException.service_result")
        .boxed(".hbase.pb.ResultOrException.load_stats")
        .boxed(".hbase.pb.MutationProto.time_range")
        .service_generator(Box::new(Methods))
        .disable_comments(["."]);
    let modules = config.generate(request).unwrap();
    assert_eq!(modules.len(), 1);
    HEAD.chars()
        .chain(
            modules
                .into_values()
                .flat_map(|text| text.chars().collect::<Vec<_>>()),
        )
        .collect()
}

/// Writes an enum of each service's methods: dispatch by number, names as they are on the wire.
struct Methods;

impl ServiceGenerator for Methods {
    fn generate(&mut self, service: Service, out: &mut String) {
        let (name, methods) = (&service.name, &service.methods);
        let variants: Vec<(String, &str)> = methods
            .iter()
            .map(|method| (upper_first(&method.proto_name), method.proto_name.as_str()))
            .collect();
        let mut text = String::new();
        writeln!(text, "/// Methods of HBase's `{name}`.").unwrap();
        writeln!(
            text,
            "#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\npub enum {name}Method {{"
        )
        .unwrap();
        for ((variant, wire), method) in variants.iter().zip(methods) {
            writeln!(
                text,
                "    /// `{wire}`: [`{}`] to [`{}`].\n    {variant},",
                method.input_type, method.output_type
            )
            .unwrap();
        }
        writeln!(text, "}}\nimpl {name}Method {{").unwrap();
        writeln!(
            text,
            "    /// The name in a connection header.\n    pub const SERVICE: &'static str = {name:?};"
        )
        .unwrap();
        writeln!(
            text,
            "    /// All methods, in HBase's order.\n    pub const ALL: &'static [Self] = &["
        )
        .unwrap();
        for (variant, _) in &variants {
            writeln!(text, "        Self::{variant},").unwrap();
        }
        writeln!(text, "    ];\n    /// The name in a request header.\n    pub fn name(self) -> &'static str {{\n        match self {{").unwrap();
        for (variant, wire) in &variants {
            writeln!(text, "            Self::{variant} => {wire:?},").unwrap();
        }
        writeln!(text, "        }}\n    }}\n    /// The method of that name, which is case sensitive.\n    pub fn from_name(name: &str) -> ::core::option::Option<Self> {{\n        Some(match name {{").unwrap();
        for (variant, wire) in &variants {
            writeln!(text, "            {wire:?} => Self::{variant},").unwrap();
        }
        writeln!(text, "            _ => return None,\n        }})\n    }}\n}}").unwrap();
        if BLOCKING.contains(&&name[..]) {
            handlers(&service, &mut text);
        }
        out.push_str(&text);
    }
}

/// Services whose methods may all block: each has a trait of handlers and a dispatch to them.
const BLOCKING: [&str; 4] = [
    "MasterService",
    "AdminService",
    "ClientMetaService",
    "BootstrapNodeService",
];

/// Writes the trait of a service's handlers, and the dispatch to them.
fn handlers(service: &Service, text: &mut String) {
    let name = &service.name;
    writeln!(
        text,
        "/// Handlers of `{name}`, one for each method. A method without a handler of its own is refused.\n\
         pub trait {name}Handlers {{\n    \
             /// Why a call fails.\n    type Failure;\n    \
             /// Refuses a method that has no handler.\n    \
             fn unsupported(&self, method: &'static str) -> Self::Failure;\n    \
             /// Refuses a request that cannot be decoded.\n    \
             fn undecodable(error: ::prost::DecodeError) -> Self::Failure;"
    )
    .unwrap();
    for method in &service.methods {
        writeln!(
            text,
            "    /// `{wire}`\n    fn {handler}(&self, _request: {input}) -> \
             ::core::result::Result<{output}, Self::Failure> {{\n        Err(self.unsupported({wire:?}))\n    }}",
            wire = method.proto_name,
            handler = method.name,
            input = method.input_type,
            output = method.output_type
        )
        .unwrap();
    }
    writeln!(
        text,
        "}}\nimpl {name}Method {{\n    \
             /// Decodes the request, runs the handler, and passes its response to `reply`.\n    \
             pub fn answer<H: {name}Handlers>(\n        self,\n        handlers: &H,\n        request: ::prost::bytes::Bytes,\n        \
                 reply: &mut impl super::Reply,\n    ) -> ::core::result::Result<(), H::Failure> {{\n        match self {{"
    )
    .unwrap();
    for method in &service.methods {
        writeln!(
            text,
            "            Self::{} => {{\n                let request = ::prost::Message::decode(request).map_err(H::undecodable)?;\n                \
             reply.message(&handlers.{}(request)?);\n            }}",
            upper_first(&method.proto_name),
            method.name
        )
        .unwrap();
    }
    writeln!(text, "        }}\n        Ok(())\n    }}\n}}").unwrap();
}

fn upper_first(name: &str) -> String {
    let mut chars = name.chars();
    chars
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(chars)
        .collect()
}
