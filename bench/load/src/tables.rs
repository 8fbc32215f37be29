//! Tables for a run: found, created and dropped, over the interface that the server has.

use basalt_client::{
    BloomType, ColumnFamilyDescriptor, Compression, FamilySchema, RegionLocation, TableSchema,
};
use basalt_idl::thrift1::{ColumnDescriptor, TRegionInfo, args};
use bytes::Bytes;

use crate::error::{During, Error, Result};
use crate::target::{Api, Target};

/// A region and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionPlace {
    /// Empty at the start of the table.
    pub start_key: Bytes,
    /// Host, port and start code; HBase's Thrift 1 does not tell the start code.
    pub server: String,
}

/// The tables of a server.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a> {
    /// The server.
    pub target: &'a Target,
    /// Whether a table that is in the way is dropped.
    pub replace: bool,
}

impl Tables<'_> {
    /// Whether calls about tables go through Thrift 1. Basalt answers both on one port, and Thrift 2 can do
    /// more.
    fn through_thrift1(&self) -> bool {
        self.target.api == Api::Thrift1 && !self.target.is_basalt
    }

    /// Whether there is a table of this name.
    pub async fn exists(&self, name: &str) -> Result<bool> {
        let client = &self.target.client;
        let during = || format!("looking for table {name}");
        if let Some(cluster) = &self.target.cluster {
            return cluster.table_exists(name).await.during(during);
        }
        if !self.through_thrift1() {
            return client.table_exists(name).await.during(during);
        }
        let names = client.call(&args::GetTableNames {}).await.during(during)?;
        Ok(names.iter().any(|found| found == name.as_bytes()))
    }

    /// Creates the table. One of this name is dropped before, or is an error.
    pub async fn create(&self, name: &str, families: Vec<FamilySchema>, splits: Vec<Vec<u8>>) -> Result<()> {
        let schema = TableSchema::new(name).during(|| format!("name of table {name}"))?;
        let schema = families.into_iter().fold(schema, TableSchema::family);
        self.create_schema(name, schema, splits).await
    }

    /// Creates a table with a schema. HBase's Thrift 1 leaves the table's attributes out, and
    /// families have only the options that its interface knows.
    pub async fn create_schema(&self, name: &str, schema: TableSchema, splits: Vec<Vec<u8>>) -> Result<()> {
        let during = || format!("creating table {name}");
        if self.exists(name).await? {
            if !self.replace {
                return Err(Error::Usage(format!(
                    "table {name} exists already: give --replace-tables to drop it, or another name"
                )));
            }
            self.drop(name).await?;
        }
        if let Some(cluster) = &self.target.cluster {
            return cluster.create_table_split(schema, splits).await.during(during);
        }
        let client = &self.target.client;
        if self.through_thrift1() {
            if !splits.is_empty() {
                return Err(Error::Usage(format!(
                    "HBase's Thrift 1 cannot create table {name} with {} regions: create it in HBase's shell, or ask \
                     for one region",
                    splits.len() + 1
                )));
            }
            let families = schema.families().iter().map(column_descriptor);
            let call = args::CreateTable {
                table_name: Some(Bytes::from(name.to_owned())),
                column_families: Some(families.collect::<Result<_>>()?),
            };
            return client.call(&call).await.during(during);
        }
        client.create_table_split(schema, splits).await.during(during)
    }

    /// Disables and drops a table.
    pub async fn drop(&self, name: &str) -> Result<()> {
        let client = &self.target.client;
        let during = || format!("dropping table {name}");
        if let Some(cluster) = &self.target.cluster {
            if cluster.is_table_enabled(name).await.during(during)? {
                cluster.disable_table(name).await.during(during)?;
            }
            return cluster.drop_table(name).await.during(during);
        }
        if self.through_thrift1() {
            let table_name = Some(Bytes::from(name.to_owned()));
            let disable = args::DisableTable {
                table_name: table_name.clone(),
            };
            client.call(&disable).await.during(during)?;
            return client
                .call(&args::DeleteTable { table_name })
                .await
                .during(during);
        }
        if client.is_table_enabled(name).await.during(during)? {
            client.disable_table(name).await.during(during)?;
        }
        client.drop_table(name).await.during(during)
    }

    /// The regions of a table, in the order of keys.
    pub async fn regions(&self, name: &str) -> Result<Vec<RegionPlace>> {
        let client = &self.target.client;
        let during = || format!("regions of table {name}");
        if self.through_thrift1() {
            let call = args::GetTableRegions {
                table_name: Some(Bytes::from(name.to_owned())),
            };
            let mut regions: Vec<RegionPlace> = client
                .call(&call)
                .await
                .during(during)?
                .into_iter()
                .map(region_place)
                .collect();
            regions.sort_by(|a, b| a.start_key.cmp(&b.start_key));
            return Ok(regions);
        }
        let regions = match &self.target.cluster {
            Some(cluster) => cluster.table(name).during(during)?.regions().await,
            None => client.table(name).during(during)?.regions().await,
        };
        let place = |region: RegionLocation| RegionPlace {
            server: format!("{},{},{}", region.host, region.port, region.start_code),
            start_key: region.start_key,
        };
        Ok(regions.during(during)?.into_iter().map(place).collect())
    }

    /// Writes the memstores to files, where the server can be asked to.
    pub async fn flush(&self, name: &str) -> Result<()> {
        let flushed = match &self.target.cluster {
            Some(cluster) => cluster.flush_table(name).await,
            None if self.target.is_basalt => self.target.admin.flush(name).await,
            None => return Ok(()),
        };
        flushed.during(|| format!("flushing table {name}"))
    }
}

/// A region as HBase's Thrift 1 describes it.
fn region_place(region: TRegionInfo) -> RegionPlace {
    let host = region.server_name.unwrap_or_default();
    RegionPlace {
        start_key: region.start_key.unwrap_or_default(),
        server: format!(
            "{},{}",
            String::from_utf8_lossy(&host),
            region.port.unwrap_or_default()
        ),
    }
}

/// A family as HBase's Thrift 1 describes it; an error for a setting that it does not have. Unset
/// options get Thrift 2's defaults, so that both interfaces make the same table.
fn column_descriptor(family: &ColumnFamilyDescriptor) -> Result<ColumnDescriptor> {
    let name = family.name.escape_ascii();
    if family.block_size.is_some() || family.data_block_encoding.is_some() {
        return Err(Error::Usage(format!(
            "HBase's Thrift 1 cannot create family {name} with a block size or a block encoding: use --api thrift2"
        )));
    }
    let bloom = family.bloomn_filter_type.and_then(BloomType::name);
    let compression = family.compression_type.and_then(Compression::name);
    let default = ColumnDescriptor::default();
    Ok(ColumnDescriptor {
        name: Some(family.name.clone()),
        max_versions: family.max_versions.unwrap_or(1),
        compression: compression.unwrap_or("NONE").to_owned(),
        in_memory: family.in_memory.unwrap_or(false),
        bloom_filter_type: bloom.unwrap_or("ROW").to_owned(),
        block_cache_enabled: family.block_cache_enabled.unwrap_or(true),
        time_to_live: family.time_to_live.unwrap_or(default.time_to_live),
        ..default
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_of_thrift1_is_named_by_host_and_port() {
        let region = TRegionInfo {
            start_key: Some(Bytes::from("m")),
            server_name: Some(Bytes::from("host")),
            port: Some(16_020),
            ..TRegionInfo::default()
        };
        let place = RegionPlace {
            start_key: Bytes::from("m"),
            server: "host,16020".to_owned(),
        };
        assert_eq!(region_place(region), place);
    }
}
