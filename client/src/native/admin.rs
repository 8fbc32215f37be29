//! Tables and namespaces: the calls of [`Cluster`] that are not about rows.
//!
//! A change is a procedure of the master: the call returns its id, and the client asks for its result until
//! it is done. Each change carries a nonce, by which the master recognises a repetition, so these calls are
//! repeated like all others. After a lost master, the client looks the master up again.

use std::sync::Arc;
use std::time::Duration;

use basalt_idl::native::exception::ExceptionClass;
use basalt_idl::native::messages::get_procedure_result_response::State as ProcedureState;
use basalt_idl::native::messages::table_state::State;
use basalt_idl::native::messages::{
    AddColumnRequest, CompactRegionRequest, CompactRegionResponse, CreateNamespaceRequest,
    CreateTableRequest, CreateTableResponse, DeleteColumnRequest, DeleteNamespaceRequest, DeleteTableRequest,
    DisableTableRequest, EnableTableRequest, ExecProcedureRequest, ExecProcedureResponse, FlushTableRequest,
    GetNamespaceDescriptorRequest, GetNamespaceDescriptorResponse, GetProcedureResultRequest,
    GetProcedureResultResponse, GetTableDescriptorsRequest, GetTableDescriptorsResponse,
    GetTableNamesRequest, GetTableNamesResponse, IsProcedureDoneRequest, IsProcedureDoneResponse,
    ListNamespacesRequest, ListNamespacesResponse, ListTableNamesByNamespaceRequest,
    ListTableNamesByNamespaceResponse, MasterServiceMethod as Method, ModifyColumnRequest,
    ModifyNamespaceRequest, ModifyTableRequest, MoveRegionRequest, MoveRegionResponse, ProcedureDescription,
    RegionSpecifier, SplitTableRegionRequest, TruncateTableRequest, region_specifier::RegionSpecifierType,
};
use bytes::Bytes;
use prost::Message;
use tokio::time::{Instant, sleep};

use super::advice::advice;
use super::cluster::Cluster;
use super::connection::Service;
use super::connection::{Call, Reply};
use super::look_ups::is_unreachable;
use super::regions::Region;
use super::retry::{Attempts, nonce};
use super::schema::{name_of, name_to, of_namespace, of_table, to_family, to_namespace, to_table};
use crate::error::{Error, Result};
use crate::name::TableName;
use crate::remote::{Advice, Origin, RemoteException};
use crate::request::IntoBytes;
use crate::schema::{FamilySchema, TableSchema};
use crate::server_name::ServerName;
use crate::tables::Namespace;

/// First and longest pause between two requests for a procedure's result.
const PROCEDURE_PAUSES: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(1)];

/// HBase's procedure that flushes a table, before 2.6.
const FLUSH_PROCEDURE: &str = "flush-table-proc";

impl Cluster {
    /// Creates a table with one region.
    pub async fn create_table(&self, schema: TableSchema) -> Result<()> {
        self.create_table_split(schema, Vec::new()).await
    }

    /// Creates a table with one region more than split keys. See [`keys::presplit`](crate::keys::presplit)
    /// for keys that spread evenly.
    pub async fn create_table_split(&self, schema: TableSchema, split_keys: Vec<Vec<u8>>) -> Result<()> {
        let request = CreateTableRequest {
            table_schema: to_table(schema),
            split_keys: split_keys.into_iter().map(Bytes::from).collect(),
            nonce_group: self.nonce_group(),
            nonce: some_nonce(),
        };
        self.change(Method::CreateTable, &request).await
    }

    /// Deletes a disabled table.
    pub async fn drop_table(&self, table: &str) -> Result<()> {
        let name: TableName = table.parse()?;
        let request = DeleteTableRequest {
            table_name: name_to(&name),
            nonce_group: self.nonce_group(),
            nonce: some_nonce(),
        };
        self.change_regions(&name, Method::DeleteTable, &request).await
    }

    /// Brings a disabled table back.
    pub async fn enable_table(&self, table: &str) -> Result<()> {
        let name: TableName = table.parse()?;
        let request = EnableTableRequest {
            table_name: name_to(&name),
            nonce_group: self.nonce_group(),
            nonce: some_nonce(),
        };
        self.change_regions(&name, Method::EnableTable, &request).await
    }

