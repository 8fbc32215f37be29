//! Programs of the workspace, for tests that run them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The folder of the workspace.
pub fn workspace() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders
        .nth(2)
        .expect("this package is in `tests` of the workspace")
}

/// The variable that names a directory with programs to test, instead of those that belong to the test's own
/// build: `BASALT_PROGRAMS=target/release cargo test --workspace --test api` tests the release build.
const PROGRAMS: &str = "BASALT_PROGRAMS";

/// Names of the programs that this process has had built.
static BUILT: OnceLock<std::sync::Mutex<std::collections::BTreeSet<String>>> = OnceLock::new();

/// The program of that name in the directory that `BASALT_PROGRAMS` names; without the variable it is built
/// if need be, in the profile of the running test.
pub fn binary(name: &str) -> PathBuf {
    if let Some(programs) = std::env::var_os(PROGRAMS) {
        // A test's working directory is its package's; the variable is written for the workspace's.
        let program = workspace().join(programs).join(name);
        assert!(program.is_file(), "{PROGRAMS}: no file {}", program.display());
        return program;
    }
    built("--bin", name, &profile_dir().join(name))
}

/// The client's example of that name, built if need be, in the profile of the running test.
pub fn example(name: &str) -> PathBuf {
    built("--example", name, &profile_dir().join("examples").join(name))
}

/// Where cargo puts the programs of the running test's profile.
fn profile_dir() -> PathBuf {
    // A test runs from target/<profile>/deps, a program of this crate from target/<profile>.
    let mut profile_dir = std::env::current_exe().expect("a program knows its own path");
    profile_dir.pop();
    if profile_dir.ends_with("deps") {
        profile_dir.pop();
    }
    profile_dir
}

/// Has a program built once in this process and returns its path.
fn built(kind: &str, name: &str, program: &Path) -> PathBuf {
    let mut built = BUILT
        .get_or_init(Default::default)
        .lock()
        .expect("no test panics while it builds");
    if built.insert(name.to_owned()) {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // Cargo sets variables for a test of a package. A build script that asks for one of them, as that of
        // `ring` does, would run again, and everything above it would be built once more.
        let is_of_package = |name: &str| {
            let begins = ["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_BIN_"];
            name == "OUT_DIR" || begins.iter().any(|begin| name.starts_with(begin))
        };
        for (name, _) in std::env::vars_os() {
            if is_of_package(&name.to_string_lossy()) {
                cargo.env_remove(name);
            }
        }
        // The whole workspace and a test are named so that dependencies get the features that `cargo test
        // --workspace` gave them: with others they would all be built once more.
        cargo.current_dir(workspace()).args([
            "build",
            "--quiet",
            "--workspace",
            "--test",
            "dependencies",
            kind,
            name,
        ]);
        if profile_dir().ends_with("release") {
            cargo.arg("--release");
        }
        if cfg!(feature = "seeded-bugs") {
            cargo.args([
                "--features",
                "basalt-engine/seeded-bugs,basalt-test-support/seeded-bugs",
            ]);
        }
        if cfg!(feature = "kerberos") {
            cargo.args(["--features", "basalt/kerberos,basalt-test-support/kerberos"]);
        }
        let status = cargo.status().expect("cargo runs: it started this test");
        assert!(status.success(), "building {name} failed");
    }
    program.to_owned()
}
