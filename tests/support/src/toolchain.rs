//! Clients in other languages: programs of ours, with code that the Apache Thrift compiler generates from our
//! interfaces, on the unmodified runtime library of the language.
//!
//! The programs are in `tests/e2e/clients/<language>`. Their builds are in `target/e2e/clients/<language>`:
//!
//! 1. The program is copied, and code is generated from the interfaces into `gen/thrift1` and `gen/thrift2`
//!    beside it.
//! 2. The runtime library is fetched with the language's own package client, at the version that the program
//!    pins.
//! 3. The program is compiled.
//!
//! Each version of the sources is built once (`made`). Without a tool or a package the client is
//! `not run`; any other failure is our fault and panics.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::made::{MadeFolder, append_files, fetch};
use crate::programs::workspace;

/// A language with a runtime library of Apache Thrift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// With the library of the operating system's package `libthrift-dev`.
    Cpp,
    /// With the module `github.com/apache/thrift`.
    Go,
    /// With the package `thrift` of npm.
    Node,
    /// With the package `thrift` of PyPI.
    Python,
}

/// A client program, ready to run.
#[derive(Clone, Debug)]
pub struct Client {
    folder: PathBuf,
    program: PathBuf,
    arguments: Vec<PathBuf>,
}

impl Client {
    /// The folder of the client's sources, with the generated code in `gen`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The client in that language. `None`, with one line that says why, on a machine that lacks a tool or a
    /// package for it.
    pub fn new(language: Language) -> Option<Self> {
        match language.prepare() {
            Ok(client) => Some(client),
            Err(why) => {
                println!("not run: the {language:?} client is not to be had here: {why}");
                None
            }
        }
    }

    /// Runs the program's tour of `thrift1` or `thrift2`; the error is its output when it failed. A
    /// protocol that the library lacks on this machine prints one line and is `not run`.
    pub fn tour(
        &self,
        address: SocketAddr,
        service: &str,
        transport: &str,
        protocol: &str,
    ) -> Result<(), String> {
        self.tour_with(address, [service, transport, protocol], &[])
    }

    /// Runs the program's tour, as [`Self::tour`], with these variables in its environment.
    pub fn tour_with(
        &self,
        address: SocketAddr,
        how: [&str; 3],
        environment: &[(&str, &Path)],
    ) -> Result<(), String> {
        let output = Command::new(&self.program)
            .args(&self.arguments)
            .args([&address.ip().to_string(), &address.port().to_string()])
            .args(how)
            .envs(environment.iter().copied())
            // HTTP transports heed the proxy that the machine may have.
            .envs([("NO_PROXY", "127.0.0.1"), ("no_proxy", "127.0.0.1")])
            .output()
            .map_err(|error| error.to_string())?;
        let printed = String::from_utf8_lossy(&output.stdout);
        match printed.trim() {
            "tour done" if output.status.success() => Ok(()),
            line if output.status.success() && line.starts_with("not run: ") => {
                println!("{line}");
                Ok(())
            }
            printed => Err(format!("{printed}\n{}", String::from_utf8_lossy(&output.stderr))),
        }
    }
}

