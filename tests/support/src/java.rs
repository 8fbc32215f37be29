//! Java programs of the tests, built by Maven with their dependencies from Maven Central.
//!
//! 1. A program is built when its pom or sources are not the ones of the last build: Maven fetches the jars
//!    (minutes on a machine that has none), compiles, and writes the class path down.
//! 2. From then on only `java` is called, never Maven.
//!
//! Everything built lies in `target/<project>`, where the pom puts it (`made`).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::made::{MadeFolder, append_files};
use crate::programs::workspace;

/// The oldest Java that runs the programs.
const JAVA_MAJOR_MIN: u32 = 17;

/// Options of HBase's own start script for a current Java: HBase reaches into these packages.
const OPEN_PACKAGES: &[&str] = &[
    "--add-modules=jdk.unsupported",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
];

/// Options of a short run: a small heap, and no optimizing compiler, which costs more than it gains.
pub const SMALL: &[&str] = &["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];

/// A built program: its classes and all its jars.
#[derive(Clone, Debug)]
pub struct JavaProgram {
    class_path: String,
}

impl JavaProgram {
    /// The program in the folder `tests/<project>`, whose pom builds into `target/<project>`. `None`, with
    /// one line that says why, on a machine without Java, Maven or a way to fetch the jars: the test is then
    /// not run. Panics when the sources do not compile: that is a fault of ours and must not look like a
    /// missing tool.
    pub fn find(project: &str) -> Option<Self> {
        Self::find_variant(project, project, &[])
    }

    /// The program in the folder `tests/<project>`, built into `target/<folder>` with these Maven
    /// properties, each `name=value`: the same sources against another version of a library. The
    /// pom takes the folder from the property `build.folder`. `None` as with [`Self::find`].
    pub fn find_variant(project: &str, folder: &str, properties: &[&str]) -> Option<Self> {
        match Self::build(project, folder, properties) {
            Ok(program) => Some(program),
            Err(why) => {
                println!("not run: HBase is not to be had here: {why}");
                None
            }
        }
    }

    fn build(project: &str, folder: &str, properties: &[&str]) -> Result<Self, String> {
        check_java()?;
        let made = MadeFolder::lock(folder)?;
        let target = made.path();
        let project = workspace().join("tests").join(project);
        let mut sources = contents(&project).map_err(|error| error.to_string())?;
        sources.extend(properties.join("\n").into_bytes());
        if let (true, Some(program)) = (made.is_made_of(&sources), Self::built(target)) {
            return Ok(program);
        }
        run_maven(&project, target, folder, properties)?;
        let program = Self::built(target).ok_or("Maven succeeded and left no class path")?;
        made.done(&sources);
        Ok(program)
    }

    /// The result of an earlier build, unless jars were deleted since.
    fn built(target: &Path) -> Option<Self> {
        let jars = std::fs::read_to_string(target.join("classpath.txt")).ok()?;
        let jars = jars.trim();
        jars.split(':').all(|jar| Path::new(jar).exists()).then(|| Self {
            class_path: format!("{}:{jars}", target.join("classes").display()),
        })
    }

    /// `java` with the class path and HBase's options; main class and arguments are still to come.
    pub fn java(&self) -> Command {
        java(&self.class_path)
    }

    /// `java` as with [`Self::java`]; the files of `folder`, such as `hbase-site.xml`, come first
    /// on the class path.
    pub fn java_with(&self, folder: &Path) -> Command {
        java(&format!("{}:{}", folder.display(), self.class_path))
    }

    /// The class path: the program's classes and all its jars.
    pub fn class_path(&self) -> &str {
        &self.class_path
    }

    /// The transcript of the program's tour of a server, to which `args` lead. Panics when the tour does not
    /// reach its end.
    pub fn tour(&self, args: &[&str]) -> String {
        let output = self
            .java()
            .args(SMALL)
            .arg("basalt.client.Tour")
            .args(args)
            .output()
            .expect("java was found a moment ago");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (transcript, errors) = (text(&output.stdout), text(&output.stderr));
        assert!(
            output.status.success() && transcript.ends_with("tour done\n"),
            "{args:?}: the tour was not finished:\n{transcript}\n{errors}"
        );
        transcript
    }
}

fn java(class_path: &str) -> Command {
    let mut java = Command::new("java");
    java.args(OPEN_PACKAGES).args(["-cp", class_path]);
    java
}

/// Whether there is a Java that is new enough.
fn check_java() -> Result<(), String> {
    let output = Command::new("java")
        .arg("--version")
        .output()
        .map_err(|_| "java is not installed".to_owned())?;
    let text = String::from_utf8_lossy(&output.stdout);
    // "openjdk 17.0.15 2025-04-15"
    let version = text.split_whitespace().nth(1).unwrap_or("of unknown version");
    let major = version
        .split(['.', '-', '+'])
        .next()
        .and_then(|digits| digits.parse().ok());
    match major {
        Some(JAVA_MAJOR_MIN..) => Ok(()),
        _ => Err(format!("java is {version}; {JAVA_MAJOR_MIN} or newer is needed")),
    }
}

/// Pom and sources with their names, in a fixed order: the sources of the program.
fn contents(project: &Path) -> std::io::Result<Vec<u8>> {
    let mut files = vec![project.join("pom.xml")];
    // A program that consists of other people's jars has no sources.
    let mut folders: Vec<PathBuf> = Some(project.join("src"))
        .into_iter()
        .filter(|folder| folder.exists())
        .collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { &mut folders } else { &mut files }.push(path);
        }
    }
    files.sort();
    let mut contents = Vec::new();
    append_files(&mut contents, &files);
    Ok(contents)
}

fn run_maven(project: &Path, target: &Path, folder: &str, properties: &[&str]) -> Result<(), String> {
    eprintln!(
        "Maven builds {}; it fetches HBase the first time, which takes minutes",
        project.display()
    );
    let output = Command::new("mvn")
        .args(["-q", "-B", "compile", "dependency:build-classpath"])
        .arg(format!(
            "-Dmdep.outputFile={}",
            target.join("classpath.txt").display()
        ))
        .arg(format!("-Dbuild.folder={folder}"))
        .args(properties.iter().map(|property| format!("-D{property}")))
        .current_dir(project)
        .output()
        .map_err(|_| "mvn is not installed".to_owned())?;
    check_maven(&output)
}

fn check_maven(output: &Output) -> Result<(), String> {
    if output.status.success() {
        return Ok(());
    }
    let log = String::from_utf8_lossy(&output.stdout);
    assert!(
        !log.contains("COMPILATION ERROR"),
        "the Java program does not compile:\n{log}"
    );
    let first = log.lines().find(|line| line.contains("ERROR"));
    Err(format!(
        "HBase cannot be fetched with Maven: {}",
        first.unwrap_or("no reason given")
    ))
}
