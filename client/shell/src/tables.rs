//! Commands on tables: create, alter, describe, list and the state of tables.

use basalt_idl::thrift2::describe::{describe_family, describe_table};

use super::arguments::{Arguments, Options, bytes, list};
use super::schema_text::{attribute_names, family_name, set_family, set_table};
use super::session::{Outcome, Session, say_more, unknown_table};
use super::several::Results;
use super::to_tables::ToTables;
use super::value::Value;
use super::without_effect::WithoutEffect;
use super::{ShellError, ShellResult};
use basalt_client::keys::presplit::SplitAlgorithm;
use basalt_client::{FamilySchema, TableName, TableSchema};

fn wrong<T>(text: impl Into<String>) -> ShellResult<T> {
    Err(ShellError::Arguments(text.into()))
}

/// The split keys that the options of `create` ask for.
fn split_keys(options: &mut Options) -> ShellResult<Vec<Vec<u8>>> {
    let keys = options.take("SPLITS");
    let file = options.text("SPLITS_FILE")?;
    let regions = options.integer("NUMREGIONS")?;
    let algorithm = options.text("SPLITALGO")?;
    match (keys, file, regions, algorithm) {
        (None, None, None, None) => Ok(Vec::new()),
        (Some(keys), None, None, None) => list(keys, "SPLITS"),
        (None, Some(file), None, None) => {
            let lines = std::fs::read(&file).map_err(|source| ShellError::Io {
                what: format!("cannot read SPLITS_FILE {file}"),
                source,
            })?;
            let keys = lines.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
            Ok(keys.filter(|key| !key.is_empty()).map(<[u8]>::to_vec).collect())
        }
        (None, None, Some(regions), Some(algorithm)) => {
            let Some(algorithm) = SplitAlgorithm::from_name(&algorithm) else {
                let known = SplitAlgorithm::NAMES.join(", ");
                return wrong(format!("SPLITALGO is '{algorithm}', which is none of {known}"));
            };
            // HBase's shell makes a table of one region without an algorithm only.
            match usize::try_from(regions) {
                Ok(regions @ 2..) => Ok(algorithm.split_keys(regions)?),
                _ => wrong(format!("NUMREGIONS is {regions} and must be greater than 1")),
            }
        }
        (None, None, _, _) => wrong("NUMREGIONS and SPLITALGO go together"),
        _ => wrong("a table is split by one of SPLITS, SPLITS_FILE, or NUMREGIONS with SPLITALGO"),
    }
}

impl Session {
    pub(super) async fn create(&mut self, mut arguments: Arguments) -> Outcome {
        let name = arguments.text("a table")?;
        let mut schema = TableSchema::new(&name)?;
        let mut splits = Vec::new();
        let mut idle = WithoutEffect::default();
        while let Some(argument) = arguments.take() {
            let Value::Hash(pairs) = argument else {
                let mut named = Options::new(vec![(b"NAME".to_vec(), argument)])?;
                let name = family_name(&mut named)?.unwrap_or_default();
                schema = schema.family(FamilySchema::new(name));
                continue;
            };
            let mut options = Options::new(pairs)?;
            idle.note(&options);
            let found = split_keys(&mut options)?;
            if !found.is_empty() && !splits.is_empty() {
                return wrong("split keys are given twice");
            }
            splits.extend(found);
            match family_name(&mut options)? {
                Some(name) => {
                    let mut family = FamilySchema::new(name);
                    set_family(&mut family, options)?;
                    schema = schema.family(family);
                }
                None => set_table(&mut schema, options)?,
            }
        }
        if schema.families().is_empty() {
            return wrong("create needs at least one family; see help 'create'");
        }
        self.client.create_table_split(schema, splits).await?;
        self.output.note(&format!("Created table {name}"))?;
        self.warn_of(idle).await?;
        Ok(Some(Value::Table(name)))
    }

