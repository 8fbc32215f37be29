#!/usr/bin/env bash
# Runs the test suites of two public REST clients against a running server, and counts what passed:
#
#     tests/rest-suites.sh HOST PORT [FOLDER]
#
# PORT is the main port, or rest.listen. The suites create, change and drop tables of their own. They come from
# the network into FOLDER (default: a temporary one): node-hbase from its Git repository with packages from npm,
# starbase from PyPI. docs/testing.md says how many tests pass, and why others do not.
set -euo pipefail

host=${1:?usage: rest-suites.sh HOST PORT [FOLDER]}
port=${2:?usage: rest-suites.sh HOST PORT [FOLDER]}
folder=${3:-$(mktemp -d)}
node_hbase=https://github.com/adaltas/node-hbase.git

mkdir -p "$folder"
cd "$folder"

if [ ! -d node-hbase ]; then
  git clone --quiet --depth 1 "$node_hbase" node-hbase
fi
if [ ! -d node-hbase/node_modules ]; then
  # Kerberos is a package of C that no test here needs.
  (cd node-hbase && sed -i '/"krb5"/d' package.json &&
    npm install --no-save --no-audit --no-fund --omit=optional --silent mocha@7 should@13 coffeescript@2 each@1)
fi
cat > node-hbase/test/properties.json <<JSON
{"protocol": "http", "host": "$host", "port": $port, "test_table": true, "timeout": 60000, "test_table_modify": true}
JSON
echo "== node-hbase"
(cd node-hbase && npx mocha --reporter dot 'test/*.coffee') > node-hbase.log 2>&1 || true
grep -E '^ +[0-9]+ (passing|failing|pending)' node-hbase.log || cat node-hbase.log

if [ ! -d starbase ]; then
  python3 -m venv starbase
  starbase/bin/pip install --quiet setuptools==65.5.0 starbase==0.3.3 simple_timer
fi
tests=$(echo starbase/lib/python3*/site-packages/starbase/client/tests.py)
sed -i "s/^HOST = .*/HOST = '$host'/; s/^PORT = .*/PORT = $port/" "$tests"
# The tests build on each other, and stop where one fails: each is counted.
echo "== starbase"
starbase/bin/python -W ignore -m unittest -v starbase.client.tests > starbase.log 2>&1 || true
printf '  %s passed, %s not\n' "$(grep -cE '\.\.\. ?(.*)ok$|^ok$' starbase.log || true)" "$(grep -cE '^(ERROR|FAIL):' starbase.log || true)"
echo "logs: $folder/node-hbase.log, $folder/starbase.log"
