//! Scans over region boundaries, in parts and pieces.

use basalt_client::{Get, Put, Scan};

use super::{Rig, fill, keys};

fn row(number: usize) -> String {
    format!("row-{number:03}")
}

fn expected(numbers: impl Iterator<Item = usize>) -> Vec<String> {
    numbers.map(row).collect()
}

#[test]
fn scans_cross_regions_in_both_directions() {
    let rig = Rig::start();
    let table = rig.table(&["row-050", "row-100", "row-101", "row-250"]);
    rig.runtime.block_on(async {
        fill(&table, (0..300).map(row)).await;
        let all = |scan: Scan| {
            let table = table.clone();
            async move { keys(&table.scan(scan).expect("a scan").collect().await.expect("read")) }
        };
        for rows_per_fetch in [1, 7, 1_000] {
            let scan = || Scan::new().rows_per_fetch(rows_per_fetch);
            assert_eq!(all(scan()).await, expected(0..300));
            assert_eq!(all(scan().reversed(true)).await, expected((0..300).rev()));
        }
        let range = Scan::new().start_row("row-049").stop_row("row-101");
        assert_eq!(all(range).await, expected(49..101));
        let down = Scan::new()
            .reversed(true)
            .start_row("row-101")
            .stop_row("row-049");
        assert_eq!(all(down).await, expected((50..102).rev()));
        let between = Scan::new()
            .reversed(true)
            .start_row("row-100x")
            .stop_row("row-0999");
        assert_eq!(all(between).await, expected((100..101).rev()));
        for reversed in [false, true] {
            let mut numbers: Vec<usize> = (100..110).collect();
            if reversed {
                numbers.reverse();
            }
            let scan = Scan::new().prefix("row-10").reversed(reversed).rows_per_fetch(3);
            assert_eq!(all(scan.clone()).await, expected(numbers.iter().copied()));
            assert_eq!(all(scan.limit(4)).await, expected(numbers.into_iter().take(4)));
        }
        for limit in [1, 49, 50, 51, 120] {
            let rows = table.first_rows(Scan::new(), limit).await.expect("read");
            assert_eq!(keys(&rows), expected(0..limit), "{limit}");
        }
        assert_eq!(table.regions().await.expect("regions").len(), 5);
    });
    rig.server.stop();
}

/// Rows larger than a fetch come whole, and in pieces of the size asked for.
#[test]
fn long_rows_are_stitched_together() {
    let rig = Rig::start_with(|options| options.fetch_bytes = 10_000);
    let table = rig.table(&["m"]);
    rig.runtime.block_on(async {
        for row in ["a", "b", "z"] {
            let cells = (0..40).fold(Put::new(row), |put, number| {
                put.cell("f", format!("q{number:02}"), vec![b'v'; 1_000])
            });
            table.put(cells).await.expect("written");
        }
        let rows = table
            .scan(Scan::new())
            .expect("a scan")
            .collect()
            .await
            .expect("read");
        assert_eq!(keys(&rows), ["a", "b", "z"]);
        assert!(rows.iter().all(|row| row.cells.len() == 40 && !row.partial));
        for size in [7, 10, 40, 100] {
            let scan = Scan::new().cells_per_piece(size);
            let pieces = table.scan(scan).expect("a scan").collect().await.expect("read");
            let sizes = |key: &str| {
                let of_row = pieces.iter().filter(|piece| piece.key == key);
                of_row.map(|piece| piece.cells.len()).collect::<Vec<_>>()
            };
            let full = 40 / size as usize;
            let mut each = vec![size as usize; full];
            each.extend((40 % size as usize > 0).then_some(40 % size as usize));
            for key in ["a", "b", "z"] {
                assert_eq!(sizes(key), each, "{key} in pieces of {size}");
            }
            let qualifiers = pieces
                .iter()
                .flat_map(|piece| &piece.cells)
                .map(|cell| cell.qualifier.clone());
            let expected = (0..3).flat_map(|_| 0..40).map(|number| format!("q{number:02}"));
            assert!(qualifiers.eq(expected), "in pieces of {size}");
        }
    });
    rig.server.stop();
}

/// A scanner that the caller drives keeps its lease by renewals and can be closed early.
#[test]
fn a_scanner_is_renewed_and_closed() {
    let rig = Rig::start();
    let table = rig.table(&[]);
    rig.runtime.block_on(async {
        fill(&table, (0..30).map(row)).await;
        let mut scanner = table.scanner(Scan::new().rows_per_fetch(10)).expect("a scan");
        assert_eq!(scanner.lease(), None);
        let first = scanner.next_batch().await.expect("read").expect("rows");
        assert_eq!(keys(&first), expected(0..10));
        for _ in 0..3 {
            scanner.renew().await.expect("renewed");
        }
        let second = scanner.next_batch().await.expect("read").expect("rows");
        assert_eq!(keys(&second), expected(10..20));
        scanner.close().await;
        assert_eq!(scanner.next_batch().await.expect("closed"), None);
    });
    rig.server.stop();
}

/// Meta is a table too. Its rows come in its own order, and the client finds regions whose start keys have
/// commas.
#[test]
fn meta_is_read_in_its_own_order() {
    let rig = Rig::start();
    let table = rig.table(&["a", "a\u{1}", "a,b", "a-"]);
    rig.runtime.block_on(async {
        fill(
            &table,
            ["a", "a\u{0}", "a\u{1}x", "a,b", "a,bc", "a-", "z"].map(str::to_owned),
        )
        .await;
        let found = table.get(Get::new("a,bc")).await.expect("read").expect("a row");
        assert_eq!(found.value("f", "q").expect("a value"), "a,bc");
        let starts = table
            .regions()
            .await
            .expect("regions")
            .into_iter()
            .map(|region| region.start_key);
        assert_eq!(starts.collect::<Vec<_>>(), ["", "a", "a\u{1}", "a,b", "a-"]);
        for reversed in [false, true] {
            let scan = Scan::new().reversed(reversed).rows_per_fetch(1);
            assert_eq!(
                table
                    .scan(scan)
                    .expect("a scan")
                    .collect()
                    .await
                    .expect("read")
                    .len(),
                7
            );
        }
        let meta = rig.cluster.table("hbase:meta").expect("a name");
        let rows = meta
            .scan(Scan::new().family("info").rows_per_fetch(2))
            .expect("a scan");
        let rows = rows.collect().await.expect("read");
        let of_t = keys(&rows).into_iter().filter(|row| row.starts_with("t,"));
        let starts: Vec<_> = of_t
            .map(|row| row[2..row.rfind(',').expect("a name")].to_owned())
            .collect();
        assert_eq!(starts, ["", "a", "a\u{1}", "a,b", "a-"]);
    });
    rig.server.stop();
}
