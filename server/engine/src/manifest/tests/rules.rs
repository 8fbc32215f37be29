//! Rules about the order of edits, as text: commands, then their answers and the resulting state.

use std::fmt::Write as _;

use super::*;

fn numbers(text: &str) -> Vec<u64> {
    text.split(',').map(|number| number.parse().unwrap()).collect()
}

/// `id:start,end`.
fn regions<'a>(table: &str, words: impl Iterator<Item = &'a str>) -> Vec<RegionMeta> {
    words
        .map(|word| {
            let (id, bounds) = word.split_once(':').unwrap();
            let (start, end) = bounds.split_once(',').unwrap();
            region(id.parse().unwrap(), table, start, end)
        })
        .collect()
}

/// `id:start,end`, then for each file `:family:id:sequence id`, with a star behind if it is clipped.
fn filled_regions<'a>(table: &str, words: impl Iterator<Item = &'a str>) -> Vec<RegionState> {
    words
        .map(|word| {
            let parts: Vec<&str> = word.split(':').collect();
            let (start, end) = parts[1].split_once(',').unwrap();
            let mut state = RegionState {
                meta: region(parts[0].parse().unwrap(), table, start, end),
                flushed: SeqId(50),
                files: BTreeMap::new(),
                clipped: BTreeSet::new(),
            };
            for part in parts[2..].chunks(3) {
                let file = file(
                    part[1].parse().unwrap(),
                    part[2].trim_end_matches('*').parse().unwrap(),
                );
                if part[2].ends_with('*') {
                    state.clipped.insert(file.id);
                }
                state.files.entry(part[0].into()).or_default().push(file);
            }
            state
        })
        .collect()
}

fn parse(line: &str) -> ManifestEdit {
    let mut words = line.split_whitespace();
    let command = words.next().unwrap();
    let first = words.next().unwrap();
    let number = || first.parse().unwrap();
    match command {
        "ns" => ManifestEdit::PutNamespace(NamespaceDescriptor {
            name: first.into(),
            ..NamespaceDescriptor::default()
        }),
        "dropns" => ManifestEdit::DropNamespace(first.into()),
        "create" => {
            let families: Vec<&str> = words.next().unwrap().split(',').collect();
            create(first, &families, regions(first, words))
        }
        "alter" => ManifestEdit::AlterTable(table(
            first,
            &words.next().unwrap().split(',').collect::<Vec<_>>(),
        )),
        "enable" => ManifestEdit::SetTableState(table_name(first), TableState::Enabled),
        "disable" => ManifestEdit::SetTableState(table_name(first), TableState::Disabled),
        "drop" => ManifestEdit::DropTable(table_name(first)),
        "truncate" => ManifestEdit::TruncateTable(table_name(first), regions(first, words)),
        "flush" => {
            let flushed = words.next().unwrap().parse().unwrap();
            let files: Vec<(&str, FileMeta)> = words
                .map(|word| {
                    let parts: Vec<&str> = word.split(':').collect();
                    (
                        parts[0],
                        file(parts[1].parse().unwrap(), parts[2].parse().unwrap()),
                    )
                })
                .collect();
            flush(number(), flushed, &files)
        }
        "compact" => {
            let (family, inputs) = (words.next().unwrap(), words.next().unwrap());
            let added = words
                .filter_map(|word| word.split_once(':'))
                .map(|(id, max_seq)| file(id.parse().unwrap(), max_seq.parse().unwrap()));
            compact(number(), family, &numbers(inputs), added.collect())
        }
        "replace" => ManifestEdit::ReplaceRegions {
            removed: numbers(first).into_iter().map(RegionId).collect(),
            added: regions("t", words),
        },
        "truncateregion" => ManifestEdit::TruncateRegion {
            removed: RegionId(number()),
            added: regions("t", words).remove(0),
        },
        "high" => ManifestEdit::HighWater {
            timestamp_ms: number(),
            seq: SeqId(words.next().unwrap().parse().unwrap()),
        },
        "snapshot" | "clone" | "restore" => {
            // snapshot <name> <table> <families> <regions>, clone <table> <families> <regions>
            let name = if command == "snapshot" {
                words.next().unwrap()
            } else {
                first
            };
            let descriptor = table(name, &words.next().unwrap().split(',').collect::<Vec<_>>());
            let regions = filled_regions(name, words);
            match command {
                "snapshot" => ManifestEdit::CreateSnapshot(snapshot(first, descriptor, &regions)),
                "clone" => ManifestEdit::CloneTable { descriptor, regions },
                _ => ManifestEdit::RestoreTable { descriptor, regions },
            }
        }
        "dropsnapshot" => ManifestEdit::DropSnapshot(first.into()),
        other => panic!("no command {other}"),
    }
}

