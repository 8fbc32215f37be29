#!/usr/bin/env python3
"""HBase's own test classes against Basalt, unmodified. README.md says how that works.

1. Maven fetches the jars of a version of HBase; the shim is compiled, and rewrites the classes that
   would start a mini cluster. Both are kept in target/hbase-own/VERSION (tests/jvm.py).
2. Each class of classes.txt gets a JVM and an empty server. With --fast the classes marked so run
   in one JVM and against one server.
3. Each outcome is compared with expected.tsv. A test that fails or does not apply must be listed
   there with a reason, and a listed one must not pass. A class with a difference runs once more.

Exit status 0: as expected. 1: differences, each with a line. 2: wrong arguments. 77: a tool or the
network is missing; the last line begins with "not run:".
"""

import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import jvm

PACKAGE = "org.apache.hadoop.hbase."
CLASS = "(class)"

Version = collections.namedtuple("Version", "profiles properties renamed sources")
# Names of HBase 3 for what the shim uses.
RENAMED_3 = (
    ("HBaseCluster given = Mockito.mock(HBaseCluster.class)",
     "HBaseClusterInterface given = Mockito.mock(HBaseClusterInterface.class)"),
    ("HBaseTestingUtility", "HBaseTestingUtil"),
    ("MiniHBaseCluster", "SingleProcessHBaseCluster"),
)
# What Maven Central has: 2.4 lacks hbase-thrift, 2.5 hbase-endpoint, 3.0 both and hbase-mapreduce.
VERSIONS = {
    "2.6.1": Version("jobs,thrift,rest", (), (), "*.java"),
    "2.5.8": Version("jobs,thrift", ("hbase.version=2.5.8", "endpoint.version=2.6.1"), (), "*.java"),
    "2.4.18": Version("jobs", ("hbase.version=2.4.18",), (), "[!B]*.java BasaltShim.java"),
    "3.0.0-alpha-4": Version("", ("hbase.version=3.0.0-alpha-4", "hadoop.version=3.3.5"), RENAMED_3,
                             "[!B]*.java BasaltShim.java"),
}
# Kinds of reasons in expected.tsv. A test of the kind "timing" may also pass.
KINDS = ("server-in-jvm", "parameters", "three-servers", "replicas", "hdfs", "site-file", "test-class-in-server", "timing",
         "security", "replication", "mob", "hbase-fault", "differs")


def build(name):
    """Jars and shim of a version."""
    version = VERSIONS[name]
    files = sorted(file for pattern in version.sources.split() for file in (HERE / "shim").glob(pattern))
    sources = jvm.read_sources(*files)
    for old, new in version.renamed:
        # Patch.java knows the names of all versions.
        sources |= {file: text.replace(old, new) for file, text in sources.items() if file != "Patch.java"}
    arguments = [f"-D{given}" for given in version.properties]
    if version.profiles:
        arguments.append(f"-P{version.profiles}")
    return jvm.Program(f"hbase-own/{name}", HERE / "pom.xml", arguments, sources)


def java(built, port, work, options):
    """The start of the command that runs RunTests."""
    return [*jvm.JAVA, "-XX:TieredStopAtLevel=1", "-ea",
            "-Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true", f"-Dbasalt.port={port}",
            f"-Dtest.build.data.basedirectory={work}/data", f"-Dhadoop.tmp.dir={work}/hadoop",
            *(["-Dall=1"] if options.all_parameters else []),
            "-cp", built.path, "RunTests", str(options.per_test), str(options.per_class), str(options.out)]


def run_classes(built, classes, options):
    """Outcomes of these classes, in one JVM and against one server: {(class, test): (outcome, cause)}."""
    label = classes[0].rsplit(".", 1)[-1] if len(classes) == 1 else "fast"
    outcomes = {}
    with tempfile.TemporaryDirectory(prefix="hbase-own-") as work:
        # Tests of reloaded settings copy these over each other.
        sites = pathlib.Path(work, "target/test-classes")
        sites.mkdir(parents=True)
        for name in ("hbase-site.xml", "hbase-site2.xml", "hbase-site3.xml", "override-hbase-site.xml"):
            (sites / name).write_text("<configuration/>")
        server = jvm.Server(options.binary, options.out / f"{label}.log", [work])
        line = java(built, server.port, work, options) + [PACKAGE + name for name in classes]
        with open(options.out / f"{label}.err", "wb") as errors:
            output = subprocess.run(line, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=work, check=False)
        for printed in output.stdout.splitlines():
            name, test, _ms, outcome, cause = printed.split("\t")
            # "test[0: ...]" of a class with parameters.
            key = name.removeprefix(PACKAGE), test.split("[")[0]
            if outcomes.get(key, ("PASS",))[0] in ("PASS", "IGNORED"):
                outcomes[key] = outcome, cause
        status = server.stop()
        if status != 0:
            outcomes[classes[0], CLASS] = "FAIL", f"the server ended with status {status}"
    for name in classes:
        if not any(key[0] == name for key in outcomes):
            outcomes[name, CLASS] = "FAIL", f"no test of the class ran; see {label}.err"
    return outcomes


def read_table(name, columns):
    """Rows of a file with tabs; empty lines and lines that begin with # are none."""
    for number, line in enumerate((HERE / name).read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) != columns:
                raise SystemExit(f"{name}:{number}: {len(fields)} columns instead of {columns}")
            yield number, fields


