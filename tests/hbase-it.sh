#!/usr/bin/env bash
# HBase's own integration tests, PerformanceEvaluation and LoadTestTool (org.apache.hbase, 2.6.1, unmodified) against Basalt.
#
#   tests/hbase-it.sh [TEST...]
#
# Runs all tests of the table below, or those that are named, one after the other against one server on an empty directory;
# LoadAndVerify, which needs three region servers, against a rehearsal of three. The reads of PerformanceEvaluation (PE_*)
# need the table of PE_sequentialWrite. Prints a line for each and ends with status 1 if one failed; the logs stay in
# target/e2e/clients/hbase-it/logs.
#
#   BASALT   the program; target/release/basalt by default
#
# Needs Java 17 and Maven, which fetches the jars the first time. A run takes about five minutes and a JVM of 512 MiB.
#
# Omitted:
#
#   TableMapReduceUtil            requires the jar of Guava, which HBase 2.6 no longer contains; fails with HBase, too
#   Filter                        does not exist in 2.6.1; filters are in PerformanceEvaluation and LazyCfLoading
#   *MTTR*, *Monkeys*, *Failover* stop and start servers by ssh
#   Replication, Replicas, MOB    need a second cluster, region replicas, MOB files
#   IngestWithACL, IngestWithVisibilityLabels   need the coprocessors AccessController and VisibilityController
set -euo pipefail
cd "$(dirname "$0")/.."

made=$PWD/target/e2e/clients/hbase-it
logs=$made/logs
basalt=${BASALT:-target/release/basalt}
work=$(mktemp -d)
server=
# HBase's test utilities keep files below the working directory.
stop() {
  if [ -n "$server" ]; then kill "$server" && wait "$server" || true; fi
  rm -rf "$work"
}
trap stop EXIT

mkdir -p "$logs" "$work/conf"
(cd tests/e2e/clients/hbase-it && mvn -q -B dependency:build-classpath "-Dmdep.outputFile=$made/classpath.txt")

# serve NAME SETTING...: starts the server on the empty directory of this name, instead of a running
# one.
serve() {
  local name=$1 settings=()
  shift
  if [ -n "$server" ]; then kill "$server" && wait "$server" || true; fi
  for setting in "$@"; do settings+=(--set "$setting"); done
  # The shell opens it in the background, perhaps after it is first searched.
  : > "$work/$name.out"
  "$basalt" serve --data-dir "$work/$name" --thrift-listen 127.0.0.1:0 --http-listen 127.0.0.1:0 "${settings[@]}" \
    > "$work/$name.out" 2> "$logs/$name.log" &
  server=$!
  until grep -q '^basalt serves' "$work/$name.out"; do
    kill -0 "$server" || { cat "$logs/$name.log"; exit 1; }
    sleep 0.1
  done
  local port
  port=$(sed -E 's/^basalt serves HBase clients on [^ ]*:([0-9]+) .*/\1/' "$work/$name.out")
  cat > "$work/conf/hbase-site.xml" <<XML
<configuration>
  <property><name>hbase.zookeeper.quorum</name><value>127.0.0.1</value></property>
  <property><name>hbase.zookeeper.property.clientPort</name><value>$port</value></property>
  <property><name>hadoop.tmp.dir</name><value>$work/hadoop</value></property>
  <property><name>hbase.fs.tmp.dir</name><value>$work/staging</value></property>
  <property><name>hbase.IntegrationTestIngestWithTags.runtime</name><value>1000</value></property>
</configuration>
XML
}

cat > "$work/conf/log4j2.properties" <<'LOG'
status = error
appender.c.type = Console
appender.c.name = c
appender.c.target = SYSTEM_ERR
appender.c.layout.type = PatternLayout
appender.c.layout.pattern = %d{HH:mm:ss} %-5p [%t] %c{1}: %m%n
rootLogger = INFO,c
LOG
sed -e 's/^status.*/log4j.rootLogger=INFO, c/' -e '/^appender/d' -e '/^rootLogger/d' "$work/conf/log4j2.properties" \
  > "$work/conf/log4j.properties"
