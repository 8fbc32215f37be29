//! Commands on namespaces.

use super::arguments::{Arguments, text};
use super::session::{Outcome, Session};
use super::{ShellError, ShellResult};
use basalt_client::Namespace;

impl Session {
    pub(super) async fn list_namespaces(&mut self, mut arguments: Arguments) -> Outcome {
        let pattern = arguments
            .optional_bytes("a pattern")?
            .unwrap_or_else(|| b".*".to_vec());
        let pattern = text(pattern, "a pattern")?;
        arguments.end()?;
        check_pattern(&pattern)?;
        let mut names = self.client.list_namespaces().await?;
        names.retain(|name| matches(&pattern, name));
        self.print_names("NAMESPACE", &names)
    }

    pub(super) async fn create_namespace(&mut self, mut arguments: Arguments) -> Outcome {
        let name = arguments.text("a namespace")?;
        let options = arguments.options()?;
        arguments.end()?;
        let mut configuration = std::collections::BTreeMap::new();
        for (key, value) in options.rest() {
            let value = text(super::arguments::bytes(value, &key)?, &key)?;
            configuration.insert(key, value);
        }
        self.client
            .create_namespace(Namespace { name, configuration })
            .await?;
        Ok(None)
    }

    pub(super) async fn alter_namespace(&mut self, mut arguments: Arguments) -> Outcome {
        let name = arguments.text("a namespace")?;
        let mut options = arguments.options()?;
        arguments.end()?;
        let method = options.text("METHOD")?;
        let mut namespace = self.client.describe_namespace(&name).await?;
        match method.as_deref() {
            Some("set") => {
                for (key, value) in options.rest() {
                    let value = text(super::arguments::bytes(value, &key)?, &key)?;
                    namespace.configuration.insert(key, value);
                }
            }
            Some("unset") => {
                let Some(key) = options.text("NAME")? else {
                    let text = "METHOD => 'unset' needs the setting: NAME => 'KEY'";
                    return Err(ShellError::Arguments(text.to_owned()));
                };
                options.end(&["METHOD", "NAME"])?;
                namespace.configuration.remove(&key);
            }
            _ => {
                let text =
                    "alter_namespace needs METHOD => 'set' or METHOD => 'unset'; see help 'alter_namespace'";
                return Err(ShellError::Arguments(text.to_owned()));
            }
        }
        self.client.alter_namespace(namespace).await?;
        Ok(None)
    }

    pub(super) async fn drop_namespace(&mut self, mut arguments: Arguments) -> Outcome {
        let name = arguments.text("a namespace")?;
        arguments.end()?;
        self.client.drop_namespace(&name).await?;
        Ok(None)
    }

    pub(super) async fn describe_namespace(&mut self, mut arguments: Arguments) -> Outcome {
        let name = arguments.text("a namespace")?;
        arguments.end()?;
        let namespace = self.client.describe_namespace(&name).await?;
        let settings = namespace
            .configuration
            .iter()
            .map(|(key, value)| format!(", {key} => '{value}'"));
        self.output.note("DESCRIPTION")?;
        let text = format!("{{NAME => '{}'{}}}", namespace.name, settings.collect::<String>());
        self.output.line(&text)?;
        Ok(None)
    }

    pub(super) async fn list_namespace_tables(&mut self, mut arguments: Arguments) -> Outcome {
        let name = arguments.text("a namespace")?;
        arguments.end()?;
        let tables = self.client.list_tables_of_namespace(&name).await?;
        let names: Vec<&str> = tables.iter().map(basalt_client::TableName::qualifier).collect();
        self.print_names("TABLE", &names)
    }
}

/// The interface lists namespaces without a pattern, so it is matched here: `.*` stands for anything, all
/// else for itself.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once(".*") {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|behind| {
            let mut ends = (0..=behind.len()).filter_map(|at| behind.get(at..));
            ends.any(|end| matches(rest, end))
        }),
    }
}

fn check_pattern(pattern: &str) -> ShellResult<()> {
    let plain = pattern.replace(".*", "");
    if plain.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Ok(());
    }
    let text = format!("pattern '{pattern}' has more in it than letters, digits, '_' and '.*'");
    Err(ShellError::Arguments(text))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            (".*", "", true),
            ("a.*", "ab", true),
            (".*b", "ab", true),
            ("a.*c.*", "abcd", true),
            ("a", "ab", false),
            ("b.*", "ab", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
