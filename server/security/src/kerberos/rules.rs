//! `auth_to_local`: the user of a principal (Hadoop: `hadoop.security.auth_to_local`, `KerberosName`).
//!
//! ```text
//! DEFAULT                            a principal of the default realm: its first part
//! RULE:[n:format](regex)s/from/to/gL
//!      n       number of parts before the realm, 1 or 2
//!      format  $0 the realm, $1 and $2 the parts
//!      (regex) the formatted text must match whole; may be left out
//!      s/../.. first match of `from` becomes `to`, all with g; may be left out
//!      L       lower case
//! ```
//!
//! The first rule that matches decides. A principal without such a rule is no user, as is one whose result
//! is empty or has a `/` or `@`. The expressions take time in proportion to the principal's length.

use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::util::captures::Captures;

use crate::{Error, Reason, Refused};

/// Most rules. Each login tries them in order.
const RULES_MAX: usize = 64;
/// Longest rule.
const RULE_BYTES_MAX: usize = 1 << 10;
/// Memory of a compiled expression.
const EXPRESSION_BYTES_MAX: usize = 1 << 20;
/// Longest text that a rule makes.
const RESULT_BYTES_MAX: usize = 4 << 10;

/// A principal of one or two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Principal<'a> {
    /// User or service.
    pub first: &'a str,
    /// Host of a service, or role of a user.
    pub second: Option<&'a str>,
    /// Realm.
    pub realm: &'a str,
}

impl<'a> Principal<'a> {
    /// Parses `first@REALM` or `first/second@REALM`. `None` for others, and for names with characters
    /// that Kerberos has to escape: no rule could tell them apart.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (name, realm) = text.split_once('@')?;
        let (first, second) = match name.split_once('/') {
            None => (name, None),
            Some((first, second)) => (first, Some(second)),
        };
        let is_part = |part: &str| {
            let is_bad = |letter: char| matches!(letter, '/' | '@' | '\\') || letter.is_control();
            !part.is_empty() && !part.contains(is_bad)
        };
        let is_whole = is_part(first) && second.is_none_or(is_part) && is_part(realm);
        is_whole.then_some(Self { first, second, realm })
    }

    fn parts(&self) -> usize {
        1 + usize::from(self.second.is_some())
    }
}

/// The rules of a server.
#[derive(Clone, Debug)]
pub struct Rules {
    realm: String,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
enum Rule {
    Default,
    Formatted(Box<Formatted>),
}

#[derive(Clone, Debug)]
struct Formatted {
    parts: usize,
    format: Vec<Piece>,
    matches: Option<Regex>,
    replace: Option<Replace>,
    lower_case: bool,
}

/// A part of a format or of a replacement: text, or the group or part with this number.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Number(usize),
}

#[derive(Clone, Debug)]
struct Replace {
    from: Regex,
    to: Vec<Piece>,
    all: bool,
}

impl Rules {
    /// Parses rules. `realm` is the default realm.
    pub fn parse(realm: &str, rules: &[String]) -> Result<Self, Error> {
        if rules.is_empty() || rules.len() > RULES_MAX {
            return Err(Error::Invalid(format!(
                "kerberos.auth_to_local has {} rules, and must have 1 to {RULES_MAX}: DEFAULT alone takes the first part of \
                 principals of the own realm",
                rules.len()
            )));
        }
        let rules = rules.iter().map(|text| Rule::parse(text));
        Ok(Self {
            realm: realm.to_owned(),
            rules: rules.collect::<Result<_, _>>()?,
        })
    }