fn print(state: &ManifestState, out: &mut String) {
    for table in state.tables.values() {
        let families: Vec<String> = table
            .descriptor
            .families
            .iter()
            .map(|family| String::from_utf8(family.name.clone()).unwrap())
            .collect();
        writeln!(
            out,
            "{} {} {}",
            table.descriptor.name,
            table.state.as_str(),
            families.join(",")
        )
        .unwrap();
        for region in state.regions_of(&table.descriptor.name) {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let meta = &region.meta;
            write!(
                out,
                "  {} {},{} @{}",
                meta.id,
                text(&meta.start),
                text(&meta.end),
                region.flushed
            )
            .unwrap();
            for (family, files) in &region.files {
                let files: Vec<String> = files
                    .iter()
                    .map(|file| {
                        let star = if region.clipped.contains(&file.id) {
                            "*"
                        } else {
                            ""
                        };
                        format!("{}:{}{star}", file.id.0, file.max_seq)
                    })
                    .collect();
                write!(out, " {}[{}]", text(family), files.join(" ")).unwrap();
            }
            out.push('\n');
        }
    }
    for snapshot in state.snapshots.values() {
        let files: Vec<u64> = snapshot.files().keys().map(|id| id.0).collect();
        writeln!(
            out,
            "snapshot {} of {}: {} regions, files {files:?}",
            snapshot.name,
            snapshot.descriptor.name,
            snapshot.regions.len()
        )
        .unwrap();
    }
}

/// Runs the commands; `!` lines are refusals (a part of their text), `-` lines dropped files, the rest is the
/// state.
fn check(commands: &str, expected: &str) {
    let mut state = ManifestState::new(Uuid::default());
    let mut said = String::new();
    for line in commands.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let before = state.clone();
        match state.apply(&parse(line)) {
            Ok(dropped) => {
                for file in dropped {
                    let family = String::from_utf8(file.family).unwrap();
                    writeln!(said, "- {family}:{}", file.meta.id.0).unwrap();
                }
            }
            Err(error) => {
                assert_eq!(state, before, "{line}: refused and yet something changed");
                writeln!(said, "! {error}").unwrap();
            }
        }
    }
    print(&state, &mut said);
    let wanted: Vec<&str> = expected
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let found: Vec<&str> = said.lines().map(str::trim).collect();
    let same = wanted.len() == found.len()
        && wanted.iter().zip(&found).all(|(wanted, found)| {
            wanted == found || (wanted.starts_with('!') && found.starts_with(wanted.trim_end_matches("...")))
        });
    assert!(same, "commands:\n{commands}\nfound:\n{said}");
}

#[test]
fn tables_have_their_regions() {
    check(
        "create t f,g 1:,m 2:m,
         create t f 3:,
         create a:t f 3:,
         ns a
         create a:t f 3:,
         disable t
         dropns a
         dropns default
         dropns b
         alter x f
         drop x",
        "! t
         ! Unknown namespace a! The namespaces are default, hbase; create_namespace 'a' makes it.
         ! namespace a still holds table a:t
         ! namespace default is reserved
         ! Unknown namespace b! The namespaces are a, default, hbase; create_namespace 'b' makes it.
         ! x
         ! x
         a:t ENABLED f
           3 , @0
         t DISABLED f,g
           1 ,m @0
           2 m, @0",
    );
}

#[test]
fn regions_cover_all_rows_and_are_new() {
    check(
        "create t f 1:,m
         create t f 1:,m 2:n,
         create t f 1:,m 2:k,
         create t f 1:, 2:,
         create t f 1:m,k
         create t f 1:,m 1:m,
         create t f
         create t f 1:,
         truncate t 1:,
         truncate t 2:,
         create u f 2:,",
        "! the new regions of t cover [, m) and not [, )
         ! regions leave a gap or overlap at n
         ! regions leave a gap or overlap at k
         ! regions leave a gap or overlap...
         ! regions with start m end before it
         ! region identity 1 was used before
         ! regions are missing
         ! region identity 1 was used before
         ! region identity 2 was used before
         t ENABLED f
           2 , @0",
    );
}

#[test]
fn a_truncated_region_is_new_has_the_same_rows_and_no_files() {
    check(
        "create t f 1:,m 2:m,
         flush 1 10 f:1:10
         flush 2 20 f:2:20
         replace 1 3:,c 4:c,m
         truncateregion 9 9:,
         truncateregion 3 4:,c
         truncateregion 3 5:,m
         truncateregion 3 5:,c
         truncateregion 2 6:m,",
        "! region 9 is not in the manifest
         ! region identity 4 was used before
         ! the new regions of t cover [, m) and not [, c)
         - f:2
         t ENABLED f
           5 ,c @0
           4 c,m @10 f[1:10*]
           6 m, @0",
    );
}

