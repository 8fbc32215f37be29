"""What the runners of Java programs in tests/ share: jars from Maven, compiled sources, a server."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess

WORKSPACE = pathlib.Path(__file__).resolve().parent.parent
# Exit status of a runner on a machine that lacks a tool.
NOT_RUN = 77
JAVA_MAJOR_MIN = 17
# Packages of Java that HBase, Hadoop and Spark reach into.
OPENS = ("java.lang", "java.util", "java.nio", "java.io", "java.net", "java.lang.reflect", "java.lang.invoke",
         "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.misc", "sun.nio.ch", "sun.nio.cs",
         "sun.security.action", "sun.util.calendar")
JAVA = ("java", "-Xmx1g", "-XX:+UseSerialGC", "-Djava.net.preferIPv4Stack=true",
        "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENS))
LOG4J = """status = error
appender.c.type = Console
appender.c.name = c
appender.c.target = SYSTEM_ERR
appender.c.layout.type = PatternLayout
appender.c.layout.pattern = %d{HH:mm:ss,SSS} %-5p [%t] %c{1}: %m%n
rootLogger = WARN,c
"""
# The same for jars that bring Log4j 1.
LOG4J_1 = """log4j.rootLogger=WARN,c
log4j.appender.c=org.apache.log4j.ConsoleAppender
log4j.appender.c.target=System.err
log4j.appender.c.layout=org.apache.log4j.PatternLayout
log4j.appender.c.layout.ConversionPattern=%d{HH:mm:ss,SSS} %-5p [%t] %c{1}: %m%n
"""


class NotRun(Exception):
    """A tool or the network is missing."""


class Server:
    """Basalt with an empty database in memory."""

    def __init__(self, program, log, folders):
        arguments = [program, "serve", "--ephemeral", "--set", f"bulkload.directories={json.dumps(folders)}"]
        self.log = open(log, "wb")
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=self.log)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the server does not start, see {log}")
        self.port = json.loads(line)["listen"].rsplit(":", 1)[1]

    def stop(self):
        """Stops it and returns its exit status."""
        self.process.terminate()
        status = self.process.wait()
        self.process.stdout.close()
        self.log.close()
        return status


class Program:
    """Jars and compiled sources of a Java program, kept in a folder of target."""

    def __init__(self, folder, pom, arguments, sources):
        """Sources are {name: text}; arguments go to Maven."""
        self.folder = WORKSPACE / "target" / folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.classes = self.folder / "classes"
        check_java()
        self.fetch(pom, arguments)
        self.compile(sources)

    @property
    def path(self):
        """The class path."""
        return f"{self.classes}:{self.jars}"

    def unchanged(self, name, made_of):
        """Whether what is kept under this name was made of this."""
        stamp = self.folder / f"{name}.made-of"
        return stamp.is_file() and stamp.read_text() == made_of

    def done(self, name, made_of):
        """Records what was made."""
        (self.folder / f"{name}.made-of").write_text(made_of)

    def fetch(self, pom, arguments):
        """Has Maven fetch the jars and write the class path."""
        path = self.folder / "classpath.txt"
        made_of = digest(pom.read_text(), arguments)
        if self.unchanged("classpath", made_of):
            self.jars = path.read_text().strip()
            if all(os.path.exists(jar) for jar in self.jars.split(":")):
                return
        output = run_tool(["mvn", "-q", "-B", "dependency:build-classpath", f"-Dmdep.outputFile={path}", *arguments],
                          cwd=pom.parent)
        if output.returncode != 0:
            errors = [line for line in output.stdout.splitlines() if "ERROR" in line]
            raise NotRun(f"the jars cannot be fetched with Maven: {(errors or ['no reason given'])[0]}")
        self.jars = path.read_text().strip()
        self.done("classpath", made_of)

    def compile(self, sources):
        """Compiles the sources, and runs their class Patch if there is one."""
        made_of = digest(self.jars, sorted(sources.items()))
        if self.unchanged("classes", made_of):
            return
        generated = self.folder / "sources"
        for folder in (self.classes, generated):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        for name, text in sources.items():
            (generated / name).write_text(text)
        subprocess.run(["javac", "-nowarn", "-Xlint:none", "-d", self.classes, "-cp", self.jars,
                        *(generated / name for name in sources)], check=True)
        if "Patch.java" in sources:
            subprocess.run(["java", "-cp", self.path, "Patch", self.jars, self.classes], check=True)
        (self.classes / "log4j2.properties").write_text(LOG4J)
        (self.classes / "log4j.properties").write_text(LOG4J_1)
        self.done("classes", made_of)


def digest(*parts):
    """A hash of these."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def read_sources(*files):
    """{name: text} of Java files."""
    return {file.name: file.read_text() for file in files}


def run_tool(arguments, **options):
    """The finished command. NotRun if there is no such program."""
    try:
        return subprocess.run(arguments, capture_output=True, text=True, check=False, **options)
    except FileNotFoundError:
        raise NotRun(f"{arguments[0]} is not installed") from None


def check_java():
    """NotRun without a compiler of Java that is new enough."""
    words = run_tool(["javac", "--version"]).stdout.split()
    major = words[1].split(".")[0].split("-")[0] if len(words) > 1 else ""
    if not major.isdigit() or int(major) < JAVA_MAJOR_MIN:
        raise NotRun(f"javac is {' '.join(words) or 'of unknown version'}; {JAVA_MAJOR_MIN} or newer is needed")