    /// The user of a principal.
    pub fn user_of(&self, principal: &str) -> Result<String, Refused> {
        let no_rule = Refused(Reason::NoRule);
        let parsed = Principal::parse(principal).ok_or(no_rule)?;
        let user = self
            .rules
            .iter()
            .find_map(|rule| rule.apply(&parsed, &self.realm));
        user.filter(|user| !user.is_empty() && !user.contains(['/', '@']))
            .ok_or(no_rule)
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| {
            let shown: String = text.chars().take(200).collect();
            Error::Invalid(format!(
                "kerberos.auth_to_local: {shown:?} {why}; a rule is DEFAULT or RULE:[N:FORMAT](REGEX)s/FROM/TO/gL, such as \
                 RULE:[2:$1@$0](hbase@EXAMPLE.ORG)s/.*/admin/"
            ))
        };
        if text.len() > RULE_BYTES_MAX {
            return Err(wrong(&format!("has more than {RULE_BYTES_MAX} bytes")));
        }
        if text.trim() == "DEFAULT" {
            return Ok(Self::Default);
        }
        let rest = text
            .trim()
            .strip_prefix("RULE:[")
            .ok_or_else(|| wrong("is no rule"))?;
        let (head, mut rest) = rest.split_once(']').ok_or_else(|| wrong("has no ]"))?;
        let (parts, format) = head
            .split_once(':')
            .ok_or_else(|| wrong("has no : in its brackets"))?;
        let parts: usize = match parts {
            "1" => 1,
            "2" => 2,
            _ => {
                return Err(wrong(
                    "needs 1 or 2 before the :, the number of parts before the realm",
                ));
            }
        };
        let format = pieces(format, false).map_err(|why| wrong(&why))?;
        let is_part = |piece: &Piece| !matches!(piece, Piece::Number(number) if *number > parts);
        if !format.iter().all(is_part) {
            return Err(wrong("names a part that such a principal does not have"));
        }
        let mut matches = None;
        if let Some(after) = rest.strip_prefix('(') {
            let (expression, after) = split_parenthesis(after).ok_or_else(|| wrong("has no )"))?;
            let expression = format!("^(?:{expression})$");
            matches = Some(regex(&expression).map_err(|why| wrong(&why))?);
            rest = after;
        }
        let mut replace = None;
        if let Some(after) = rest.strip_prefix("s/") {
            let mut fields = after.splitn(3, '/');
            let (Some(from), Some(to), Some(after)) = (fields.next(), fields.next(), fields.next()) else {
                return Err(wrong("needs three / after s"));
            };
            let from = regex(from).map_err(|why| wrong(&why))?;
            let to = pieces(to, true).map_err(|why| wrong(&why))?;
            let groups = from.group_info().group_len(regex_automata::PatternID::ZERO);
            if to
                .iter()
                .any(|piece| matches!(piece, Piece::Number(number) if *number >= groups))
            {
                return Err(wrong("names a group that its expression does not have"));
            }
            let all = after.starts_with('g');
            rest = after.strip_prefix('g').unwrap_or(after);
            replace = Some(Replace { from, to, all });
        }
        let lower_case = match rest.strip_prefix('/').unwrap_or(rest) {
            "" => false,
            "L" => true,
            _ => return Err(wrong("has more after its end")),
        };
        Ok(Self::Formatted(Box::new(Formatted {
            parts,
            format,
            matches,
            replace,
            lower_case,
        })))
    }

    /// The user, if the rule matches.
    fn apply(&self, principal: &Principal<'_>, realm: &str) -> Option<String> {
        match self {
            Self::Default => (principal.realm == realm).then(|| principal.first.to_owned()),
            Self::Formatted(rule) => rule.apply(principal),
        }
    }
}

impl Formatted {
    fn apply(&self, principal: &Principal<'_>) -> Option<String> {
        if principal.parts() != self.parts {
            return None;
        }
        let mut text = String::new();
        for piece in &self.format {
            text.push_str(match piece {
                Piece::Text(text) => text,
                Piece::Number(0) => principal.realm,
                Piece::Number(1) => principal.first,
                Piece::Number(_) => principal.second.unwrap_or_default(),
            });
        }
        if text.len() > RESULT_BYTES_MAX
            || self
                .matches
                .as_ref()
                .is_some_and(|matches| !matches.is_match(&text))
        {
            return None;
        }
        if let Some(replace) = &self.replace {
            text = replace.apply(&text)?;
        }
        if self.lower_case {
            text = text.to_lowercase();
        }
        Some(text)
    }
}

impl Replace {
    fn apply(&self, text: &str) -> Option<String> {
        let (mut out, mut end) = (String::new(), 0);
        let count = if self.all { usize::MAX } else { 1 };
        for found in self.from.captures_iter(text).take(count) {
            let span = found.get_match()?.span();
            out.push_str(&text[end..span.start]);
            self.put(text, &found, &mut out);
            end = span.end;
            if out.len() > RESULT_BYTES_MAX {
                return None;
            }
        }
        out.push_str(&text[end..]);
        Some(out)
    }

