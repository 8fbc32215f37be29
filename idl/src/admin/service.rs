//! The methods of `BasaltAdmin`.

#[allow(
    clippy::wildcard_imports,
    reason = "the names of Thrift's types and the structs declared next door"
)]
use super::*;
#[allow(
    unused_imports,
    clippy::wildcard_imports,
    reason = "the names of Thrift's types"
)]
use crate::schema::names::*;

thrift_service! {
    /// Basalt's own service.
    pub service BasaltAdmin {
        /// Writes the memstores of a table, or of the region of that name, to store files. Returns when they
        /// are durable.
        void basaltFlush as BasaltFlush(1: required binary table) throws (1: TIOError io) [class = admin];

        /// Compacts a table, or the region of that name, or one family of it. With wait, returns when done,
        /// else when queued.
        void basaltCompact as BasaltCompact(
            1: required binary table,
            2: optional binary family,
            3: bool major = false,
            4: bool wait = false,
        ) throws (1: TIOError io) [class = admin];

        /// Pauses flushes or compactions, or lets them go on. Returns whether they were paused before. A
        /// restart ends a pause.
        bool basaltPause as BasaltPause(
            1: required TBackgroundWork work, 2: required bool paused
        ) throws (1: TIOError io) [class = admin];

        /// Running and queued background work, and the kinds that are paused.
        TBackgroundState basaltBackgroundState as BasaltBackgroundState()
            throws (1: TIOError io) [class = admin, idempotent];

        /// Takes the blocks of a table, or of all, out of the block cache. Returns how many.
        i64 basaltClearBlockCache as BasaltClearBlockCache(
            1: optional binary table
        ) throws (1: TIOError io) [class = admin];

        /// Splits a region, or every region of a table, at the key or in the middle.
        void basaltSplit as BasaltSplit(
            1: required binary tableOrRegion as table_or_region, 2: optional binary splitKey as split_key
        ) throws (1: TIOError io) [class = admin];

        /// Merges adjacent regions of one table into one. Returns its name.
        binary basaltMerge as BasaltMerge(
            1: required list<binary> regionNames as region_names
        ) throws (1: TIOError io) [class = admin];

        /// The regions of a table, or of all, in key order.
        list<TRegionMetrics> basaltRegionMetrics as BasaltRegionMetrics(
            1: optional binary table
        ) throws (1: TIOError io) [class = admin, idempotent];

        /// The rows of a table that most requests go to, at most limit of each kind. Needs the right to read
        /// the table.
        THotRowsOfTable basaltHotRows as BasaltHotRows(
            1: required binary table, 2: i32 limit = 10
        ) throws (1: TIOError io) [class = admin, idempotent];

        /// The state of the memstores.
        TMemstoreState basaltMemstoreState as BasaltMemstoreState()
            throws (1: TIOError io) [class = admin, idempotent];

        /// The state of the block cache.
        TCacheState basaltCacheState as BasaltCacheState()
            throws (1: TIOError io) [class = admin, idempotent];

        /// The state of the server.
        TServerStatus basaltServerStatus as BasaltServerStatus()
            throws (1: TIOError io) [class = admin, idempotent];

        /// Moves a region to the virtual server of that name, or to the one with the fewest regions. Needs a
        /// rehearsal.
        void basaltMove as BasaltMove(
            1: required binary regionName as region_name, 2: optional string serverName as server_name
        ) throws (1: TIOError io) [class = admin];

        /// Assigns a region that is not assigned to a virtual server. Needs a rehearsal.
        void basaltAssign as BasaltAssign(
            1: required binary regionName as region_name
        ) throws (1: TIOError io) [class = admin];

        /// Takes a region from its virtual server: it takes no data calls until it is assigned. Needs a
        /// rehearsal.
        void basaltUnassign as BasaltUnassign(
            1: required binary regionName as region_name
        ) throws (1: TIOError io) [class = admin];

        /// Evens out the regions over the virtual servers. Returns how many were moved. Needs a rehearsal.
        i32 basaltBalance as BasaltBalance() throws (1: TIOError io) [class = admin];

        /// Sets a quota. Without a limit, takes it away; without a type too, takes away all of that owner.
        /// Durable when it returns.
        void basaltSetQuota as BasaltSetQuota(1: required TThrottle quota)
            throws (1: TIOError io) [class = admin];

        /// Quotas whose owner matches the regular expressions, all of them without. A user's quotas in tables
        /// and namespaces match by the user alone, too.
        list<TThrottle> basaltListQuotas as BasaltListQuotas(
            1: optional string userName as user_name,
            2: optional string tableName as table_name,
            3: optional string nsName as ns_name,
        ) throws (1: TIOError io) [class = admin, idempotent];

        /// Takes a snapshot of a table: of everything acknowledged before, or without flush of the
        /// store files only. It is removed after ttlSeconds; 0: never.
        void basaltSnapshot as BasaltSnapshot(
            1: required string name,
            2: required binary table,
            3: bool flush = true,
            4: i64 ttlSeconds as ttl_seconds = 0,
        ) throws (1: TIOError io) [class = admin];

        /// Snapshots whose name and table match the regular expressions, all of them without; by name.
        list<TSnapshot> basaltListSnapshots as BasaltListSnapshots(
            1: optional string name, 2: optional string tableName as table_name
        ) throws (1: TIOError io) [class = admin, idempotent];

        /// Removes a snapshot.
        void basaltDeleteSnapshot as BasaltDeleteSnapshot(1: required string name)
            throws (1: TIOError io) [class = admin];

        /// Creates a table, enabled, from a snapshot.
        void basaltCloneSnapshot as BasaltCloneSnapshot(
            1: required string name, 2: required binary table
        ) throws (1: TIOError io) [class = admin];

        /// Restores a snapshot's table to the snapshot's state. It must be disabled, and stays so;
        /// a dropped one is created, enabled.
        void basaltRestoreSnapshot as BasaltRestoreSnapshot(1: required string name)
            throws (1: TIOError io) [class = admin];

        /// Removes all user tables, snapshots, quotas and namespaces that are not reserved, closes scanners,
        /// and ends pauses. A clock that was moved shows the machine's time again, unless keepClock. Only a
        /// server that was started with --ephemeral does that.
        void basaltReset as BasaltReset(1: bool keepClock as keep_clock = false)
            throws (1: TIOError io) [class = admin];

        /// Moves the server's wall clock forward, so that cells expire and age without waiting.
        /// Returns the new time, in milliseconds since 1970. Only a server that was started with
        /// --ephemeral does that.
        i64 basaltAdvanceClock as BasaltAdvanceClock(1: required i64 ms)
            throws (1: TIOError io) [class = admin];

        /// Arms faults instead of the present ones; an empty list clears them. Returns the armed
        /// faults. Only a server that was started with --ephemeral does that.
        list<TFault> basaltSetFaults as BasaltSetFaults(
            1: required list<TFault> faults
        ) throws (1: TIOError io) [class = admin];

        /// The faults that are armed, each with the calls that are left. Only a server that was started with
        /// --ephemeral has any.
        list<TFault> basaltFaults as BasaltFaults() throws (1: TIOError io) [class = admin, idempotent];
    }
    /// The exceptions of the methods of `BasaltAdmin`.
    exceptions BasaltException {
        1: TIOError as Io,
    }
}