    /// Takes a table out of service.
    pub async fn disable_table(&self, table: &str) -> Result<()> {
        let name: TableName = table.parse()?;
        let request = DisableTableRequest {
            table_name: name_to(&name),
            nonce_group: self.nonce_group(),
            nonce: some_nonce(),
        };
        self.change_regions(&name, Method::DisableTable, &request).await
    }

    /// Empties a disabled table and enables it. Without `preserve_splits` it has one region afterwards.
    pub async fn truncate_table(&self, table: &str, preserve_splits: bool) -> Result<()> {
        let name: TableName = table.parse()?;
        let request = TruncateTableRequest {
            table_name: name_to(&name),
            preserve_splits: Some(preserve_splits),
            nonce_group: self.nonce_group(),
            nonce: some_nonce(),
        };
        self.change_regions(&name, Method::TruncateTable, &request).await
    }

    /// Whether the table exists.
    pub async fn table_exists(&self, table: &str) -> Result<bool> {
        Ok(self.state(&table.parse()?).await?.is_some())
    }

    /// Whether the table serves.
    pub async fn is_table_enabled(&self, table: &str) -> Result<bool> {
        Ok(self.state_of_existing(table).await? == State::Enabled)
    }

    /// Whether the table is out of service.
    pub async fn is_table_disabled(&self, table: &str) -> Result<bool> {
        Ok(self.state_of_existing(table).await? == State::Disabled)
    }

    /// Whether all regions of the table are on a server; false if it does not exist or is disabled.
    pub async fn is_table_available(&self, table: &str) -> Result<bool> {
        let name: TableName = table.parse()?;
        if self.state(&name).await? != Some(State::Enabled) {
            return Ok(false);
        }
        let regions = self.inner.all_regions(&name).await?;
        let mut end = Some(Bytes::new());
        for region in regions {
            if end.as_ref() != Some(&region.start_key) {
                return Ok(false);
            }
            end = Some(region.end_key.clone()).filter(|end| !end.is_empty());
        }
        Ok(end.is_none())
    }

    /// The schema of a table.
    pub async fn describe_table(&self, table: &str) -> Result<TableSchema> {
        let name: TableName = table.parse()?;
        let request = GetTableDescriptorsRequest {
            table_names: vec![name_to(&name)],
            include_sys_tables: Some(true),
            ..GetTableDescriptorsRequest::default()
        };
        let answer: GetTableDescriptorsResponse = self.ask(Method::GetTableDescriptors, &request).await?;
        match answer.table_schema.into_iter().next() {
            Some(schema) => Ok(of_table(schema)),
            None => Err(not_found(&name)),
        }
    }

    /// Replaces the schema of a table. Families that it leaves out are deleted with their data, so
    /// begin with the result of [`Cluster::describe_table`].
    pub async fn alter_table(&self, schema: TableSchema) -> Result<()> {
        let request = ModifyTableRequest {
            table_name: name_to(&schema.name()),
            table_schema: to_table(schema),
            nonce_group: self.nonce_group(),
            nonce: some_nonce(),
            ..ModifyTableRequest::default()
        };
        self.change(Method::ModifyTable, &request).await
    }

    /// Adds a family.
    pub async fn add_family(&self, table: &str, family: FamilySchema) -> Result<()> {
        let request = AddColumnRequest {
            table_name: name_to(&table.parse()?),
            column_families: to_family(family.descriptor),
            nonce_group: self.nonce_group(),
            nonce: some_nonce(),
        };
        self.change(Method::AddColumn, &request).await
    }

    /// Replaces the schema of a family.
    pub async fn alter_family(&self, table: &str, family: FamilySchema) -> Result<()> {
        let request = ModifyColumnRequest {
            table_name: name_to(&table.parse()?),
            column_families: to_family(family.descriptor),
            nonce_group: self.nonce_group(),
            nonce: some_nonce(),
        };
        self.change(Method::ModifyColumn, &request).await
    }