    fn put(&self, text: &str, found: &Captures, out: &mut String) {
        for piece in &self.to {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Number(number) => {
                    let group = found.get_group(*number);
                    out.push_str(group.map_or("", |span| &text[span.range()]));
                }
            }
        }
    }
}

fn regex(expression: &str) -> Result<Regex, String> {
    let limits = Config::new()
        .nfa_size_limit(Some(EXPRESSION_BYTES_MAX))
        .onepass_size_limit(Some(EXPRESSION_BYTES_MAX));
    let built = Regex::builder().configure(limits).build(expression);
    built.map_err(|error: BuildError| match error.syntax_error() {
        Some(syntax) => format!("has a wrong expression: {syntax}"),
        None => {
            format!("has an expression that is too large, the limit is {EXPRESSION_BYTES_MAX} bytes: {error}")
        }
    })
}

/// Splits behind the expression of a rule: Hadoop's ends at the first `)`; groups may be in ours.
fn split_parenthesis(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut is_escaped) = (0_usize, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '(' => depth += 1,
            ')' if depth == 0 => return Some((&text[..at], &text[at + 1..])),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The pieces of a format or a replacement. A `$` must have a number; `\` before a letter stands for that
/// letter in a replacement, as in Java's.
fn pieces(text: &str, has_escapes: bool) -> Result<Vec<Piece>, String> {
    let (mut found, mut plain) = (Vec::new(), String::new());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if has_escapes => plain.push(letters.next().ok_or("ends with \\")?),
            '$' => {
                let mut number: Option<usize> = None;
                while let Some(digit) = letters.peek().and_then(|letter| letter.to_digit(10)) {
                    letters.next();
                    number = Some(
                        number
                            .unwrap_or(0)
                            .saturating_mul(10)
                            .saturating_add(digit as usize),
                    );
                }
                let number = number.ok_or("has a $ without a number")?;
                if !plain.is_empty() {
                    found.push(Piece::Text(std::mem::take(&mut plain)));
                }
                found.push(Piece::Number(number));
            }
            letter => plain.push(letter),
        }
    }
    if !plain.is_empty() {
        found.push(Piece::Text(plain));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rules(texts: &[&str]) -> Rules {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        Rules::parse("EXAMPLE.ORG", &texts).unwrap()
    }

    fn user(texts: &[&str], principal: &str) -> Option<String> {
        rules(texts).user_of(principal).ok()
    }

    #[test]
    fn the_default_takes_the_first_part_in_the_own_realm() {
        for (principal, expected) in [
            ("ada@EXAMPLE.ORG", Some("ada")),
            ("ada/admin@EXAMPLE.ORG", Some("ada")),
            ("ada@OTHER.ORG", None),
            ("ada", None),
            ("a/b/c@EXAMPLE.ORG", None),
            ("@EXAMPLE.ORG", None),
            ("ada@", None),
            ("ada\\@x@EXAMPLE.ORG", None),
            ("ada@EXAMPLE.ORG@EXAMPLE.ORG", None),
        ] {
            assert_eq!(user(&["DEFAULT"], principal).as_deref(), expected, "{principal}");
        }
    }

    /// The forms of Hadoop's own documentation of `auth_to_local`, with other names.
    #[test]
    fn rules_format_match_and_replace() {
        for (rule, principal, expected) in [
            ("RULE:[1:$1]", "ada@OTHER.ORG", Some("ada")),
            ("RULE:[1:$1]", "ada/admin@OTHER.ORG", None),
            (
                "RULE:[2:$1;$2](^.*;admin$)s/;admin$//",
                "ada/admin@OTHER.ORG",
                Some("ada"),
            ),
            (
                "RULE:[2:$1;$2](^.*;admin$)s/;admin$//",
                "ada/host@OTHER.ORG",
                None,
            ),
            (
                "RULE:[1:$1@$0](.*@OTHER.ORG)s/@.*//",
                "ada@OTHER.ORG",
                Some("ada"),
            ),
            ("RULE:[1:$1@$0](.*@OTHER.ORG)s/@.*//", "ada@THIRD.ORG", None),
            ("RULE:[1:$1](A.*)/L", "Ada@OTHER.ORG", Some("ada")),
            ("RULE:[1:$1]/L", "ADA@OTHER.ORG", Some("ada")),
            ("RULE:[1:$1]s/a/o/", "anna@OTHER.ORG", Some("onna")),
            ("RULE:[1:$1]s/a/o/g", "anna@OTHER.ORG", Some("onno")),
            ("RULE:[1:$1]s/A/o/g/L", "ANNA@OTHER.ORG", Some("onno")),
            ("RULE:[1:$1]s/^(.)(.*)/$2$1/", "ada@OTHER.ORG", Some("daa")),
            ("RULE:[1:$1]s/d/\\$/", "ada@OTHER.ORG", Some("a$a")),
            (
                "RULE:[2:$1](rs|hm)s/.*/hbase/",
                "rs/db1@EXAMPLE.ORG",
                Some("hbase"),
            ),
            // A match is of the whole text.
            ("RULE:[1:$1](ad)", "ada@OTHER.ORG", None),
            ("RULE:[1:$1](a|b)", "ab@OTHER.ORG", None),
            // Results that are no names.
            ("RULE:[1:$1@$0]", "ada@OTHER.ORG", None),
            ("RULE:[1:$1]s/.*//", "ada@OTHER.ORG", None),
        ] {
            assert_eq!(
                user(&[rule], principal).as_deref(),
                expected,
                "{rule} {principal}"
            );
        }
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let texts = [
            "RULE:[1:$1](bob)s/.*/guest/",
            "RULE:[1:$1@$0](.*@OTHER.ORG)",
            "DEFAULT",
        ];
        assert_eq!(user(&texts, "bob@EXAMPLE.ORG").as_deref(), Some("guest"));
        assert_eq!(user(&texts, "ada@EXAMPLE.ORG").as_deref(), Some("ada"));
        // The second rule matches, and makes no name: the third is not tried.
        assert_eq!(user(&texts, "ada@OTHER.ORG"), None);
    }

    #[test]
    fn what_is_wrong_with_a_rule_is_named() {
        let long = format!("RULE:[1:$1]({})", "a".repeat(RULE_BYTES_MAX));
        for (wrong, words) in [
            ("default", "is no rule"),
            ("", "is no rule"),
            ("RULE:[1:$1", "has no ]"),
            ("RULE:[1]", "has no :"),
            ("RULE:[3:$1]", "1 or 2"),
            ("RULE:[1:$2]", "a part that"),
            ("RULE:[1:$]", "without a number"),
            ("RULE:[1:$1](a", "has no )"),
            ("RULE:[1:$1](*)", "repetition"),
            ("RULE:[1:$1]s/a/b", "three /"),
            ("RULE:[1:$1]s/a/$1/", "a group that"),
            ("RULE:[1:$1]s/a/b/gx", "more after its end"),
            ("RULE:[1:$1]((((a{99}){99}){99}){99})", "too large"),
            (&long, "more than 1024 bytes"),
        ] {
            let error = Rules::parse("R", &[wrong.to_owned()]).unwrap_err().to_string();
            assert!(
                error.contains("kerberos.auth_to_local") && error.contains(words),
                "{wrong}: {error}"
            );
        }
        assert!(Rules::parse("R", &[]).is_err());
        assert!(Rules::parse("R", &vec!["DEFAULT".to_owned(); RULES_MAX + 1]).is_err());
    }

    proptest! {
        #[test]
        fn any_principal_is_a_name_or_refused(principal in "[a-cA-C/@.\\\\]{0,24}") {
            let rules = rules(&["RULE:[2:$1$2](a.*)s/b/cc/g/L", "RULE:[1:$1]s/(.)c/$1/", "DEFAULT"]);
            if let Ok(user) = rules.user_of(&principal) {
                prop_assert!(!user.is_empty() && !user.contains(['/', '@']));
            }
        }

        #[test]
        fn any_text_is_a_rule_or_refused(text in "(RULE:\\[[12]:)?[$0-2a()s/gL\\\\\\]*+]{0,24}") {
            if let Ok(rules) = Rules::parse("R", &[text]) {
                let _ = rules.user_of("ab/c@R");
                let _ = rules.user_of("a@R");
            }
        }
    }
}
