//! Python with packages from PyPI, in an environment of the tests' own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::made::{MadeFolder, fetch};

/// A Python that has the packages asked for.
#[derive(Clone, Debug)]
pub struct Python {
    interpreter: PathBuf,
    home: Option<PathBuf>,
}

/// Python with HappyBase, the client most people use, unmodified from PyPI. `None`, with one line that says
/// why, on a machine without Python or without its packages: the test is then not run.
pub fn happybase() -> Option<Python> {
    static PYTHON: OnceLock<Option<Python>> = OnceLock::new();
    PYTHON
        .get_or_init(|| with("HappyBase", "python", "happybase==1.3.0", "happybase"))
        .clone()
}

/// Python with moto, whose server answers as S3 does. `None` as for [`happybase`].
pub fn moto() -> Option<Python> {
    static PYTHON: OnceLock<Option<Python>> = OnceLock::new();
    PYTHON
        .get_or_init(|| with("moto", "python-moto", "moto[s3,server]==5.2.1", "moto.server"))
        .clone()
}

fn with(name: &str, folder: &str, package: &str, module: &str) -> Option<Python> {
    match environment(folder, package, module) {
        Ok(python) => Some(python),
        Err(why) => {
            println!("not run: {name} is not to be had here: {why}");
            None
        }
    }
}

/// Makes an environment with a package once and keeps it in this folder of the target folder.
fn environment(folder: &str, package: &str, module: &str) -> Result<Python, String> {
    let folder = MadeFolder::lock(folder)?;
    let python = Python {
        interpreter: folder.path().join("bin/python"),
        home: None,
    };
    // The system's Python, on which the environment stands, may be gone since.
    if folder.is_made_of(package.as_bytes()) && python.run(&format!("import {module}"), &[]).is_ok() {
        return Ok(python);
    }
    fetch(Command::new("python3").args(["-m", "venv"]).arg(folder.path()))?;
    fetch(Command::new(&python.interpreter).args(["-m", "pip", "install", "--quiet", package]))?;
    folder.done(package.as_bytes());
    Ok(python)
}

impl Python {
    /// A copy for programs that keep files in their home folder.
    #[must_use]
    pub fn with_home(self, home: &Path) -> Self {
        Python {
            home: Some(home.to_owned()),
            ..self
        }
    }

    /// A command that runs this module.
    pub fn module(&self, module: &str) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.args(["-m", module]);
        command
    }

    /// Runs a program with these arguments; its standard output, or its whole output when it
    /// failed.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.interpreter);
        command.arg("-c").arg(program).args(arguments);
        if let Some(home) = &self.home {
            command.env("HOME", home);
        }
        let output = command.output().map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(format!("{}\n{}", text(&output.stdout), text(&output.stderr)))
        }
    }
}