    pub(super) async fn alter(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        let mut schema = self.client.describe_table(&table).await?;
        let mut changes = 0;
        let mut idle = WithoutEffect::default();
        while let Some(argument) = arguments.take() {
            changes += 1;
            match argument {
                Value::Hash(pairs) => {
                    let options = Options::new(pairs)?;
                    idle.note(&options);
                    alter_by(&mut schema, options)?;
                }
                name => {
                    let name = bytes(name, "a family")?;
                    alter_family(&mut schema, &name, Options::default())?;
                }
            }
        }
        if changes == 0 {
            return wrong("alter needs something to change; see help 'alter'");
        }
        self.client.alter_table(schema).await?;
        self.output.note("Updating all regions with the new schema...")?;
        self.output.note("Done.")?;
        self.warn_of(idle).await?;
        Ok(None)
    }

    pub(super) async fn describe(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        arguments.end()?;
        let schema = self.client.describe_table(&table).await?;
        let enabled = self.client.is_table_enabled(&table).await?;
        let state = if enabled { "ENABLED" } else { "DISABLED" };
        self.output.line(&format!("Table {} is {state}", schema.name()))?;
        self.output
            .line(&describe_table(&schema.name().to_string(), &schema.descriptor))?;
        self.output.note("COLUMN FAMILIES DESCRIPTION")?;
        for family in schema.families() {
            self.output.line(&describe_family(family))?;
        }
        self.output.note("")?;
        self.print_count(schema.families().len())?;
        Ok(None)
    }

    pub(super) async fn list(&mut self, mut arguments: Arguments) -> Outcome {
        let pattern = arguments.optional_text("a pattern")?;
        arguments.end()?;
        let tables = self.client.list_tables(pattern.as_deref()).await?;
        let names: Vec<String> = tables.iter().map(ToString::to_string).collect();
        self.print_names("TABLE", &names)
    }

    /// Prints the tables that are enabled, or those that are disabled.
    pub(super) async fn list_in_state(&mut self, mut arguments: Arguments, is_enabled: bool) -> Outcome {
        arguments.end()?;
        let mut names = Vec::new();
        for table in self.client.list_tables(None).await? {
            let name = table.to_string();
            if self.client.is_table_enabled(&name).await? == is_enabled {
                names.push(name);
            }
        }
        self.print_names("TABLE", &names)
    }

    /// A table that exists, for a variable.
    pub(super) async fn get_table(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        arguments.end()?;
        if !self.client.table_exists(&table).await? {
            return Err(ShellError::Refused(unknown_table(&table)));
        }
        Ok(Some(Value::Table(table)))
    }

    pub(super) async fn exists(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        arguments.end()?;
        let exists = self.client.table_exists(&table).await?;
        let text = if exists { "does exist" } else { "does not exist" };
        self.print_answer(&format!("Table {table} {text}"), Value::Bool(exists))
    }

    pub(super) async fn enable(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        arguments.end()?;
        self.change(ToTables::Enable, &table).await?;
        Ok(None)
    }

    pub(super) async fn disable(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        arguments.end()?;
        self.change(ToTables::Disable, &table).await?;
        Ok(None)
    }

    async fn change(&self, what: ToTables, table: &str) -> ShellResult<()> {
        match what {
            // In HBase's shell enabling an enabled table is no error, unlike in its interface.
            ToTables::Enable if !self.client.is_table_enabled(table).await? => {
                self.client.enable_table(table).await?;
            }
            ToTables::Disable if !self.client.is_table_disabled(table).await? => {
                self.client.disable_table(table).await?;
            }
            ToTables::Enable | ToTables::Disable => {}
            ToTables::Drop => {
                if self.client.is_table_enabled(table).await? {
                    return wrong(format!("Table {table} is enabled. Disable it first."));
                }
                self.client.drop_table(table).await?;
            }
        }
        Ok(())
    }

