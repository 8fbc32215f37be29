//! The list of known bugs, which [`seeded`](super::seeded) tries.

/// A bug and the commands that catch it.
#[derive(Clone, Copy, Debug)]
pub struct Bug {
    /// The name in the sources.
    pub name: &'static str,
    /// The bug, in a sentence.
    pub what: &'static str,
    /// The first of these that runs must find the bug, or else a later one.
    pub caught_by: &'static [Try],
}

/// A command that finds a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Try {
    /// `basalt-sim` with these arguments.
    Sim(&'static str),
    /// `cargo test` with these arguments.
    Test(&'static str),
}

use Try::{Sim, Test};

/// All bugs, by name.
pub const BUGS: &[Bug] = &[
    Bug {
        name: "ack-before-sync",
        what: "groups of the log are acknowledged without a sync",
        caught_by: &[Sim("cuts --stride 3 --damage 4"), Sim("random --cuts 12000")],
    },
    Bug {
        name: "answers-go-on-behind-a-cut-row",
        what: "a row that is cut for its bytes does not end the answer, so clients take its pieces for rows",
        caught_by: &[Test("-p basalt-engine --test engine cut_rows::a_row_that_is_cut")],
    },
    Bug {
        name: "batch-forgets-nonces",
        what: "increments and appends in a batch are applied without their nonces",
        caught_by: &[Test("-p basalt-torture --test torture kills_lose_nothing")],
    },
    Bug {
        name: "batch-in-several-edits",
        what: "the rows of a batch go into the log one by one, each synced by itself",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "compaction-beside-another-is-major",
        what: "a compaction beside another one drops tombstones as if it had all files",
        caught_by: &[Test("-p basalt-engine --test engine compactions::newer_files")],
    },
    Bug {
        name: "compaction-forgets-open-scans",
        what: "a compaction drops versions that open scans see",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "compaction-names-its-first-file",
        what: "a compaction that cuts its output names only the first file in the manifest",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "connections-take-files-descriptors",
        what: "a connection takes the last file descriptors, which flushes and the log need",
        caught_by: &[Test("-p basalt --lib net::tests::a_connection_that_would_take")],
    },
    Bug {
        name: "current-removed-first",
        what: "CURRENT is removed before its successor gets its name",
        caught_by: &[Test(
            "-p basalt-engine --lib manifest::tests::crash::a_crash_at_any_call",
        )],
    },
    Bug {
        name: "damaged-region-served",
        what: "a region that lacks a store file is served without it",
        caught_by: &[
            Sim("bits --stride 53 --truncate-bytes 1024 --directories 4"),
            Test("-p basalt-engine --test engine damaged::a_damaged_file"),
        ],
    },
    Bug {
        name: "data-not-verified",
        what: "checksums of data blocks are not verified before they are cached",
        caught_by: &[Sim("bits --stride 53 --truncate-bytes 1024 --directories 4")],
    },
    Bug {
        name: "directories-before-the-check",
        what: "a table's directories are made before it is checked whether the manifest takes it",
        caught_by: &[Test("-p basalt-engine --test engine limits::accepted_changes")],
    },
    Bug {
        name: "dropped-family-not-flushed",
        what: "a family is dropped without a flush: the log brings its cells back into one created later",
        caught_by: &[Sim("random --cuts 60000 --seed 2")],
    },
    Bug {
        name: "failed-write-acknowledged",
        what: "a failed write of the log is taken for done",
        caught_by: &[Sim("errors --stride 3")],
    },
    Bug {
        name: "flush-claims-later-edits",
        what: "a flush says that it has edits which came after it",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "flush-forgets-open-scans",
        what: "a flush drops versions that open scans see",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "flush-names-its-first-file",
        what: "a flush that cuts its output at stripes names only the first file in the manifest",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "increment-misses-memstore",
        what: "an increment reads the newest file instead of the memstore",
        caught_by: &[Sim("random --cuts 3000")],
    },
    Bug {
        name: "index-not-verified",
        what: "checksums of index, bloom and file info blocks are not verified",
        caught_by: &[Sim("bits --stride 53 --truncate-bytes 1024 --directories 4")],
    },
    Bug {
        name: "listings-not-reserved",
        what: "answers about tables and regions are made without a reservation of their memory",
        caught_by: &[Test(
            "-p basalt --lib native::tests::answers_about_tables_are_reserved",
        )],
    },
    Bug {
        name: "load-claims-later-edits",
        what: "a bulk load claims edits as flushed that came behind its flush of the region",
        caught_by: &[Test("-p basalt-torture --test torture kills_lose_nothing")],
    },
    Bug {
        name: "load-in-several-edits",
        what: "each file of a bulk load is a manifest edit of its own",
        caught_by: &[Sim("cuts --stride 3 --damage 4"), Sim("random --cuts 12000")],
    },
    Bug {
        name: "load-names-not-synced",
        what: "the directories of the copies of a bulk load are not synced before the manifest edit",
        caught_by: &[
            Sim("cuts --loads --stride 3 --damage 4"),
            Sim("random --cuts 12000"),
        ],
    },
    Bug {
        name: "load-removes-its-source",
        what: "a bulk load removes the files that it was offered",
        caught_by: &[Sim("cuts --loads --stride 3 --damage 2")],
    },
    Bug {
        name: "load-seen-by-open-scans",
        what: "a scan that was opened before a bulk load sees it",
        caught_by: &[Test("-p basalt-engine --test engine load::an_open_scan")],
    },
    Bug {
        name: "log-removal-not-synced",
        what: "segments of the log are removed without a sync of the directory in between",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "log-removed-before-manifest",
        what: "segments of the log are removed before the flush is in the manifest",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "long-namespaces-accepted",
        what: "the length of a namespace's name is not checked when it is created",
        caught_by: &[Test(
            "-p basalt-engine --test engine limits::every_limit_is_checked",
        )],
    },
    Bug {
        name: "made-cells-not-reserved",
        what: "a write makes its cells, each with the key of its row, without a reservation",
        caught_by: &[Test(
            "-p basalt-engine --test engine made_memory::cells_are_reserved",
        )],
    },
    Bug {
        name: "manifest-edit-not-synced",
        what: "edits of the manifest are not synced",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "manifest-group-not-synced",
        what: "edits that are to share a sync are acknowledged without one",
        caught_by: &[
            Sim("random --cuts 12000"),
            Sim("cuts --stride 3 --damage 4"),
            Test("-p basalt-engine --lib manifest::tests::crash::a_crash_in_a_group"),
        ],
    },
    Bug {
        name: "manifest-not-poisoned",
        what: "after a failed sync the manifest goes on",
        caught_by: &[Sim("errors --stride 3")],
    },
    Bug {
        name: "memory-limit-not-checked",
        what: "a reservation of memory for calls is granted whatever calls hold already",
        caught_by: &[Test(
            "-p basalt --lib thrift::tests::a_result_that_there_is_no_memory_for",
        )],
    },
    Bug {
        name: "mid-log-damage-is-a-torn-tail",
        what: "damage in the middle of the log's last segment is cut like a torn tail",
        caught_by: &[Sim("bits --stride 53 --truncate-bytes 1024 --directories 4")],
    },
    Bug {
        name: "missing-ends-of-log-believed",
        what: "a log without its oldest or newest segments is believed",
        caught_by: &[Sim("bits --stride 53 --truncate-bytes 1024 --directories 4")],
    },
    Bug {
        name: "missing-segment-believed",
        what: "a hole in the numbers of the log's segments is no damage",
        caught_by: &[Sim("bits --stride 53 --truncate-bytes 1024 --directories 4")],
    },
    Bug {
        name: "no-dir-sync-after-copy-rename",
        what: "the directory is not synced after recovery has put its copy in the segment's place",
        caught_by: &[
            Sim("random --cuts 12000"),
            Sim("cuts --stride 5 --damage 4 --depth 3 --recovery-stride 3"),
        ],
    },
    Bug {
        name: "no-dir-sync-after-create",
        what: "the directory of new store files is not synced",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "no-dir-sync-after-current-rename",
        what: "the directory is not synced after CURRENT was renamed",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "no-dir-sync-after-segment-rename",
        what: "the log's directory is not synced after a segment has got its name",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "no-dir-sync-of-table",
        what: "the directories of a new table are not synced",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "no-durable-upto",
        what: "frames of the log do not state what is durable",
        caught_by: &[Sim("bits --stride 53 --truncate-bytes 1024 --directories 4")],
    },
    Bug {
        name: "no-space-acknowledged",
        what: "a disk that is full is no error for the log",
        caught_by: &[Sim("errors --stride 3")],
    },
    Bug {
        name: "nonce-not-logged",
        what: "the nonce of an operation is kept in memory and not logged",
        caught_by: &[Sim("random --cuts 6000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "nonces-removed-with-the-log",
        what: "log segments are removed with the nonces in them",
        caught_by: &[Test("-p basalt-engine --test engine groups::nonces_outlive")],
    },
    Bug {
        name: "old-manifest-removed-first",
        what: "the manifest before is removed before CURRENT names the new one",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "packets-awaited-for-ever",
        what: "each byte of a ZooKeeper packet starts its time limit again",
        caught_by: &[Test(
            "-p basalt --lib zookeeper::transfer::tests::a_packet_has_one_deadline",
        )],
    },
    Bug {
        name: "puts-ahead-not-remembered",
        what: "a delete does not hide a put that went ahead of the clock because of an earlier delete",
        caught_by: &[
            Sim("random --cuts 12000"),
            Test("-p basalt-engine --test engine clock::a_write_behind_a_delete"),
        ],
    },
    Bug {
        name: "read-point-before-sync",
        what: "the read point passes a group before it is written and synced",
        caught_by: &[Sim("errors --stride 3")],
    },
    Bug {
        name: "refused-thread-panics",
        what: "the process ends when the system refuses a thread that only makes work faster",
        caught_by: &[Test(
            "-p basalt-engine --lib sync::helpers::tests::the_caller_does",
        )],
    },
    Bug {
        name: "result-collected-before-reserved",
        what: "the chunks of a large result are allocated without a reservation",
        caught_by: &[Test(
            "-p basalt-engine --lib cell::tests::a_batch_stays_within_its_budget",
        )],
    },
    Bug {
        name: "scan-with-two-read-points",
        what: "a scan goes on at a later read point",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "seal-not-synced",
        what: "a segment's successor is begun before its seal is synced",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "sequence-ids-again",
        what: "sequence ids of the log are used again after a start",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "sequence-ids-dropped-early",
        what: "compactions drop sequence ids that order cells for an open scan or against an older file",
        caught_by: &[Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "shortage-is-damage",
        what: "a store file that cannot be opened for want of descriptors is taken for damaged",
        caught_by: &[Test("-p basalt-engine --test engine damaged::a_shortage")],
    },
    Bug {
        name: "slow-clients-keep-memory",
        what: "half-sent messages and unread replies keep memory that others need",
        caught_by: &[Test("-p basalt --lib thrift::connection::tests::half_a_message")],
    },
    Bug {
        name: "snapshot-not-synced",
        what: "a new manifest file is not synced before CURRENT names it",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "some-groups-not-synced",
        what: "some groups of the log are acknowledged without a sync",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "split-forgets-tombstones",
        what: "the row locks of a split do not know the times of tombstones before it",
        caught_by: &[Test(
            "-p basalt-engine --test engine clock::new_regions_and_new_processes",
        )],
    },
    Bug {
        name: "standby-forgets-its-mark",
        what: "a standby that starts again applies rows that it has once more, and shows what was deleted since",
        caught_by: &[Sim("pairs --steps 60000")],
    },
    Bug {
        name: "standby-forgets-nonces",
        what: "a standby that takes over does not know the nonces of operations",
        caught_by: &[Sim("pairs --steps 60000")],
    },
    Bug {
        name: "standby-place-before-rows",
        what: "a standby says that it has rows before they are durable",
        caught_by: &[Sim("pairs --steps 60000")],
    },
    Bug {
        name: "standby-times-go-back",
        what: "a standby that takes over gives writes earlier timestamps than those of rows that it has followed",
        caught_by: &[Sim("pairs --steps 60000")],
    },
    Bug {
        name: "standby-turns-before-rows",
        what: "a standby makes changes of the schema before the rows that came before them",
        caught_by: &[Sim("pairs --steps 60000")],
    },
    Bug {
        name: "state-size-not-checked",
        what: "schema changes make the manifest's state larger than a start can write",
        caught_by: &[Test("-p basalt-engine --lib manifest::tests::size")],
    },
    Bug {
        name: "store-file-not-synced",
        what: "a store file is installed without its sync",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "store-files-without-bound",
        what: "store files are opened without a bound, and take the descriptors of connections and log",
        caught_by: &[Test("-p basalt-engine --lib fs::handles::tests::any_number")],
    },
    Bug {
        name: "stripes-miss-an-overlap",
        what: "files that overlap are in stripes of their own, whose compactions drop tombstones that others need",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "stuck-after-no-space",
        what: "writes that were suspended stay so",
        caught_by: &[Sim("errors --stride 3")],
    },
    Bug {
        name: "sync-again-after-failed-sync",
        what: "a failed sync of the log is tried again on the same file, and believed",
        caught_by: &[Sim("errors --stride 3")],
    },
    Bug {
        name: "times-go-back",
        what: "cell timestamps go back when the clock was set back over a restart",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "times-not-noted-at-flush",
        what: "a flush does not note how far cell timestamps have come",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "times-noted-after-the-log",
        what: "how far cell timestamps have come is not noted before a write that is far beyond it",
        caught_by: &[Test(
            "-p basalt-engine --test engine clock::a_write_that_nobody_was_told_of",
        )],
    },
    Bug {
        name: "times-stand-still",
        what: "after the clock was set back, cell timestamps stand still until it has caught up",
        caught_by: &[
            Test("-p basalt-engine --test engine clock::a_clock_that_steps_back"),
            Test("-p basalt-engine --lib clock::timestamps::tests::a_clock_that_stepped_back"),
        ],
    },
    Bug {
        name: "times-start-where-they-ended",
        what: "after a start the first cell timestamp can be that of the last tombstone before it",
        caught_by: &[Test(
            "-p basalt-engine --test engine clock::new_regions_and_new_processes",
        )],
    },
    Bug {
        name: "tombstones-dropped-early",
        what: "a minor compaction drops tombstones",
        caught_by: &[Sim("random --cuts 12000"), Sim("cuts --stride 3 --damage 4")],
    },
    Bug {
        name: "tombstones-not-remembered",
        what: "a put of the same millisecond as a delete before it is hidden",
        caught_by: &[
            Sim("random --cuts 12000"),
            Test("-p basalt-engine --test engine clock::a_write_behind_a_delete"),
        ],
    },
    Bug {
        name: "torn-tail-is-damage",
        what: "a torn tail of the log is refused",
        caught_by: &[Sim("cuts --stride 3 --damage 4"), Sim("random --cuts 12000")],
    },
    Bug {
        name: "truncated-manifest-believed",
        what: "a manifest that was truncated is believed",
        caught_by: &[Sim("bits --stride 53 --truncate-bytes 1024 --directories 4")],
    },
    Bug {
        name: "truncated-segment-believed",
        what: "a live segment that was truncated is believed",
        caught_by: &[Sim("bits --stride 53 --truncate-bytes 1024 --directories 4")],
    },
    Bug {
        name: "unfinished-row-not-left",
        what: "a row that a scan of memory only could not finish is not left: half of it is lost",
        caught_by: &[
            Sim("random --cuts 12000"),
            Test("-p basalt-engine --test engine blocks::a_scan_of_memory_only"),
        ],
    },
    Bug {
        name: "unreadable-row-written",
        what: "a mutation writes a row that is larger than reads may return",
        caught_by: &[Test(
            "-p basalt-engine --test engine made_memory::a_row_that_could_not",
        )],
    },
    Bug {
        name: "updates-ahead-not-remembered",
        what: "tombstones and puts do not know that an increment or append went ahead of the clock",
        caught_by: &[Test(
            "-p basalt-engine --test engine updates::no_walk_of_the_clock",
        )],
    },
];
