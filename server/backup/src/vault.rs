//! A vault: the objects of one server's backups in a store.
//!
//! ```text
//! basalt-backup.json           whose backups these are, and whether they are encrypted; in clear
//! catalogues/TIME-POSITION     one backup each; written last
//! objects/XX/DIGEST            chunks, by the digest of their content; XX are its first two digits
//! log/RUN/...                  pieces of the log (see `log`)
//! marks/backup-ID, prune-ID    work that goes on; see `marks`
//! ```
//!
//! A chunk is written once, whatever number of files and backups has it, and never changes. The owner mark is
//! written before anything else; another server's is refused.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::catalogue::{Catalogue, FOLDER};
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::object::{self, Kind};
use crate::pool::on_pool;
use crate::store::Store;

const OWNER: &str = "basalt-backup.json";

/// Folder of the chunks.
const OBJECTS: &str = "objects";

/// The format of a store as a whole.
const FORMAT: u32 = 1;

/// Content of the owner mark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    format: u32,
    cluster_id: String,
    /// Recognizes the key; empty: not encrypted.
    key_check: String,
}

/// The backups of one server.
#[derive(Debug)]
pub struct Vault {
    pub(crate) store: Store,
    pub(crate) key: Option<Arc<Key>>,
    cluster_id: String,
}

impl Vault {
    /// Opens the backups of this server, and begins them if the store has none.
    pub async fn open_or_begin(store: Store, key: Option<Key>, cluster_id: &str) -> Result<Self> {
        let owner = Owner {
            format: FORMAT,
            cluster_id: cluster_id.to_owned(),
            key_check: key
                .as_ref()
                .map_or_else(String::new, |key| key.check().to_owned()),
        };
        let text = serde_json::to_vec_pretty(&owner);
        let text = text.map_err(|error| Error::Refused(format!("the owner mark: {error}")))?;
        if store.find(OWNER).await?.is_none() {
            store.put_new(OWNER, text.into()).await?;
        }
        // Also one that was just written: another server may have come first.
        let vault = Self::open(store, key).await?;
        if vault.cluster_id != cluster_id {
            return Err(Error::Refused(format!(
                "{} has backups of another server, whose cluster id is {}; this one is {cluster_id}: choose a URL for each server",
                vault.store.url(),
                vault.cluster_id
            )));
        }
        Ok(vault)
    }

    /// Opens the backups of whatever server.
    pub async fn open(store: Store, key: Option<Key>) -> Result<Self> {
        let Some(text) = store.find(OWNER).await? else {
            return Err(Error::Refused(format!(
                "{} has no backups: {OWNER} is missing",
                store.url()
            )));
        };
        let owner: Owner = serde_json::from_slice(&text).map_err(|error| Error::Damaged {
            object: store.url_of(OWNER),
            what: error.to_string(),
        })?;
        if owner.format != FORMAT {
            return Err(Error::Refused(format!(
                "{} has format {}, and this release reads format {FORMAT}: use the release that wrote it, or a later one",
                store.url(),
                owner.format
            )));
        }
        let fault = match &key {
            None if owner.key_check.is_empty() => None,
            None => Some("are encrypted: name the key file (--key-file)"),
            Some(_) if owner.key_check.is_empty() => {
                Some("are not encrypted: leave the key file out, or choose another URL")
            }
            Some(key) if key.check() == owner.key_check => None,
            Some(_) => Some("are encrypted with another key"),
        };
        if let Some(fault) = fault {
            return Err(Error::Refused(format!("the backups at {} {fault}", store.url())));
        }
        Ok(Self {
            store,
            key: key.map(Arc::new),
            cluster_id: owner.cluster_id,
        })
    }

    /// The server's identity.
    pub fn cluster_id(&self) -> &str {
        &self.cluster_id
    }

    /// Where the backups are.
    pub fn url(&self) -> &str {
        self.store.url()
    }

