//! Replication peers, over native RPC, with the words of HBase's shell (`hbase/replication_admin.rb`).
//!
//! A change of a list reads the peer's configuration, changes it and sends it back whole, as HBase's shell
//! does.

use basalt_idl::native::messages as pb;
use basalt_idl::native::messages::MasterServiceMethod as Method;
use basalt_idl::native::messages::replication_state::State;
use bytes::Bytes;

use super::arguments::{Arguments, bytes, list};
use super::cluster::table_name;
use super::escape::printable;
use super::session::{Outcome, Session};
use super::value::Value;
use super::{ShellError, ShellResult};

/// How a list of a peer is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Set,
    Append,
    Remove,
}

/// The lists of a peer: included, and excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Included,
    Excluded,
}

const ID: &str = "the id of a peer";

fn wrong<T>(text: impl Into<String>) -> ShellResult<T> {
    Err(ShellError::Arguments(text.into()))
}

impl Session {
    pub(super) async fn add_peer(&mut self, mut arguments: Arguments) -> Outcome {
        let peer_id = arguments.text(ID)?;
        let mut options = arguments.options()?;
        arguments.end()?;
        let state = match options.text("STATE")?.as_deref() {
            None | Some("ENABLED") => State::Enabled,
            Some("DISABLED") => State::Disabled,
            Some(other) => return wrong(format!("STATE is '{other}', neither ENABLED nor DISABLED")),
        };
        let Some(cluster_key) = options.text("CLUSTER_KEY")? else {
            return wrong(
                "add_peer needs CLUSTER_KEY => 'zk1,zk2:2181:/hbase', or 'hbase+rpc://host:port'; see help 'add_peer'",
            );
        };
        let mut config = pb::ReplicationPeer {
            clusterkey: Some(cluster_key),
            replication_endpoint_impl: options.text("ENDPOINT_CLASSNAME")?,
            data: data(options.bytes_by_name("DATA")?),
            configuration: configuration(options.texts_by_name("CONFIG")?),
            serial: options.boolean("SERIAL")?,
            ..pb::ReplicationPeer::default()
        };
        if let Some(namespaces) = options.take("NAMESPACES") {
            config.namespaces = names(namespaces)?;
            config.replicate_all = Some(false);
        }
        if let Some(tables) = options.take("TABLE_CFS") {
            config.table_cfs = table_families(tables)?;
            config.replicate_all = Some(false);
        }
        options.end(&[
            "CLUSTER_KEY",
            "STATE",
            "ENDPOINT_CLASSNAME",
            "DATA",
            "CONFIG",
            "NAMESPACES",
            "TABLE_CFS",
            "SERIAL",
        ])?;
        let request = pb::AddReplicationPeerRequest {
            peer_id,
            peer_config: config,
            peer_state: pb::ReplicationState { state: state.into() },
        };
        let _: pb::AddReplicationPeerResponse = self.ask(Method::AddReplicationPeer, &request).await?;
        Ok(None)
    }

    pub(super) async fn remove_peer(&mut self, mut arguments: Arguments) -> Outcome {
        let peer_id = arguments.text(ID)?;
        arguments.end()?;
        let request = pb::RemoveReplicationPeerRequest { peer_id };
        let _: pb::RemoveReplicationPeerResponse = self.ask(Method::RemoveReplicationPeer, &request).await?;
        Ok(None)
    }

    pub(super) async fn enable_peer(&mut self, mut arguments: Arguments) -> Outcome {
        let peer_id = arguments.text(ID)?;
        arguments.end()?;
        let request = pb::EnableReplicationPeerRequest { peer_id };
        let _: pb::EnableReplicationPeerResponse = self.ask(Method::EnableReplicationPeer, &request).await?;
        Ok(None)
    }

    pub(super) async fn disable_peer(&mut self, mut arguments: Arguments) -> Outcome {
        let peer_id = arguments.text(ID)?;
        arguments.end()?;
        let request = pb::DisableReplicationPeerRequest { peer_id };
        let _: pb::DisableReplicationPeerResponse =
            self.ask(Method::DisableReplicationPeer, &request).await?;
        Ok(None)
    }

    pub(super) async fn list_peers(&mut self, mut arguments: Arguments) -> Outcome {
        let regex = arguments.optional_text("a regular expression")?;
        arguments.end()?;
        let request = pb::ListReplicationPeersRequest { regex };
        let answer: pb::ListReplicationPeersResponse =
            self.ask(Method::ListReplicationPeers, &request).await?;
        let rows: Vec<Vec<String>> = answer.peer_desc.iter().map(row_of).collect();
        self.output.grid(
            &[
                "PEER_ID",
                "CLUSTER_KEY",
                "ENDPOINT_CLASSNAME",
                "STATE",
                "REPLICATE_ALL",
                "NAMESPACES",
                "TABLE_CFS",
                "BANDWIDTH",
                "SERIAL",
            ],
            &rows,
        )?;
        self.print_count(rows.len())?;
        Ok(Some(
            answer.peer_desc.iter().map(|peer| peer.id.clone()).collect(),
        ))
    }

