//! The declarations of Thrift's IDL as Rust macros.
//!
//! ```text
//! thrift_enum!   { pub enum TReadType { DEFAULT = 1, STREAM = 2, PREAD = 3 } }
//! thrift_struct! { pub struct TColumn { 1: required binary family, 2: optional binary qualifier } }
//! thrift_union!  { pub union TMutation { 1: TPut put as Put, 2: TDelete deleteSingle as DeleteSingle } }
//! thrift_service! {
//!     pub service THBaseService {
//!         bool exists as Exists(1: required binary table, 2: required TGet tget)
//!             throws (1: TIOError io) [class = read, idempotent];
//!     }
//!     exceptions THBaseException { 1: TIOError as Io }
//! }
//! ```
//!
//! Names are the IDL's; `as` gives the Rust name where it differs. Expects `names::*` of `schema` in scope
//! for Thrift's type names. A field becomes
//!
//! | in the IDL | in Rust | when absent | written |
//! | --- | --- | --- | --- |
//! | required | `T` | error with the names of struct and field | always |
//! | with a default | `T` | the default | always |
//! | optional, or no keyword | `Option<T>` | `None` | when `Some` |
//!
//! A field that arrives with another wire type than declared is skipped like an unknown one, as libthrift
//! does.
//!
//! A method has attributes, which the IDL lacks. They are data in its `MethodDescriptor`, and decide how
//! the dispatch that is generated for servers runs its handler (see `serve`):
//!
//! | attribute | meaning |
//! | --- | --- |
//! | `class = read` or `write` | a call of a client about data, or about where the data is |
//! | `class = admin` | changes schema or runs upkeep; may block, so its handler runs on the pool |
//! | `idempotent` | calling it twice has the effect of calling it once: a client may retry it |
//! | `inline` | frequent, and tried from memory on the network thread: its future is not boxed |
//! | `legacy` | left HBase's newest IDL, but older clients call it |
//!
//! They are written in this order.

/// The type of a field in Rust.
macro_rules! field_type {
    (required [] $($ty:tt)*) => { $($ty)* };
    ($requiredness:ident [] $($ty:tt)*) => { Option<$($ty)*> };
    ($requiredness:ident [$value:expr] $($ty:tt)*) => { $($ty)* };
}

/// The value of a field in a struct made by `Default`.
macro_rules! field_default {
    ([] $($ty:tt)*) => { Default::default() };
    ([$value:expr] $($ty:tt)*) => { <$($ty)*>::from($value) };
}

/// The value of a field after decoding, from the decoded option.
macro_rules! field_decoded {
    (required [] $arrived:ident, $in_struct:expr, $field:ident, $($ty:tt)*) => {
        match $arrived {
            Some(value) => value,
            None => {
                return Err($crate::wire::WireError::MissingField { in_struct: $in_struct, field: stringify!($field) });
            }
        }
    };
    ($requiredness:ident [] $arrived:ident, $in_struct:expr, $field:ident, $($ty:tt)*) => { $arrived };
    ($requiredness:ident [$value:expr] $arrived:ident, $in_struct:expr, $field:ident, $($ty:tt)*) => {
        match $arrived {
            Some(value) => value,
            None => <$($ty)*>::from($value),
        }
    };
}

/// Writes a field.
macro_rules! field_encode {
    (required [] $value:expr, $id:literal, $writer:ident) => {
        $crate::schema::Encode::encode_field(&$value, $id, $writer);
    };
    ($requiredness:ident [] $value:expr, $id:literal, $writer:ident) => {
        if let Some(value) = &$value {
            $crate::schema::Encode::encode_field(value, $id, $writer);
        }
    };
    ($requiredness:ident [$default:expr] $value:expr, $id:literal, $writer:ident) => {
        $crate::schema::Encode::encode_field(&$value, $id, $writer);
    };
}

/// How the IDL says whether a field has to be there.
macro_rules! requiredness {
    (required) => {
        $crate::schema::Requiredness::Required
    };
    (optional) => {
        $crate::schema::Requiredness::Optional
    };
    (default) => {
        $crate::schema::Requiredness::Default
    };
}

