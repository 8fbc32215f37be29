//! Class names of HBase's exceptions.
//!
//! A Java client loads the class by its name and calls its constructor with one string. In place of a class
//! that it does not have, or that is no IOException, it throws a DoNotRetryIOException without the server's
//! text. So a server sends these classes only, and wraps others in [`ExceptionClass::DoNotRetryIo`] or
//! [`ExceptionClass::Io`]. A test makes each of them with the clients of HBase 1.7 to 3.0.

use super::messages::ExceptionResponse;

macro_rules! classes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $do_not_retry:literal;)*) => {
        /// An exception that a native client understands.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ExceptionClass {
            $($(#[$doc])* $variant,)*
        }

        impl ExceptionClass {
            /// All classes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The full Java name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The class of that full Java name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|class| class.name() == name)
            }

            /// Whether a client must not repeat the call.
            pub fn do_not_retry(self) -> bool {
                match self { $(Self::$variant => $do_not_retry,)* }
            }
        }
    };
}

classes! {
    /// The region is not served: it was split or merged, or its table is disabled. Clients look it
    /// up again.
    NotServingRegion = "org.apache.hadoop.hbase.NotServingRegionException", false;
    /// The memstore is full or a row is locked. Clients wait and keep the location.
    RegionTooBusy = "org.apache.hadoop.hbase.RegionTooBusyException", false;
    /// The queue of calls is full.
    CallQueueTooBig = "org.apache.hadoop.hbase.CallQueueTooBigException", false;
    /// The rest of a Multi was not done because its answer got too large (clients since 1.2).
    MultiActionResultTooLarge = "org.apache.hadoop.hbase.MultiActionResultTooLarge", false;
    /// A quota is used up.
    RpcThrottling = "org.apache.hadoop.hbase.quotas.RpcThrottlingException", false;
    /// The row of a read or increment lies outside the region.
    WrongRegion = "org.apache.hadoop.hbase.regionserver.WrongRegionException", false;
    /// A mutation that is invalid for every state of the table.
    FailedSanityCheck = "org.apache.hadoop.hbase.exceptions.FailedSanityCheckException", true;
    /// A family that the table does not have.
    NoSuchColumnFamily = "org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException", true;
    /// A scanner that was closed or whose lease is over.
    UnknownScanner = "org.apache.hadoop.hbase.UnknownScannerException", true;
    /// A fetch whose sequence number is not the next one.
    OutOfOrderScannerNext = "org.apache.hadoop.hbase.exceptions.OutOfOrderScannerNextException", true;
    /// A scanner that ended with an error. Clients since 1.4 open it again.
    ScannerReset = "org.apache.hadoop.hbase.exceptions.ScannerResetException", true;
    /// No such table.
    TableNotFound = "org.apache.hadoop.hbase.TableNotFoundException", true;
    /// The table exists already.
    TableExists = "org.apache.hadoop.hbase.TableExistsException", true;
    /// The table must be enabled.
    TableNotEnabled = "org.apache.hadoop.hbase.TableNotEnabledException", true;
    /// The table must be disabled.
    TableNotDisabled = "org.apache.hadoop.hbase.TableNotDisabledException", true;
    /// A change of a family that does not exist, or a new family that exists.
    InvalidFamilyOperation = "org.apache.hadoop.hbase.InvalidFamilyOperationException", true;
    /// No such namespace.
    NamespaceNotFound = "org.apache.hadoop.hbase.NamespaceNotFoundException", true;
    /// The namespace exists already.
    NamespaceExist = "org.apache.hadoop.hbase.NamespaceExistException", true;
    /// A change of the catalog's own tables. Only programs with HBase's server on their class path have the
    /// class, and HBase's tests catch it.
    Constraint = "org.apache.hadoop.hbase.constraint.ConstraintException", true;
    /// A quota of a namespace is used up.
    QuotaExceeded = "org.apache.hadoop.hbase.quotas.QuotaExceededException", true;
    /// A row has more bytes than a read may return.
    RowTooBig = "org.apache.hadoop.hbase.client.RowTooBigException", true;
    /// No region of that name.
    UnknownRegion = "org.apache.hadoop.hbase.UnknownRegionException", true;
    /// A region is in a state in which the call makes no sense.
    DoNotRetryRegion = "org.apache.hadoop.hbase.client.DoNotRetryRegionException", true;
    /// A snapshot could not be taken.
    SnapshotCreation = "org.apache.hadoop.hbase.snapshot.SnapshotCreationException", true;
    /// No such snapshot, for a deletion or restore.
    SnapshotDoesNotExist = "org.apache.hadoop.hbase.snapshot.SnapshotDoesNotExistException", true;
    /// The snapshot exists already.
    SnapshotExists = "org.apache.hadoop.hbase.snapshot.SnapshotExistsException", true;
    /// No such snapshot, for a question about its progress.
    UnknownSnapshot = "org.apache.hadoop.hbase.snapshot.UnknownSnapshotException", true;
    /// A snapshot whose time to live is over (clients since 2.0).
    SnapshotTtlExpired = "org.apache.hadoop.hbase.snapshot.SnapshotTTLExpiredException", true;
    /// A snapshot could not be restored.
    RestoreSnapshot = "org.apache.hadoop.hbase.snapshot.RestoreSnapshotException", true;
    /// Any other failure that must not be retried, such as an unknown method.
    DoNotRetryIo = "org.apache.hadoop.hbase.DoNotRetryIOException", true;
    /// No such coprocessor service; also the answer to a Get of the closest row before.
    UnknownProtocol = "org.apache.hadoop.hbase.exceptions.UnknownProtocolException", true;
    /// Not allowed.
    AccessDenied = "org.apache.hadoop.hbase.security.AccessDeniedException", true;
    /// The server is stopping. Clients look the region up again.
    RegionServerStopped = "org.apache.hadoop.hbase.regionserver.RegionServerStoppedException", false;
    /// A frame over the limit.
    RequestTooBig = "org.apache.hadoop.hbase.exceptions.RequestTooBigException", true;
    /// The connection ends.
    FatalConnection = "org.apache.hadoop.hbase.ipc.FatalConnectionException", true;
    /// A preamble of another version; the connection ends.
    WrongVersion = "org.apache.hadoop.hbase.ipc.WrongVersionException", true;
    /// A preamble with an unknown authentication code; the connection ends.
    BadAuth = "org.apache.hadoop.hbase.ipc.BadAuthException", true;
    /// A connection header with an unknown codec; the connection ends.
    UnsupportedCellCodec = "org.apache.hadoop.hbase.ipc.UnsupportedCellCodecException", true;
    /// A connection header with an unknown compressor; the connection ends.
    UnsupportedCompressionCodec = "org.apache.hadoop.hbase.ipc.UnsupportedCompressionCodecException", true;
    /// The answer to "Securi" from a server without Kerberos. Clients compare the name, and throw nothing.
    SecurityNotEnabled = "org.apache.hadoop.hbase.ipc.SecurityNotEnabledException", true;
    /// Any other failure that may be retried.
    Io = "java.io.IOException", false;
}

impl ExceptionClass {
    /// The exception of a response header. Its text begins with the class name, as in HBase:
    /// clients print or search it.
    pub fn response(self, message: &str) -> ExceptionResponse {
        ExceptionResponse {
            exception_class_name: Some(self.name().to_owned()),
            stack_trace: Some(format!("{}: {message}", self.name())),
            do_not_retry: Some(self.do_not_retry()),
            ..ExceptionResponse::default()
        }
    }
}