#[test]
fn flushes_add_files_in_order_of_their_sequence_ids() {
    check(
        "create t f,g 1:,
         flush 1 10 f:1:10 g:2:8
         flush 1 30 f:4:30 f:3:25
         flush 1 30
         flush 1 29
         flush 2 40
         flush 1 40 h:9:40
         flush 1 40 f:1:40
         flush 1 40 f:9:40 g:9:40
         flush 1 40 f:9:41",
        "! region 1 is flushed up to 30 and cannot go back to 29
         ! region 2 is not in the manifest
         ! Column family h does not exist in table t
         ! file identity 0000000000000001 was used before
         ! file identity 0000000000000009 was used before
         ! file 0000000000000009 holds sequence id 41, beyond the flush at 40
         t ENABLED f,g
           1 , @30 f[1:10 3:25 4:30] g[2:8]",
    );
}

/// Files of other rows may be between the inputs; the outputs take the place of the newest.
#[test]
fn a_compaction_has_inputs_and_outputs_anywhere() {
    check(
        "create t f 1:,
         flush 1 10 f:1:10 f:2:10 f:3:10
         flush 1 20 f:4:20 f:5:20
         compact 1 f 1,4 6:20 7:20 8:20
         compact 1 f 2,8 9:20 9:20
         compact 1 f 2,8 9:20 10:21
         compact 1 f 2,8 9:20 6:20
         compact 1 f 3,5,7 -
         compact 1 f 2,6,8 10:20 9:20",
        "- f:1
         - f:4
         ! file identity 0000000000000009 was used before
         ! file 000000000000000a is newer than what it was made of
         ! file identity 0000000000000006 was used before
         - f:3
         - f:7
         - f:5
         - f:2
         - f:6
         - f:8
         t ENABLED f
           1 , @20 f[10:20 9:20]",
    );
}

#[test]
fn a_compaction_takes_the_place_of_its_inputs() {
    check(
        "create t f,g 1:,
         flush 1 10 f:1:10
         flush 1 20 f:2:20
         flush 1 30 f:3:30
         flush 1 40 f:4:40
         compact 1 f 2,3 5:30
         compact 1 f 5 6:11
         flush 1 50 f:7:50
         compact 1 f 1,9 8:40
         compact 1 f 1,1 8:10
         compact 1 g 1 8:10
         compact 1 f 1 6:10
         compact 1 f 1 8:11
         compact 1 f 1,4 -
         compact 2 f 1 -",
        "- f:2
         - f:3
         - f:5
         ! file 0000000000000009 is not in family f of region 1
         ! a compaction of region 1 names no file or one file twice
         ! file 0000000000000001 is not in family g of region 1
         ! file identity 0000000000000006 was used before
         ! file 0000000000000008 is newer than what it was made of
         - f:1
         - f:4
         ! region 2 is not in the manifest
         t ENABLED f,g
           1 , @50 f[6:11 7:50]",
    );
}

#[test]
fn a_split_shares_files_until_both_halves_drop_them() {
    check(
        "create t f 1:,
         flush 1 10 f:1:10
         replace 1 2:,m 3:m,
         compact 2 f 1 2:10
         replace 2,3 4:,
         compact 3 f 1 3:10
         replace 2,3 4:,
         flush 1 20",
        "! region 3 still has files from before its split; it must be compacted before it can be merged
         - f:1
         ! region 1 is not in the manifest
         t ENABLED f
           4 , @10 f[2:10 3:10]",
    );
    check(
        "create t f 1:,
         flush 1 10 f:1:10
         replace 1 2:,m 3:m,
         replace 3 4:m,p 5:p,",
        "t ENABLED f
           2 ,m @10 f[1:10*]
           4 m,p @10 f[1:10*]
           5 p, @10 f[1:10*]",
    );
}

#[test]
fn a_merge_keeps_the_older_mark_and_orders_files() {
    check(
        "create t f 1:,g 2:g,m 3:m,
         flush 1 10 f:1:10
         flush 2 30 f:2:5 f:3:30
         replace 1,3 4:,
         replace 1,2 4:,g
         replace 1,2 4:,g 5:g,m
         replace 1,9 4:,m
         replace 2,1 4:,m",
        "! regions leave a gap or overlap at m
         ! the new regions of t cover [, g) and not [, m)
         ! either one region is split or one is made by a merge
         ! region 9 is not in the manifest
         t ENABLED f
           4 ,m @10 f[2:5 1:10 3:30]
           3 m, @0",
    );
}

#[test]
fn gone_families_and_tables_drop_their_files_once() {
    check(
        "create t f,g 1:,
         flush 1 10 f:1:10 g:2:10
         replace 1 2:,m 3:m,
         alter t f
         flush 2 20 g:4:20
         alter t f,g
         drop t",
        "- g:2
         ! Column family g does not exist in table t
         - f:1",
    );
    check(
        "create t f 1:,
         flush 1 10 f:1:10
         truncate t 2:,m 3:m,",
        "- f:1
         t ENABLED f
           2 ,m @0
           3 m, @0",
    );
}