    /// Deletes a family and its data.
    pub async fn drop_family(&self, table: &str, family: impl IntoBytes) -> Result<()> {
        let request = DeleteColumnRequest {
            table_name: name_to(&table.parse()?),
            column_name: family.into_bytes(),
            nonce_group: self.nonce_group(),
            nonce: some_nonce(),
        };
        self.change(Method::DeleteColumn, &request).await
    }

    /// The names of user tables whose whole name matches a Java regular expression; of all without one.
    pub async fn list_tables(&self, regex: Option<&str>) -> Result<Vec<TableName>> {
        let request = GetTableNamesRequest {
            regex: regex.map(str::to_owned),
            include_sys_tables: Some(false),
            ..GetTableNamesRequest::default()
        };
        let answer: GetTableNamesResponse = self.ask(Method::GetTableNames, &request).await?;
        Ok(answer.table_names.iter().map(name_of).collect())
    }

    /// The names of the tables of a namespace.
    pub async fn list_tables_of_namespace(&self, namespace: &str) -> Result<Vec<TableName>> {
        let request = ListTableNamesByNamespaceRequest {
            namespace_name: namespace.to_owned(),
        };
        let answer: ListTableNamesByNamespaceResponse =
            self.ask(Method::ListTableNamesByNamespace, &request).await?;
        Ok(answer.table_name.iter().map(name_of).collect())
    }

    /// Creates a namespace.
    pub async fn create_namespace(&self, namespace: Namespace) -> Result<()> {
        let request = CreateNamespaceRequest {
            namespace_descriptor: to_namespace(namespace),
            nonce_group: self.nonce_group(),
            nonce: some_nonce(),
        };
        self.change(Method::CreateNamespace, &request).await
    }

    /// Replaces the settings of a namespace.
    pub async fn alter_namespace(&self, namespace: Namespace) -> Result<()> {
        let request = ModifyNamespaceRequest {
            namespace_descriptor: to_namespace(namespace),
            nonce_group: self.nonce_group(),
            nonce: some_nonce(),
        };
        self.change(Method::ModifyNamespace, &request).await
    }

    /// Deletes an empty namespace.
    pub async fn drop_namespace(&self, namespace: &str) -> Result<()> {
        let request = DeleteNamespaceRequest {
            namespace_name: namespace.to_owned(),
            nonce_group: self.nonce_group(),
            nonce: some_nonce(),
        };
        self.change(Method::DeleteNamespace, &request).await
    }

    /// A namespace and its settings.
    pub async fn describe_namespace(&self, namespace: &str) -> Result<Namespace> {
        let request = GetNamespaceDescriptorRequest {
            namespace_name: namespace.to_owned(),
        };
        let answer: GetNamespaceDescriptorResponse =
            self.ask(Method::GetNamespaceDescriptor, &request).await?;
        Ok(of_namespace(answer.namespace_descriptor))
    }

    /// The names of all namespaces, `default` and `hbase` included.
    pub async fn list_namespaces(&self) -> Result<Vec<String>> {
        let answer: ListNamespacesResponse = self
            .ask(Method::ListNamespaces, &ListNamespacesRequest {})
            .await?;
        Ok(answer.namespace_name)
    }

    /// The id of the cluster.
    pub async fn cluster_id(&self) -> Result<String> {
        let mut attempts = Attempts::begin(&self.inner.options);
        loop {
            match self.inner.directory.cluster_id(attempts.call_deadline()).await {
                Ok(id) => return Ok(id),
                Err(error) => {
                    let error = self.inner.away(error);
                    attempts
                        .pause(error, || "looking up the cluster id".to_owned())
                        .await?;
                }
            }
        }
    }

    /// Flushes the memstores of a table.
    pub async fn flush_table(&self, table: &str) -> Result<()> {
        let name: TableName = table.parse()?;
        let request = FlushTableRequest {
            table_name: name_to(&name),
            nonce_group: self.nonce_group(),
            nonce: some_nonce(),
            ..FlushTableRequest::default()
        };
        match self.change(Method::FlushTable, &request).await {
            Err(error) if is_unknown_method(&error) => self.flush_before_2_6(&name).await,
            outcome => outcome,
        }
    }

