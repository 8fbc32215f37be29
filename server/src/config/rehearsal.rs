//! Checks the settings of a rehearsal.

use super::{ConfigError, Rehearsal};

/// Refuses limits without virtual servers.
pub(super) fn check(rehearsal: &Rehearsal) -> Result<(), ConfigError> {
    let limits = [
        ("rehearsal.requests_per_second", rehearsal.requests_per_second),
        (
            "rehearsal.read_requests_per_second",
            rehearsal.read_requests_per_second,
        ),
        (
            "rehearsal.write_requests_per_second",
            rehearsal.write_requests_per_second,
        ),
        ("rehearsal.bytes_per_second", rehearsal.bytes_per_second),
        ("rehearsal.read_bytes_per_second", rehearsal.read_bytes_per_second),
        (
            "rehearsal.write_bytes_per_second",
            rehearsal.write_bytes_per_second,
        ),
    ];
    for (key, limit) in limits {
        if limit > 0 && rehearsal.servers == 0 {
            let message = "is a limit of each virtual server; set rehearsal.servers, too";
            return Err(ConfigError::value(key, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a limit without virtual servers is a mistake, not a rehearsal.
    #[test]
    fn a_rehearsal_needs_servers() {
        let of = |servers, bytes_per_second| {
            check(&Rehearsal {
                servers,
                bytes_per_second,
                ..Rehearsal::default()
            })
        };
        let refused = |servers, bytes| of(servers, bytes).unwrap_err().to_string();
        let text = refused(0, 5);
        assert!(
            text.starts_with("rehearsal.bytes_per_second: ") && text.contains("set rehearsal.servers"),
            "{text}"
        );
        of(64, 5).unwrap();
        of(0, 0).unwrap();
    }
}