/// Goal: counters only rise, by every kind of edit that holds one of their numbers.
#[test]
fn counters_only_rise() {
    let mut state = ManifestState::new(Uuid::default());
    assert_eq!((state.next_region, state.next_file), (1, 1));
    for line in [
        "create t f 7:,",
        "flush 7 50 f:20:40",
        "compact 7 f 20 22:40",
        "high 9 3",
        "high 4 60",
    ] {
        state.apply(&parse(line)).unwrap();
    }
    assert_eq!((state.next_region, state.next_file), (8, 23));
    assert_eq!((state.timestamp_ms, state.seq), (9, SeqId(60)));
    assert!(state.apply(&flush(7, 60, &[("f", file(u64::MAX, 60))])).is_err());
    assert_eq!(
        state.live_files().keys().copied().collect::<Vec<_>>(),
        [FileId(22)]
    );
}

/// Goal: a snapshot has a name of its own and all rows of a table, and outlives the table.
#[test]
fn snapshots_have_their_files() {
    check(
        "create t f 1:,
         flush 1 10 f:1:10
         snapshot s t f 0:,:f:1:10
         snapshot s t f 0:,
         snapshot ../s t f 0:,
         snapshot a t f 0:,m
         snapshot a t f 0:,m 0:n,
         snapshot a t f
         snapshot a t f 0:,:g:1:10
         snapshot a t f 0:,:f:1:10:f:1:10
         snapshot a t f 0:,m:f:1:10 0:m,:f:1:10
         snapshot b t f 0:,m:f:1:10* 0:m,:f:1:10*
         dropsnapshot a
         drop t
         snapshot c t f 0:,:f:1:10
         dropsnapshot c",
        "! Snapshot 's' already stored on the filesystem.
         ! Illegal first character <.> at 0. Snapshot...
         ! the regions of snapshot a do not cover all rows
         ! regions leave a gap or overlap at n
         ! regions are missing
         ! Column family g does not exist in table t
         ! file 0000000000000001 is in two stores
         ! file 0000000000000001 is in two stores
         ! Snapshot 'a' doesn't exist on the filesystem
         - f:1
         snapshot b of t: 2 regions, files [1]
         snapshot s of t: 1 regions, files [1]",
    );
}

/// Goal: a clone is a new table with new regions and files, whose files are independent of the
/// snapshot's.
#[test]
fn clones_have_new_files() {
    check(
        "create t f 1:,
         flush 1 10 f:1:10
         snapshot s t f 0:,:f:1:10
         clone t f 2:,:f:2:10
         clone n:c f 2:,:f:2:10
         clone c f 1:,:f:2:10
         clone c f 2:,:f:1:10
         clone c f 2:,:g:2:10
         clone c f 2:,m:f:2:10 3:m,:f:2:10
         clone c f 2:,m:f:2:10* 3:m,:f:2:10*
         dropsnapshot s
         compact 2 f 2 3:10
         compact 3 f 2 4:10
         drop t",
        "! t
         ! Unknown namespace n! The namespaces are default, hbase...
         ! region identity 1 was used before
         ! file identity 0000000000000001 was used before
         ! Column family g does not exist in table c
         ! file 0000000000000002 is in two stores
         - f:2
         - f:1
         c ENABLED f
           2 ,m @50 f[3:10]
           3 m, @50 f[4:10]",
    );
}

/// Goal: a restore replaces families, regions and files at once, and the table stays disabled or
/// enabled.
#[test]
fn a_restore_replaces_everything() {
    check(
        "create t f,g 1:,m 2:m,
         flush 1 10 f:1:10 g:2:10
         flush 2 20 f:3:20
         disable t
         restore x f 3:,
         restore t f 2:,
         restore t f 3:,m
         restore t f 3:,:f:3:20
         restore t f,h 3:,:f:4:20:h:5:15
         enable t
         restore t f 4:,",
        "! x
         ! region identity 2 was used before
         ! the new regions of t cover [, m) and not [, )
         ! file identity 0000000000000003 was used before
         - f:1
         - g:2
         - f:3
         - f:4
         - h:5
         t ENABLED f
           4 , @50",
    );
}

/// Goal: a time to live of 0 is none, and one is over when it is past.
#[test]
fn snapshots_expire() {
    let mut snapshot = SnapshotMeta::clone(&snapshot("s", table("t", &["f"]), &[]));
    assert!(!snapshot.is_expired(69_000) && snapshot.is_expired(69_001));
    snapshot.ttl_seconds = 0;
    assert!(!snapshot.is_expired(u64::MAX));
    snapshot.ttl_seconds = u64::MAX;
    assert!(!snapshot.is_expired(u64::MAX));
}
