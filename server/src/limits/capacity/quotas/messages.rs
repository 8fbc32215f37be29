//! The values of `hbase:quota`: messages of HBase's `Quota.proto`. Field numbers are the wire's:
//! never change them.

use std::num::NonZeroU64;

use prost::Message;

use super::{Setting, Settings};
use crate::limits::capacity::throttle::{Limit, ThrottleType, TimeUnit};

/// HBase's prefix of stored messages.
const MAGIC: &[u8] = b"PBUF";

/// `QuotaScope`
const SCOPE_CLUSTER: i32 = 1;
const SCOPE_MACHINE: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct TimedQuotaMessage {
    #[prost(int32, optional, tag = "1")]
    time_unit: Option<i32>,
    #[prost(uint64, optional, tag = "2")]
    soft_limit: Option<u64>,
    #[prost(int32, optional, tag = "4")]
    scope: Option<i32>,
}

/// One field for each type, numbered as the types are.
#[derive(Clone, PartialEq, Message)]
struct ThrottleMessage {
    #[prost(message, optional, tag = "1")]
    req_num: Option<TimedQuotaMessage>,
    #[prost(message, optional, tag = "2")]
    req_size: Option<TimedQuotaMessage>,
    #[prost(message, optional, tag = "3")]
    write_num: Option<TimedQuotaMessage>,
    #[prost(message, optional, tag = "4")]
    write_size: Option<TimedQuotaMessage>,
    #[prost(message, optional, tag = "5")]
    read_num: Option<TimedQuotaMessage>,
    #[prost(message, optional, tag = "6")]
    read_size: Option<TimedQuotaMessage>,
}

impl ThrottleMessage {
    fn field(&mut self, kind: ThrottleType) -> &mut Option<TimedQuotaMessage> {
        match kind {
            ThrottleType::RequestNumber => &mut self.req_num,
            ThrottleType::RequestSize => &mut self.req_size,
            ThrottleType::WriteNumber => &mut self.write_num,
            ThrottleType::WriteSize => &mut self.write_size,
            ThrottleType::ReadNumber => &mut self.read_num,
            ThrottleType::ReadSize => &mut self.read_size,
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct QuotasMessage {
    #[prost(bool, optional, tag = "1")]
    bypass_globals: Option<bool>,
    #[prost(message, optional, tag = "2")]
    throttle: Option<ThrottleMessage>,
}

/// The value of a cell.
pub(super) fn encode(settings: &Settings) -> Vec<u8> {
    let mut throttle = ThrottleMessage::default();
    for (kind, setting) in settings {
        *throttle.field(*kind) = Some(TimedQuotaMessage {
            time_unit: Some(setting.limit.unit as i32),
            soft_limit: Some(setting.limit.amount.get()),
            scope: Some(if setting.is_cluster {
                SCOPE_CLUSTER
            } else {
                SCOPE_MACHINE
            }),
        });
    }
    let message = QuotasMessage {
        bypass_globals: None,
        throttle: Some(throttle),
    };
    [MAGIC, &message.encode_to_vec()].concat()
}

/// Decodes the settings in the value of a cell; the error describes a malformed value.
pub(super) fn decode(value: &[u8]) -> Result<Settings, String> {
    let message = value.strip_prefix(MAGIC).ok_or("it does not begin with PBUF")?;
    let message = QuotasMessage::decode(message).map_err(|error| error.to_string())?;
    let mut throttle = message.throttle.unwrap_or_default();
    let mut settings = Settings::new();
    for kind in ThrottleType::ALL {
        let Some(quota) = throttle.field(kind).take() else {
            continue;
        };
        let name = kind.as_str();
        let unit = TimeUnit::ALL
            .into_iter()
            .find(|unit| Some(*unit as i32) == quota.time_unit)
            .ok_or_else(|| format!("{name} has the time unit {:?}", quota.time_unit))?;
        let amount =
            NonZeroU64::new(quota.soft_limit.unwrap_or(0)).ok_or_else(|| format!("{name} has no limit"))?;
        let setting = Setting {
            limit: Limit { amount, unit },
            is_cluster: quota.scope == Some(SCOPE_CLUSTER),
        };
        settings.insert(kind, setting);
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes as Quota.proto has them: message 2 (throttle), in it message 3 (write_num), in it
    /// unit, limit, scope.
    #[test]
    fn values_are_hbases() {
        let limit = Limit {
            amount: NonZeroU64::new(300).unwrap(),
            unit: TimeUnit::Minutes,
        };
        let setting = Setting {
            limit,
            is_cluster: false,
        };
        let settings = Settings::from([(ThrottleType::WriteNumber, setting)]);
        let value = b"PBUF\x12\x09\x1a\x07\x08\x05\x10\xac\x02\x20\x02";
        assert_eq!(encode(&settings), value);
        assert_eq!(decode(value).unwrap(), settings);
    }

    #[test]
    fn impossible_quotas_are_named() {
        for (value, text) in [
            (&b"\x12\x00"[..], "PBUF"),
            (b"PBUF\xff", "varint"),
            (b"PBUF\x12\x04\x0a\x02\x10\x05", "time unit None"),
            (b"PBUF\x12\x06\x0a\x04\x08\x01\x10\x05", "time unit Some(1)"),
            (b"PBUF\x12\x04\x0a\x02\x08\x04", "REQUEST_NUMBER has no limit"),
        ] {
            let error = decode(value).unwrap_err();
            assert!(error.contains(text), "{value:?}: {error}");
        }
        assert!(decode(b"PBUF").unwrap().is_empty());
    }
}