    /// Changes the state of all tables whose whole name matches, after the user has confirmed the
    /// list.
    pub(super) async fn change_all(&mut self, mut arguments: Arguments, what: ToTables) -> Outcome {
        let pattern = arguments.text("a pattern")?;
        arguments.end()?;
        let tables = self.client.list_tables(Some(&pattern)).await?;
        if tables.is_empty() {
            self.output
                .note(&format!("No tables matched the regex {pattern}"))?;
            return Ok(None);
        }
        for table in &tables {
            self.output.note(&table.to_string())?;
        }
        let [command, question, done] = what.words();
        if !self.is_agreed_for(question, tables.len(), "tables")? {
            return Ok(None);
        }
        let mut results = Results::default();
        for table in tables {
            let name = table.to_string();
            let changed = self.change(what, &name).await;
            results.add(&name, changed.map_err(|error| say_more(error, command, &name)));
        }
        self.tell(&results, &format!("tables successfully {done}"), |count| {
            format!("{count} tables not {done} due to an exception")
        })
    }

    pub(super) async fn is_enabled(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        arguments.end()?;
        let enabled = self.client.is_table_enabled(&table).await?;
        self.print_answer(&enabled.to_string(), Value::Bool(enabled))
    }

    pub(super) async fn is_disabled(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        arguments.end()?;
        let disabled = self.client.is_table_disabled(&table).await?;
        self.print_answer(&disabled.to_string(), Value::Bool(disabled))
    }

    /// As HBase prints it once all regions have a new schema, which here they have when `alter` returns.
    pub(super) async fn alter_status(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        arguments.end()?;
        let regions = self.client.table(&table)?.regions().await?.len();
        self.output
            .note(&format!("{regions}/{regions} regions updated."))?;
        self.output.note("Done.")?;
        Ok(None)
    }

    pub(super) async fn clone_table_schema(&mut self, mut arguments: Arguments) -> Outcome {
        let (from, to) = (arguments.text("a table")?, arguments.text("a new table")?);
        let preserve_splits = match arguments.take() {
            None => true,
            Some(Value::Bool(preserve)) => preserve,
            Some(_) => return wrong("preserving splits is true or false"),
        };
        arguments.end()?;
        let mut schema = self.client.describe_table(&from).await?;
        schema.descriptor.table_name = (&to.parse::<TableName>()?).into();
        let mut keys = Vec::new();
        if preserve_splits {
            let regions = self.client.table(&from)?.regions().await?;
            let starts = regions.into_iter().map(|region| region.start_key.to_vec());
            keys = starts.filter(|start| !start.is_empty()).collect();
        }
        self.client.create_table_split(schema, keys).await?;
        Ok(None)
    }

    pub(super) async fn drop_table(&mut self, mut arguments: Arguments) -> Outcome {
        let table = arguments.text("a table")?;
        arguments.end()?;
        self.change(ToTables::Drop, &table).await?;
        Ok(None)
    }

    pub(super) async fn truncate(&mut self, mut arguments: Arguments, preserve_splits: bool) -> Outcome {
        let table = arguments.text("a table")?;
        arguments.end()?;
        self.output
            .note(&format!("Truncating '{table}' table (it may take a while):"))?;
        if self.client.is_table_enabled(&table).await? {
            self.output.note("Disabling table...")?;
            self.client.disable_table(&table).await?;
        }
        self.output.note("Truncating table...")?;
        self.client.truncate_table(&table, preserve_splits).await?;
        Ok(None)
    }
}

