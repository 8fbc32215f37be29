//! A flame graph: one box for each function in each place it was called from, as wide as the
//! samples in it and in its callees. Callers are above. A box shows its name and its share when one
//! points at it.
//!
//! It is drawn here because the crate that draws flame graphs has a licence (CDDL) that is
//! incompatible with ours.
//!
//! Boxes that would be too narrow to be seen are left out, so that the size of a picture depends on
//! its width and depth only, not on the samples.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};

use super::Stack;

const WIDTH: f64 = 1_400.0;
const ROW: f64 = 18.0;
/// Height of the heading.
const TOP: f64 = 50.0;
/// Narrower boxes are left out.
const WIDTH_MIN: f64 = 0.5;
/// Width of a letter.
const LETTER: f64 = 6.6;

/// A function below those that called it.
#[derive(Debug, Default)]
struct Node<'s> {
    samples: u64,
    called: BTreeMap<&'s str, Node<'s>>,
}

impl<'s> Node<'s> {
    /// All stacks in one tree; the threads' names are the first level.
    fn of(stacks: &'s [Stack]) -> Self {
        let mut root = Node::default();
        for stack in stacks {
            let mut node = &mut root;
            node.samples += stack.samples;
            let functions = stack.calls.iter().map(|(function, _)| function.name.as_str());
            for name in std::iter::once(stack.thread.as_str()).chain(functions) {
                node = node.called.entry(name).or_default();
                node.samples += stack.samples;
            }
        }
        root
    }
}

/// A box.
#[derive(Debug)]
struct Placed<'s> {
    name: &'s str,
    samples: u64,
    x: f64,
    width: f64,
    depth: usize,
}

/// The boxes, from left to right and from callers to callees, in the order of names.
fn place<'s>(root: &Node<'s>) -> Vec<Placed<'s>> {
    let scale = WIDTH / root.samples.max(1) as f64;
    let mut placed = Vec::new();
    let mut open = vec![("all threads", root, 0.0, 0)];
    while let Some((name, node, x, depth)) = open.pop() {
        let width = node.samples as f64 * scale;
        if width < WIDTH_MIN {
            continue;
        }
        placed.push(Placed {
            name,
            samples: node.samples,
            x,
            width,
            depth,
        });
        let mut left = x;
        for (&name, called) in &node.called {
            open.push((name, called, left, depth + 1));
            left += called.samples as f64 * scale;
        }
    }
    placed
}

/// The picture.
pub(super) fn svg(stacks: &[Stack], heading: &str) -> String {
    let root = Node::of(stacks);
    let boxes = place(&root);
    let deepest = boxes.iter().map(|each| each.depth).max().unwrap_or(0);
    let height = TOP + ROW * (deepest + 1) as f64;
    let view = format!("0 0 {WIDTH} {height}");
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(WIDTH) height=(height) viewBox=(view) font-family="monospace" font-size="11" {
            style { (PreEscaped("rect:hover { stroke: black; stroke-width: 1 }")) }
            rect width="100%" height="100%" fill="white" {}
            text x="6" y="20" font-size="15" { (heading) }
            text x="6" y="38" { (root.samples) " samples. Callers are above what they call. Time in the C library and in the system is left out." }
            @for each in &boxes { (drawn(each, root.samples)) }
        }
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n{}\n",
        picture.into_string()
    )
}

fn drawn(each: &Placed<'_>, all: u64) -> Markup {
    let share = each.samples as f64 * 100.0 / all.max(1) as f64;
    let y = TOP + ROW * each.depth as f64;
    let letters = (each.width / LETTER) as usize;
    let label: String = match each.name.chars().count() {
        short if short < letters => each.name.to_owned(),
        _ if letters > 4 => each.name.chars().take(letters - 2).chain("..".chars()).collect(),
        _ => String::new(),
    };
    html! {
        g {
            title { (each.name) ": " (each.samples) " samples, " (format!("{share:.2} %")) }
            rect x=(format!("{:.1}", each.x)) y=(y) width=(format!("{:.1}", each.width)) height=(ROW - 1.0) fill=(colour(each.name)) {}
            @if !label.is_empty() { text x=(format!("{:.1}", each.x + 3.0)) y=(y + 13.0) pointer-events="none" { (label) } }
        }
    }
}

/// Ours stand out: the engine in orange, the server in yellow; all others are grey.
fn colour(name: &str) -> &'static str {
    let ours = |crate_name: &str| {
        name.trim_start_matches('<')
            .strip_prefix(crate_name)
            .is_some_and(|rest| rest.starts_with("::"))
    };
    if ours("basalt_engine") {
        "#f4a261"
    } else if ours("basalt") || ours("basalt_idl") || ours("basalt_server") {
        "#ffd166"
    } else {
        "#d5dbe1"
    }
}

#[cfg(test)]
mod tests {
    use super::super::Function;
    use super::*;

    fn stack(thread: &str, names: &[&str], samples: u64) -> Stack {
        let call = |name: &&str| {
            let function = Function {
                name: (*name).to_owned(),
                file: "f.rs".to_owned(),
            };
            (function, 1)
        };
        Stack {
            thread: thread.to_owned(),
            calls: names.iter().map(call).collect(),
            samples,
        }
    }

    /// A function is as wide as its own samples and those of its callees, beside the other callees
    /// of its caller.
    #[test]
    fn boxes_add_up() {
        let stacks = [
            stack("a", &["main", "get"], 6),
            stack("a", &["main", "put"], 3),
            stack("b", &["main"], 1),
        ];
        let root = Node::of(&stacks);
        let boxes = place(&root);
        let find = |name: &str, depth: usize| {
            let found = boxes
                .iter()
                .filter(|each| each.name == name && each.depth == depth);
            found
                .map(|each| (each.samples, each.x.round() as u64, each.width.round() as u64))
                .collect::<Vec<_>>()
        };
        assert_eq!(find("all threads", 0), [(10, 0, 1_400)]);
        assert_eq!(find("a", 1), [(9, 0, 1_260)]);
        assert_eq!(find("b", 1), [(1, 1_260, 140)]);
        assert_eq!(find("put", 3), [(3, 840, 420)]);
        assert_eq!(find("main", 2).len(), 2);
    }

    #[test]
    fn names_are_text_and_slivers_are_left_out() {
        let stacks = [
            stack("t", &["<a as b<\"c\">>::d"], 10_000),
            stack("t", &["sliver"], 1),
        ];
        let picture = svg(&stacks, "h & <script>");
        assert!(
            picture.contains("&lt;a as b&lt;&quot;c&quot;&gt;&gt;::d"),
            "{picture}"
        );
        assert!(picture.contains("h &amp; &lt;script&gt;") && !picture.contains("sliver"));
    }
}