    /// Whether objects are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.key.is_some()
    }

    pub(crate) fn chunk_name(digest: &Digest) -> String {
        let text = digest.to_string();
        format!("{OBJECTS}/{}/{text}", &text[..2])
    }

    /// All chunks that the store lists.
    pub(crate) async fn chunks(&self) -> Result<HashSet<Digest>> {
        let mut chunks = HashSet::new();
        let visit = |name: &str, _, _| chunks.extend(digest_of_name(name));
        self.store.list(OBJECTS, visit).await?;
        Ok(chunks)
    }

    /// Calls `visit` for every object among the chunks: its digest, `None` if the name is no digest, and its
    /// size.
    pub(crate) async fn list_chunks(&self, mut visit: impl FnMut(&str, Option<Digest>, u64)) -> Result<()> {
        let listed = |name: &str, bytes, _| visit(name, digest_of_name(name), bytes);
        self.store.list(OBJECTS, listed).await
    }

    /// Makes the object of a payload that stands behind `object::HEAD_BYTES` bytes in `buffer`.
    pub(crate) async fn seal(&self, kind: Kind, digest: Digest, buffer: Vec<u8>) -> Result<Bytes> {
        let key = self.key.clone();
        let sealed = on_pool(move || object::seal(key.as_deref(), kind, &digest, buffer)).await?;
        sealed.ok_or_else(|| Error::Refused("the key cannot encrypt".into()))
    }

    /// The digest of a chunk's content.
    pub(crate) fn digest(&self, kind: Kind, payload: &[u8]) -> Digest {
        object::digest_of(self.key.as_deref(), kind, payload)
    }

    /// Reads and checks a chunk of this size.
    pub(crate) async fn chunk(&self, digest: &Digest, bytes: u64) -> Result<Bytes> {
        let name = Self::chunk_name(digest);
        let (payload, found) = self.open_object(Kind::Chunk, &name).await?;
        if found != *digest || payload.len() as u64 != bytes {
            let what = format!("it has {} bytes of digest {found}", payload.len());
            return Err(self.damaged(&name, what));
        }
        Ok(payload)
    }

    /// Reads and checks an object. The check is on the pool, so that several are checked at a time.
    pub(crate) async fn open_object(&self, kind: Kind, name: &str) -> Result<(Bytes, Digest)> {
        let object = self.store.get(name).await?;
        let key = self.key.clone();
        let opened = on_pool(move || object::open(key.as_deref(), kind, object)).await?;
        opened.map_err(|what| self.damaged(name, what))
    }

    /// Reads an object whose payload is a line of JSON and bytes.
    pub(crate) async fn open_headed<H: DeserializeOwned>(
        &self,
        kind: Kind,
        name: &str,
    ) -> Result<(H, Bytes)> {
        let (payload, _) = self.open_object(kind, name).await?;
        let end = payload.iter().position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| self.damaged(name, "it has no head".to_owned()))?;
        let head =
            serde_json::from_slice(&payload[..end]).map_err(|error| self.damaged(name, error.to_string()))?;
        Ok((head, payload.slice(end + 1..)))
    }

    /// Writes an object whose payload is a line of JSON and bytes. Returns the bytes written.
    pub(crate) async fn put_headed<H: Serialize>(
        &self,
        kind: Kind,
        name: &str,
        head: &H,
        bytes: &[u8],
    ) -> Result<u64> {
        let mut payload = serde_json::to_vec(head).map_err(|error| Error::Refused(error.to_string()))?;
        payload.push(b'\n');
        payload.extend_from_slice(bytes);
        self.put_object(kind, name, &payload).await
    }

    /// Writes an object that has a name of its own.
    pub(crate) async fn put_object(&self, kind: Kind, name: &str, payload: &[u8]) -> Result<u64> {
        let digest = self.digest(kind, payload);
        let mut buffer = object::buffer(payload.len());
        buffer.extend_from_slice(payload);
        let object = self.seal(kind, digest, buffer).await?;
        let bytes = object.len() as u64;
        self.store.put(name, object).await?;
        Ok(bytes)
    }

    pub(crate) fn damaged(&self, name: &str, what: String) -> Error {
        Error::Damaged {
            object: self.store.url_of(name),
            what,
        }
    }

    /// The ids of all backups, oldest first.
    pub async fn ids(&self) -> Result<Vec<String>> {
        self.store.names(FOLDER).await
    }

    pub(crate) async fn catalogue(&self, id: &str) -> Result<Catalogue> {
        let name = format!("{FOLDER}/{id}");
        let (payload, _) = match self.open_object(Kind::Catalogue, &name).await {
            Err(error) if error.is_not_found() => {
                return Err(Error::Refused(format!(
                    "{} has no backup {id}: basalt backups list --at {}",
                    self.store.url(),
                    self.store.url()
                )));
            }
            opened => opened?,
        };
        let read = serde_json::from_slice(&payload).map_err(|error| error.to_string());
        let catalogue: Catalogue = read.map_err(|what| self.damaged(&name, what))?;
        catalogue.check().map_err(|what| self.damaged(&name, what))?;
        if catalogue.id() != id {
            return Err(self.damaged(&name, format!("it is the catalogue of {}", catalogue.id())));
        }
        Ok(catalogue)
    }

    pub(crate) async fn put_catalogue(&self, catalogue: &Catalogue) -> Result<()> {
        let name = format!("{FOLDER}/{}", catalogue.id());
        let text = serde_json::to_vec(catalogue);
        let text = text.map_err(|error| Error::Refused(format!("the catalogue: {error}")))?;
        self.put_object(Kind::Catalogue, &name, &text).await?;
        Ok(())
    }

    pub(crate) async fn delete_catalogue(&self, id: &str) -> Result<()> {
        self.store.delete(&format!("{FOLDER}/{id}")).await
    }

    pub(crate) async fn delete_object(&self, name: &str) -> Result<()> {
        self.store.delete(&format!("{OBJECTS}/{name}")).await
    }
}

/// The digest in a name below the folder of the chunks.
fn digest_of_name(name: &str) -> Option<Digest> {
    let (folder, digest) = name.split_once('/')?;
    let parsed = Digest::parse(digest)?;
    (digest[..2] == *folder).then_some(parsed)
}