def read_expected(version):
    """Tests that do not apply in this version: {(class, test): (kind, reason)}."""
    expected = {}
    for number, (name, test, versions, kind, reason) in read_table("expected.tsv", 5):
        if kind not in KINDS or not reason:
            raise SystemExit(f"expected.tsv:{number}: unknown kind {kind}, or no reason")
        if versions == "*" or any(version.startswith(given) for given in versions.split(",")):
            expected[name, test] = kind, reason
    return expected


def difference(key, outcome, cause, expected):
    """What an outcome has against expected.tsv; None if it is as expected."""
    listed = expected.get(key) or expected.get((key[0], "*"))
    if outcome in ("IGNORED", "ABSENT"):
        return None
    if outcome == "PASS":
        exact = expected.get(key)
        return f"passes and is in expected.tsv ({exact[1]})" if exact and exact[0] != "timing" else None
    return None if listed else f"{outcome} {cause}"


def differences(outcomes, expected):
    """All differences: {(class, test): text}."""
    found = ((key, difference(key, *outcome, expected)) for key, outcome in outcomes.items())
    return {key: text for key, text in found if text}


def classes_of(options):
    """Names of the classes to run."""
    listed = [fields[0].split() for _, fields in read_table("classes.txt", 1)]
    if options.classes:
        unknown = set(options.classes) - {name for name, *_ in listed}
        for name in sorted(unknown):
            print(f"{name} is not in classes.txt")
        return options.classes
    return [name for name, *marks in listed if not options.fast or "fast" in marks]


def run(options):
    """Runs the classes; True if all is as expected."""
    built = build(options.version)
    expected = read_expected(options.version)
    classes = classes_of(options)
    groups = [classes] if options.fast else [[name] for name in classes]
    outcomes, wrong, again = {}, {}, []
    for group in groups:
        begin = time.monotonic()
        found = run_classes(built, group, options)
        bad = differences(found, expected)
        if bad and not options.no_retry:
            names = sorted({key[0] for key in bad}, key=group.index)
            again += [f"{'.'.join(key)}: {text}" for key, text in bad.items()]
            found = {key: value for key, value in found.items() if key[0] not in names}
            for name in names:
                found |= run_classes(built, [name], options)
            bad = differences(found, expected)
        outcomes |= found
        wrong |= bad
        print(f"{' '.join(group)}: {counts(found)} ({time.monotonic() - begin:.0f} s)", flush=True)
        for key, text in bad.items():
            print(f"  DIFFERENCE {'.'.join(key)}: {text}", flush=True)
    write(options.out / "results.tsv", outcomes)
    report(options.version, outcomes, expected, wrong, again)
    return not wrong


def counts(outcomes):
    """Numbers of the outcomes, in words."""
    numbers = collections.Counter(outcome for outcome, _ in outcomes.values())
    return ", ".join(f"{number} {outcome}" for outcome, number in sorted(numbers.items()))


def write(path, outcomes):
    """All outcomes as a table with tabs."""
    lines = ("\t".join((*key, *value)) + "\n" for key, value in sorted(outcomes.items()))
    path.write_text("".join(lines))


def report(version, outcomes, expected, wrong, again):
    """The lines at the end: the first runs that were repeated, reasons, and the numbers."""
    for text in again:
        print(f"ran again: {text}")
    tests = {key: value for key, value in outcomes.items() if value[0] not in ("IGNORED", "ABSENT")}
    passed = sum(value[0] == "PASS" for value in tests.values())
    kinds = collections.Counter()
    for key, (outcome, _) in tests.items():
        listed = expected.get(key) or expected.get((key[0], "*"))
        if outcome != "PASS" and listed:
            kinds[listed[0]] += 1
    for kind, number in kinds.most_common():
        print(f"not applicable, {kind}: {number}")
    failed = sum(tests[key][0] != "PASS" for key in wrong)
    stale = len(wrong) - failed
    print(f"HBase {version}: {len(tests)} tests, {passed} passed, {sum(kinds.values())} not applicable, "
          f"{failed} failed, {stale} listed that pass")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", default="2.6.1", choices=VERSIONS)
    parser.add_argument("--binary", default=jvm.WORKSPACE / "target/release/basalt", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="folder for logs, traces and results.tsv")
    parser.add_argument("--fast", action="store_true", help="the classes marked fast, in one JVM")
    parser.add_argument("--all-parameters", action="store_true", help="every set of a class's parameters")
    parser.add_argument("--no-retry", action="store_true", help="do not run a class with differences again")
    parser.add_argument("--per-test", default=300, type=int, metavar="SECONDS")
    parser.add_argument("--per-class", default=1200, type=int, metavar="SECONDS")
    parser.add_argument("classes", nargs="*", help="such as client.TestPutWithDelete; all of classes.txt by default")
    options = parser.parse_args()
    options.out = (options.out or jvm.WORKSPACE / "target/hbase-own/logs" / options.version).resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    options.binary = options.binary.resolve()
    try:
        as_expected = run(options)
    except jvm.NotRun as missing:
        print(f"not run: HBase's own tests, since {missing}")
        sys.exit(jvm.NOT_RUN)
    sys.exit(0 if as_expected else 1)


if __name__ == "__main__":
    main()
