//! Texts: settings and shell commands.

use basalt_server::config::Config;

use super::numbered;
use crate::corpus::Input;

pub(super) fn settings() -> Vec<Input> {
    let mut file = String::new();
    for line in Config::default().lines() {
        file.push_str(&line);
        file.push('\n');
    }
    let texts = [
        file.as_str(),
        "[wal]\nsync = \"os\"\nsegment_bytes = 4_194_304\n",
        "# a comment\n[thrift]\nlisten = \"[::1]:0\"\nprotocol = 'compact'\n[compaction]\nratio = 1e1\n",
        "[memstore]\nflush_bytes = 0x10_0000\ntotal_bytes = 1048575\n",
        "wal = { sync = \"fsync\" }\n\0thrift.listen=127.0.0.1:0\0log.json=true\0compaction.ratio=nan",
        "\0wal.sync=os\0data.dir=a b\0log.filter=basalt=debug,info\0row.max_bytes=9223372036854775807",
        "\0wal\0wal.sync\0wal.sink=os\0memstore.flush_bytes=-1",
        "[wal]\nsync = \"\"\"multi\nline\"\"\"\n",
        "[wal]\nsegments = 4\n",
        "a.b.c.d.e.f = [[[[[[[[1]]]]]]]]\n",
        "[data]\ndir = \"\\u00e9\\U0001F600\\t\"\n[[data]]\n",
        "x = 1979-05-27T07:32:00Z\ny = +inf\n",
    ];
    numbered("settings", texts)
}

pub(super) fn commands() -> Vec<Input> {
    let texts = [
        "create 't', {NAME => 'f', VERSIONS => 3}, SPLITS => ['a', \"b\\x00\"]\n",
        "put 't', \"row\\xff\", 'f:q', 'it\\'s', 1234567890123; get 't', 'r'\n",
        "scan 't', {COLUMNS => ['f:a', 'f:b'], LIMIT => 10, FILTER => \"PrefixFilter('x')\", STARTROW => \"\\u00e9\"}",
        "create('t', NAME => 'f', TTL => FOREVER, BLOCKCACHE => true) # comment\nlist",
        "alter 't', METHOD => 'delete', NAME => 'f'\nscan 't', TIMERANGE => [1, 1.5e3], REVERSED => nil",
        "put 't', :symbol, f: 'x', key: -5",
        "get 't', 'r', {COLUMN => 'f', \\\n VERSIONS => 0x10, a: [1, [2, [3]]]}",
        "create 't', ",
        "scan 't', {",
        "put 't', \"#{1 + 1}\"",
        "Create 't'",
        "x [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
        "put 't', \"\\400\\x\\u{1f600}\\e\\M-a\", 99999999999999999999",
    ];
    numbered("commands", texts)
}
