//! Files that bulk loads may read, and staging directories.
//!
//! A client names files by the URIs of Hadoop's local file system. Reading any file for any client
//! would be a hole, so a file must lie below one of
//!
//! - `<data.dir>/staging`, where PrepareBulkLoad makes a directory for each bulk load;
//! - the directories of the setting `bulkload.directories`.
//!
//! Symbolic links are resolved before this check. A path that is not allowed is refused before the
//! file system is asked about it, so that an answer does not reveal whether the file exists.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use basalt_engine::schema::TableName;

use crate::config::Config;
use crate::service::Failure;

/// Most staging directories at a time.
const STAGING_DIRS_MAX: usize = 1_000;

/// The directories from which bulk loads may read.
#[derive(Debug)]
pub(super) struct Staging {
    /// Where staging directories are made.
    root: PathBuf,
    /// The directories below which files may be read, as set and without symbolic links.
    allowed: Vec<PathBuf>,
}

impl Staging {
    /// The directories of these settings.
    pub(super) fn of(config: &Config) -> Result<Self, Failure> {
        let data = &config.data.dir;
        let data = data
            .canonicalize()
            .map_err(|error| failed("finding", data, &error))?;
        Ok(Self::new(data.join("staging"), &config.bulkload.directories))
    }

    fn new(root: PathBuf, directories: &[PathBuf]) -> Self {
        let set = directories.iter().chain([&root]);
        // A directory that does not exist has no files.
        let real = set.clone().filter_map(|dir| dir.canonicalize().ok());
        let allowed = set.cloned().chain(real).collect();
        Self { root, allowed }
    }

    /// Makes a staging directory for a table; returns its URI.
    pub(super) fn create(&self, table: &TableName) -> Result<String, Failure> {
        std::fs::create_dir_all(&self.root).map_err(|error| failed("creating", &self.root, &error))?;
        let names = std::fs::read_dir(&self.root).map_err(|error| failed("listing", &self.root, &error))?;
        if names.take(STAGING_DIRS_MAX).count() == STAGING_DIRS_MAX {
            return Err(Failure::do_not_retry(format!(
                "there are {STAGING_DIRS_MAX} staging directories; remove those of bulk loads that have ended",
            )));
        }
        let table = table.to_string().replace(':', "_");
        let dir = self
            .root
            .join(format!("{table}__{:032x}", rand::random::<u128>()));
        std::fs::create_dir(&dir).map_err(|error| failed("creating", &dir, &error))?;
        Ok(format!("file:{}", dir.display()))
    }

    /// Removes a staging directory and its content. One that is gone already is no error.
    pub(super) fn remove(&self, uri: &str) -> Result<(), Failure> {
        let dir = local_path(uri)?;
        let name = dir.strip_prefix(&self.root).ok().map(Path::components);
        let is_name = name
            .is_some_and(|mut name| matches!((name.next(), name.next()), (Some(Component::Normal(_)), None)));
        if !is_name {
            return Err(Failure::access_denied(format!(
                "{uri} is not a staging directory of this server"
            )));
        }
        match std::fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("removing", &dir, &error)),
            _ => Ok(()),
        }
    }

    /// The path of a file that is offered for a load.
    pub(super) fn readable(&self, uri: &str) -> Result<PathBuf, Failure> {
        let path = local_path(uri)?;
        self.check_allowed(&path, uri)?;
        let real = path.canonicalize().map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::do_not_retry(format!(
                "java.io.FileNotFoundException: File {uri} does not exist"
            )),
            _ => failed("finding", &path, &error),
        })?;
        self.check_allowed(&real, uri)?;
        let kind = std::fs::metadata(&real).map_err(|error| failed("reading", &real, &error))?;
        if !kind.is_file() {
            return Err(Failure::do_not_retry(format!(
                "java.io.IOException: Path does not reference a file: {uri}"
            )));
        }
        Ok(real)
    }

    fn check_allowed(&self, path: &Path, uri: &str) -> Result<(), Failure> {
        if self.allowed.iter().any(|dir| path.starts_with(dir)) {
            return Ok(());
        }
        Err(Failure::access_denied(format!(
            "{uri} is below no directory that bulk loads may read; add its directory to the server's \
             setting bulkload.directories"
        )))
    }
}

