//! The table of commands: all that HBase's shell has, in its groups.
//!
//! A command that this server has comes with its forms, its meaning and the method of [`Session`]
//! that runs it. One that a single node cannot have comes with the reason and the remedy. Help,
//! completion, dispatch and the methods of table variables read this table and nothing else.

use std::future::Future;
use std::pin::Pin;

use basalt_client::admin::BackgroundWork;
use basalt_idl::thrift2::TLogType;

use super::arguments::Arguments;
use super::peers::{Change, Which};
use super::servers::Servers;
use super::session::{Outcome, Session};
use super::to_tables::ToTables;

/// Runs a command.
pub(super) type Run = for<'s> fn(&'s mut Session, Arguments) -> Pin<Box<dyn Future<Output = Outcome> + 's>>;

/// A command that this server has.
pub(super) struct Entry {
    pub(super) name: &'static str,
    /// Forms of the command, one a line.
    pub(super) usage: &'static str,
    /// Its effect; the first sentence makes sense alone.
    pub(super) meaning: &'static str,
    pub(super) run: Run,
}

/// Commands of HBase's shell that this server does not have, for one reason.
pub(super) struct Absent {
    pub(super) names: &'static [&'static str],
    /// The reason, and the remedy.
    pub(super) why: &'static str,
}

/// A group of HBase's shell.
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) entries: &'static [Entry],
    pub(super) absent: &'static [Absent],
}

const fn entry(name: &'static str, usage: &'static str, meaning: &'static str, run: Run) -> Entry {
    Entry {
        name,
        usage,
        meaning,
        run,
    }
}

const fn absent(names: &'static [&'static str], why: &'static str) -> Absent {
    Absent { names, why }
}

/// A method of [`Session`] as [`Run`].
macro_rules! run {
    ($method:ident $(, $more:expr)*) => {
        |session, arguments| Box::pin(session.$method(arguments $(, $more)*))
    };
}

/// A method of [`Session`] that does no I/O, as [`Run`].
macro_rules! now {
    ($method:ident $(, $more:expr)*) => {
        |session, arguments| Box::pin(std::future::ready(session.$method(arguments $(, $more)*)))
    };
}

