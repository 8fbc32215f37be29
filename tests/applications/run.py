#!/usr/bin/env python3
"""Programs that others made for HBase, against Basalt: README.md lists them.

    tests/applications/run.py spark|ycsb [--binary PROGRAM]

Exit status 0: all is right. 1: a line begins with DIFFERENCE. 77: a tool or the network is missing;
the last line begins with "not run:".
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import jvm

# What each step of SparkTour must find.
SPARK = {
    "write": "done",
    "read": "20000 rows, sum 199990000, 3 partitions",
    "read a range": "4050",
    "read in balanced splits": "20000",
    "copy": "20000",
    "bulk load": "20000",
    # A job over a snapshot reads HBase's files, which Basalt does not have (docs/compatibility.md).
    "read a snapshot": re.compile("FAILED .*written-snapshot.*(does not exist|doesn't exist|Couldn't read|No such file).*"),
}
# YCSB's core workloads, after https://github.com/brianfrankcooper/YCSB/wiki/Core-Workloads.
WORKLOADS = {
    "a": "readproportion=0.5 updateproportion=0.5 requestdistribution=zipfian",
    "b": "readproportion=0.95 updateproportion=0.05 requestdistribution=zipfian",
    "c": "readproportion=1 updateproportion=0 requestdistribution=zipfian",
    "f": "readproportion=0.5 updateproportion=0 readmodifywriteproportion=0.5 requestdistribution=zipfian",
    "d": "readproportion=0.95 updateproportion=0 insertproportion=0.05 requestdistribution=latest",
    "e": "readproportion=0 updateproportion=0 scanproportion=0.95 insertproportion=0.05 requestdistribution=zipfian "
         "maxscanlength=100 scanlengthdistribution=uniform",
}


def spark(options, work, server):
    """Spark's tour. Returns the differences."""
    program = build("spark", "SparkTour.java")
    output = run_java(options, "spark", [*jvm.JAVA, "-cp", program.path, "SparkTour", server.port, work])
    found = dict(line.split("\t", 1) for line in output.splitlines() if "\t" in line)
    wrong = []
    for step, wanted in SPARK.items():
        answer = found.get(step, "nothing")
        print(f"{step}: {answer}")
        right = wanted.fullmatch(answer) if isinstance(wanted, re.Pattern) else wanted == answer
        if not right:
            wrong.append(f"{step}: {answer} instead of {getattr(wanted, 'pattern', wanted)}")
    return wrong


def ycsb(options, _work, server):
    """YCSB's workloads with data integrity. Returns the differences."""
    program = build("ycsb", "HBaseDb.java")
    java = [*jvm.JAVA, f"-Dbasalt.port={server.port}", "-cp", program.path]
    # d inserts rows that e would insert again.
    return [text for names in ("abcfd", "e") for text in ycsb_table(options, java, names)]


def ycsb_table(options, java, names):
    """A new table, a load, and these workloads on it."""
    run_java(options, "ycsb", [*java, "HBaseDb"])
    wrong = ycsb_run(options, java, "load", [*settings("a", options), "-load"])
    for name in names:
        wrong += ycsb_run(options, java, name, [*settings(name, options), "-t"])
    return wrong


def settings(name, options):
    """YCSB's arguments for a workload."""
    given = [*WORKLOADS[name].split(), "workload=site.ycsb.workloads.CoreWorkload", "dataintegrity=true",
             "fieldlengthdistribution=constant", f"recordcount={options.records}", f"operationcount={options.operations}"]
    return ["-db", "HBaseDb", "-threads", "8", *(part for one in given for part in ("-p", one))]


def ycsb_run(options, java, name, arguments):
    """One run of YCSB's client: every operation must be OK, and every read verified."""
    output = run_java(options, "ycsb", [*java, "site.ycsb.Client", *arguments])
    figures = dict(re.findall(r"^(\[[^,]*\], [^,]*), (.*)$", output, re.MULTILINE))
    kinds = {key.split("]")[0].strip("[") for key in figures} & {"READ", "UPDATE", "INSERT", "SCAN", "VERIFY"}
    done = {kind: int(figures.get(f"[{kind}], Return=OK", 0)) for kind in kinds}
    rate = float(figures.get("[OVERALL], Throughput(ops/sec)", "0"))
    print(f"{name}: {rate:.0f} operations a second; "
          + ", ".join(f"{number} {kind}, p99 {figures.get(f'[{kind}], 99thPercentileLatency(us)')} us"
                      for kind, number in sorted(done.items())), flush=True)
    wrong = [f"{name}: {key} {value}" for key, value in figures.items()
             if "FAILED" in key or ("Return=" in key and not key.endswith("Return=OK"))]
    wanted = options.records if name == "load" else options.operations
    # A read-modify-write counts as a read, too.
    total = sum(number for kind, number in done.items() if kind != "VERIFY" and not (name == "f" and kind == "UPDATE"))
    if total != wanted:
        wrong.append(f"{name}: {total} operations are OK of {wanted}")
    if done.get("READ", 0) != done.get("VERIFY", 0):
        wrong.append(f"{name}: {done.get('VERIFY', 0)} reads are verified of {done.get('READ', 0)}")
    return wrong


def build(name, source):
    """Jars and classes of an application."""
    return jvm.Program(f"applications/{name}", HERE / name / "pom.xml", [], jvm.read_sources(HERE / name / source))


def run_java(options, name, arguments):
    """Standard output; errors go to the log."""
    with open(options.out / f"{name}.err", "ab") as errors:
        output = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=errors, text=True, check=False)
    if output.returncode != 0:
        print(f"DIFFERENCE {name}: java ended with status {output.returncode}, see {errors.name}")
        sys.exit(1)
    return output.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("application", choices=("spark", "ycsb"))
    parser.add_argument("--binary", default=jvm.WORKSPACE / "target/release/basalt", type=pathlib.Path)
    parser.add_argument("--out", default=jvm.WORKSPACE / "target/applications/logs", type=pathlib.Path)
    parser.add_argument("--records", default=20_000, type=int, help="rows of YCSB's table")
    parser.add_argument("--operations", default=20_000, type=int, help="of each of YCSB's workloads")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"{options.application}.err").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="applications-") as work:
        server = jvm.Server(options.binary.resolve(), options.out / f"{options.application}.log", [work])
        try:
            wrong = globals()[options.application](options, work, server)
        except jvm.NotRun as missing:
            print(f"not run: {options.application}, since {missing}")
            sys.exit(jvm.NOT_RUN)
        finally:
            status = server.stop()
    if status != 0:
        wrong.append(f"the server ended with status {status}")
    for text in wrong:
        print(f"DIFFERENCE {text}")
    print(f"{options.application}: {len(wrong)} differences")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