    pub(super) async fn list_peer_configs(&mut self, mut arguments: Arguments) -> Outcome {
        arguments.end()?;
        let request = pb::ListReplicationPeersRequest::default();
        let answer: pb::ListReplicationPeersResponse =
            self.ask(Method::ListReplicationPeers, &request).await?;
        for peer in &answer.peer_desc {
            self.output.line(&format!("PeerId  {}", peer.id))?;
            self.print_config(&peer.config)?;
        }
        self.print_count(answer.peer_desc.len())?;
        Ok(None)
    }

    pub(super) async fn get_peer_config(&mut self, mut arguments: Arguments) -> Outcome {
        let id = arguments.text(ID)?;
        arguments.end()?;
        let config = self.peer_config(&id).await?;
        self.print_config(&config)?;
        Ok(None)
    }

    pub(super) async fn show_peer_table_families(&mut self, mut arguments: Arguments) -> Outcome {
        let id = arguments.text(ID)?;
        arguments.end()?;
        let config = self.peer_config(&id).await?;
        let text = shown_tables(&config.table_cfs);
        self.print_answer(&text, Value::text(text.clone()))
    }

    pub(super) async fn update_peer_config(&mut self, mut arguments: Arguments) -> Outcome {
        let id = arguments.text(ID)?;
        let mut options = arguments.options()?;
        arguments.end()?;
        let mut config = self.peer_config(&id).await?;
        let added = data(options.bytes_by_name("DATA")?);
        config
            .data
            .retain(|pair| !added.iter().any(|new| new.first == pair.first));
        config.data.extend(added);
        let added = configuration(options.texts_by_name("CONFIG")?);
        config
            .configuration
            .retain(|pair| !added.iter().any(|new| new.name == pair.name));
        config.configuration.extend(added);
        options.end(&["CONFIG", "DATA"])?;
        self.set_peer_config(id, config).await
    }

    pub(super) async fn set_peer_replicate_all(&mut self, mut arguments: Arguments) -> Outcome {
        let id = arguments.text(ID)?;
        let all = arguments.boolean("true or false")?;
        arguments.end()?;
        let mut config = self.peer_config(&id).await?;
        config.replicate_all = Some(all);
        self.set_peer_config(id, config).await
    }

    pub(super) async fn set_peer_serial(&mut self, mut arguments: Arguments) -> Outcome {
        let id = arguments.text(ID)?;
        let serial = arguments.boolean("true or false")?;
        arguments.end()?;
        let mut config = self.peer_config(&id).await?;
        config.serial = Some(serial);
        self.set_peer_config(id, config).await
    }

    pub(super) async fn set_peer_bandwidth(&mut self, mut arguments: Arguments) -> Outcome {
        let id = arguments.text(ID)?;
        let bandwidth = arguments.optional_integer("bytes per second")?;
        arguments.end()?;
        let mut config = self.peer_config(&id).await?;
        config.bandwidth = Some(bandwidth.unwrap_or_default());
        self.set_peer_config(id, config).await
    }

    /// Changes the namespaces of a peer.
    pub(super) async fn change_peer_namespaces(
        &mut self,
        mut arguments: Arguments,
        change: Change,
        which: Which,
    ) -> Outcome {
        let id = arguments.text(ID)?;
        let given = arguments.take().map(names).transpose()?.unwrap_or_default();
        arguments.end()?;
        let mut config = self.peer_config(&id).await?;
        let present = match which {
            Which::Included => &mut config.namespaces,
            Which::Excluded => &mut config.exclude_namespaces,
        };
        match change {
            Change::Set => *present = given,
            Change::Append => {
                present.retain(|name| !given.contains(name));
                present.extend(given);
            }
            Change::Remove => present.retain(|name| !given.contains(name)),
        }
        self.set_peer_config(id, config).await
    }

    /// Changes the tables of a peer, and their families.
    pub(super) async fn change_peer_tables(
        &mut self,
        mut arguments: Arguments,
        change: Change,
        which: Which,
    ) -> Outcome {
        let id = arguments.text(ID)?;
        let given = arguments
            .take()
            .map(table_families)
            .transpose()?
            .unwrap_or_default();
        arguments.end()?;
        let mut config = self.peer_config(&id).await?;
        let present = match which {
            Which::Included => &mut config.table_cfs,
            Which::Excluded => &mut config.exclude_table_cfs,
        };
        match change {
            Change::Set => *present = given,
            Change::Append => append(present, given),
            Change::Remove => remove(present, &given)?,
        }
        self.set_peer_config(id, config).await
    }

