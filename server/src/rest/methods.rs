//! The methods of the interface: a resource with a method of HTTP.

use axum::http::Method as HttpMethod;
use basalt_rest::route::Route;

use crate::observe::metrics::Api;
use crate::service::pipeline;

/// Declares the methods with their names in metrics and logs.
macro_rules! methods {
    ($($name:ident = $text:literal),+ $(,)?) => {
        /// Effect of a request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Method { $($name),+ }

        impl Method {
            /// All methods, by number.
            pub(super) const ALL: &[Self] = &[$(Self::$name),+];

            /// The name in metrics and logs.
            pub(super) fn name(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }
        }
    };
}

methods! {
    ListTables = "listTables",
    Version = "version",
    ClusterVersion = "clusterVersion",
    ClusterStatus = "clusterStatus",
    ListNamespaces = "listNamespaces",
    GetNamespace = "getNamespace",
    CreateNamespace = "createNamespace",
    ModifyNamespace = "modifyNamespace",
    DeleteNamespace = "deleteNamespace",
    ListNamespaceTables = "listNamespaceTables",
    TableExists = "tableExists",
    ListRegions = "listRegions",
    GetSchema = "getSchema",
    ReplaceSchema = "replaceSchema",
    ModifySchema = "modifySchema",
    DeleteTable = "deleteTable",
    Get = "get",
    Put = "put",
    Delete = "delete",
    MultiGet = "multiGet",
    Scan = "scan",
    OpenScanner = "openScanner",
    FetchScanner = "fetchScanner",
    CloseScanner = "closeScanner",
}

impl Method {
    /// The method of a request; otherwise the methods of HTTP that the resource has, none if there is no
    /// such resource.
    pub(super) fn of(http: &HttpMethod, route: &Route) -> Result<Self, &'static str> {
        let allowed = allowed(route);
        let (get, put, post, delete) = (
            matches!(*http, HttpMethod::GET | HttpMethod::HEAD),
            *http == HttpMethod::PUT,
            *http == HttpMethod::POST,
            *http == HttpMethod::DELETE,
        );
        let method = match route {
            Route::Tables if get => Self::ListTables,
            Route::Version if get => Self::Version,
            Route::ClusterVersion if get => Self::ClusterVersion,
            Route::Status if get => Self::ClusterStatus,
            Route::Namespaces if get => Self::ListNamespaces,
            Route::NamespaceTables(_) if get => Self::ListNamespaceTables,
            Route::Namespace(_) if get => Self::GetNamespace,
            Route::Namespace(_) | Route::NamespaceTables(_) if post => Self::CreateNamespace,
            Route::Namespace(_) | Route::NamespaceTables(_) if put => Self::ModifyNamespace,
            Route::Namespace(_) | Route::NamespaceTables(_) if delete => Self::DeleteNamespace,
            Route::Exists(_) if get => Self::TableExists,
            Route::Regions(_) if get => Self::ListRegions,
            Route::Schema(_) if get => Self::GetSchema,
            Route::Schema(_) if put => Self::ReplaceSchema,
            Route::Schema(_) if post => Self::ModifySchema,
            Route::Schema(_) if delete => Self::DeleteTable,
            Route::Multiget(..) if get => Self::MultiGet,
            Route::Scan(..) if get => Self::Scan,
            Route::Scanners(_) if put || post => Self::OpenScanner,
            Route::Scanner(..) if get => Self::FetchScanner,
            Route::Scanner(..) if delete => Self::CloseScanner,
            Route::Rows(..) if get => Self::Get,
            Route::Rows(..) if put || post => Self::Put,
            Route::Rows(..) if delete => Self::Delete,
            _ => return Err(allowed),
        };
        Ok(method)
    }

    /// Whether a server that is read-only refuses it: all but reads. Scanners are refused, too, as in HBase.
    pub(super) fn writes(self) -> bool {
        matches!(
            self,
            Self::CreateNamespace
                | Self::ModifyNamespace
                | Self::DeleteNamespace
                | Self::ReplaceSchema
                | Self::ModifySchema
                | Self::DeleteTable
                | Self::Put
                | Self::Delete
                | Self::OpenScanner
        )
    }

    /// The method for metrics and logs.
    pub(super) fn described(self) -> pipeline::Method {
        pipeline::Method {
            api: Api::Rest,
            number: self as usize,
            service: "REST",
            name: self.name(),
        }
    }
}

/// The methods of HTTP that a resource has; empty if there is no such resource.
fn allowed(route: &Route) -> &'static str {
    match route {
        Route::Unknown => "",
        Route::Namespace(_) | Route::NamespaceTables(_) | Route::Schema(_) | Route::Rows(..) => {
            "GET, HEAD, PUT, POST, DELETE, OPTIONS"
        }
        Route::Scanners(_) => "PUT, POST, OPTIONS",
        Route::Scanner(..) => "GET, HEAD, DELETE, OPTIONS",
        Route::Tables
        | Route::Version
        | Route::ClusterVersion
        | Route::Status
        | Route::Namespaces
        | Route::Exists(_)
        | Route::Regions(_)
        | Route::Multiget(..)
        | Route::Scan(..) => "GET, HEAD, OPTIONS",
    }
}
