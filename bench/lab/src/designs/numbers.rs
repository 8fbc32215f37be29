//! Designs that make a number of the logical key: its digits reversed, its time counted backwards, bits of an
//! id, or bits without any order.

use basalt_client::keys::{EntityTime, IdParts, KeyDesign, KeyError, MinuteKey, NewestFirst, ReverseDigits};

/// Digits of minute and sequence number together: 9 and 10.
const DIGITS: u32 = 19;
/// The sequence number's share of them.
const SEQUENCES: u64 = 10_000_000_000;
const MS_PER_MINUTE: i64 = 60_000;
/// Sequence numbers of one second of an id: worker and sequence, 25 bits.
const IDS_PER_SECOND: u32 = 1 << 25;
const PARTITIONS: u64 = 64;

fn out_of_range(part: &'static str, value: u64, max: u64) -> KeyError {
    KeyError::OutOfRange {
        part,
        value: value.into(),
        range: format!("0..={max}"),
    }
}

fn not_of_design(row: &[u8], reason: &'static str) -> KeyError {
    KeyError::NotOfDesign {
        row: row.escape_ascii().to_string(),
        reason,
    }
}

/// The toolkit's design for the digits of minute and sequence number.
pub(super) fn reversed_digits() -> Result<ReverseDigits, KeyError> {
    ReverseDigits::new(DIGITS)
}

/// The minute, nine digits, and the sequence number, ten.
pub(super) fn number_of(key: MinuteKey) -> Result<u64, KeyError> {
    const MINUTES: u32 = 1_000_000_000;
    if key.minute >= MINUTES {
        return Err(out_of_range("minute", key.minute.into(), u64::from(MINUTES) - 1));
    }
    Ok(u64::from(key.minute) * SEQUENCES + u64::from(key.sequence))
}

/// The other way round.
pub(super) fn from_number(number: u64, row: &[u8]) -> Result<MinuteKey, KeyError> {
    let parts = (
        u32::try_from(number / SEQUENCES),
        u32::try_from(number % SEQUENCES),
    );
    match parts {
        (Ok(minute), Ok(sequence)) => Ok(MinuteKey { minute, sequence }),
        _ => Err(not_of_design(row, "its digits are no minute and sequence number")),
    }
}

/// The newest row first: the toolkit's time of eight bytes, then the sequence number counted down.
pub(super) fn newest_first(key: MinuteKey) -> Result<Vec<u8>, KeyError> {
    let mut row = newest_time(key.minute)?;
    row.extend((u32::MAX - key.sequence).to_be_bytes());
    Ok(row)
}

/// The eight bytes in front of the rows of a minute.
pub(super) fn newest_time(minute: u32) -> Result<Vec<u8>, KeyError> {
    NewestFirst::new(0).encode(&EntityTime {
        entity: Vec::new(),
        timestamp_ms: i64::from(minute) * MS_PER_MINUTE,
    })
}

/// The other way round.
pub(super) fn from_newest_first(row: &[u8]) -> Result<MinuteKey, KeyError> {
    let wrong = || not_of_design(row, "it is not a time of 8 bytes and a sequence of 4");
    let (time, sequence) = row.split_at_checked(8).ok_or_else(wrong)?;
    let sequence: [u8; 4] = sequence.try_into().map_err(|_| wrong())?;
    let time_ms = NewestFirst::new(0).decode(time)?.timestamp_ms;
    if time_ms % MS_PER_MINUTE != 0 {
        return Err(wrong());
    }
    Ok(MinuteKey {
        minute: u32::try_from(time_ms / MS_PER_MINUTE).map_err(|_| wrong())?,
        sequence: u32::MAX - u32::from_be_bytes(sequence),
    })
}

/// The seconds of the id count from 1970 and are those of the minute; each worker numbers a block of 65,536
/// rows; the partition is a hash of the rest.
pub(super) fn id_of(key: MinuteKey) -> Result<IdParts, KeyError> {
    let within = key.sequence / IDS_PER_SECOND;
    let seconds = u64::from(key.minute) * 60 + u64::from(within);
    if within >= 60 {
        let most = u64::from(IDS_PER_SECOND) * 60 - 1;
        return Err(out_of_range("sequence", key.sequence.into(), most));
    }
    let seconds =
        u32::try_from(seconds).map_err(|_| out_of_range("seconds", seconds, u64::from(u32::MAX)))?;
    let low = key.sequence % IDS_PER_SECOND;
    let parts = IdParts {
        partition: 0,
        seconds,
        worker: (low >> 16) as u16,
        sequence: low as u16,
    };
    let partition = mix(u64::from(seconds) << 25 | u64::from(low)) % PARTITIONS;
    Ok(IdParts {
        partition: partition as u8,
        ..parts
    })
}

/// The other way round.
pub(super) fn from_id(id: IdParts, row: &[u8]) -> Result<MinuteKey, KeyError> {
    let low = u32::from(id.worker) << 16 | u32::from(id.sequence);
    let key = MinuteKey {
        minute: id.seconds / 60,
        sequence: id.seconds % 60 * IDS_PER_SECOND + low,
    };
    if id_of(key)? == id {
        Ok(key)
    } else {
        Err(not_of_design(row, "its partition is not that of its time"))
    }
}

/// Eight bytes that look random but can be turned back, which no reader of a real random id can.
pub(super) fn random(key: MinuteKey) -> Vec<u8> {
    mix(u64::from(key.minute) << 32 | u64::from(key.sequence))
        .to_be_bytes()
        .to_vec()
}

/// The other way round.
pub(super) fn from_random(row: &[u8]) -> Result<MinuteKey, KeyError> {
    let row: [u8; 8] = row
        .try_into()
        .map_err(|_| not_of_design(row, "it does not have 8 bytes"))?;
    let number = unmix(u64::from_be_bytes(row));
    Ok(MinuteKey {
        minute: (number >> 32) as u32,
        sequence: number as u32,
    })
}

/// The odd factors of the mixer and their inverses modulo 2^64.
const FACTORS: [(u64, u64); 2] = [
    (0xbf58_476d_1ce4_e5b9, 0x96de_1b17_3f11_9089),
    (0x94d0_49bb_1331_11eb, 0x3196_42b2_d24d_8ec3),
];

/// A permutation of the numbers of 64 bits in which every bit of the input moves half of the output's:
/// SplitMix64's.
pub(crate) fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(FACTORS[0].0);
    let number = (number ^ (number >> 27)).wrapping_mul(FACTORS[1].0);
    number ^ (number >> 31)
}

/// The other way round.
fn unmix(number: u64) -> u64 {
    let number = (number ^ (number >> 31) ^ (number >> 62)).wrapping_mul(FACTORS[1].1);
    let number = (number ^ (number >> 27) ^ (number >> 54)).wrapping_mul(FACTORS[0].1);
    number ^ (number >> 30) ^ (number >> 60)
}
