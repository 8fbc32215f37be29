//! Host names of the HTTP port.

use std::sync::Arc;

use parking_lot::RwLock;

use super::ConfigError;

/// Most names. Each request is compared with all of them.
const NAMES_MAX: usize = 64;

/// Longest name (RFC 1035).
const NAME_BYTES_MAX: usize = 253;

/// Refuses names that no `Host` header can equal.
pub(super) fn check(allowed_hosts: &[String]) -> Result<(), ConfigError> {
    let refuse = |message: String| Err(ConfigError::new("http.allowed_hosts", message));
    if allowed_hosts.len() > NAMES_MAX {
        return refuse(format!(
            "has {} names, and may have {NAMES_MAX}",
            allowed_hosts.len()
        ));
    }
    for name in allowed_hosts {
        if !is_name(name) {
            return refuse(format!(
                "{name:?} is no host name: give names only, without scheme, port and path, as in [\"basalt\", \"db1.example.org\"]; \
                 a name in another script in its form that begins with xn--"
            ));
        }
    }
    Ok(())
}

/// Whether this is a host name: neither an address nor a pattern.
pub(super) fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_part) && !text.ends_with('.')
}

/// Whether a host name means this machine, whatever a resolver says.
pub(super) fn is_localhost(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// The names in `http.allowed_hosts`, in lower case. Clones share them. A reload of the settings
/// replaces them.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllowedHosts(Arc<RwLock<Vec<String>>>);

impl AllowedHosts {
    /// The names of the setting, validated.
    pub(crate) fn new(names: &[String]) -> Self {
        let hosts = Self::default();
        hosts.set(names);
        hosts
    }

    /// Replaces the names.
    pub(crate) fn set(&self, names: &[String]) {
        *self.0.write() = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    }

    /// Whether `name`, in lower case, is one of them.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.read().iter().any(|known| known == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_only() {
        let names = |names: &[&str]| check(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        names(&["basalt", "db-1.example.org", "xn--bcher-kva.example", "my_host"]).unwrap();
        for wrong in [
            "",
            "basalt:9095",
            "http://basalt",
            "basalt/",
            "*",
            "*.example.org",
            "b\u{fc}cher",
            "basalt.",
            "a b",
        ] {
            let text = names(&["good", wrong]).unwrap_err().to_string();
            assert!(
                text.starts_with("http.allowed_hosts: ") && text.contains(&format!("{wrong:?}")),
                "{text}"
            );
        }
        assert!(
            names(&["a"; 65])
                .unwrap_err()
                .to_string()
                .contains("65 names, and may have 64")
        );
        assert!(names(&[&"a".repeat(254)]).is_err());
    }
}