    /// HBase before 2.6 flushes a table by a procedure of another kind.
    async fn flush_before_2_6(&self, table: &TableName) -> Result<()> {
        let procedure = ProcedureDescription {
            signature: FLUSH_PROCEDURE.to_owned(),
            instance: Some(table.to_string()),
            ..ProcedureDescription::default()
        };
        let request = ExecProcedureRequest {
            procedure: procedure.clone(),
        };
        let _started: ExecProcedureResponse = self.ask(Method::ExecProcedure, &request).await?;
        let request = IsProcedureDoneRequest {
            procedure: Some(procedure),
        };
        let mut waiting = Waiting::begin(self);
        loop {
            let answer: IsProcedureDoneResponse = self.ask(Method::IsProcedureDone, &request).await?;
            if answer.done == Some(true) {
                return Ok(());
            }
            waiting.pause(Method::ExecProcedure).await?;
        }
    }

    /// Splits the region that has a row; at `row`, which begins the second daughter.
    pub async fn split_region(&self, table: &str, row: impl IntoBytes) -> Result<()> {
        let (name, row) = (table.parse::<TableName>()?, row.into_bytes());
        // A cached region may have been split already.
        self.inner.regions.remove_table(&name);
        let region = self.inner.region_with_retries(&name, &row).await?;
        let request = SplitTableRegionRequest {
            region_info: region.to_info(),
            split_row: Some(row),
            nonce_group: self.nonce_group(),
            nonce: some_nonce(),
        };
        self.change(Method::SplitRegion, &request).await
    }

    /// Asks for a compaction of a family, or of all, in all regions of a table. Does not wait for it.
    pub async fn compact_table(&self, table: &str, family: Option<Bytes>, major: bool) -> Result<()> {
        let name: TableName = table.parse()?;
        for region in self.inner.all_regions(&name).await? {
            let request = CompactRegionRequest {
                region: region.specifier(),
                major: Some(major),
                family: family.clone(),
            };
            let deadline = Instant::now() + self.inner.options.call_timeout;
            let connections = &self.inner.connections;
            let connection = connections.get(&region.address, Service::Admin, deadline).await?;
            let call = Call {
                method: "CompactRegion",
                region: Some(&region.name),
                priority: 0,
                deadline,
                opens_scanner: false,
            };
            let _requested: Reply<CompactRegionResponse> = connection.call(&call, &request, b"").await?;
        }
        Ok(())
    }