cat >> "$work/conf/log4j.properties" <<'LOG'
log4j.appender.c=org.apache.log4j.ConsoleAppender
log4j.appender.c.target=System.err
log4j.appender.c.layout=org.apache.log4j.PatternLayout
log4j.appender.c.layout.ConversionPattern=%d{HH:mm:ss} %-5p [%t] %c{1}: %m%n
LOG

opens=(java.base/java.nio java.base/sun.nio.ch java.base/java.lang java.base/java.lang.reflect java.base/java.util
  java.base/java.util.concurrent java.base/jdk.internal.ref)
options=(-Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 --add-modules=jdk.unsupported
  --add-exports=java.base/jdk.internal.misc=ALL-UNNAMED --add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED)
for package in "${opens[@]}"; do options+=("--add-opens=$package=ALL-UNNAMED"); done

wanted=" $* "
failed=0
is_wanted() { [ "$wanted" = "  " ] || [[ "$wanted" == *" $1 "* ]]; }
# run NAME SECONDS ARGUMENTS...: Java with these arguments.
run() {
  local name=$1 seconds=$2 begin=$SECONDS outcome=passed
  shift 2
  if ! is_wanted "$name"; then return; fi
  (cd "$work" && timeout "$seconds" java "${options[@]}" -cp "$work/conf:$(cat "$made/classpath.txt")" "$@") \
    > "$logs/$name.out" 2> "$logs/$name.err" || { outcome="FAILED with status $?"; failed=1; }
  printf '%-28s %s (%d s)\n' "$name" "$outcome" $((SECONDS - begin))
}

hbase=org.apache.hadoop.hbase
given=-Dhbase.test.cluster.distributed=true
junit=org.junit.runner.JUnitCore
small() { printf -- '-D%s.%s ' "$1" num_keys_per_server=300 "$1" num_write_threads=4 "$1" num_read_threads=4; }

serve basalt "bulkload.directories=[\"$work\"]"
run AcidGuarantees 180 $hbase.IntegrationTestAcidGuarantees -m calm
run BigLinkedList 120 $hbase.test.IntegrationTestBigLinkedList loop 1 2 30000 "file://$work/linked" 2 3000 1
run BulkLoad 180 $hbase.mapreduce.IntegrationTestBulkLoad -Dhbase.IntegrationTestBulkLoad.chainLength=2000 \
  -Dhbase.IntegrationTestBulkLoad.numMaps=2 -Dhbase.IntegrationTestBulkLoad.numImportRounds=2 -m calm
run ImportTsv 120 $given $junit $hbase.mapreduce.IntegrationTestImportTsv
# shellcheck disable=SC2046
run Ingest 180 $hbase.IntegrationTestIngest -Dhbase.IntegrationTestIngest.runtime=1000 $(small IntegrationTestIngest) -m calm
run IngestWithTags 180 $given $junit $hbase.IntegrationTestIngestWithTags
run ManyRegions 120 $given -Dhbase.IntegrationTestManyRegions.regions=200 $junit $hbase.IntegrationTestManyRegions
run LazyCfLoading 300 $given $junit $hbase.IntegrationTestLazyCfLoading
run LoadTestTool 180 $hbase.util.LoadTestTool -tn ltt -write 3:100:4 -read 100:4 -num_keys 2000 -num_regions_per_server 3
run PE_sequentialWrite 60 $hbase.PerformanceEvaluation --nomapred --rows=2000 --presplit=3 sequentialWrite 2
for command in randomRead randomSeekScan randomWrite scan scanRange10 filterScan increment append checkAndMutate checkAndPut \
  checkAndDelete asyncRandomRead asyncRandomWrite asyncScan; do
  run "PE_$command" 60 $hbase.PerformanceEvaluation --nomapred --rows=200 "$command" 1
done
if is_wanted LoadAndVerify; then
  serve rehearsal rehearsal.servers=3
  # The names of the virtual servers are those of this machine.
  echo "127.0.0.1 localhost $(hostname) rehearsal-1 rehearsal-2 rehearsal-3" > "$work/hosts"
  run LoadAndVerify 180 "-Djdk.net.hosts.file=$work/hosts" $hbase.test.IntegrationTestLoadAndVerify \
    -Dloadmapper.num_to_write=2000 -Dloadmapper.map.tasks=2 -Dverify.reduce.tasks=1 -m calm loadAndVerify
fi
exit $failed
