//! The commands and their syntax.

use super::{ShellError, ShellResult};

struct Entry {
    name: &'static str,
    /// Forms of the command, one a line.
    usage: &'static str,
    what: &'static str,
}

const fn entry(name: &'static str, usage: &'static str, what: &'static str) -> Entry {
    Entry { name, usage, what }
}

const GROUPS: &[(&str, &[Entry])] = &[
    (
        "general",
        &[
            entry("status", "status", "The server at a glance."),
            entry("version", "version", "The versions of shell and server."),
            entry("help", "help\nhelp 'put'", "All commands, or one."),
            entry(
                "exit",
                "exit\nexit 3",
                "Leaves, with an exit code if one is given. So does Ctrl-D; Ctrl-C ends the command that runs.",
            ),
        ],
    ),
    (
        "ddl",
        &[
            entry(
                "create",
                "create 't', 'f1', 'f2'\ncreate 't', {NAME => 'f', VERSIONS => 3, TTL => 86400, COMPRESSION => 'ZSTD'}\n\
             create 't', 'f', SPLITS => ['10', '20']\ncreate 't', 'f', SPLITS_FILE => 'splits.txt'\n\
             create 't', 'f', {NUMREGIONS => 4, SPLITALGO => 'HexStringSplit'}\n\
             create 't', 'f', MAX_FILESIZE => '1GB', DURABILITY => 'SYNC_WAL'\n\
             create 't', {TABLE_ATTRIBUTES => {READONLY => 'true'}}, {NAME => 'f', TTL => '604800 SECONDS (7 DAYS)'}",
                "Creates a table. It takes what describe prints; TTL is seconds or like '7 DAYS', sizes are bytes or like '64KB'.",
            ),
            entry(
                "alter",
                "alter 't', NAME => 'f', VERSIONS => 5\nalter 't', {NAME => 'f1'}, {NAME => 'f2', IN_MEMORY => true}\n\
             alter 't', 'delete' => 'f'\nalter 't', NAME => 'f', METHOD => 'delete'\nalter 't', MAX_FILESIZE => 1073741824\n\
             alter 't', CONFIGURATION => {'key' => 'value'}\nalter 't', METHOD => 'table_conf_unset', NAME => 'key'\n\
             alter 't', METHOD => 'table_att_unset', NAME => 'MAX_FILESIZE'",
                "Adds, changes and deletes families, and changes settings of the table. Also called alter_async.",
            ),
            entry("describe", "describe 't'", "The schema of a table."),
            entry(
                "list",
                "list\nlist 'abc.*'",
                "Tables, all or those that a regular expression matches whole.",
            ),
            entry("exists", "exists 't'", "Whether a table exists."),
            entry("enable", "enable 't'", "Brings a disabled table back."),
            entry("disable", "disable 't'", "Takes a table out of service."),
            entry("is_enabled", "is_enabled 't'", "Whether a table serves."),
            entry(
                "is_disabled",
                "is_disabled 't'",
                "Whether a table is out of service.",
            ),
            entry("drop", "drop 't'", "Deletes a disabled table."),
            entry(
                "enable_all",
                "enable_all 'abc.*'\nenable_all 'ns:.*'",
                "Brings back the tables that a regular expression matches whole. This and the next two ask a person at a terminal before, \
                 and name those that failed.",
            ),
            entry(
                "disable_all",
                "disable_all 'abc.*'\ndisable_all 'ns:.*'",
                "Takes the tables that a regular expression matches whole out of service.",
            ),
            entry(
                "drop_all",
                "drop_all 'abc.*'\ndrop_all 'ns:.*'",
                "Deletes the tables that a regular expression matches whole; those that are not disabled are left.",
            ),
            entry(
                "alter_status",
                "alter_status 't'",
                "Whether all regions have the newest schema: they have it when alter returns.",
            ),
            entry(
                "clone_table_schema",
                "clone_table_schema 't', 'new'\nclone_table_schema 't', 'new', false",
                "Creates an empty table with the schema of another, and its regions unless false is said.",
            ),
            entry(
                "show_filters",
                "show_filters",
                "The filters that FILTER => \"...\" of get, scan and count knows.",
            ),
            entry(
                "list_regions",
                "list_regions 't'\nlist_regions 't', 'server'\nlist_regions 't', {SERVER_NAME => 'server'}, ['START_KEY', 'END_KEY']",
                "The regions of a table with their load, those of servers whose names begin so, with the columns SERVER_NAME, \
                 REGION_NAME, START_KEY, END_KEY, SIZE in MiB, REQ and LOCALITY.",
            ),
            entry(
                "locate_region",
                "locate_region 't', 'row'",
                "The region that holds a row.",
            ),
        ],
    ),
    (
        "dml",
        &[
            entry(
                "put",
                "put 't', 'row', 'f:q', 'value'\nput 't', 'row', 'f:q', 'value', timestamp\n\
             put 't', 'row', 'f:q', 'value', {TTL => milliseconds}\n\
             put 't', 'row', 'f:q', 'value', timestamp, {ATTRIBUTES => {'name' => 'value'}}",
                "Writes a cell.",
            ),
            entry(
                "get",
                "get 't', 'row'\nget 't', 'row', 'f:q', 'g'\nget 't', 'row', {COLUMN => ['f:q', 'g'], VERSIONS => 3}\n\
             get 't', 'row', {TIMESTAMP => ts}\nget 't', 'row', {TIMERANGE => [from, to]}\n\
             get 't', 'row', {FILTER => \"ValueFilter(=, 'binary:x')\"}\n\
             get 't', 'row', 'f:n:toLong', 'f:i:c(org.apache.hadoop.hbase.util.Bytes).toInt'\n\
             get 't', 'row', {COLUMN => 'f:q', FORMATTER => 'toString', MAXLENGTH => 100}\n\
             further options: ATTRIBUTES, CACHE_BLOCKS\n\
             further options without effect on one node: AUTHORIZATIONS, CONSISTENCY, REGION_REPLICA_ID",
                "Reads a row. Converters: toStringBinary, toString, toHex, toShort, toInt, toLong, toFloat, toDouble, toBoolean.",
            ),
            entry(
                "scan",
                "scan 't'\nscan 't', {STARTROW => 'a', STOPROW => 'b', LIMIT => 10, COLUMNS => ['f:q', 'g']}\n\
             scan 't', {ROWPREFIXFILTER => 'a', REVERSED => true}\n\
             scan 't', {VERSIONS => 3, TIMERANGE => [from, to], FILTER => \"PrefixFilter('x')\"}\n\
             scan 't', {RAW => true, VERSIONS => 10}\nscan 't', {COLUMNS => ['f:n:toLong'], FORMATTER => 'toString', MAXLENGTH => 100}\n\
             further options: TIMESTAMP, BATCH, CACHE, CACHE_BLOCKS, ATTRIBUTES, ALL_METRICS, METRICS\n\
             further options without effect on one node: AUTHORIZATIONS, CONSISTENCY, REGION_REPLICA_ID, READ_TYPE, ISOLATION_LEVEL, MAX_RESULT_SIZE, ALLOW_PARTIAL_RESULTS",
                "Reads rows. RAW also shows tombstones and what they hide. Converters and FORMATTER are those of get.",
            ),
            entry(
                "count",
                "count 't'\ncount 't', 100000\ncount 't', INTERVAL => 100000, CACHE => 1000\ncount 't', {STARTROW => 'a', FILTER => \"...\"}",
                "Counts rows by reading them.",
            ),
            entry(
                "delete",
                "delete 't', 'row', 'f:q'\ndelete 't', 'row', 'f:q', timestamp",
                "Deletes one version of a column: the newest, or that of a timestamp.",
            ),
            entry(
                "deleteall",
                "deleteall 't', 'row'\ndeleteall 't', 'row', 'f:q'\ndeleteall 't', 'row', 'f:q', timestamp\n\
             deleteall 't', {ROWPREFIXFILTER => 'a'}\ndeleteall 't', {ROWPREFIXFILTER => 'a', CACHE => 100}, 'f:q', timestamp\n\
             deleteall 't', {ROWPREFIXFILTER => 'a'}, timestamp",
                "Deletes a row, a family or a column with all versions, those up to a timestamp if one is given, of one row or of rows \
                 that start alike.",
            ),
            entry(
                "incr",
                "incr 't', 'row', 'f:q'\nincr 't', 'row', 'f:q', 10\nincr 't', 'row', 'f:q', 10, {TTL => milliseconds, ATTRIBUTES => {'name' => 'value'}}",
                "Adds to a counter.",
            ),
            entry("get_counter", "get_counter 't', 'row', 'f:q'", "Reads a counter."),
            entry(
                "append",
                "append 't', 'row', 'f:q', 'value'\nappend 't', 'row', 'f:q', 'value', ATTRIBUTES => {'name' => 'value'}, TTL => milliseconds",
                "Appends to a value.",
            ),
            entry(
                "get_splits",
                "get_splits 't'",
                "The keys at which a table is split.",
            ),
            entry(
                "truncate",
                "truncate 't'",
                "Empties a table; it has one region afterwards.",
            ),
            entry(
                "truncate_preserve",
                "truncate_preserve 't'",
                "Empties a table and keeps its regions.",
            ),
        ],
    ),
    (
        "namespace",
        &[
            entry(
                "create_namespace",
                "create_namespace 'ns'\ncreate_namespace 'ns', {'name' => 'value'}",
                "Creates a namespace.",
            ),
            entry(
                "alter_namespace",
                "alter_namespace 'n', {METHOD => 'set', 'KEY' => 'value'}\nalter_namespace 'n', {METHOD => 'unset', NAME => 'KEY'}",
                "Sets or takes away a setting of a namespace.",
            ),
            entry(
                "drop_namespace",
                "drop_namespace 'ns'",
                "Deletes an empty namespace.",
            ),
            entry(
                "describe_namespace",
                "describe_namespace 'ns'",
                "A namespace and its settings.",
            ),
            entry(
                "list_namespace",
                "list_namespace\nlist_namespace 'ab.*'",
                "Namespaces. The pattern knows `.*` only.",
            ),
            entry(
                "list_namespace_tables",
                "list_namespace_tables 'ns'",
                "The tables of a namespace.",
            ),
        ],
    ),
    (
        "tools, on Basalt only",
        &[
            entry(
                "flush",
                "flush 't'\nflush 'region'",
                "Writes the memstores of a table or region to store files. A region is named in full or by its 32 hex digits.",
            ),
            entry(
                "compact",
                "compact 't'\ncompact 't', 'f'\ncompact 'region', 'f'",
                "Asks for a compaction of a table, a region, or one family of it.",
            ),
            entry(
                "major_compact",
                "major_compact 't'\nmajor_compact 't', 'f'\nmajor_compact 'region', 'f'",
                "Asks for a compaction of all files.",
            ),
            entry(
                "split",
                "split 't'\nsplit 'region'\nsplit 't', 'key'",
                "Splits regions. A region is named in full or by its 32 hex digits.",
            ),
            entry(
                "merge_region",
                "merge_region 'region', 'region'",
                "Merges neighbours. Regions are named in full or by their 32 hex digits.",
            ),
            entry(
                "move",
                "move 'region'\nmove 'region', 'rehearsal-3,9090,1700000000000'",
                "Moves a region to a virtual server, the one with the fewest regions unless it is named; see status. This and the \
                 next three need a rehearsal of a cluster.",
            ),
            entry(
                "assign",
                "assign 'region'",
                "Gives a region that is not assigned to a virtual server.",
            ),
            entry(
                "unassign",
                "unassign 'region'",
                "Takes a region from its virtual server: calls on it fail until it is assigned.",
            ),
            entry(
                "balancer",
                "balancer",
                "Evens out the regions over the virtual servers. Also called balance.",
            ),
            entry(
                "compaction_switch",
                "compaction_switch false\ncompaction_switch true",
                "Pauses compactions, or lets them go on, and says whether they were on. A compaction that runs stands still. A restart of \
                 the server ends a pause.",
            ),
            entry(
                "flush_switch",
                "flush_switch false\nflush_switch true",
                "The same for flushes. While they are paused memstores fill up, until writes are refused.",
            ),
            entry(
                "compaction_state",
                "compaction_state 't'",
                "Which compactions of a table run: NONE, MINOR, MAJOR or MAJOR_AND_MINOR.",
            ),
            entry(
                "processlist",
                "processlist",
                "Flushes and compactions that run, with the bytes left of each, and what is paused.",
            ),
            entry(
                "clear_block_cache",
                "clear_block_cache 't'\nclear_block_cache",
                "Takes the blocks of a table, or of all, out of the block cache.",
            ),
        ],
    ),
    (
        "slow log",
        &[
            entry(
                "get_slowlog_responses",
                "get_slowlog_responses '*'\nget_slowlog_responses '*', {'LIMIT' => 50}\n\
             get_slowlog_responses ['host,9090,1700000000000'], {'TABLE_NAME' => 't', 'CLIENT_IP' => '10.0.0.7'}\n\
             get_slowlog_responses '*', {REGION_NAME => 'region', USER => 'bob', FILTER_BY_OP => 'AND'}",
                "Calls that took long, the newest first.",
            ),
            entry(
                "get_largelog_responses",
                "get_largelog_responses '*'\nget_largelog_responses '*', {LIMIT => 50, TABLE_NAME => 't'}",
                "Calls with large answers, the newest first. It takes what get_slowlog_responses takes.",
            ),
            entry(
                "clear_slowlog_responses",
                "clear_slowlog_responses\nclear_slowlog_responses ['host,9090,1700000000000']",
                "Empties the slow log.",
            ),
        ],
    ),
    (
        "snapshots, on Basalt only",
        &[
            entry(
                "snapshot",
                "snapshot 't', 'name'\nsnapshot 't', 'name', {SKIP_FLUSH => true, TTL => 86400}",
                "Takes a snapshot of a table with all that was written so far. SKIP_FLUSH leaves out what is in no store file yet; after \
                 TTL seconds it is removed.",
            ),
            entry(
                "list_snapshots",
                "list_snapshots\nlist_snapshots 'abc.*'",
                "Snapshots, all or those whose names match a regular expression.",
            ),
            entry(
                "list_table_snapshots",
                "list_table_snapshots 'table.*'\nlist_table_snapshots 'ns:table.*', 'name.*'",
                "Snapshots of the tables that match a regular expression; the second one is for names of snapshots.",
            ),
            entry(
                "clone_snapshot",
                "clone_snapshot 'name', 'table'\nclone_snapshot 'name', 'ns:table'",
                "Creates a table that is what the snapshot's was. No data is copied.",
            ),
            entry(
                "restore_snapshot",
                "restore_snapshot 'name'",
                "Makes the snapshot's table what it was, families and regions too. It must be disabled; what was written since is lost.",
            ),
            entry("delete_snapshot", "delete_snapshot 'name'", "Deletes a snapshot."),
            entry(
                "delete_all_snapshot",
                "delete_all_snapshot 's.*'",
                "Deletes the snapshots whose names match a regular expression; asks a person at a terminal before.",
            ),
            entry(
                "delete_table_snapshots",
                "delete_table_snapshots 'table.*'\ndelete_table_snapshots 'table.*', 'name.*'",
                "Deletes the snapshots of the tables that match a regular expression; asks as delete_all_snapshot does.",
            ),
        ],
    ),
    (
        "quotas, on Basalt only",
        &[
            entry(
                "set_quota",
                "set_quota TYPE => THROTTLE, USER => 'u1', LIMIT => '10req/sec'\n\
             set_quota TYPE => THROTTLE, THROTTLE_TYPE => WRITE, USER => 'u1', TABLE => 't2', LIMIT => '5K/min'\n\
             set_quota TYPE => THROTTLE, THROTTLE_TYPE => READ, USER => 'u1', NAMESPACE => 'ns2', LIMIT => '10M/sec'\n\
             set_quota TYPE => THROTTLE, NAMESPACE => 'ns1', LIMIT => '100req/hour'\n\
             set_quota TYPE => THROTTLE, TABLE => 't1', LIMIT => '10G/day', SCOPE => MACHINE\n\
             set_quota TYPE => THROTTLE, THROTTLE_TYPE => WRITE, TABLE => 't1', LIMIT => NONE\n\
             set_quota TYPE => THROTTLE, TABLE => 't1', LIMIT => NONE",
                "Limits the requests or bytes of a user, table or namespace. Without THROTTLE_TYPE reads and writes together. LIMIT => \
                 NONE takes away what THROTTLE_TYPE names, or all. Sizes: B, K, M, G, T, P; times: sec, min, hour, day.",
            ),
            entry(
                "list_quotas",
                "list_quotas\nlist_quotas USER => 'bob.*'\nlist_quotas USER => 'bob.*', TABLE => 't1'\n\
             list_quotas USER => 'bob.*', NAMESPACE => 'ns.*'\nlist_quotas TABLE => 'myTable'\n\
             list_quotas NAMESPACE => 'ns.*', LIMIT => 10",
                "Quotas, all or those of owners that match regular expressions.",
            ),
            entry(
                "list_quota_table_sizes",
                "list_quota_table_sizes",
                "Bytes of each table on disk.",
            ),
            entry(
                "list_snapshot_sizes",
                "list_snapshot_sizes",
                "Bytes of the files of each snapshot, those that it shares with tables and others included.",
            ),
        ],
    ),
];

