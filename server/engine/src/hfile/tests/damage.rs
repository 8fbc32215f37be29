//! Damage is detected: flipped bits, truncated files, swapped blocks.

use super::*;

/// Every bit of a small file is flipped in turn: opening, reading or verifying fails, or the answer is the
/// right one.
#[test]
fn every_flipped_bit_is_found_or_harmless() {
    let cells = grid(30, 1);
    for encoding in [
        DataBlockEncoding::None,
        DataBlockEncoding::RowIndexV1,
        DataBlockEncoding::FastDiff,
    ] {
        let options = WriterOptions {
            encoding,
            block_bytes: 400,
            index_block_bytes: 100,
            bloom_chunk_bytes: 128,
            ..options()
        };
        let fixture = Fixture::write(&cells, options);
        let good = fixture.bytes();
        let (mut found, mut harmless) = (0, 0);
        for bit in 0..good.len() * 8 {
            let at = bit / 8;
            fixture.overwrite(&[good[at] ^ 1 << (bit % 8)], at as u64);
            let reader = fixture.open();
            let read = reader.clone().and_then(|reader| {
                let cells = read_all(&reader, reads())?;
                for cell in &cells {
                    assert!(reader.may_contain_row(cell.key.as_key().row(), reads())?);
                }
                Ok(cells)
            });
            match read {
                Ok(read) => {
                    // Only the filter of family tombstones is not used by these reads; verifying finds it.
                    assert_eq!(read, cells, "bit {bit} changed an answer");
                    assert!(reader.unwrap().verify(None).is_err(), "bit {bit} was not found");
                    harmless += 1;
                }
                Err(Error::Corrupt { offset, .. }) => {
                    assert!(offset <= good.len() as u64);
                    found += 1;
                }
                Err(other) => panic!("bit {bit}: {other}"),
            }
            fixture.overwrite(&good[at..=at], at as u64);
        }
        assert_eq!(found + harmless, good.len() * 8);
        assert!(
            harmless < 50 * 8,
            "{encoding}: {harmless} bits are not looked at by reads"
        );
    }
}

/// A file that ends early at any length is refused when it is opened.
#[test]
fn truncated_files_are_refused() {
    let fixture = Fixture::write(&grid(30, 1), options());
    let file = RealFs.open(&fixture.path, Open::Write).unwrap();
    for bytes in (0..fixture.written.bytes).rev() {
        file.set_len(bytes).unwrap();
        let error = fixture.open().unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{bytes}: {error}");
    }
}

/// Sound blocks in the wrong place are detected: two data blocks of one size change places.
#[test]
fn swapped_blocks_are_found() {
    let mut cells = grid(80, 1);
    cells.retain(|cell| cell.tags.is_empty() && !cell.value.is_empty());
    let fixture = Fixture::write(
        &cells,
        WriterOptions {
            encoding: DataBlockEncoding::None,
            block_bytes: 400,
            ..options()
        },
    );
    let reader = fixture.open().unwrap();
    let (mut handles, good) = (Vec::new(), fixture.bytes());
    for entry in 0..reader.root.len() {
        handles.push(reader.root.handle(entry));
    }
    let pair = handles
        .windows(2)
        .find(|pair| pair[0].bytes == pair[1].bytes)
        .unwrap();
    let block = |handle: index::Handle| good[handle.offset as usize..][..handle.bytes as usize].to_vec();
    // First only one of them, as by a misdirected write: its cells are where the index allows them, but its
    // place is wrong.
    fixture.overwrite(&block(pair[1]), pair[0].offset);
    assert!(matches!(
        read_all(&fixture.open().unwrap(), reads()),
        Err(Error::Corrupt { .. })
    ));
    fixture.overwrite(&block(pair[0]), pair[1].offset);
    let reader = fixture.open().unwrap();
    assert!(matches!(read_all(&reader, reads()), Err(Error::Corrupt { .. })));
    assert!(reader.verify(None).is_err());
}

#[test]
fn the_checksum_of_the_whole_file_is_verified() {
    let fixture = Fixture::write(&grid(30, 1), options());
    let reader = fixture.open().unwrap();
    assert_eq!(
        crate::checksum::crc32c(&fixture.bytes()),
        fixture.written.checksum
    );
    reader.verify(None).unwrap();
    let error = reader.verify(Some(fixture.written.checksum ^ 1)).unwrap_err();
    assert!(error.to_string().contains("whole file"), "{error}");
}
