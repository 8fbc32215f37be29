//! The store that a URL names.
//!
//! `file:` is a directory of this machine; files are synced before a call returns. `s3:`, `gs:` and `az:`
//! take credentials and endpoints from the usual variables (`AWS_...`, `GOOGLE_...`, `AZURE_...`). A call is
//! retried for [`RETRY_TIME`] at most.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, RetryConfig};

use crate::error::{Error, Result};

/// Longest time in which a call is retried.
pub const RETRY_TIME: Duration = Duration::from_mins(1);

/// Most retries of a call.
const RETRIES: usize = 8;

/// A place for objects.
#[derive(Clone, Debug)]
pub struct Store {
    objects: Arc<dyn ObjectStore>,
    /// All objects are below this.
    prefix: Path,
    url: Arc<str>,
    /// True if listings are sorted, so that one can continue behind a name. Listings of a directory are not.
    lists_in_order: bool,
}

impl Store {
    /// The store that a URL names. For `file:` the directory is created with `create`, and must exist
    /// without.
    pub fn open(url: &str, create: bool) -> Result<Self> {
        let refused = |what: String| Error::Refused(format!("{url}: {what}"));
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(refused(
                "this is no URL: begin with file:, s3://, gs:// or az://".into(),
            ));
        };
        if scheme == "file" {
            return Self::open_directory(url, rest, create);
        }
        let address = rest.strip_prefix("//").unwrap_or(rest);
        let (bucket, path) = address.split_once('/').unwrap_or((address, ""));
        if bucket.is_empty() {
            return Err(refused(format!("a bucket is missing: {scheme}://BUCKET/PATH")));
        }
        let prefix = Path::parse(path).map_err(|error| refused(error.to_string()))?;
        // The library of HTTP takes TLS's cryptography from the process. It may be there already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let retry = RetryConfig {
            max_retries: RETRIES,
            retry_timeout: RETRY_TIME,
            ..RetryConfig::default()
        };
        let objects: object_store::Result<Arc<dyn ObjectStore>> = match scheme {
            "s3" | "s3a" => AmazonS3Builder::from_env()
                .with_bucket_name(bucket)
                .with_retry(retry)
                .build()
                .map(|store| Arc::new(store) as _),
            "gs" => GoogleCloudStorageBuilder::from_env()
                .with_bucket_name(bucket)
                .with_retry(retry)
                .build()
                .map(|store| Arc::new(store) as _),
            "az" => MicrosoftAzureBuilder::from_env()
                .with_container_name(bucket)
                .with_retry(retry)
                .build()
                .map(|store| Arc::new(store) as _),
            _ => {
                return Err(refused(format!(
                    "{scheme}: is not supported; file:, s3:, gs: and az: are"
                )));
            }
        };
        Ok(Self {
            objects: objects.map_err(|error| refused(error.to_string()))?,
            prefix,
            url: url.trim_end_matches('/').into(),
            lists_in_order: true,
        })
    }

    /// True for the URL of a store: text that begins with `file:/`, `s3:/`, `gs:/` or `az:/`.
    pub fn is_url(text: &str) -> bool {
        let scheme = text.split_once(":/").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| ["file", "s3", "s3a", "gs", "az"].contains(&scheme))
    }

    fn open_directory(url: &str, rest: &str, create: bool) -> Result<Self> {
        let path = match rest.strip_prefix("//") {
            // `file://localhost/path` and `file:///path`.
            Some(path) => path.strip_prefix("localhost").unwrap_or(path),
            None => rest,
        };
        let path = percent_encoding::percent_decode_str(path).decode_utf8();
        let path = path.map_err(|_| Error::Refused(format!("{url}: the path is not UTF-8")))?;
        let dir = PathBuf::from(&*path);
        if !dir.is_absolute() {
            return Err(Error::Refused(format!(
                "{url}: the path must be absolute: file:/DIRECTORY"
            )));
        }
        if create {
            create_dirs(&dir)?;
        } else if !dir.is_dir() {
            return Err(Error::Refused(format!("{url}: there is no such directory")));
        }
        let objects = LocalFileSystem::new_with_prefix(&dir)
            .map_err(|error| Error::Refused(format!("{url}: {error}")))?
            .with_fsync(true);
        Ok(Self {
            objects: Arc::new(objects),
            prefix: Path::default(),
            url: format!("file:{}", dir.display()).into(),
            lists_in_order: false,
        })
    }

    /// A store for tests and other libraries.
    pub fn of(objects: Arc<dyn ObjectStore>, url: &str) -> Self {
        Self {
            objects,
            prefix: Path::default(),
            url: url.into(),
            lists_in_order: false,
        }
    }

    /// The URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The URL of an object.
    pub(crate) fn url_of(&self, name: &str) -> String {
        format!("{}/{name}", self.url)
    }

    fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), Path::join)
    }

    fn failed(&self, during: &'static str, name: &str) -> impl FnOnce(object_store::Error) -> Error {
        let object = self.url_of(name);
        move |source| Error::Store {
            during,
            object,
            source: Box::new(source),
        }
    }

    /// Writes an object, replacing one of the same name.
    pub(crate) async fn put(&self, name: &str, bytes: Bytes) -> Result<()> {
        let put = self.objects.put(&self.path(name), bytes.into()).await;
        put.map(drop).map_err(self.failed("writing", name))
    }

    /// Writes an object unless there is one of that name; returns whether it did. A store that cannot do
    /// both at once is asked before.
    pub(crate) async fn put_new(&self, name: &str, bytes: Bytes) -> Result<bool> {
        let options = PutOptions {
            mode: PutMode::Create,
            ..PutOptions::default()
        };
        let path = self.path(name);
        match self.objects.put_opts(&path, bytes.clone().into(), options).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                Ok(false)
            }
            Err(object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. }) => {
                if self.size(name).await?.is_some() {
                    return Ok(false);
                }
                self.put(name, bytes).await?;
                Ok(true)
            }
            Err(error) => Err(self.failed("writing", name)(error)),
        }
    }

    /// Reads an object. An answer that breaks off is asked for again: the library repeats requests, and goes
    /// on with only some of such answers.
    pub(crate) async fn get(&self, name: &str) -> Result<Bytes> {
        let path = self.path(name);
        let mut attempts = 1;
        loop {
            let answer = self
                .objects
                .get(&path)
                .await
                .map_err(self.failed("reading", name))?;
            match answer.bytes().await {
                Err(_) if attempts < RETRIES => attempts += 1,
                read => return read.map_err(self.failed("reading", name)),
            }
        }
    }

    /// Reads an object; `None` if it is not there.
    pub(crate) async fn find(&self, name: &str) -> Result<Option<Bytes>> {
        match self.get(name).await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn head(&self, name: &str) -> Result<Option<ObjectMeta>> {
        match self.objects.head(&self.path(name)).await {
            Ok(meta) => Ok(Some(meta)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("looking for", name)(error)),
        }
    }

    /// Size of an object; `None` if it is not there.
    pub(crate) async fn size(&self, name: &str) -> Result<Option<u64>> {
        Ok(self.head(name).await?.map(|meta| meta.size))
    }

    /// When an object was written, by the store's clock, in milliseconds since 1970; `None` if it is not
    /// there.
    pub(crate) async fn written_ms(&self, name: &str) -> Result<Option<i64>> {
        let meta = self.head(name).await?;
        Ok(meta.map(|meta| meta.last_modified.timestamp_millis()))
    }

    /// Removes an object, which may be gone already.
    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        match self.objects.delete(&self.path(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("removing", name)(error)),
        }
    }

    /// Calls `visit` for every object in a folder, with its name in the folder, its size, and when it was
    /// written.
    pub(crate) async fn list(&self, folder: &str, visit: impl FnMut(&str, u64, i64)) -> Result<()> {
        self.visit(folder, None, visit).await
    }

    /// As [`Self::list`], of objects whose names come after `after`.
    pub(crate) async fn list_after(
        &self,
        folder: &str,
        after: &str,
        visit: impl FnMut(&str, u64, i64),
    ) -> Result<()> {
        let after = self.path(&format!("{folder}/{after}"));
        self.visit(folder, Some(after), visit).await
    }

    /// Lists what comes behind `after`. A listing that breaks off goes on behind the last name: the library
    /// repeats requests, and not answers that end early.
    async fn visit(
        &self,
        folder: &str,
        mut after: Option<Path>,
        mut visit: impl FnMut(&str, u64, i64),
    ) -> Result<()> {
        let mut attempts = 1;
        loop {
            match self.visit_once(folder, &mut after, &mut visit).await {
                Err(_) if self.lists_in_order && attempts < RETRIES => attempts += 1,
                visited => return visited,
            }
        }
    }

    /// As [`Self::visit`], and moves `after` to the last name.
    async fn visit_once(
        &self,
        folder: &str,
        after: &mut Option<Path>,
        visit: &mut impl FnMut(&str, u64, i64),
    ) -> Result<()> {
        let path = self.path(folder);
        let mut listed = match after {
            Some(after) => self.objects.list_with_offset(Some(&path), after),
            None => self.objects.list(Some(&path)),
        };
        while let Some(meta) = listed.try_next().await.map_err(self.failed("listing", folder))? {
            if let Some(parts) = meta.location.prefix_match(&path) {
                let parts: Vec<_> = parts.map(|part| part.as_ref().to_owned()).collect();
                visit(&parts.join("/"), meta.size, meta.last_modified.timestamp_millis());
            }
            *after = Some(meta.location);
        }
        Ok(())
    }

    /// The names of all objects in a folder, sorted.
    pub(crate) async fn names(&self, folder: &str) -> Result<Vec<String>> {
        let mut names = Vec::new();
        self.list(folder, |name, _, _| names.push(name.to_owned()))
            .await?;
        names.sort_unstable();
        Ok(names)
    }
}

/// Creates a directory for the owner only, and those above it that are missing.
pub(crate) fn create_dirs(dir: &FilePath) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|source| Error::io("creating", dir, source))
}
