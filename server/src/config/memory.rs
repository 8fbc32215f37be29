//! One number for all memory: `memory.total_bytes`, divided among its users.
//!
//! A tenth is left for the key visualiser, which gets a sixty-fourth at most, for nonces, which get a
//! thirty-second ([`nonces_max`]), and for memory that no setting bounds: the roots of indexes of open store
//! files, the program and its threads.

use basalt_engine::engine::NONCE_BYTES;
use toml::{Table, Value};

use super::{Config, ConfigError, KEY_VISUALIZER_BYTES_MIN, TOTAL_BYTES_MIN};

/// The parts of the memory, with the percentage of each (HBase gives memstores and block cache 40 %
/// of the heap each).
const PARTS: [(&str, &str, u64); 3] = [
    ("memstore", "total_bytes", 40),
    ("block_cache", "bytes", 35),
    ("requests", "memory_bytes", 15),
];

/// Bytes of a largest message for each cell that a call may have.
const MESSAGE_BYTES_PER_CELL: u64 = 64;

/// Nonces have one part in this many of the whole.
const NONCES_SHARE: u64 = 32;

/// Largest row, however much memory there is (HBase: `hbase.table.max.rowsize`).
const ROW_BYTES_MAX: u64 = 1 << 30;

/// A message, a response and a row each have at most one part in this many of the memory for calls.
/// A call holds its message or its result twice, encoded and decoded, and other calls need memory
/// as well.
pub(super) const CALL_SHARE: u64 = 3;

/// Gives every part without a setting its share, and gives limits that must fit into a part several
/// times a size that does.
pub(super) fn divide(settings: &mut Table) {
    if let Some(total @ TOTAL_BYTES_MIN..) = read(settings, "memory", "total_bytes") {
        divide_total(settings, total);
    }
    if let Some(requests) = read(settings, "requests", "memory_bytes") {
        let defaults = Config::default();
        let call = requests / CALL_SHARE;
        // A cell must fit into a row.
        let row = read(settings, "row", "max_bytes").unwrap_or(call);
        let cell = (row - row / 16).min(defaults.row.cell_max_bytes as u64);
        fill(settings, "row", "max_bytes", call.min(ROW_BYTES_MAX));
        fill(settings, "row", "cell_max_bytes", cell);
    }
}

fn divide_total(settings: &mut Table, total: u64) {
    for (section, key, percent) in PARTS {
        fill(settings, section, key, total / 100 * percent);
    }
    let defaults = Config::default();
    let part = |(section, key, _)| read(settings, section, key).unwrap_or(0);
    let (memstore, requests) = (part(PARTS[0]) / 4, part(PARTS[2]) / CALL_SHARE);
    let flush = memstore.min(defaults.memstore.flush_bytes);
    let message = requests.min(defaults.server.max_message_bytes as u64);
    let segment = (total / 16).min(defaults.wal.segment_bytes);
    fill(settings, "memstore", "flush_bytes", flush);
    fill(settings, "server", "max_message_bytes", message);
    fill(settings, "server", "max_response_bytes", message);
    fill(
        settings,
        "server",
        "max_cells_per_call",
        message / MESSAGE_BYTES_PER_CELL,
    );
    fill(settings, "wal", "segment_bytes", segment);
    let visualizer = (total / 64).clamp(
        KEY_VISUALIZER_BYTES_MIN as u64,
        defaults.key_visualizer.bytes as u64,
    );
    fill(settings, "key_visualizer", "bytes", visualizer);
}

/// Most nonces of operations that must not be applied twice: what a share of the whole holds, and at
/// most as many as without a limit.
pub(super) fn nonces_max(total: u64) -> usize {
    let most = basalt_engine::options::Options::default().nonces_max;
    if total == 0 {
        return most;
    }
    let fitting = total / NONCES_SHARE / NONCE_BYTES as u64;
    usize::try_from(fitting).unwrap_or(most).min(most)
}

/// Refuses parts that are more than the whole.
pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let total = config.memory.total_bytes;
    if total == 0 {
        return Ok(());
    }
    let parts = [
        config.memstore.total_bytes,
        config.block_cache.bytes,
        config.requests.memory_bytes,
    ];
    let sum = parts.into_iter().fold(0, u64::saturating_add);
    if sum > total {
        let names = PARTS.map(|(section, key, _)| format!("{section}.{key}"));
        let message = format!("is {total}, but {} are {sum} together", names.join(", "));
        return Err(ConfigError::new("memory.total_bytes", message));
    }
    Ok(())
}