/// The path in a URI of Hadoop's local file system. Hadoop does not escape characters in it.
fn local_path(uri: &str) -> Result<PathBuf, Failure> {
    let path = match uri.split_once(':') {
        Some(("file", rest)) => rest.strip_prefix("//").unwrap_or(rest),
        _ if uri.starts_with('/') => uri,
        _ => return Err(not_local(uri)),
    };
    let path = Path::new(path);
    let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    if !path.is_absolute() || !path.components().all(is_plain) || uri.contains('\0') {
        return Err(not_local(uri));
    }
    Ok(path.to_owned())
}

fn not_local(uri: &str) -> Failure {
    Failure::do_not_retry(format!(
        "{} is not the path of a local file: bulk loads read files by file:/ URIs without \"..\"",
        uri.escape_debug()
    ))
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::do_not_retry(format!("java.io.IOException: {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_of_the_local_file_system_are_paths() {
        for uri in ["file:/a/b c%20", "file:///a/b c%20", "/a/b c%20"] {
            assert_eq!(local_path(uri).unwrap(), Path::new("/a/b c%20"));
        }
        for uri in [
            "hdfs://host/a",
            "file:a",
            "file://host/a",
            "a/b",
            "",
            "file:/a/../b",
            "/a\0b",
            "s3a://bucket/a",
        ] {
            let failure = local_path(uri).unwrap_err();
            assert!(
                failure.message().contains("is not the path of a local file"),
                "{uri}"
            );
        }
    }

    #[test]
    fn only_files_below_allowed_directories_are_readable() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (open, secret) = (base.join("open"), base.join("secret"));
        for sub in [&open, &secret] {
            std::fs::create_dir(sub).unwrap();
            std::fs::write(sub.join("file"), b"x").unwrap();
        }
        std::os::unix::fs::symlink(&secret, open.join("link")).unwrap();
        std::os::unix::fs::symlink(&open, base.join("alias")).unwrap();
        let staging = Staging::new(base.join("staging"), &[base.join("alias")]);
        let uri = |path: PathBuf| format!("file:{}", path.display());
        let readable = |path: PathBuf| staging.readable(&uri(path));
        assert_eq!(readable(base.join("alias/file")).unwrap(), open.join("file"));
        assert_eq!(readable(open.join("file")).unwrap(), open.join("file"));
        for (path, class, text) in [
            (
                secret.join("file"),
                "AccessDeniedException",
                "bulkload.directories",
            ),
            (
                secret.join("none"),
                "AccessDeniedException",
                "bulkload.directories",
            ),
            (
                open.join("link/file"),
                "AccessDeniedException",
                "bulkload.directories",
            ),
            (
                base.join("opener"),
                "AccessDeniedException",
                "bulkload.directories",
            ),
            (
                open.join("none"),
                "DoNotRetryIOException",
                "FileNotFoundException",
            ),
            (open.clone(), "DoNotRetryIOException", "does not reference a file"),
        ] {
            let failure = readable(path).unwrap_err();
            assert_eq!(failure.label(), class, "{}", failure.message());
            assert!(failure.message().contains(text), "{}", failure.message());
        }
    }

    #[test]
    fn staging_directories_are_made_and_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let staging = Staging::new(base.join("staging"), &[]);
        let table = TableName::parse(b"ns:t").unwrap();
        let (one, two) = (staging.create(&table).unwrap(), staging.create(&table).unwrap());
        assert_ne!(one, two);
        let path = local_path(&one).unwrap();
        std::fs::create_dir(path.join("f")).unwrap();
        std::fs::write(path.join("f/file"), b"x").unwrap();
        // Made after the settings were read, it is allowed like the rest of the staging directory.
        let staging = Staging::new(base.join("staging"), &[]);
        assert!(staging.readable(&format!("{one}/f/file")).is_ok());
        staging.remove(&one).unwrap();
        staging.remove(&one).unwrap();
        assert!(!path.exists());
        for uri in [
            format!("file:{}", base.join("staging").display()),
            format!("file:{}", base.display()),
            format!("{two}/f"),
            "file:/".to_owned(),
        ] {
            assert_eq!(
                staging.remove(&uri).unwrap_err().label(),
                "AccessDeniedException",
                "{uri}"
            );
        }
        assert!(local_path(&two).unwrap().exists());
    }
}