    /// Moves a region to a server, or to one that the master chooses.
    pub async fn move_region(&self, region: &Region, to: Option<&ServerName>) -> Result<()> {
        let request = MoveRegionRequest {
            region: RegionSpecifier {
                r#type: RegionSpecifierType::EncodedRegionName.into(),
                value: Bytes::copy_from_slice(region.encoded_name()),
            },
            dest_server_name: to.map(ServerName::to_message),
        };
        let _moved: MoveRegionResponse = self.ask(Method::MoveRegion, &request).await?;
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "fields of messages are optional")]
    fn nonce_group(&self) -> Option<u64> {
        Some(self.inner.nonce_group)
    }

    /// A table's state; `None` if it does not exist.
    pub(super) async fn state(&self, table: &TableName) -> Result<Option<State>> {
        let mut attempts = Attempts::begin(&self.inner.options);
        let mut may_have_moved = true;
        loop {
            match self.inner.table_state(table, attempts.call_deadline()).await {
                Ok(state) => return Ok(state),
                // The registry says where meta is now.
                Err(error) if may_have_moved && is_unreachable(&error) => may_have_moved = false,
                Err(error) => {
                    let error = self.inner.away(error);
                    attempts
                        .pause(error, || format!("reading the state of {table}"))
                        .await?;
                }
            }
        }
    }

    async fn state_of_existing(&self, table: &str) -> Result<State> {
        let name: TableName = table.parse()?;
        self.state(&name).await?.ok_or_else(|| not_found(&name))
    }

    /// Makes a change after which the known regions of the table are no longer right.
    pub(super) async fn change_regions(
        &self,
        table: &TableName,
        method: Method,
        request: &impl Message,
    ) -> Result<()> {
        let outcome = self.change(method, request).await;
        self.inner.regions.remove_table(table);
        outcome
    }

    /// Makes a change and waits for its procedure.
    pub(super) async fn change(&self, method: Method, request: &impl Message) -> Result<()> {
        // The answers of all procedures have the same only field.
        let CreateTableResponse { proc_id } = self.ask(method, request).await?;
        let Some(proc_id) = proc_id else {
            return Ok(());
        };
        let mut waiting = Waiting::begin(self);
        loop {
            let question = GetProcedureResultRequest { proc_id };
            let answer: GetProcedureResultResponse = self.ask(Method::GetProcedureResult, &question).await?;
            if answer.state != i32::from(ProcedureState::Running) {
                return result_of(method, answer);
            }
            waiting.pause(method).await?;
        }
    }

    /// Calls the master.
    pub(super) async fn ask<M: Message + Default>(
        &self,
        method: Method,
        request: &impl Message,
    ) -> Result<M> {
        let mut attempts = Attempts::begin(&self.inner.options);
        loop {
            let error = match self.ask_once(method, request, attempts.call_deadline()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match (advice(&error), &error) {
                // The master does not know a region that the request names: repeating it cannot help.
                (Advice::Relocate, Error::Remote(_)) => return Err(error),
                (Advice::ServerGone | Advice::Relocate, _) => self.inner.directory.evict_master(),
                _ => {}
            }
            let what = || format!("{} of the master", method.name());
            attempts.pause(error, what).await?;
        }
    }

    async fn ask_once<M: Message + Default>(
        &self,
        method: Method,
        request: &impl Message,
        deadline: Instant,
    ) -> Result<M> {
        let master = self.inner.directory.master(deadline).await;
        let master = master.map_err(|error| self.inner.away(error))?;
        let address: Arc<str> = master.address().into();
        let connection = self
            .inner
            .connections
            .get(&address, Service::Master, deadline)
            .await?;
        let call = Call {
            method: method.name(),
            region: None,
            priority: 0,
            deadline,
            opens_scanner: false,
        };
        Ok(connection.call(&call, request, b"").await?.message)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "fields of messages are optional")]
fn some_nonce() -> Option<u64> {
    Some(nonce())
}

/// A wait for a procedure.
struct Waiting {
    deadline: Instant,
    began: Instant,
    pause: Duration,
}

impl Waiting {
    fn begin(cluster: &Cluster) -> Waiting {
        let began = Instant::now();
        Waiting {
            deadline: began + cluster.inner.options.operation_timeout,
            began,
            pause: PROCEDURE_PAUSES[0],
        }
    }

    async fn pause(&mut self, method: Method) -> Result<()> {
        if Instant::now() + self.pause >= self.deadline {
            return Err(Error::Timeout {
                what: "the master's procedure for",
                target: method.name().to_owned(),
                limit: self.deadline - self.began,
            });
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PROCEDURE_PAUSES[1]);
        Ok(())
    }
}

/// The outcome of a procedure that is done. One that is no longer known is done, as for HBase's client.
fn result_of(method: Method, answer: GetProcedureResultResponse) -> Result<()> {
    let Some(exception) = answer.exception else {
        return Ok(());
    };
    let generic = exception.generic_exception.unwrap_or_default();
    let origin = Origin {
        method: method.name(),
        server: exception.source.unwrap_or_else(|| "the master".to_owned()),
        region: None,
    };
    let class = generic.class_name.unwrap_or_default();
    let text = generic.message.unwrap_or_default();
    Err(Error::Remote(Box::new(RemoteException {
        do_not_retry: true,
        ..RemoteException::of_text(origin, class, &text)
    })))
}

fn is_unknown_method(error: &Error) -> bool {
    let remote = error.remote();
    remote.is_some_and(|exception| exception.message.contains("UnsupportedOperationException"))
}

fn not_found(table: &TableName) -> Error {
    let origin = Origin {
        method: "look-up",
        server: "the master".to_owned(),
        region: None,
    };
    let text = format!("table {table} does not exist");
    let exception = RemoteException::local(ExceptionClass::TableNotFound, origin, &text);
    Error::Remote(Box::new(exception))
}
