//! The pages in `docs/getting-started/`: their commands and programs are run as they stand there,
//! with the port of the test's server instead of 9090, and print the output shown there.

use std::path::Path;
use std::process::Command;

use basalt_test_support::java::SMALL;
use basalt_test_support::toolchain::{Client, Language};
use basalt_test_support::{JavaProgram, happybase, workspace};

use super::{shell, with_server};

/// The port that the pages name.
const PORT: &str = "9090";

#[test]
fn python() {
    let Some(python) = happybase() else { return };
    let page = Page::read("python");
    with_server(|server, _| {
        let program = page.program("python", server.thrift.port());
        let printed = python
            .run(&program, &[])
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(printed, page.block("text"));
    });
}

#[test]
fn java() {
    runs_as_shown("java", "GettingStarted", "e2e/clients/java-native");
}

#[test]
fn mapreduce() {
    runs_as_shown("mapreduce", "CityCounter", "e2e/clients/mapreduce");
}

#[test]
fn shell() {
    let Some(shell) = JavaProgram::find("e2e/clients/shell") else {
        return;
    };
    let page = Page::read("shell");
    with_server(|server, dir| {
        let output = shell::run(&shell, server.thrift.port(), dir, page.block("ruby"));
        let printed = output.lines().skip_while(|line| !is_prompt(line));
        let answers = printed.filter(|line| !(is_prompt(line) || line.starts_with("Took ")));
        let answers: Vec<&str> = answers
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
            .collect();
        assert_eq!(answers.join("\n") + "\n", page.block("text"));
    });
}

#[test]
fn go() {
    runs_with_generated_code("go", Language::Go, "go", |program, tour, dir| {
        let module = std::fs::read_to_string(tour.join("go.mod")).expect("the tour is a module");
        let module = module.replace("module basalt/tour", "module example");
        std::fs::write(dir.join("go.mod"), module).expect("the folder is ours");
        std::fs::copy(tour.join("go.sum"), dir.join("go.sum")).expect("the tour has pinned its libraries");
        copy_files(&tour.join("gen/thrift2/hbase"), &dir.join("gen/hbase"));
        std::fs::write(dir.join("main.go"), program).expect("the folder is ours");
        let mut go = Command::new("go");
        printed(go.args(["run", "-buildvcs=false", "."]).current_dir(dir))
    });
}

#[test]
fn node() {
    runs_with_generated_code("node", Language::Node, "js", |program, tour, dir| {
        let package = std::fs::read_to_string(tour.join("package.json")).expect("the tour is a package");
        let package: serde_json::Value = serde_json::from_str(&package).expect("JSON");
        let version = package["dependencies"]["thrift"].as_str().expect("a version");
        let install = format!("npm install thrift@{version}\n");
        assert!(
            Page::read("node").0.contains(&install),
            "the page lacks {install}"
        );
        copy_files(&tour.join("gen/thrift2"), &dir.join("gen"));
        std::fs::write(dir.join("main.js"), program).expect("the folder is ours");
        let mut node = Command::new("node");
        node.env("NODE_PATH", tour.join("node_modules"));
        printed(node.arg("main.js").current_dir(dir))
    });
}

#[test]
fn cpp() {
    runs_with_generated_code("cpp", Language::Cpp, "cpp", |program, tour, dir| {
        copy_files(&tour.join("gen/thrift2"), &dir.join("gen"));
        std::fs::write(dir.join("main.cpp"), program).expect("the folder is ours");
        let mut shell = Command::new("sh");
        let compile = "g++ -std=c++17 -o example main.cpp gen/*.cpp -lthrift";
        assert!(
            Page::read("cpp").0.contains(compile),
            "the page has another command"
        );
        printed(shell.args(["-c", compile]).current_dir(dir));
        printed(&mut Command::new(dir.join("example")))
    });
}

/// Runs the program of a page with the code and the library that the tour of its language has.
/// `run` gets the program, the tour's folder and an empty one, and returns the program's output.
fn runs_with_generated_code(
    page: &str,
    language: Language,
    block: &str,
    run: impl FnOnce(&str, &Path, &Path) -> String,
) {
    let Some(client) = Client::new(language) else {
        return;
    };
    let page = Page::read(page);
    with_server(|server, dir| {
        let program = page.program(block, server.thrift.port());
        assert_eq!(run(&program, client.folder(), dir), page.block("text"));
    });
}

/// Copies the files of a folder into a new one.
fn copy_files(from: &Path, into: &Path) {
    std::fs::create_dir_all(into).expect("the folder is ours");
    for file in std::fs::read_dir(from).expect("generated code") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), into.join(file.file_name())).expect("copied");
    }
}

/// Compiles and runs the Java program of a page with the jars of this project of the tests, whose
/// pom has the dependencies that the page names.
fn runs_as_shown(page: &str, class: &str, project: &str) {
    let Some(built) = JavaProgram::find(project) else {
        return;
    };
    let page = Page::read(page);
    let pom = std::fs::read_to_string(workspace().join("tests").join(project).join("pom.xml"));
    page.names_dependencies_of(&pom.expect("a file of the repository"));
    with_server(|server, dir| {
        let source = dir.join(format!("{class}.java"));
        std::fs::write(&source, page.program("java", server.thrift.port())).expect("the folder is ours");
        let mut javac = Command::new("javac");
        javac
            .args(["-cp", built.class_path(), "-d"])
            .arg(dir)
            .arg(&source);
        printed(&mut javac);
        let mut java = built.java_with(dir);
        let temporary = format!("-Djava.io.tmpdir={}", dir.display());
        java.args(SMALL).arg(temporary).arg(class).current_dir(dir);
        assert_eq!(printed(&mut java), page.block("text"));
    });
}

/// A command's standard output. Panics when it fails.
fn printed(command: &mut Command) -> String {
    let output = command.output().expect("the tool is there");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (printed, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}:\n{printed}\n{errors}");
    printed
}

fn is_prompt(line: &str) -> bool {
    line.starts_with("hbase:") && line.contains(":0> ")
}

/// A page of `docs/getting-started/`.
struct Page(String);

impl Page {
    fn read(name: &str) -> Self {
        let path = workspace()
            .join("docs/getting-started")
            .join(format!("{name}.md"));
        Self(std::fs::read_to_string(path).expect("a file of the repository"))
    }

    /// The only block of this language.
    fn block(&self, language: &str) -> &str {
        let fence = format!("\n```{language}\n");
        let (_, block) = self.0.split_once(&fence).expect("the page has such a block");
        assert!(!block.contains(&fence), "the page has two blocks of {language}");
        let (block, _) = block.split_once("```").expect("the block has an end");
        block
    }

    /// The block of this language, for a server on `port`.
    fn program(&self, language: &str, port: u16) -> String {
        let program = self.block(language);
        assert_eq!(
            program.matches(PORT).count(),
            1,
            "the address stands in one place"
        );
        program.replace(PORT, &port.to_string())
    }

    /// Panics unless the test's project has each dependency of the page's `xml` block.
    fn names_dependencies_of(&self, pom: &str) {
        let mut client = pom.replace("${client.artifact}", "hbase-shaded-client");
        client = client.replace("${client.version}", "2.6.4");
        for line in self
            .block("xml")
            .lines()
            .filter(|line| !line.contains("dependency>"))
        {
            assert!(
                client.contains(line.trim()),
                "{line} is not in the pom of the test"
            );
        }
    }
}