fn entries() -> impl Iterator<Item = &'static Entry> {
    GROUPS.iter().flat_map(|(_, entries)| *entries)
}

/// The name of a command that has several.
pub(super) fn canonical(name: &str) -> &str {
    match name {
        "desc" => "describe",
        "quit" => "exit",
        "merge" => "merge_region",
        "alter_async" => "alter",
        "balance" => "balancer",
        other => other,
    }
}

/// The names of all commands, for completion.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    entries().map(|entry| entry.name)
}

/// Whether the first argument of a command is a table that there is.
pub(super) fn takes_table(command: &str) -> bool {
    let name = canonical(command);
    let begins = format!("{name} 't'");
    let entry = entries().find(|entry| entry.name == name && name != "create");
    entry.is_some_and(|entry| entry.usage.lines().any(|form| form.starts_with(&begins)))
}

/// The options that the forms of a command show: words in capitals before `=>`.
pub(super) fn options(command: &str) -> Vec<&'static str> {
    let usage = entries()
        .find(|entry| entry.name == command)
        .map(|entry| entry.usage);
    let before_arrows = usage.into_iter().flat_map(|usage| {
        let mut parts: Vec<&str> = usage.split("=>").collect();
        parts.pop();
        parts
    });
    let is_letter = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let last_word = |part: &'static str| {
        let part = part.trim_end().trim_end_matches('\'');
        part.rfind(|letter: char| !is_letter(letter))
            .map_or(part, |at| &part[at + 1..])
    };
    before_arrows
        .map(last_word)
        .filter(|word| word.len() > 1)
        .collect()
}

