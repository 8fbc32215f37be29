//! Build script of the packages with programs: sets `BASALT_COMMIT`, which `--version` prints.
//!
//! 1. The environment variable `BASALT_COMMIT`, if it is set: for builds from an archive.
//! 2. The commit of the repository, if this workspace is its root. An archive that was unpacked
//!    within another repository is not that repository's commit.
//! 3. `unknown`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Digits of a commit.
const DIGITS: usize = 12;

fn main() {
    println!("cargo::rerun-if-env-changed=BASALT_COMMIT");
    let given = std::env::var("BASALT_COMMIT")
        .ok()
        .filter(|text| !text.is_empty());
    let commit = given.or_else(commit_of_repository);
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    let shown: String = commit.chars().take(DIGITS).collect();
    println!("cargo::rustc-env=BASALT_COMMIT={shown}");
}

/// The commit that is checked out. The script runs again when another one is.
fn commit_of_repository() -> Option<String> {
    let root = workspace()?;
    if Path::new(&git(&root, &["rev-parse", "--show-toplevel"])?)
        .canonicalize()
        .ok()?
        != root
    {
        return None;
    }
    let branch = git(&root, &["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let path = git(&root, &["rev-parse", "--git-path", name])?;
        let path = root.join(path);
        // A file that is missing would make the script run in every build.
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&root, &["rev-parse", "HEAD"])
}

/// The nearest directory above the package with a lock file, which only the workspace has.
fn workspace() -> Option<PathBuf> {
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    let mut above = package.ancestors().skip(1);
    above
        .find(|dir| dir.join("Cargo.lock").exists())?
        .canonicalize()
        .ok()
}

fn git(dir: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(arguments)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