pub(super) const GROUPS: &[Group] = &[
    Group {
        name: "general",
        entries: &[
            entry(
                "status",
                "status\nstatus 'simple'\nstatus 'summary'\nstatus 'detailed'\nstatus 'replication'\nstatus 'replication', 'source'\nstatus 'tasks'",
                "The server at a glance. simple adds a line for each server, detailed one for each region; tasks are flushes and compactions that run.",
                run!(status),
            ),
            entry(
                "version",
                "version",
                "The versions of shell and server.",
                run!(version),
            ),
            entry(
                "table_help",
                "table_help",
                "How a table is used through a variable: t = get_table 't'.",
                now!(table_help),
            ),
            entry(
                "whoami",
                "whoami",
                "The user as whom calls are made.",
                now!(whoami),
            ),
            entry(
                "processlist",
                "processlist\nprocesslist 'all'",
                "Flushes and compactions that run, with the bytes left of each, and what is paused.",
                run!(process_list),
            ),
            entry(
                "top",
                "top\ntop 'tables'\ntop 'methods', SORT => 'errors'\ntop 'regions', {SORT => 'writes', INTERVAL => 2, LIMIT => 20}\ntop --once",
                "Tables, regions and methods with their present rates, the busiest first. At a terminal the picture is live and its keys are shown; --once prints one, as without a terminal.",
                run!(top),
            ),
            entry(
                "help",
                "help\nhelp 'put'\nhelp 'ddl'",
                "All commands, a group with a line for each command, or one command.",
                now!(help),
            ),
            entry(
                "puts",
                "puts 'text'\nputs \"row#{1 + 1}\"",
                "Prints text, as Ruby does. Also called print and p.",
                now!(puts),
            ),
            entry(
                "import",
                "import org.apache.hadoop.hbase.util.Bytes",
                "Names a class of HBase: Bytes and simple filters, which need no import here.",
                |_, arguments| Box::pin(std::future::ready(Session::import(arguments))),
            ),
            entry(
                "exit",
                "exit\nexit 3",
                "Leaves, with an exit code if one is given. So does Ctrl-D; Ctrl-C ends the command that runs.",
                now!(exit),
            ),
        ],
        absent: &[absent(
            &["debug"],
            "errors are always printed whole, and the shell has no stack traces; RUST_BACKTRACE=1 shows that of a crash",
        )],
    },
    Group {
        name: "ddl",
        entries: &[
            entry(
                "create",
                "create 't', 'f1', 'f2'\ncreate 't', {NAME => 'f', VERSIONS => 3, TTL => 86400, COMPRESSION => 'ZSTD'}\n\
             create 't', 'f', SPLITS => ['10', '20']\ncreate 't', 'f', SPLITS_FILE => 'splits.txt'\n\
             create 't', 'f', {NUMREGIONS => 4, SPLITALGO => 'HexStringSplit'}\n\
             create 't', 'f', MAX_FILESIZE => '1GB', DURABILITY => 'SYNC_WAL'\n\
             create 't', {TABLE_ATTRIBUTES => {READONLY => 'true'}}, {NAME => 'f', TTL => '604800 SECONDS (7 DAYS)'}",
                "Creates a table. It takes what describe prints; TTL is seconds or like '7 DAYS', sizes are bytes or like '64KB'.",
                run!(create),
            ),
            entry(
                "alter",
                "alter 't', NAME => 'f', VERSIONS => 5\nalter 't', {NAME => 'f1'}, {NAME => 'f2', IN_MEMORY => true}\n\
             alter 't', 'delete' => 'f'\nalter 't', NAME => 'f', METHOD => 'delete'\nalter 't', MAX_FILESIZE => 1073741824\n\
             alter 't', CONFIGURATION => {'key' => 'value'}\nalter 't', METHOD => 'table_conf_unset', NAME => 'key'\n\
             alter 't', METHOD => 'table_att_unset', NAME => 'MAX_FILESIZE'",
                "Adds, changes and deletes families, and changes settings of the table. Also called alter_async.",
                run!(alter),
            ),
            entry(
                "alter_status",
                "alter_status 't'",
                "Whether all regions have the newest schema: they have it when alter returns.",
                run!(alter_status),
            ),
            entry(
                "describe",
                "describe 't'",
                "The schema of a table. Also called desc.",
                run!(describe),
            ),
            entry(
                "list",
                "list\nlist 'abc.*'",
                "Tables, all or those that a regular expression matches whole.",
                run!(list),
            ),
            entry(
                "list_enabled_tables",
                "list_enabled_tables",
                "Tables that serve.",
                run!(list_in_state, true),
            ),
            entry(
                "list_disabled_tables",
                "list_disabled_tables",
                "Tables that are out of service.",
                run!(list_in_state, false),
            ),
            entry("exists", "exists 't'", "Whether a table exists.", run!(exists)),
            entry(
                "enable",
                "enable 't'",
                "Brings a disabled table back.",
                run!(enable),
            ),
            entry(
                "disable",
                "disable 't'",
                "Takes a table out of service.",
                run!(disable),
            ),
            entry(
                "is_enabled",
                "is_enabled 't'",
                "Whether a table serves.",
                run!(is_enabled),
            ),
            entry(
                "is_disabled",
                "is_disabled 't'",
                "Whether a table is out of service.",
                run!(is_disabled),
            ),
            entry("drop", "drop 't'", "Deletes a disabled table.", run!(drop_table)),
            entry(
                "enable_all",
                "enable_all 'abc.*'\nenable_all 'ns:.*'",
                "Brings back the tables that a regular expression matches whole. This and the next two ask a person at a terminal before, \
                 and name those that failed.",
                run!(change_all, ToTables::Enable),
            ),
            entry(
                "disable_all",
                "disable_all 'abc.*'\ndisable_all 'ns:.*'",
                "Takes the tables that a regular expression matches whole out of service.",
                run!(change_all, ToTables::Disable),
            ),
            entry(
                "drop_all",
                "drop_all 'abc.*'\ndrop_all 'ns:.*'",
                "Deletes the tables that a regular expression matches whole; those that are not disabled are left.",
                run!(change_all, ToTables::Drop),
            ),
            entry(
                "get_table",
                "get_table 't'",
                "A table, for a variable: t = get_table 't', then t.put, t.scan and the others of table_help.",
                run!(get_table),
            ),
            entry(
                "clone_table_schema",
                "clone_table_schema 't', 'new'\nclone_table_schema 't', 'new', false",
                "Creates an empty table with the schema of another, and its regions unless false is said.",
                run!(clone_table_schema),
            ),
            entry(
                "show_filters",
                "show_filters",
                "The filters that FILTER => \"...\" of get, scan and count knows, with their arguments.",
                now!(show_filters),
            ),
            entry(
                "list_regions",
                "list_regions 't'\nlist_regions 't', 'server'\nlist_regions 't', {SERVER_NAME => 'server'}, ['START_KEY', 'END_KEY']",
                "The regions of a table with their load, those of servers whose names begin so, with the columns SERVER_NAME, \
                 REGION_NAME, START_KEY, END_KEY, SIZE in MiB, REQ and LOCALITY.",
                run!(list_regions),
            ),
            entry(
                "locate_region",
                "locate_region 't', 'row'",
                "The region that holds a row.",
                run!(locate_region),
            ),
        ],
        absent: &[],
    },
    Group {
        name: "namespace",
        entries: &[
            entry(
                "create_namespace",
                "create_namespace 'ns'\ncreate_namespace 'ns', {'name' => 'value'}",
                "Creates a namespace.",
                run!(create_namespace),
            ),
            entry(
                "alter_namespace",
                "alter_namespace 'n', {METHOD => 'set', 'KEY' => 'value'}\nalter_namespace 'n', {METHOD => 'unset', NAME => 'KEY'}",
                "Sets or takes away a setting of a namespace.",
                run!(alter_namespace),
            ),
            entry(
                "drop_namespace",
                "drop_namespace 'ns'",
                "Deletes an empty namespace.",
                run!(drop_namespace),
            ),
            entry(
                "describe_namespace",
                "describe_namespace 'ns'",
                "A namespace and its settings.",
                run!(describe_namespace),
            ),
            entry(
                "list_namespace",
                "list_namespace\nlist_namespace 'ab.*'",
                "Namespaces. The pattern knows `.*` only.",
                run!(list_namespaces),
            ),
            entry(
                "list_namespace_tables",
                "list_namespace_tables 'ns'",
                "The tables of a namespace.",
                run!(list_namespace_tables),
            ),
        ],
        absent: &[],
    },
    Group {
        name: "dml",
        entries: &[
            entry(
                "put",
                "put 't', 'row', 'f:q', 'value'\nput 't', 'row', 'f:q', 'value', timestamp\n\
             put 't', 'row', 'f:q', 'value', {TTL => milliseconds}\n\
             put 't', 'row', 'f:q', 'value', timestamp, {ATTRIBUTES => {'name' => 'value'}}",
                "Writes a cell.",
                run!(put),
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
                run!(get),
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
                run!(scan),
            ),
            entry(
                "count",
                "count 't'\ncount 't', 100000\ncount 't', INTERVAL => 100000, CACHE => 1000\ncount 't', {STARTROW => 'a', FILTER => \"...\"}",
                "Counts rows by reading them.",
                run!(count),
            ),
            entry(
                "delete",
                "delete 't', 'row', 'f:q'\ndelete 't', 'row', 'f:q', timestamp",
                "Deletes one version of a column: the newest, or that of a timestamp.",
                run!(delete),
            ),
            entry(
                "deleteall",
                "deleteall 't', 'row'\ndeleteall 't', 'row', 'f:q'\ndeleteall 't', 'row', 'f:q', timestamp\n\
             deleteall 't', {ROWPREFIXFILTER => 'a'}\ndeleteall 't', {ROWPREFIXFILTER => 'a', CACHE => 100}, 'f:q', timestamp\n\
             deleteall 't', {ROWPREFIXFILTER => 'a'}, timestamp",
                "Deletes a row, a family or a column with all versions, those up to a timestamp if one is given, of one row or of rows \
                 that start alike.",
                run!(delete_all),
            ),
            entry(
                "incr",
                "incr 't', 'row', 'f:q'\nincr 't', 'row', 'f:q', 10\nincr 't', 'row', 'f:q', 10, {TTL => milliseconds, ATTRIBUTES => {'name' => 'value'}}",
                "Adds to a counter.",
                run!(increment),
            ),
            entry(
                "get_counter",
                "get_counter 't', 'row', 'f:q'",
                "Reads a counter.",
                run!(get_counter),
            ),
            entry(
                "append",
                "append 't', 'row', 'f:q', 'value'\nappend 't', 'row', 'f:q', 'value', ATTRIBUTES => {'name' => 'value'}, TTL => milliseconds",
                "Appends to a value.",
                run!(append),
            ),
            entry(
                "get_splits",
                "get_splits 't'",
                "The keys at which a table is split.",
                run!(get_splits),
            ),
            entry(
                "truncate",
                "truncate 't'",
                "Empties a table; it has one region afterwards.",
                run!(truncate, false),
            ),
            entry(
                "truncate_preserve",
                "truncate_preserve 't'",
                "Empties a table and keeps its regions.",
                run!(truncate, true),
            ),
        ],
        absent: &[],
    },
    Group {
        name: "tools",
        entries: &[
            entry(
                "flush",
                "flush 't'\nflush 't', 'f'\nflush 'region'",
                "Writes the memstores of a table or region to store files. All families are flushed. A region is named in full or by its 32 hex digits.",
                run!(flush),
            ),
            entry(
                "hot_rows",
                "hot_rows 't'\nhot_rows 't', 20",
                "The rows of a table that most reads and most writes of the last minutes went to. MAX_ERROR is by how much a figure may be too high; with sampled below 100 %, not each row was counted and all figures are estimates.",
                run!(hot_rows),
            ),
            entry(
                "compact",
                "compact 't'\ncompact 't', 'f'\ncompact 'region', 'f'\ncompact 't', nil, 'NORMAL'",
                "Asks for a compaction of a table, a region, or one family of it.",
                run!(compact, false),
            ),
            entry(
                "major_compact",
                "major_compact 't'\nmajor_compact 't', 'f'\nmajor_compact 'region', 'f'\nmajor_compact 't', nil, 'NORMAL'",
                "Asks for a compaction of all files.",
                run!(compact, true),
            ),
            entry(
                "compact_rs",
                "compact_rs 'server'\ncompact_rs 'server', true",
                "Asks for a compaction of all tables; with true, of all files.",
                run!(compact_all),
            ),
            entry(
                "compaction_state",
                "compaction_state 't'",
                "Which compactions of a table run: NONE, MINOR, MAJOR or MAJOR_AND_MINOR.",
                run!(compaction_state),
            ),
            entry(
                "compaction_switch",
                "compaction_switch false\ncompaction_switch true",
                "Pauses compactions, or lets them go on, and says whether they were on. A compaction that runs stands still. A restart of the server ends a pause.",
                run!(switch, BackgroundWork::COMPACTIONS),
            ),
            entry(
                "flush_switch",
                "flush_switch false\nflush_switch true",
                "Pauses flushes, or lets them go on, and says whether they were on. While they are paused memstores fill up, until writes are refused.",
                run!(switch, BackgroundWork::FLUSHES),
            ),
            entry(
                "split",
                "split 't'\nsplit 'region'\nsplit 't', 'key'",
                "Splits regions. A region is named in full or by its 32 hex digits.",
                run!(split),
            ),
            entry(
                "merge_region",
                "merge_region 'region', 'region'\nmerge_region ['region', 'region']",
                "Merges neighbours. Regions are named in full or by their 32 hex digits. Also called merge.",
                run!(merge_regions),
            ),
            entry(
                "splitormerge_switch",
                "splitormerge_switch 'SPLIT', false\nsplitormerge_switch 'MERGE', true",
                "Turns requested and automatic splits or merges on or off, also over a restart.",
                run!(split_or_merge_switch),
            ),
            entry(
                "splitormerge_enabled",
                "splitormerge_enabled 'SPLIT'\nsplitormerge_enabled 'MERGE'",
                "Whether splits or merges are on.",
                run!(split_or_merge_enabled),
            ),
            entry(
                "truncate_region",
                "truncate_region 'region'",
                "Empties one region.",
                run!(truncate_region),
            ),
            entry(
                "regioninfo",
                "regioninfo 'region'",
                "Keys, server and load of a region.",
                run!(region_info),
            ),
            entry(
                "rit",
                "rit",
                "Regions in transition.",
                run!(regions_in_transition),
            ),
            entry(
                "move",
                "move 'region'\nmove 'region', 'rehearsal-3,9090,1700000000000'",
                "Moves a region to a virtual server, the one with the fewest regions unless it is named; see status. This and the \
                 next three need a rehearsal of a cluster.",
                run!(move_region),
            ),
            entry(
                "assign",
                "assign 'region'",
                "Gives a region that is not assigned to a virtual server.",
                run!(assign),
            ),
            entry(
                "unassign",
                "unassign 'region'",
                "Takes a region from its virtual server: calls on it fail until it is assigned.",
                run!(unassign),
            ),
            entry(
                "balancer",
                "balancer\nbalancer 'force'\nbalancer 'dry_run'",
                "Evens out the regions over the virtual servers. Also called balance.",
                run!(balancer),
            ),
            entry(
                "balance_switch",
                "balance_switch true\nbalance_switch false",
                "Turns the balancer on or off, also over a restart.",
                run!(balance_switch),
            ),
            entry(
                "balancer_enabled",
                "balancer_enabled",
                "Whether the balancer is on.",
                run!(balancer_enabled),
            ),
            entry(
                "normalize",
                "normalize\nnormalize TABLE_NAMES => ['t']\nnormalize NAMESPACE => 'ns', REGEX => 't.*'",
                "Splits large regions and merges small ones of the tables with NORMALIZATION_ENABLED.",
                run!(normalize),
            ),
            entry(
                "normalizer_switch",
                "normalizer_switch true\nnormalizer_switch false",
                "Turns the normalizer on or off, also over a restart.",
                run!(normalizer_switch),
            ),
            entry(
                "normalizer_enabled",
                "normalizer_enabled",
                "Whether the normalizer is on.",
                run!(normalizer_enabled),
            ),
            entry(
                "catalogjanitor_run",
                "catalogjanitor_run",
                "Cleans hbase:meta, in which nothing is left over.",
                run!(catalog_janitor_run),
            ),
            entry(
                "catalogjanitor_switch",
                "catalogjanitor_switch true\ncatalogjanitor_switch false",
                "Turns the catalog janitor on or off, until a restart.",
                run!(catalog_janitor_switch),
            ),
            entry(
                "catalogjanitor_enabled",
                "catalogjanitor_enabled",
                "Whether the catalog janitor is on.",
                run!(catalog_janitor_enabled),
            ),
            entry(
                "cleaner_chore_run",
                "cleaner_chore_run",
                "Removes files that are no longer used.",
                run!(cleaner_chore_run),
            ),
            entry(
                "cleaner_chore_switch",
                "cleaner_chore_switch true\ncleaner_chore_switch false",
                "Turns the cleaner of files on or off, until a restart.",
                run!(cleaner_chore_switch),
            ),
            entry(
                "cleaner_chore_enabled",
                "cleaner_chore_enabled",
                "Whether the cleaner of files is on.",
                run!(cleaner_chore_enabled),
            ),
            entry(
                "snapshot_cleanup_switch",
                "snapshot_cleanup_switch true\nsnapshot_cleanup_switch false",
                "Turns the removal of expired snapshots on or off, also over a restart.",
                run!(snapshot_cleanup_switch),
            ),
            entry(
                "snapshot_cleanup_enabled",
                "snapshot_cleanup_enabled",
                "Whether expired snapshots are removed.",
                run!(snapshot_cleanup_enabled),
            ),
            entry(
                "is_in_maintenance_mode",
                "is_in_maintenance_mode",
                "Whether the master is in maintenance mode.",
                run!(maintenance_mode),
            ),
            entry(
                "change_sft",
                "change_sft 't', 'FILE'\nchange_sft 't', 'f', 'FILE'",
                "Sets the store file tracker of a table or family, which is kept and has no effect.",
                run!(change_tracker),
            ),
            entry(
                "change_sft_all",
                "change_sft_all 'abc.*', 'FILE'",
                "Sets the store file tracker of the tables that a regular expression matches whole.",
                run!(change_trackers),
            ),
            entry(
                "clear_block_cache",
                "clear_block_cache 't'\nclear_block_cache",
                "Takes the blocks of a table, or of all, out of the block cache.",
                run!(clear_block_cache),
            ),
            entry(
                "get_slowlog_responses",
                "get_slowlog_responses '*'\nget_slowlog_responses '*', {'LIMIT' => 50}\n\
             get_slowlog_responses ['host,9090,1700000000000'], {'TABLE_NAME' => 't', 'CLIENT_IP' => '10.0.0.7'}\n\
             get_slowlog_responses '*', {REGION_NAME => 'region', USER => 'bob', FILTER_BY_OP => 'AND'}",
                "Calls that took long, the newest first.",
                run!(slow_log, TLogType::SLOW_LOG),
            ),
            entry(
                "get_largelog_responses",
                "get_largelog_responses '*'\nget_largelog_responses '*', {LIMIT => 50, TABLE_NAME => 't'}",
                "Calls with large answers, the newest first. It takes what get_slowlog_responses takes.",
                run!(slow_log, TLogType::LARGE_LOG),
            ),
            entry(
                "clear_slowlog_responses",
                "clear_slowlog_responses\nclear_slowlog_responses ['host,9090,1700000000000']",
                "Empties the slow log.",
                run!(clear_slow_log),
            ),
            entry(
                "list_liveservers",
                "list_liveservers",
                "Servers that live: this one, or the virtual ones of a rehearsal.",
                run!(list_servers, Servers::Live),
            ),
            entry(
                "list_deadservers",
                "list_deadservers",
                "Servers that died.",
                run!(list_servers, Servers::Dead),
            ),
            entry(
                "list_unknownservers",
                "list_unknownservers",
                "Servers that have regions and are not known.",
                run!(list_servers, Servers::Unknown),
            ),
            entry(
                "list_decommissioned_regionservers",
                "list_decommissioned_regionservers",
                "Servers that get no regions.",
                run!(list_servers, Servers::Decommissioned),
            ),
        ],
        absent: &[
            absent(
                &["close_region"],
                "it is gone in HBase 2, too; unassign 'region' takes a region out of service in a rehearsal, disable 't' a table",
            ),
            absent(
                &["wal_roll", "hlog_roll"],
                "the log rolls by itself at wal.segment_bytes, and its files go once everything in them is flushed; flush 't' flushes a table",
            ),
            absent(
                &["zk_dump"],
                "there is no ZooKeeper, the server answers as one; status 'detailed' has its content, and the four letters dump, sent to the port, too",
            ),
            absent(
                &["hbck_chore_run"],
                "hbase:meta is computed from the manifest and cannot differ from it; basalt check --data-dir DIR verifies a stopped server's files",
            ),
            absent(
                &["trace"],
                "calls are not traced; get_slowlog_responses lists slow calls with their arguments, and top the present rates",
            ),
            absent(
                &["stop_master", "stop_regionserver"],
                "any client could stop the server; end its process with SIGTERM, or with systemctl stop basalt",
            ),
            absent(
                &["clear_compaction_queues"],
                "a requested compaction stays in the queue; compaction_switch false pauses all, and processlist shows them",
            ),
            absent(
                &["clear_deadservers"],
                "there is one server, and none is dead; list_liveservers shows it",
            ),
            absent(
                &["decommission_regionservers", "recommission_regionserver"],
                "there is one server and no other to take its regions; in a rehearsal, move 'region', 'server' moves them",
            ),
            absent(
                &["get_balancer_decisions", "get_balancer_rejections"],
                "the balancer keeps no record; balancer 'dry_run' says what it would move, and status 'detailed' where regions are",
            ),
            absent(
                &["compact_mob", "major_compact_mob"],
                "there are no MOB files, all values are in store files; major_compact 't' compacts them",
            ),
            absent(
                &["flush_master_store"],
                "there is no master store, the manifest is always durable; flush 't' flushes a table",
            ),
            absent(
                &["enable_compaction_offload", "disable_compaction_offload"],
                "there is no second server for compactions; compaction_switch false pauses them",
            ),
            absent(
                &["refresh_meta", "refresh_hfiles"],
                "no other cluster writes the files of this server; restore_snapshot and bulk loads bring files in",
            ),
        ],
    },
    Group {
        name: "replication",
        entries: &[
            entry(
                "add_peer",
                "add_peer 'p', CLUSTER_KEY => 'zk1,zk2:2181:/hbase'\nadd_peer 'p', CLUSTER_KEY => 'hbase+rpc://host:9090', STATE => 'DISABLED'\nadd_peer 'p', CLUSTER_KEY => '...', TABLE_CFS => {'t' => [], 'ns:u' => ['f']}\nadd_peer 'p', CLUSTER_KEY => '...', NAMESPACES => ['ns'], CONFIG => {'replication.source.sleepforretries' => '500'}",
                "Begins to send the edits of families with REPLICATION_SCOPE 1 to another cluster, an HBase or a Basalt: those written from now on.",
                run!(add_peer),
            ),
            entry(
                "remove_peer",
                "remove_peer 'p'",
                "Ends replication to a peer, and releases the log that is kept for it.",
                run!(remove_peer),
            ),
            entry(
                "list_peers",
                "list_peers\nlist_peers 'p.*'",
                "The peers, with what goes to each; ! marks lists of what does not.",
                run!(list_peers),
            ),
            entry(
                "enable_peer",
                "enable_peer 'p'",
                "Goes on to send edits to a peer, from where it was disabled.",
                run!(enable_peer),
            ),
            entry(
                "disable_peer",
                "disable_peer 'p'",
                "Stops sending edits to a peer. The log is kept for it.",
                run!(disable_peer),
            ),
            entry(
                "set_peer_replicate_all",
                "set_peer_replicate_all 'p', true",
                "Whether all tables go to a peer but the excluded ones, or only those that are named.",
                run!(set_peer_replicate_all),
            ),
            entry(
                "set_peer_serial",
                "set_peer_serial 'p', true",
                "Whether edits arrive in their order. They do either way.",
                run!(set_peer_serial),
            ),
            entry(
                "set_peer_namespaces",
                "set_peer_namespaces 'p', ['ns1', 'ns2']",
                "Sets the namespaces whose tables go to a peer.",
                run!(change_peer_namespaces, Change::Set, Which::Included),
            ),
            entry(
                "append_peer_namespaces",
                "append_peer_namespaces 'p', ['ns1', 'ns2']",
                "Adds to the namespaces whose tables go to a peer.",
                run!(change_peer_namespaces, Change::Append, Which::Included),
            ),
            entry(
                "remove_peer_namespaces",
                "remove_peer_namespaces 'p', ['ns1', 'ns2']",
                "Removes from the namespaces whose tables go to a peer.",
                run!(change_peer_namespaces, Change::Remove, Which::Included),
            ),
            entry(
                "set_peer_exclude_namespaces",
                "set_peer_exclude_namespaces 'p', ['ns1', 'ns2']",
                "Sets the namespaces whose tables do not go to a peer that gets all others.",
                run!(change_peer_namespaces, Change::Set, Which::Excluded),
            ),
            entry(
                "append_peer_exclude_namespaces",
                "append_peer_exclude_namespaces 'p', ['ns1', 'ns2']",
                "Adds to the namespaces whose tables do not go to a peer that gets all others.",
                run!(change_peer_namespaces, Change::Append, Which::Excluded),
            ),
            entry(
                "remove_peer_exclude_namespaces",
                "remove_peer_exclude_namespaces 'p', ['ns1', 'ns2']",
                "Removes from the namespaces whose tables do not go to a peer that gets all others.",
                run!(change_peer_namespaces, Change::Remove, Which::Excluded),
            ),
            entry(
                "show_peer_tableCFs",
                "show_peer_tableCFs 'p'",
                "The tables and families that go to a peer.",
                run!(show_peer_table_families),
            ),
            entry(
                "set_peer_tableCFs",
                "set_peer_tableCFs 'p', {'t' => [], 'ns:u' => ['f', 'g']}",
                "Sets the tables and families that go to a peer.",
                run!(change_peer_tables, Change::Set, Which::Included),
            ),
            entry(
                "append_peer_tableCFs",
                "append_peer_tableCFs 'p', {'t' => [], 'ns:u' => ['f', 'g']}",
                "Adds to the tables and families that go to a peer.",
                run!(change_peer_tables, Change::Append, Which::Included),
            ),
            entry(
                "remove_peer_tableCFs",
                "remove_peer_tableCFs 'p', {'t' => [], 'ns:u' => ['f', 'g']}",
                "Removes from the tables and families that go to a peer.",
                run!(change_peer_tables, Change::Remove, Which::Included),
            ),
            entry(
                "set_peer_exclude_tableCFs",
                "set_peer_exclude_tableCFs 'p', {'t' => [], 'ns:u' => ['f', 'g']}",
                "Sets the tables and families that do not go to a peer that gets all others.",
                run!(change_peer_tables, Change::Set, Which::Excluded),
            ),
            entry(
                "append_peer_exclude_tableCFs",
                "append_peer_exclude_tableCFs 'p', {'t' => [], 'ns:u' => ['f', 'g']}",
                "Adds to the tables and families that do not go to a peer that gets all others.",
                run!(change_peer_tables, Change::Append, Which::Excluded),
            ),
            entry(
                "remove_peer_exclude_tableCFs",
                "remove_peer_exclude_tableCFs 'p', {'t' => [], 'ns:u' => ['f', 'g']}",
                "Removes from the tables and families that do not go to a peer that gets all others.",
                run!(change_peer_tables, Change::Remove, Which::Excluded),
            ),
            entry(
                "set_peer_bandwidth",
                "set_peer_bandwidth 'p', 1048576\nset_peer_bandwidth 'p'",
                "The most bytes per second that are sent to a peer; without a number there is no limit.",
                run!(set_peer_bandwidth),
            ),
            entry(
                "list_replicated_tables",
                "list_replicated_tables\nlist_replicated_tables 't.*'",
                "The families whose REPLICATION_SCOPE is 1.",
                run!(list_replicated_tables),
            ),
            entry(
                "get_peer_config",
                "get_peer_config 'p'",
                "Where a peer is, and its options.",
                run!(get_peer_config),
            ),
            entry(
                "list_peer_configs",
                "list_peer_configs",
                "Where all peers are, and their options.",
                run!(list_peer_configs),
            ),
            entry(
                "update_peer_config",
                "update_peer_config 'p', CONFIG => {'replication.source.sleepforretries' => '500'}",
                "Sets options of a peer; an empty value removes one.",
                run!(update_peer_config),
            ),
            entry(
                "peer_modification_enabled",
                "peer_modification_enabled",
                "Whether peers may be changed.",
                run!(peer_modification_enabled),
            ),
            entry(
                "peer_modification_switch",
                "peer_modification_switch false",
                "Allows or refuses changes of peers, until the next start. Prints the state before.",
                run!(peer_modification_switch),
            ),
        ],
        absent: &[
            absent(
                &["enable_table_replication", "disable_table_replication"],
                "alter 't', {NAME => 'f', REPLICATION_SCOPE => 1} does it, after the table was created at the peer (docs/moving-data.md)",
            ),
            absent(
                &["transit_peer_sync_replication_state"],
                "there is no synchronous replication: it needs a log on a file system that both clusters share",
            ),
        ],
    },
    Group {
        name: "snapshots",
        entries: &[
            entry(
                "snapshot",
                "snapshot 't', 'name'\nsnapshot 't', 'name', {SKIP_FLUSH => true, TTL => 86400}",
                "Takes a snapshot of a table with all that was written so far. SKIP_FLUSH leaves out what is in no store file yet; after \
                 TTL seconds it is removed.",
                run!(snapshot),
            ),
            entry(
                "list_snapshots",
                "list_snapshots\nlist_snapshots 'abc.*'",
                "Snapshots, all or those whose names match a regular expression.",
                run!(list_snapshots),
            ),
            entry(
                "list_table_snapshots",
                "list_table_snapshots 'table.*'\nlist_table_snapshots 'ns:table.*', 'name.*'",
                "Snapshots of the tables that match a regular expression; the second one is for names of snapshots.",
                run!(list_table_snapshots),
            ),
            entry(
                "clone_snapshot",
                "clone_snapshot 'name', 'table'\nclone_snapshot 'name', 'ns:table'",
                "Creates a table that is what the snapshot's was. No data is copied.",
                run!(clone_snapshot),
            ),
            entry(
                "restore_snapshot",
                "restore_snapshot 'name'",
                "Makes the snapshot's table what it was, families and regions too. It must be disabled; what was written since is lost.",
                run!(restore_snapshot),
            ),
            entry(
                "delete_snapshot",
                "delete_snapshot 'name'",
                "Deletes a snapshot.",
                run!(delete_snapshot),
            ),
            entry(
                "delete_all_snapshot",
                "delete_all_snapshot 's.*'",
                "Deletes the snapshots whose names match a regular expression; asks a person at a terminal before.",
                run!(delete_all_snapshots),
            ),
            entry(
                "delete_table_snapshots",
                "delete_table_snapshots 'table.*'\ndelete_table_snapshots 'table.*', 'name.*'",
                "Deletes the snapshots of the tables that match a regular expression; asks as delete_all_snapshot does.",
                run!(delete_table_snapshots),
            ),
        ],
        absent: &[],
    },
    Group {
        name: "configuration",
        entries: &[],
        absent: &[absent(
            &["update_config", "update_all_config"],
            "a client cannot change settings; edit the file and send the server SIGHUP, or restart it (docs/settings.md)",
        )],
    },
    Group {
        name: "quotas",
        entries: &[
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
                run!(set_quota),
            ),
            entry(
                "list_quotas",
                "list_quotas\nlist_quotas USER => 'bob.*'\nlist_quotas USER => 'bob.*', TABLE => 't1'\n\
             list_quotas USER => 'bob.*', NAMESPACE => 'ns.*'\nlist_quotas TABLE => 'myTable'\n\
             list_quotas NAMESPACE => 'ns.*', LIMIT => 10",
                "Quotas, all or those of owners that match regular expressions.",
                run!(list_quotas),
            ),
            entry(
                "list_quota_table_sizes",
                "list_quota_table_sizes",
                "Bytes of each table on disk.",
                run!(list_table_sizes),
            ),
            entry(
                "list_snapshot_sizes",
                "list_snapshot_sizes",
                "Bytes of the files of each snapshot, those that it shares with tables and others included.",
                run!(list_snapshot_sizes),
            ),
        ],
        absent: &[
            absent(
                &["list_quota_snapshots"],
                "there are no quotas of space; list_quota_table_sizes and list_snapshot_sizes show what tables and snapshots take",
            ),
            absent(
                &["enable_rpc_throttle", "disable_rpc_throttle"],
                "quotas always hold; set_quota TYPE => THROTTLE, TABLE => 't', LIMIT => NONE takes one away",
            ),
            absent(
                &["enable_exceed_throttle_quota", "disable_exceed_throttle_quota"],
                "a quota is never exceeded; set_quota with a larger LIMIT raises one",
            ),
        ],
    },
    Group {
        name: "security",
        entries: &[
            entry(
                "list_security_capabilities",
                "list_security_capabilities",
                "How clients authenticate.",
                run!(security_capabilities),
            ),
            entry(
                "grant",
                "grant 'ada', 'RWXCA'\ngrant '@readers', 'R', '@ns'\ngrant 'ada', 'RW', 't', 'f', 'q'",
                "Gives permissions to a user or group, for everything, a namespace, a table, a family or a column. R reads, W writes, X executes, C creates, A administers.",
                run!(grant),
            ),
            entry(
                "revoke",
                "revoke 'ada'\nrevoke '@readers', '@ns'\nrevoke 'ada', 't', 'f', 'q'",
                "Takes all permissions of that scope from a user or group.",
                run!(revoke),
            ),
            entry(
                "user_permission",
                "user_permission\nuser_permission '@ns'\nuser_permission 't'\nuser_permission '.*'",
                "Who has which permissions for everything, a namespace, a table, or all tables.",
                run!(user_permission),
            ),
        ],
        absent: &[],
    },
    Group {
        name: "procedures",
        entries: &[
            entry(
                "list_procedures",
                "list_procedures",
                "Procedures of the master: changes of tables are done when their call returns, so none is left.",
                run!(list_procedures),
            ),
            entry(
                "list_locks",
                "list_locks",
                "Locks of the master's procedures.",
                run!(list_locks),
            ),
        ],
        absent: &[absent(
            &["abort_procedure"],
            "a procedure is done when its call returns, and cannot be aborted; Ctrl-C ends a command of this shell",
        )],
    },
    Group {
        name: "visibility labels",
        entries: &[],
        absent: &[absent(
            &[
                "add_labels",
                "list_labels",
                "set_auths",
                "get_auths",
                "clear_auths",
                "set_visibility",
            ],
            "there are no visibility labels, and every client sees all cells; put cells for few readers into a table of their own",
        )],
    },
    Group {
        name: "rsgroup",
        entries: &[],
        absent: &[absent(
            &[
                "list_rsgroups",
                "get_rsgroup",
                "add_rsgroup",
                "remove_rsgroup",
                "balance_rsgroup",
                "move_servers_rsgroup",
                "move_tables_rsgroup",
                "move_namespaces_rsgroup",
                "move_servers_tables_rsgroup",
                "move_servers_namespaces_rsgroup",
                "get_server_rsgroup",
                "get_table_rsgroup",
                "get_namespace_rsgroup",
                "remove_servers_rsgroup",
                "rename_rsgroup",
                "alter_rsgroup_config",
                "show_rsgroup_config",
            ],
            "there is one server and no group of servers; quotas keep tables apart (set_quota), and a rehearsal shows their places on several",
        )],
    },
    Group {
        name: "keymeta",
        entries: &[],
        absent: &[absent(
            &[
                "enable_key_management",
                "show_key_status",
                "rotate_stk",
                "disable_key_management",
                "disable_managed_key",
                "rotate_managed_key",
                "refresh_managed_keys",
            ],
            "data is not encrypted by the server; use an encrypted disk or file system (docs/security.md)",
        )],
    },
];