/// The default of a field as source text.
macro_rules! default_text {
    () => {
        None
    };
    ($value:expr) => {
        Some(stringify!($value))
    };
}

/// Struct or exception.
macro_rules! struct_kind {
    (struct) => {
        $crate::schema::StructKind::Struct
    };
    (exception) => {
        $crate::schema::StructKind::Exception
    };
}

/// Makes a struct, union or exception a type of Apache's crate: see `apache`.
macro_rules! apache_serializable {
    ($name:ident) => {
        #[cfg(feature = "thrift")]
        impl thrift::protocol::TSerializable for $name {
            fn read_from_in_protocol(
                input: &mut dyn thrift::protocol::TInputProtocol,
            ) -> thrift::Result<Self> {
                $crate::apache::read(&$name::DESCRIPTOR, input)
            }

            fn write_to_out_protocol(
                &self,
                output: &mut dyn thrift::protocol::TOutputProtocol,
            ) -> thrift::Result<()> {
                $crate::apache::write(self, &$name::DESCRIPTOR, output)
            }
        }
    };
}

/// Declares structs and exceptions. See the module comment.
macro_rules! thrift_struct {
    ($( $(#[$meta:meta])* pub $kind:ident $name:ident { $($fields:tt)* } )+) => {
        $( thrift_struct! { @field [$(#[$meta])*] $kind $name [] $($fields)* } )+
    };

    // A field at a time: first the keyword and the type, then the names and the default.
    (@field $meta:tt $kind:ident $name:ident [$($done:tt)*]
        $(#[$doc:meta])* $id:literal : required $ty:ident $(<$($of:ident),+>)? $field:ident $($rest:tt)*) => {
        thrift_struct! { @names $meta $kind $name [$($done)*]
            [$(#[$doc])*] $id required ($ty $(<$($of),+>)?) $field $($rest)* }
    };
    (@field $meta:tt $kind:ident $name:ident [$($done:tt)*]
        $(#[$doc:meta])* $id:literal : optional $ty:ident $(<$($of:ident),+>)? $field:ident $($rest:tt)*) => {
        thrift_struct! { @names $meta $kind $name [$($done)*]
            [$(#[$doc])*] $id optional ($ty $(<$($of),+>)?) $field $($rest)* }
    };
    (@field $meta:tt $kind:ident $name:ident [$($done:tt)*]
        $(#[$doc:meta])* $id:literal : $ty:ident $(<$($of:ident),+>)? $field:ident $($rest:tt)*) => {
        thrift_struct! { @names $meta $kind $name [$($done)*]
            [$(#[$doc])*] $id default ($ty $(<$($of),+>)?) $field $($rest)* }
    };
    (@names $meta:tt $kind:ident $name:ident [$($done:tt)*]
        $doc:tt $id:literal $requiredness:ident $ty:tt $field:ident as $rust:ident $(= $value:expr)? $(, $($rest:tt)*)?) => {
        thrift_struct! { @field $meta $kind $name
            [$($done)* { $doc $id $requiredness $ty $field $rust [$($value)?] }] $($($rest)*)? }
    };
    (@names $meta:tt $kind:ident $name:ident [$($done:tt)*]
        $doc:tt $id:literal $requiredness:ident $ty:tt $field:ident $(= $value:expr)? $(, $($rest:tt)*)?) => {
        thrift_struct! { @field $meta $kind $name
            [$($done)* { $doc $id $requiredness $ty $field $field [$($value)?] }] $($($rest)*)? }
    };

    // All fields are known.
    (@field [$($meta:tt)*] $kind:ident $name:ident
        [$( { [$($doc:tt)*] $id:literal $requiredness:ident ($($ty:tt)*) $field:ident $rust:ident [$($value:expr)?] } )*]) => {
        $($meta)*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "a field is explained where its name does not say it all; the IDL file has the rest")]
        pub struct $name {
            $( $($doc)* pub $rust: field_type!($requiredness [$($value)?] $($ty)*), )*
        }

        #[allow(clippy::derivable_impls, clippy::useless_conversion, reason = "not for every struct of this macro")]
        impl Default for $name {
            fn default() -> Self {
                $name { $( $rust: field_default!([$($value)?] $($ty)*), )* }
            }
        }

        impl $name {
            /// The struct as data.
            pub const DESCRIPTOR: $crate::schema::StructDescriptor = $crate::schema::StructDescriptor {
                name: stringify!($name),
                kind: struct_kind!($kind),
                fields: &[$( $crate::schema::FieldDescriptor {
                    id: $id,
                    name: stringify!($field),
                    ty: <$($ty)* as $crate::schema::WireTyped>::TYPE,
                    requiredness: requiredness!($requiredness),
                    default: default_text!($($value)?),
                }, )*],
                memory: size_of::<$name>(),
                #[cfg(feature = "recode")]
                recode: $crate::schema::recode::<$name>,
            };
        }

        impl $crate::schema::WireTyped for $name {
            const WIRE_TYPE: $crate::wire::WireType = $crate::wire::WireType::Struct;
            const TYPE: $crate::schema::TypeDescriptor = $crate::schema::TypeDescriptor::Struct(&$name::DESCRIPTOR);
        }

        impl $crate::schema::Encode for $name {
            #[inline]
            fn encode<W: $crate::wire::Writer>(&self, writer: &mut W) {
                writer.struct_begin();
                $( field_encode!($requiredness [$($value)?] self.$rust, $id, writer); )*
                writer.struct_end();
            }
        }

        impl $crate::schema::Decode for $name {
            #[inline]
            #[allow(clippy::match_single_binding, clippy::useless_conversion, reason = "not for every struct of this macro")]
            fn decode<R: $crate::wire::Reader>(reader: &mut R) -> Result<Self, $crate::wire::WireError> {
                $( let mut $rust: Option<$($ty)*> = None; )*
                reader.struct_begin()?;
                while let Some(header) = reader.field_begin()? {
                    match header.id {
                        $( $id if header.wire_type == <$($ty)* as $crate::schema::WireTyped>::WIRE_TYPE => {
                            $rust = Some(<$($ty)* as $crate::schema::Decode>::decode(reader)?);
                        } )*
                        _ => reader.skip(header.wire_type)?,
                    }
                }
                reader.struct_end();
                Ok($name {
                    $( $rust: field_decoded!($requiredness [$($value)?] $rust, stringify!($name), $field, $($ty)*), )*
                })
            }
        }

        apache_serializable! { $name }

        thrift_struct! { @error $kind $name }
    };

    (@error struct $name:ident) => {};
    (@error exception $name:ident) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match &self.message {
                    Some(message) => f.write_str(message),
                    None => f.write_str(concat!(stringify!($name), " without a message")),
                }
            }
        }

        impl std::error::Error for $name {}
    };
}

/// Declares unions: exactly one known member.
macro_rules! thrift_union {
    ($(#[$meta:meta])* pub union $name:ident {
        $( $(#[$doc:meta])* $id:literal : $ty:ident $field:ident as $variant:ident ),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $( $(#[$doc])* $variant($ty), )+
        }

        impl $name {
            /// The union as data.
            pub const DESCRIPTOR: $crate::schema::StructDescriptor = $crate::schema::StructDescriptor {
                name: stringify!($name),
                kind: $crate::schema::StructKind::Union,
                fields: &[$( $crate::schema::FieldDescriptor {
                    id: $id,
                    name: stringify!($field),
                    ty: <$ty as $crate::schema::WireTyped>::TYPE,
                    requiredness: $crate::schema::Requiredness::Default,
                    default: None,
                }, )+],
                memory: size_of::<$name>(),
                #[cfg(feature = "recode")]
                recode: $crate::schema::recode::<$name>,
            };
        }

        impl $crate::schema::WireTyped for $name {
            const WIRE_TYPE: $crate::wire::WireType = $crate::wire::WireType::Struct;
            const TYPE: $crate::schema::TypeDescriptor = $crate::schema::TypeDescriptor::Struct(&$name::DESCRIPTOR);
        }

        impl $crate::schema::Encode for $name {
            #[inline]
            fn encode<W: $crate::wire::Writer>(&self, writer: &mut W) {
                writer.struct_begin();
                match self {
                    $( $name::$variant(member) => $crate::schema::Encode::encode_field(member, $id, writer), )+
                }
                writer.struct_end();
            }
        }

        impl $crate::schema::Decode for $name {
            fn decode<R: $crate::wire::Reader>(reader: &mut R) -> Result<Self, $crate::wire::WireError> {
                let mut member = None;
                let mut found = 0;
                reader.struct_begin()?;
                while let Some(header) = reader.field_begin()? {
                    match header.id {
                        $( $id if header.wire_type == <$ty as $crate::schema::WireTyped>::WIRE_TYPE => {
                            found += 1;
                            member = Some($name::$variant(<$ty as $crate::schema::Decode>::decode(reader)?));
                        } )+
                        _ => reader.skip(header.wire_type)?,
                    }
                }
                reader.struct_end();
                match member {
                    Some(member) if found == 1 => Ok(member),
                    _ => Err($crate::wire::WireError::NotOneMember { union: stringify!($name), found }),
                }
            }
        }

        apache_serializable! { $name }
    };
}

/// Declares enums as open sets of codes: a code without a name is kept, because HBase falls back on a default
/// for it instead of refusing the message.
macro_rules! thrift_enum {
    ($( $(#[$meta:meta])* pub enum $name:ident { $( $(#[$doc:meta])* $value:ident = $code:literal ),+ $(,)? } )+) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(
            /// The code on the wire, with or without a name.
            pub i32,
        );

        #[allow(missing_docs, reason = "the names are HBase's own")]
        impl $name {
            $( $(#[$doc])* pub const $value: $name = $name($code); )+

            /// The enum as data.
            pub const DESCRIPTOR: $crate::schema::EnumDescriptor = $crate::schema::EnumDescriptor {
                name: stringify!($name),
                values: &[$( (stringify!($value), $code), )+],
            };

            /// The name of the code, if it has one.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $( $code => Some(stringify!($value)), )+
                    _ => None,
                }
            }

            /// The value with this name, if there is one.
            pub fn from_name(name: &str) -> Option<$name> {
                match name {
                    $( stringify!($value) => Some($name::$value), )+
                    _ => None,
                }
            }
        }

        /// The name, or the code where there is none.
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{}", self.0),
                }
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl $crate::schema::WireTyped for $name {
            const WIRE_TYPE: $crate::wire::WireType = $crate::wire::WireType::I32;
            const TYPE: $crate::schema::TypeDescriptor = $crate::schema::TypeDescriptor::Enum(&$name::DESCRIPTOR);
        }

        impl $crate::schema::Encode for $name {
            #[inline]
            fn encode<W: $crate::wire::Writer>(&self, writer: &mut W) {
                writer.i32(self.0);
            }
        }

        impl $crate::schema::Decode for $name {
            #[inline]
            fn decode<R: $crate::wire::Reader>(reader: &mut R) -> Result<Self, $crate::wire::WireError> {
                reader.i32().map($name)
            }
        }

        #[cfg(feature = "thrift")]
        impl thrift::protocol::TSerializable for $name {
            fn read_from_in_protocol(input: &mut dyn thrift::protocol::TInputProtocol) -> thrift::Result<Self> {
                input.read_i32().map($name)
            }

            fn write_to_out_protocol(&self, output: &mut dyn thrift::protocol::TOutputProtocol) -> thrift::Result<()> {
                output.write_i32(self.0)
            }
        }
    )+ };
}

/// The class of a method as data.
macro_rules! method_class {
    (read) => {
        $crate::call::MethodClass::Read
    };
    (write) => {
        $crate::call::MethodClass::Write
    };
    (admin) => {
        $crate::call::MethodClass::Admin
    };
}

/// Declares a handler in the trait of its class, and nothing in the traits of the others.
macro_rules! handler {
    (admin: $(#[$doc:meta])* admin $method:ident $args:ident ($($ret:tt)*)) => {
        $(#[$doc])*
        fn $method(&self, args: args::$args) -> Result<$($ret)*, F>;
    };
    (read: $(#[$doc:meta])* read $($signature:tt)*) => {
        handler! { @future $(#[$doc])* $($signature)* }
    };
    (write: $(#[$doc:meta])* write $($signature:tt)*) => {
        handler! { @future $(#[$doc])* $($signature)* }
    };
    (@future $(#[$doc:meta])* $method:ident $args:ident ($($ret:tt)*)) => {
        $(#[$doc])*
        fn $method(
            &mut self,
            args: args::$args,
        ) -> impl Future<Output = Result<impl $crate::serve::Answer<$($ret)*, Self> + use<Self>, Self::Failure>> + Send;
    };
    ($($other:tt)*) => {};
}

/// The outcome of a handler: of a blocking one on the pool, of a frequent one without a box.
macro_rules! outcome {
    (admin [$($attribute:ident)*] $method:ident $context:ident $args:ident) => {
        Box::pin($context.on_pool(move |server| AdminHandlers::$method(server, $args))).await
    };
    (read $($call:tt)*) => { outcome!(ReadHandlers $($call)*) };
    (write $($call:tt)*) => { outcome!(WriteHandlers $($call)*) };
    ($handlers:ident [$(idempotent)? inline] $method:ident $context:ident $args:ident) => {
        std::pin::pin!($handlers::$method($context, $args)).await
    };
    ($handlers:ident [$(idempotent)? $(legacy)?] $method:ident $context:ident $args:ident) => {
        Box::pin($handlers::$method($context, $args)).await
    };
}

/// Declares a service: an arguments struct for each method in `args`, the enum `Method` of all methods
/// with their dispatch, the traits of their handlers, and the enum of their exceptions.
macro_rules! thrift_service {
    (
        $(#[$meta:meta])*
        pub service $service:ident {
            $( $(#[$doc:meta])* $ret:ident $(<$($of:ident),+>)? $method:ident as $args:ident ( $($params:tt)* )
                $(throws ( $($throws:tt)* ))? [class = $class:ident $(, $attribute:ident)*]; )*
        }
        $(#[$exception_meta:meta])*
        exceptions $exception:ident {
            $( $exception_id:literal : $thrown:ident as $variant:ident ),+ $(,)?
        }
    ) => {
        /// The arguments of each method. As [`Call`](crate::Call)s they also know the method's result.
        pub mod args {
            use super::*;

            $( thrift_struct! {
                #[doc = concat!("Arguments of `", stringify!($method), "`.")]
                #[doc = ""]
                $(#[$doc])*
                pub struct $args { $($params)* }
            } )*
        }

        $( thrift_service! { @call $service $exception $method $args ($ret $(<$($of),+>)?) $class [$($attribute)*]
            [$($($throws)*)?] } )*

        $(#[$meta])*
        pub const SERVICE: $crate::call::ServiceDescriptor = $crate::call::ServiceDescriptor {
            name: stringify!($service),
            methods: &[ $( &<args::$args as $crate::call::Call>::METHOD, )* ],
        };

        #[doc = concat!("The methods of `", stringify!($service), "`.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Method {
            $( $(#[$doc])* $args, )*
        }

        impl Method {
            /// All methods, in the order of the IDL.
            pub const ALL: &[Method] = &[$( Method::$args, )*];

            /// The method with this name in the IDL.
            pub fn from_name(name: &str) -> Option<Method> {
                match name {
                    $( stringify!($method) => Some(Method::$args), )*
                    _ => None,
                }
            }

            /// The name in the IDL.
            pub const fn name(self) -> &'static str {
                self.descriptor().name
            }

            /// Arguments, result and attributes as data.
            pub const fn descriptor(self) -> &'static $crate::call::MethodDescriptor {
                match self {
                    $( Method::$args => &<args::$args as $crate::call::Call>::METHOD, )*
                }
            }

            /// Answers a call: decodes the arguments, runs the handler, and has its outcome written. Fails,
            /// before anything is done, when the arguments do not match the interface.
            pub async fn answer<C, R, W>(
                self,
                context: &mut C,
                arguments: &mut R,
                reply: &mut W,
            ) -> Result<(), $crate::wire::WireError>
            where
                C: ReadHandlers + WriteHandlers,
                C::Admin: AdminHandlers<C::Failure>,
                R: $crate::wire::Reader,
                W: $crate::serve::Reply<$exception, C>,
            {
                match self {
                    $( Method::$args => {
                        let args = <args::$args as $crate::schema::Decode>::decode(arguments)?;
                        let outcome = outcome!($class [$($attribute)*] $method context args);
                        reply.outcome::<args::$args>(context, outcome);
                    } )*
                }
                Ok(())
            }
        }

        #[doc = concat!("Handlers of the methods of `", stringify!($service), "` that read.")]
        #[allow(non_snake_case, reason = "handlers have the names of the IDL")]
        pub trait ReadHandlers: $crate::serve::Context {
            $( handler! { read: $(#[$doc])* $class $method $args ($ret $(<$($of),+>)?) } )*
        }

        #[doc = concat!("Handlers of the methods of `", stringify!($service), "` that write.")]
        #[allow(non_snake_case, reason = "handlers have the names of the IDL")]
        pub trait WriteHandlers: $crate::serve::Context {
            $( handler! { write: $(#[$doc])* $class $method $args ($ret $(<$($of),+>)?) } )*
        }

        #[doc = concat!("Handlers of the methods of `", stringify!($service), "` for administration. They may block.")]
        #[allow(non_snake_case, reason = "handlers have the names of the IDL")]
        pub trait AdminHandlers<F> {
            $( handler! { admin: $(#[$doc])* $class $method $args ($ret $(<$($of),+>)?) } )*
        }

        $(#[$exception_meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the variants are the exceptions, which have docs")]
        pub enum $exception {
            $( $variant($thrown), )+
        }

        $( impl From<$thrown> for $exception {
            fn from(thrown: $thrown) -> Self {
                $exception::$variant(thrown)
            }
        } )+

        impl std::fmt::Display for $exception {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $( $exception::$variant(thrown) => write!(f, "{}: {thrown}", stringify!($thrown)), )+
                }
            }
        }

        impl std::error::Error for $exception {}

        impl $crate::call::ServiceException for $exception {
            const DECLARED: &[(i16, &str)] = &[$( ($exception_id, stringify!($thrown)), )+];

            fn id(&self) -> i16 {
                match self {
                    $( $exception::$variant(_) => $exception_id, )+
                }
            }

            fn encode_field<W: $crate::wire::Writer>(&self, writer: &mut W) {
                match self {
                    $( $exception::$variant(thrown) => {
                        $crate::schema::Encode::encode_field(thrown, $exception_id, writer);
                    } )+
                }
            }

            fn decode_id<R: $crate::wire::Reader>(id: i16, reader: &mut R) -> Result<Option<Self>, $crate::wire::WireError> {
                Ok(match id {
                    $( $exception_id => Some($exception::$variant($crate::schema::Decode::decode(reader)?)), )+
                    _ => None,
                })
            }
        }
    };

    (@call $service:ident $exception:ident $method:ident $args:ident ($($ret:tt)*) $class:ident [$($attribute:ident)*]
        [$($throw_id:literal : $throw_ty:ident $throw_name:ident),* $(,)?]) => {
        impl $crate::call::Call for args::$args {
            type Success = $($ret)*;
            type Exception = $exception;
            const METHOD: $crate::call::MethodDescriptor = $crate::call::MethodDescriptor {
                $( $attribute: true, )*
                ..$crate::call::MethodDescriptor {
                    service: stringify!($service),
                    name: stringify!($method),
                    args: &args::$args::DESCRIPTOR,
                    returns: <$($ret)* as $crate::schema::WireTyped>::TYPE,
                    throws: &[$( $crate::call::ThrowsDescriptor {
                        id: $throw_id,
                        name: stringify!($throw_name),
                        exception: &$throw_ty::DESCRIPTOR,
                    }, )*],
                    class: method_class!($class),
                    idempotent: false,
                    inline: false,
                    legacy: false,
                    #[cfg(feature = "recode")]
                    recode_result: $crate::call::recode_result::<args::$args>,
                }
            };
        }
    };
}