    pub(super) async fn peer_modification_switch(&mut self, mut arguments: Arguments) -> Outcome {
        let on = arguments.boolean("true or false")?;
        // HBase's second argument waits for changes, which are done when their calls return.
        arguments.take();
        arguments.end()?;
        let request = pb::ReplicationPeerModificationSwitchRequest { on };
        let answer: pb::ReplicationPeerModificationSwitchResponse = self
            .ask(Method::ReplicationPeerModificationSwitch, &request)
            .await?;
        let before = answer.previous_value;
        self.print_answer(
            &format!("Previous peer modification state : {before}"),
            Value::Bool(before),
        )
    }

    pub(super) async fn peer_modification_enabled(&mut self, mut arguments: Arguments) -> Outcome {
        arguments.end()?;
        let request = pb::IsReplicationPeerModificationEnabledRequest {};
        let answer: pb::IsReplicationPeerModificationEnabledResponse = self
            .ask(Method::IsReplicationPeerModificationEnabled, &request)
            .await?;
        self.print_answer(&answer.enabled.to_string(), Value::Bool(answer.enabled))
    }

    /// Lists the families whose cells go to peers.
    pub(super) async fn list_replicated_tables(&mut self, mut arguments: Arguments) -> Outcome {
        let regex = arguments.optional_text("a regular expression")?;
        arguments.end()?;
        let mut rows = Vec::new();
        for table in self.client.list_tables(regex.as_deref()).await? {
            let name = table.to_string();
            let schema = self.client.describe_table(&name).await?;
            let global = schema.families().iter().filter(|family| family.scope == Some(1));
            rows.extend(
                global.map(|family| vec![format!("{name}:{}", printable(&family.name)), "GLOBAL".to_owned()]),
            );
        }
        self.output
            .grid(&["TABLE:COLUMNFAMILY", "ReplicationType"], &rows)?;
        self.print_count(rows.len())?;
        Ok(None)
    }

    async fn peer_config(&mut self, id: &str) -> ShellResult<pb::ReplicationPeer> {
        let request = pb::GetReplicationPeerConfigRequest {
            peer_id: id.to_owned(),
        };
        let answer: pb::GetReplicationPeerConfigResponse =
            self.ask(Method::GetReplicationPeerConfig, &request).await?;
        Ok(answer.peer_config)
    }

    async fn set_peer_config(&mut self, peer_id: String, peer_config: pb::ReplicationPeer) -> Outcome {
        let request = pb::UpdateReplicationPeerConfigRequest { peer_id, peer_config };
        let _: pb::UpdateReplicationPeerConfigResponse =
            self.ask(Method::UpdateReplicationPeerConfig, &request).await?;
        Ok(None)
    }

    fn print_config(&mut self, config: &pb::ReplicationPeer) -> ShellResult<()> {
        self.output
            .line(&format!("Cluster Key  {}", config.clusterkey()))?;
        if let Some(class) = &config.replication_endpoint_impl {
            self.output.line(&format!("Replication Endpoint  {class}"))?;
        }
        for pair in &config.configuration {
            self.output.line(&format!("{}  {}", pair.name, pair.value))?;
        }
        for pair in &config.data {
            let line = format!("{}  {}", printable(&pair.first), printable(&pair.second));
            self.output.line(&line)?;
        }
        Ok(())
    }
}

fn row_of(peer: &pb::ReplicationPeerDescription) -> Vec<String> {
    let config = &peer.config;
    let all = config.replicate_all.unwrap_or(true);
    let not = |text: String| if text.is_empty() { text } else { format!("!{text}") };
    let (namespaces, tables) = if all {
        (
            not(shown_names(&config.exclude_namespaces)),
            not(shown_tables(&config.exclude_table_cfs)),
        )
    } else {
        (shown_names(&config.namespaces), shown_tables(&config.table_cfs))
    };
    vec![
        peer.id.clone(),
        config.clusterkey().to_owned(),
        config.replication_endpoint_impl().to_owned(),
        peer.state.state().as_str_name().to_owned(),
        all.to_string(),
        namespaces,
        tables,
        config.bandwidth().to_string(),
        config.serial().to_string(),
    ]
}

fn shown_names(names: &[Bytes]) -> String {
    let names: Vec<String> = names.iter().map(|name| printable(name)).collect();
    names.join(";")
}

/// Tables as HBase's shell prints them: `t1;ns:t2:f,g`.
fn shown_tables(tables: &[pb::TableCf]) -> String {
    let shown = tables.iter().map(|entry| {
        let families: Vec<String> = entry.families.iter().map(|family| printable(family)).collect();
        let name = name_of(entry);
        if families.is_empty() {
            name
        } else {
            format!("{name}:{}", families.join(","))
        }
    });
    shown.collect::<Vec<_>>().join(";")
}