impl Language {
    /// The name of its folder.
    fn folder(self) -> &'static str {
        match self {
            Self::Cpp => "cpp",
            Self::Go => "go",
            Self::Node => "node",
            Self::Python => "python",
        }
    }

    /// The Thrift compiler's generator and its options.
    fn generator(self) -> &'static str {
        match self {
            Self::Cpp => "cpp:no_skeleton",
            Self::Go => "go:skip_remote",
            Self::Node => "js:node,es6",
            Self::Python => "py",
        }
    }

    /// Commands that print the versions of the tools it needs beside the Thrift compiler.
    fn tools(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Cpp => &[&["g++", "--version"]],
            Self::Go => &[&["go", "version"]],
            Self::Node => &[&["node", "--version"], &["npm", "--version"]],
            Self::Python => &[&["python3", "--version"]],
        }
    }

    /// The client, made now unless it has been made of the same.
    fn prepare(self) -> Result<Client, String> {
        let source = workspace().join("tests/e2e/clients").join(self.folder());
        let contents = self.contents(&source)?;
        let folder = MadeFolder::lock(&format!("e2e/clients/{}", self.folder()))?;
        let dir = folder.path();
        if folder.is_made_of(&contents) {
            return Ok(self.client(dir));
        }
        folder.clear();
        for file in files(&source) {
            let name = file.file_name().expect("a file has a name");
            fs::copy(&file, dir.join(name)).expect("target can be written");
        }
        self.generate(dir);
        self.fetch_library(dir)?;
        self.compile(dir);
        folder.done(&contents);
        Ok(self.client(dir))
    }

    /// All that the client is made of: tools, program, interfaces, and the steps in this module.
    fn contents(self, source: &Path) -> Result<Vec<u8>, String> {
        let mut contents = include_bytes!("toolchain.rs").to_vec();
        for tool in [["thrift", "--version"].as_slice()].iter().chain(self.tools()) {
            contents.extend(version(tool)?);
        }
        append_files(&mut contents, files(source).iter().chain(&interfaces()));
        Ok(contents)
    }

    /// Lets the Thrift compiler write the code of both services.
    fn generate(self, dir: &Path) {
        for interface in interfaces() {
            let service = interface.parent().and_then(Path::file_name).expect("a folder");
            let into = dir.join("gen").join(service);
            fs::create_dir_all(&into).expect("target can be written");
            let interface = match self {
                Self::Go => without_aliases(&interface, &into),
                _ => interface,
            };
            let mut thrift = Command::new("thrift");
            thrift.args(["-nowarn", "--gen", self.generator(), "-out"]);
            build(thrift.arg(&into).arg(&interface));
        }
    }

    /// Fetches the runtime library, or says why it is not to be had.
    fn fetch_library(self, dir: &Path) -> Result<(), String> {
        match self {
            Self::Cpp => {
                let mut compiler = Command::new("g++");
                compiler.args(["-fsyntax-only", "-x", "c++", "-"]);
                compiler.args(["-include", "thrift/protocol/TProtocol.h"]);
                let found = fetch(compiler.stdin(Stdio::null()));
                found.map_err(|_| "libthrift-dev or libboost-dev is not installed".to_owned())
            }
            Self::Go => fetch(Command::new("go").args(["mod", "download"]).current_dir(dir)),
            Self::Node => {
                let mut npm = Command::new("npm");
                npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
                fetch(npm.current_dir(dir))
            }
            Self::Python => {
                fetch(Command::new("python3").args(["-m", "venv"]).arg(dir.join("venv")))?;
                let mut pip = Command::new(dir.join("venv/bin/python"));
                pip.args(["-m", "pip", "install", "--quiet", "--requirement"]);
                fetch(pip.arg(dir.join("requirements.txt")))
            }
        }
    }

    /// Compiles the program.
    fn compile(self, dir: &Path) {
        match self {
            Self::Cpp => {
                let generated = ["thrift1", "thrift2"].map(|service| files(&dir.join("gen").join(service)));
                let sources = generated.into_iter().flatten().chain(files(dir));
                let mut compiler = Command::new("g++");
                compiler.args(["-std=c++17", "-O0", "-o"]).arg(dir.join("tour"));
                compiler.args(sources.filter(|file| file.extension().is_some_and(|name| name == "cpp")));
                build(compiler.arg("-lthrift"));
            }
            Self::Go => {
                let mut go = Command::new("go");
                go.args(["build", "-buildvcs=false", "-o", "tour", "."]);
                build(go.current_dir(dir));
            }
            Self::Node | Self::Python => {}
        }
    }

    /// The client that has been made in the folder.
    fn client(self, dir: &Path) -> Client {
        let (program, arguments) = match self {
            Self::Cpp | Self::Go => (dir.join("tour"), vec![]),
            Self::Node => ("node".into(), vec![dir.join("tour.js")]),
            Self::Python => (dir.join("venv/bin/python"), vec![dir.join("tour.py")]),
        };
        Client {
            folder: dir.to_owned(),
            program,
            arguments,
        }
    }
}

/// The interfaces of HBase's two services, each in a folder with the name that the tours have for the
/// service.
fn interfaces() -> [PathBuf; 2] {
    ["thrift1/Hbase.thrift", "thrift2/hbase.thrift"].map(|file| workspace().join("idl").join(file))
}

/// A copy of an interface with `binary` for its aliases `Text` and `Bytes`, which are the same on the wire.
/// The Go that the Thrift compiler makes of a map whose keys are of such an alias does not compile.
fn without_aliases(interface: &Path, dir: &Path) -> PathBuf {
    let text = fs::read_to_string(interface).expect("a file of the repository");
    let is_sign = |letter: char| !letter.is_alphanumeric();
    let mut copied = String::new();
    for line in text.lines().filter(|line| !line.starts_with("typedef binary ")) {
        for word in line.split_inclusive(is_sign) {
            match word.trim_end_matches(is_sign) {
                alias @ ("Text" | "Bytes") => copied.push_str(&word.replacen(alias, "binary", 1)),
                _ => copied.push_str(word),
            }
        }
        copied.push('\n');
    }
    let copy = dir.join(interface.file_name().expect("a file has a name"));
    fs::write(&copy, copied).expect("target can be written");
    copy
}

/// The files of a folder, without its subfolders, in order.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// A tool's output about its version, or that it is missing.
fn version(command: &[&str]) -> Result<Vec<u8>, String> {
    match Command::new(command[0]).args(&command[1..]).output() {
        Ok(output) if output.status.success() => Ok(output.stdout),
        _ => Err(format!("{} is not installed", command[0])),
    }
}

/// Runs a command that fails only through a fault of ours.
fn build(command: &mut Command) {
    let output = command.output().expect("the tool has told its version");
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