/// The answer to a name that is no command.
pub(super) fn unknown_command(name: &str) -> String {
    let near = names().map(|known| (distance(name, known), known)).min();
    match near {
        Some((distance, known)) if distance <= 2 => {
            format!("unknown command '{name}'; did you mean {known}?")
        }
        _ => format!("unknown command '{name}'; help lists all"),
    }
}

/// Help for a command, or the list of all.
pub(super) fn text(command: Option<&str>) -> ShellResult<String> {
    let Some(command) = command else {
        let mut text = String::from("Commands, by group. help 'command' shows how one is written.\n");
        for (group, entries) in GROUPS {
            let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
            text.extend(["\n  ", group, ": ", &names.join(", "), "\n"]);
        }
        text.push_str(
            "\nNames and values are strings: 'text' as it is, \"text\" with \\x00, \\n and so on.\n\
             Options are pairs: {VERSIONS => 3}. Several commands in a line are separated by ';'.",
        );
        return Ok(text);
    };
    let name = canonical(command);
    match entries().find(|entry| entry.name == name) {
        Some(entry) => Ok(format!(
            "{}\n\n  {}",
            entry.what,
            entry.usage.replace('\n', "\n  ")
        )),
        None => Err(ShellError::Arguments(unknown_command(command))),
    }
}

/// Number of letters in which two words differ: Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (index, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (at, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested() {
        assert!(unknown_command("scna").ends_with("did you mean scan?"));
        assert!(unknown_command("rebalance_all").ends_with("help lists all"));
    }

    /// Every form that help shows can be read.
    #[test]
    fn usage_is_valid() {
        for entry in entries() {
            for form in entry.usage.lines().filter(|line| !line.starts_with("further")) {
                let form = form.replace("timestamp", "1").replace("milliseconds", "1");
                let form = form.replace("[from, to]", "[1, 2]").replace("=> ts", "=> 1");
                let commands = crate::parse(&form).unwrap_or_else(|error| panic!("{form}: {error}"));
                assert_eq!(commands[0].name, entry.name);
            }
        }
    }
}
