#!/usr/bin/env bash
# Tests the Java artifacts with the program of the first argument: their own tests, the sample on the program in a
# jar of binaries, and the time of the sample's five tests. COMPARE=1 adds the same on HBase's mini cluster.
set -euo pipefail
program=$(realpath "${1:?the program basalt}")
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=packages/lib.sh
. "$here/../lib.sh"
made=$(realpath -m "$here/../../target/packages/java")
need java mvn
cd "$here"
mkdir -p "$made"

# Fetching may fail for want of a network; compiling and testing may not. A reason is one line.
maven() { mvn -q "$@" >"$made/log" 2>&1; }
fetched() {
  local status=0
  maven "$@" || status=$?
  [ $status = 0 ] && return
  if grep -q "Could not transfer\|Could not resolve\|Unknown host" "$made/log"; then
    not_run "Maven cannot fetch: $(grep -m1 -o "Could not.*\|Unknown host.*" "$made/log")"
  fi
  cat "$made/log"
  exit 1
}
surefire() {
  awk '/^Tests run:/' "$made"/basalt-*/surefire-reports/*.txt
}

# The jar of binaries for this machine, of the program without debug information.
processor=$(uname -m)
[ "$processor" = aarch64 ] && platform=linux-arm64 || platform=linux-amd64
mkdir -p "$made/dist/$processor"
strip_debug "$program" "$made/dist/$processor/basalt"
rm -rf "$made"/basalt-*/surefire-reports
fetched test -Dbasalt.dist="$made/dist" -DargLine="-Dbasalt.program=$program" \
  -pl ":basalt-server,:basalt-junit5,:basalt-testcontainers,:basalt-sample,:basalt-binaries-$platform" -am
surefire

# An application elsewhere gets the artifacts by their names: from a repository that has them, into a local
# repository of its own.
rm -rf "$made/published" "$made/elsewhere"
mkdir -p "$made/elsewhere"
fetched deploy -DskipTests -Dbasalt.dist="$made/dist" -DaltDeploymentRepository="published::file:$made/published" \
  -pl ":basalt-server,:basalt-junit5,:basalt-testcontainers,:basalt-binaries-$platform" -am
version=$(sed -n 's:.*<revision>\(.*\)</revision>.*:\1:p' pom.xml)
dependencies=
for artifact in basalt-junit5 basalt-testcontainers "basalt-binaries-$platform"; do
  dependencies+="<dependency><groupId>basalt</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>"
done
cat >"$made/elsewhere/pom.xml" <<END
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>elsewhere</groupId>
  <artifactId>application</artifactId>
  <version>1</version>
  <repositories><repository><id>published</id><url>file:$made/published</url></repository></repositories>
  <dependencies>$dependencies</dependencies>
</project>
END
fetched org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath -f "$made/elsewhere/pom.xml" \
  -Dmaven.repo.local="$made/elsewhere/repository" -Dmdep.outputFile="$made/elsewhere/classpath"
for artifact in basalt-server basalt-junit5 basalt-testcontainers "basalt-binaries-$platform" testcontainers; do
  grep -q "/$artifact-[0-9.]*jar" "$made/elsewhere/classpath" || fail "an application elsewhere does not get $artifact"
done
echo "an application elsewhere gets the artifacts of version $version"

# With EVERY_JUNIT set, as in the nightly run, since it fetches HBase's client once more: the sample's tests in a
# project of that kind, with the oldest and the newest JUnit that is supported.
with_junit() {
  local junit=$1 app=$made/elsewhere/junit-$1
  mkdir -p "$app"
  cp -r sample/src "$app"
  cat >"$app/pom.xml" <<END
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>elsewhere</groupId>
  <artifactId>junit-$junit</artifactId>
  <version>1</version>
  <properties>
    <!-- Plugins of older versions of Maven do not know "release". -->
    <maven.compiler.source>11</maven.compiler.source>
    <maven.compiler.target>11</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <repositories><repository><id>published</id><url>file:$made/published</url></repository></repositories>
  <dependencies>
    <dependency><groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><version>$junit</version><scope>test</scope></dependency>
    <dependency><groupId>org.apache.hbase</groupId><artifactId>hbase-shaded-client</artifactId><version>$hbase</version></dependency>
    $dependencies
  </dependencies>
  <build><plugins><plugin><artifactId>maven-surefire-plugin</artifactId><version>$surefire</version></plugin></plugins></build>
</project>
END
  fetched test -f "$app/pom.xml" -Dmaven.repo.local="$made/repository" -DargLine="-Dbasalt.program=$program"
  cat "$app"/target/surefire-reports/*.txt | grep -q "Tests run: 5, Failures: 0, Errors: 0" || fail "JUnit $junit: the sample's five tests"
  echo "the sample's tests pass with JUnit $junit"
}
# The local repository of these projects stays for the next run, without this build's artifacts.
rm -rf "$made/repository/basalt"
hbase=$(sed -n 's:.*<hbase.version>\(.*\)</hbase.version>.*:\1:p' pom.xml | head -1)
surefire=$(sed -n '/<artifactId>maven-surefire-plugin/{n;s:.*<version>\(.*\)</version>.*:\1:p}' pom.xml | head -1)
if [ -n "${EVERY_JUNIT:-}" ]; then
  with_junit 5.10.5
  with_junit 5.14.4
fi

# These five tests by JUnit's console, without Maven: the time that a user waits.
timed() {
  local module=$1 begin
  shift
  fetched test-compile dependency:build-classpath -Dmdep.outputFile="$made/$module.classpath" -Dbasalt.dist="$made/dist" \
    -pl ":$module" "$@"
  begin=$(date +%s%N)
  # HBase's servers need reflective access to these packages of Java 17.
  java --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED \
    --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/jdk.internal.ref=ALL-UNNAMED \
    --add-opens=java.base/java.lang.reflect=ALL-UNNAMED --add-opens=java.base/java.util=ALL-UNNAMED \
    --add-opens=java.base/java.util.concurrent=ALL-UNNAMED --add-exports=java.base/jdk.internal.misc=ALL-UNNAMED \
    -Dtest.build.data.basedirectory="$made/test-data" \
    -cp "$made/$module/test-classes:$made/$module/classes:$binaries:$(cat "$made/$module.classpath")" \
    org.junit.platform.console.ConsoleLauncher execute --details=summary --scan-classpath "$made/$module/test-classes" \
    --include-classname '.*GuestBookTest' >"$made/log" 2>&1 || { cat "$made/log"; exit 1; }
  grep -q "5 tests successful" "$made/log" || { cat "$made/log"; exit 1; }
  echo "start, five tests and stop, with $module: $(ms_since "$begin") ms"
}
binaries=$made/basalt-binaries-$platform/classes
timed basalt-sample -am
if [ "${COMPARE:-}" = 1 ]; then
  timed basalt-mini-cluster -Pmini-cluster
fi