/// One hash of `alter`: a family, settings of the table, or a method.
fn alter_by(schema: &mut TableSchema, mut options: Options) -> ShellResult<()> {
    if let Some(name) = options.take("delete") {
        let name = bytes(name, "the family")?;
        options.end(&["delete"])?;
        return delete_family(schema, &name);
    }
    let method = options.text("METHOD")?;
    match method.as_deref() {
        None => match family_name(&mut options)? {
            Some(name) => alter_family(schema, &name, options),
            None => set_table(schema, options),
        },
        Some("delete") => {
            let Some(name) = family_name(&mut options)? else {
                return wrong("METHOD => 'delete' needs the NAME of a family");
            };
            options.end(&["NAME"])?;
            delete_family(schema, &name)
        }
        Some("table_att") => set_table(schema, options),
        Some(method @ "table_att_unset") => unset(schema, options, method, "attribute"),
        Some(method @ "table_conf_unset") => unset(schema, options, method, "configuration"),
        Some("table_remove_coprocessor") => {
            wrong("coprocessors are not supported: they are Java code that runs inside HBase")
        }
        Some(other) => wrong(format!(
            "METHOD is '{other}', which is none of delete, table_att, table_att_unset, table_conf_unset"
        )),
    }
}

/// Removes settings from a table. Attributes and configuration are one map in the Thrift interface.
fn unset(schema: &mut TableSchema, mut options: Options, method: &str, what: &str) -> ShellResult<()> {
    let Some(names) = options.take("NAME") else {
        return wrong(format!("METHOD => '{method}' needs the NAME of a setting"));
    };
    options.end(&["NAME"])?;
    for name in attribute_names(names)? {
        let attributes = schema.descriptor.attributes.get_or_insert_default();
        if attributes.remove(name.as_bytes()).is_none() {
            return wrong(format!("Could not find {what}: {name}"));
        }
    }
    Ok(())
}

/// Changes a family of the table, or adds it.
fn alter_family(schema: &mut TableSchema, name: &[u8], options: Options) -> ShellResult<()> {
    let families = schema.descriptor.columns.get_or_insert_default();
    let Some(known) = families.iter_mut().find(|family| family.name == name) else {
        let mut family = FamilySchema::new(name);
        set_family(&mut family, options)?;
        families.push(family.descriptor);
        return Ok(());
    };
    let mut family = FamilySchema {
        descriptor: known.clone(),
    };
    set_family(&mut family, options)?;
    *known = family.descriptor;
    Ok(())
}

fn delete_family(schema: &mut TableSchema, name: &[u8]) -> ShellResult<()> {
    let families = schema.descriptor.columns.get_or_insert_default();
    let before = families.len();
    families.retain(|family| family.name != name);
    if families.len() == before {
        return wrong(format!("the table has no family '{}'", name.escape_ascii()));
    }
    if families.is_empty() {
        return wrong("the last family of a table cannot be deleted");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(regions: Option<i64>, algorithm: Option<&str>) -> Result<Vec<Vec<u8>>, String> {
        let regions = regions.map(|count| (b"NUMREGIONS".to_vec(), Value::Integer(count)));
        let algorithm = algorithm.map(|name| (b"SPLITALGO".to_vec(), Value::Bytes(name.into())));
        let mut options = Options::new(regions.into_iter().chain(algorithm).collect()).unwrap();
        split_keys(&mut options).map_err(|error| error.to_string())
    }

    #[test]
    fn tables_are_split_as_by_hbases_shell() {
        assert_eq!(keys(None, None), Ok(Vec::new()));
        let thirds = Ok(vec![b"55555555".to_vec(), b"aaaaaaaa".to_vec()]);
        assert_eq!(keys(Some(3), Some("HexStringSplit")), thirds);
        let class = "org.apache.hadoop.hbase.util.RegionSplitter$HexStringSplit";
        assert_eq!(keys(Some(3), Some(class)), thirds);
        for count in [1, 0, -1] {
            let refused = keys(Some(count), Some("UniformSplit")).unwrap_err();
            assert_eq!(
                refused,
                format!("NUMREGIONS is {count} and must be greater than 1")
            );
        }
        let refused = keys(Some(3), Some("MySplit")).unwrap_err();
        assert!(
            refused.contains("MySplit") && refused.contains("UniformSplit"),
            "{refused}"
        );
        assert!(keys(Some(3), None).is_err() && keys(None, Some("UniformSplit")).is_err());
    }
}