fn name_of(entry: &pb::TableCf) -> String {
    let Some(name) = &entry.table_name else {
        return String::new();
    };
    match &name.namespace[..] {
        b"default" => printable(&name.qualifier),
        namespace => format!("{}:{}", printable(namespace), printable(&name.qualifier)),
    }
}

fn data(pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Vec<pb::BytesBytesPair> {
    let pairs = pairs.into_iter();
    pairs
        .map(|(first, second)| pb::BytesBytesPair {
            first: first.into(),
            second: second.into(),
        })
        .collect()
}

fn configuration(pairs: Vec<(String, String)>) -> Vec<pb::NameStringPair> {
    let pairs = pairs.into_iter();
    pairs
        .map(|(name, value)| pb::NameStringPair { name, value })
        .collect()
}

fn names(value: Value) -> ShellResult<Vec<Bytes>> {
    let names = list(value, "a namespace")?;
    Ok(names.into_iter().map(Bytes::from).collect())
}

/// Tables with their families: `{'t' => [], 'ns:u' => ['f', 'g']}`.
fn table_families(value: Value) -> ShellResult<Vec<pb::TableCf>> {
    let Value::Hash(pairs) = value else {
        return wrong(format!(
            "tables are written as {{'table' => ['family', ...]}}, and [] for all families, not as {}",
            value.kind()
        ));
    };
    let entry = |(table, families): (Vec<u8>, Value)| {
        let table = super::arguments::text(table, "a table")?;
        let families = match families {
            Value::Nil => Vec::new(),
            Value::Array(families) => families
                .into_iter()
                .map(|family| bytes(family, "a family"))
                .collect::<ShellResult<_>>()?,
            other => list(other, "a family")?,
        };
        Ok(pb::TableCf {
            table_name: Some(table_name(&table)?),
            families: families.into_iter().map(Bytes::from).collect(),
        })
    };
    pairs.into_iter().map(entry).collect()
}

/// Adds tables and families; all families of a table include each.
fn append(present: &mut Vec<pb::TableCf>, given: Vec<pb::TableCf>) {
    for new in given {
        match present
            .iter_mut()
            .find(|entry| entry.table_name == new.table_name)
        {
            None => present.push(new),
            Some(entry) if entry.families.is_empty() || new.families.is_empty() => entry.families.clear(),
            Some(entry) => {
                let missing = new.families.into_iter();
                let missing: Vec<Bytes> = missing
                    .filter(|family| !entry.families.contains(family))
                    .collect();
                entry.families.extend(missing);
            }
        }
    }
}

/// Removes tables and families.
fn remove(present: &mut Vec<pb::TableCf>, given: &[pb::TableCf]) -> ShellResult<()> {
    for gone in given {
        let Some(index) = present
            .iter()
            .position(|entry| entry.table_name == gone.table_name)
        else {
            return wrong(format!("No table: {} in table-cfs of the peer", name_of(gone)));
        };
        let entry = &mut present[index];
        match (entry.families.is_empty(), gone.families.is_empty()) {
            (_, true) if entry.families.is_empty() => drop(present.remove(index)),
            (true, false) => {
                return wrong(format!(
                    "Cannot remove families of {}, of which the peer has all: set them instead",
                    name_of(gone)
                ));
            }
            (false, true) => {
                return wrong(format!(
                    "Cannot remove all families of {}, of which the peer has some: name them",
                    name_of(gone)
                ));
            }
            (_, _) => {
                entry.families.retain(|family| !gone.families.contains(family));
                if entry.families.is_empty() {
                    present.remove(index);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(entries: &[(&str, &[&str])]) -> Vec<pb::TableCf> {
        let pairs = entries.iter().map(|(table, families)| {
            let families = families.iter().map(|family| Value::text(*family)).collect();
            (table.as_bytes().to_vec(), Value::Array(families))
        });
        table_families(Value::Hash(pairs.collect())).unwrap()
    }

    #[test]
    fn lists_of_tables_grow_and_shrink_as_in_hbase() {
        let mut present = tables(&[("t", &["f"]), ("ns:u", &[])]);
        append(
            &mut present,
            tables(&[("t", &["g"]), ("ns:u", &["f"]), ("v", &[])]),
        );
        assert_eq!(shown_tables(&present), "t:f,g;ns:u;v");
        remove(&mut present, &tables(&[("t", &["f"]), ("v", &[])])).unwrap();
        assert_eq!(shown_tables(&present), "t:g;ns:u");
        for gone in [("t", &[][..]), ("ns:u", &["f"][..]), ("w", &[][..])] {
            assert!(
                remove(&mut present.clone(), &tables(&[gone])).is_err(),
                "{gone:?}"
            );
        }
        remove(&mut present, &tables(&[("t", &["g"])])).unwrap();
        assert_eq!(shown_tables(&present), "ns:u");
    }
}