pub(super) fn entries() -> impl Iterator<Item = &'static Entry> {
    GROUPS.iter().flat_map(|group| group.entries)
}

/// The command of that name, or of that other name.
pub(super) fn find(name: &str) -> Option<&'static Entry> {
    let name = canonical(name);
    entries().find(|entry| entry.name == name)
}

/// The reason why this server does not have a command of HBase's shell.
pub(super) fn absence(name: &str) -> Option<&'static str> {
    let mut absent = GROUPS.iter().flat_map(|group| group.absent);
    let found = absent.find(|absent| absent.names.contains(&name))?;
    Some(found.why)
}

/// The name of a command that has several.
pub(super) fn canonical(name: &str) -> &str {
    match name {
        "desc" => "describe",
        "quit" => "exit",
        "merge" => "merge_region",
        "alter_async" => "alter",
        "balance" => "balancer",
        "print" | "p" => "puts",
        other => other,
    }
}

/// Whether the first argument of a command is a table that there is.
pub(super) fn takes_table(command: &str) -> bool {
    find(command).is_some_and(|entry| {
        let begins = format!("{} 't'", entry.name);
        entry.name != "create" && entry.usage.lines().any(|form| form.starts_with(&begins))
    })
}

/// The options that the forms of a command show: words in capitals before `=>`.
pub(super) fn options(command: &str) -> Vec<&'static str> {
    let before_arrows = find(command).into_iter().flat_map(|entry| {
        let mut parts: Vec<&str> = entry.usage.split("=>").collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every form that help shows can be read.
    #[test]
    fn usage_is_valid() {
        for entry in entries() {
            for form in entry.usage.lines().filter(|line| !line.starts_with("further")) {
                let form = form.replace("timestamp", "1").replace("milliseconds", "1");
                let form = form.replace("[from, to]", "[1, 2]").replace("=> ts", "=> 1");
                let statements = crate::parse(&form).unwrap_or_else(|error| panic!("{form}: {error}"));
                assert_eq!(statements.len(), 1, "{form}");
                assert!(form.starts_with(entry.name), "{form}");
            }
        }
    }

    /// A command has one entry, and a meaning that is a sentence.
    #[test]
    fn commands_are_listed_once() {
        let absent = GROUPS.iter().flat_map(|group| group.absent);
        let absent = absent.flat_map(|absent| absent.names.iter().copied());
        let mut names: Vec<&str> = entries().map(|entry| entry.name).chain(absent).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for entry in entries() {
            assert!(entry.meaning.ends_with('.'), "{}", entry.name);
            assert_eq!(canonical(entry.name), entry.name);
        }
    }

    #[test]
    fn commands_on_tables_are_known_by_their_forms() {
        for (command, expected) in [
            ("scan", true),
            ("desc", true),
            ("create", false),
            ("list", false),
            ("grant", false),
            ("no_such_command", false),
        ] {
            assert_eq!(takes_table(command), expected, "{command}");
        }
    }
}