fn read(settings: &Table, section: &str, key: &str) -> Option<u64> {
    let value = settings.get(section)?.get(key)?.as_integer()?;
    u64::try_from(value).ok()
}

/// A section of the settings, added if missing.
pub(super) fn section_of<'a>(settings: &'a mut Table, name: &str) -> &'a mut Table {
    let section = settings.entry(name).or_insert_with(|| Value::Table(Table::new()));
    section.as_table_mut().expect("layers give sections only")
}

/// Sets a value that is not set.
fn fill(settings: &mut Table, section: &str, key: &str, value: u64) {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    section_of(settings, section)
        .entry(key)
        .or_insert(Value::Integer(value));
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn load(overrides: &[&str]) -> Config {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        Config::parse("", Path::new("f"), &overrides).unwrap()
    }

    #[test]
    fn the_whole_is_divided() {
        let config = load(&["memory.total_bytes=400000000"]);
        config.validate().unwrap();
        assert_eq!(
            (config.memstore.total_bytes, config.memstore.flush_bytes),
            (160_000_000, 40_000_000)
        );
        assert_eq!(
            (config.block_cache.bytes, config.requests.memory_bytes),
            (140_000_000, 60_000_000)
        );
        assert_eq!(
            (config.server.max_message_bytes, config.server.max_response_bytes),
            (20_000_000, 20_000_000)
        );
        assert_eq!(
            (
                config.row.max_bytes,
                config.row.cell_max_bytes,
                config.wal.segment_bytes
            ),
            (20_000_000, 10 << 20, 25_000_000)
        );
        assert_eq!(config.server.max_cells_per_call, 312_500);
        assert_eq!(config.key_visualizer.bytes, 6_250_000);
        assert_eq!(load(&["memory.total_bytes=0"]), Config::default());
        let least = load(&["memory.total_bytes=67108864"]);
        least.validate().unwrap();
        assert_eq!(
            least.requests.memory_bytes / CALL_SHARE,
            least.row.max_bytes as u64
        );
        assert!(
            least.row.cell_max_bytes < least.row.max_bytes,
            "a cell fits into a row"
        );
    }

    #[test]
    fn nonces_have_a_share_of_the_whole() {
        let most = basalt_engine::options::Options::default().nonces_max;
        assert_eq!(nonces_max(0), most);
        assert_eq!(nonces_max(64 << 30), most);
        let total = 256 << 20;
        let bytes = nonces_max(total) * NONCE_BYTES;
        assert!((7 << 20..=8 << 20).contains(&bytes), "{bytes}");
        let config = load(&["memory.total_bytes=256MiB"]);
        assert_eq!(config.engine_options().nonces_max, nonces_max(total));
    }

    /// The limit of rows follows the memory for calls unless it is set.
    #[test]
    fn a_row_fits_into_the_memory_for_calls() {
        let rows = |overrides: &[&str]| {
            let config = load(overrides);
            config.validate().unwrap();
            (config.row.max_bytes, config.row.cell_max_bytes)
        };
        assert_eq!(rows(&[]), ((512 << 20) / 3, 10 << 20));
        assert_eq!(
            rows(&["requests.memory_bytes=300000000"]),
            (100_000_000, 10 << 20)
        );
        assert_eq!(rows(&["requests.memory_bytes=30000000000"]), (1 << 30, 10 << 20));
        assert_eq!(
            rows(&[
                "requests.memory_bytes=300000000",
                "row.max_bytes=5000",
                "row.cell_max_bytes=6000"
            ]),
            (5000, 6000)
        );
    }

    #[test]
    fn set_shares_stay_and_must_fit() {
        let config = load(&[
            "memory.total_bytes=400000000",
            "block_cache.bytes=100000000",
            "memstore.flush_bytes=16777216",
        ]);
        config.validate().unwrap();
        assert_eq!(
            (config.block_cache.bytes, config.memstore.flush_bytes),
            (100_000_000, 16 << 20)
        );
        let too_much = load(&["memory.total_bytes=400000000", "block_cache.bytes=300000000"]);
        let error = too_much.validate().unwrap_err().to_string();
        assert!(
            error.contains("memory.total_bytes: is 400000000") && error.contains("are 520000000 together"),
            "{error}"
        );
        let too_little = load(&["memory.total_bytes=1000000"]).validate().unwrap_err();
        assert!(
            too_little
                .to_string()
                .contains("is 1000000, and must be 0, or at least 64MiB"),
            "{too_little}"
        );
    }
}
