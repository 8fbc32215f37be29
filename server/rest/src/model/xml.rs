//! XML of clients as a list of events, and XML of answers as a text that grows.

use std::fmt::{Display, Write as _};

use quick_xml::XmlVersion;
use quick_xml::escape::escape;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use crate::{Malformed, Result};

/// The first line of all documents.
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>";

/// Most elements inside each other; the deepest document has six.
const DEPTH_MAX: usize = 32;

/// A part of a document.
#[derive(Debug)]
pub(crate) enum Part<'b> {
    /// The beginning of an element, with its depth: the root's is 1.
    Begin(Element<'b>, usize),
    /// The end of an element: its name, its depth and the text in it, outside of its elements.
    End(String, usize, String),
}

/// The beginning of an element.
#[derive(Debug)]
pub(crate) struct Element<'b>(BytesStart<'b>);

impl Element<'_> {
    /// The name of the element.
    pub(crate) fn name(&self) -> &str {
        self.0.name().0
    }

    /// All attributes, in order.
    pub(crate) fn attributes(&self) -> Result<Vec<(String, String)>> {
        let attributes = self.0.attributes().map(|attribute| {
            let attribute = attribute.map_err(malformed)?;
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(malformed)?;
            Ok((attribute.key.0.to_owned(), value.into_owned()))
        });
        attributes.collect()
    }

    /// An attribute, if it is there.
    pub(crate) fn attribute(&self, name: &str) -> Result<Option<String>> {
        let all = self.attributes()?;
        Ok(all
            .into_iter()
            .find(|(own, _)| own == name)
            .map(|(_, value)| value))
    }
}

fn malformed(error: impl Display) -> Malformed {
    Malformed::unread("the body is not XML of this kind", &error)
}

/// Calls `visit` with each part of a document whose root is `root`.
pub(crate) fn read(body: &[u8], root: &str, mut visit: impl FnMut(Part<'_>) -> Result<()>) -> Result<()> {
    let text = std::str::from_utf8(body).map_err(|_| malformed("it is not UTF-8"))?;
    let mut reader = Reader::from_str(text);
    let mut open: Vec<(String, String)> = Vec::new();
    let mut has_root = false;
    loop {
        let event = reader.read_event().map_err(malformed)?;
        match event {
            Event::Start(start) | Event::Empty(start)
                if open.is_empty() && (has_root || start.name().0 != root) =>
            {
                return Err(Malformed(format!(
                    "the root of the XML body must be {root}, without a namespace"
                )));
            }
            Event::Start(start) => {
                has_root = true;
                check(&start)?;
                if open.len() >= DEPTH_MAX {
                    return Err(malformed(format!("elements are nested deeper than {DEPTH_MAX}")));
                }
                open.push((start.name().0.to_owned(), String::new()));
                visit(Part::Begin(Element(start), open.len()))?;
            }
            Event::Empty(start) => {
                has_root = true;
                check(&start)?;
                let (name, depth) = (start.name().0.to_owned(), open.len() + 1);
                visit(Part::Begin(Element(start), depth))?;
                visit(Part::End(name, depth, String::new()))?;
            }
            Event::End(_) => {
                let depth = open.len();
                let (name, text) = open
                    .pop()
                    .ok_or_else(|| malformed("an element ends that did not begin"))?;
                visit(Part::End(name, depth, text))?;
            }
            Event::Text(part) => add(&mut open, &part.xml10_content())?,
            Event::CData(part) => add(&mut open, &part.xml10_content())?,
            Event::GeneralRef(reference) => {
                let whole = format!("&{};", reference.into_inner());
                let text = quick_xml::escape::unescape(&whole).map_err(malformed)?;
                add(&mut open, &text)?;
            }
            Event::DocType(_) => return Err(malformed("a DTD is not accepted")),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof if has_root && open.is_empty() => return Ok(()),
            Event::Eof => return Err(malformed("it ends before its root does")),
        }
    }
}

/// Refuses namespaces: HBase's library finds no element in one.
fn check(start: &BytesStart<'_>) -> Result<()> {
    let name = start.name().0;
    if name.contains(':') || start.attributes_raw().contains("xmlns") {
        return Err(malformed(format!(
            "the element {name} is in a namespace, and none is known"
        )));
    }
    Ok(())
}

/// Adds text to the innermost element.
fn add(open: &mut [(String, String)], text: &str) -> Result<()> {
    match open.last_mut() {
        Some((_, own)) => own.push_str(text),
        None if text.trim().is_empty() => {}
        None => return Err(malformed("there is text outside of the root")),
    }
    Ok(())
}

/// A document of an answer.
#[derive(Debug)]
pub(crate) struct Document(String);

impl Document {
    pub(crate) fn new() -> Self {
        Self(HEAD.to_owned())
    }

    /// Begins an element with these attributes.
    pub(crate) fn begin(&mut self, name: &str, attributes: &[(&str, &dyn Display)]) {
        self.tag(name, attributes, ">");
    }

    /// An element without content.
    pub(crate) fn empty(&mut self, name: &str, attributes: &[(&str, &dyn Display)]) {
        self.tag(name, attributes, "/>");
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, &dyn Display)], end: &str) {
        self.0.push('<');
        self.0.push_str(name);
        for (name, value) in attributes {
            let value = value.to_string();
            // Writing to a string cannot fail.
            let _ = write!(self.0, " {name}=\"{}\"", escape(&value[..]));
        }
        self.0.push_str(end);
    }

    pub(crate) fn end(&mut self, name: &str) {
        let _ = write!(self.0, "</{name}>");
    }

    /// An element with a text.
    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.begin(name, &[]);
        self.0.push_str(&escape(text));
        self.end(name);
    }

    /// The whole text.
    pub(crate) fn finish(self) -> String {
        self.0
    }
}

/// The head of a document that is written by hand.
pub(crate) fn head() -> &'static str {
    HEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(body: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        read(body.as_bytes(), "a", |part| {
            found.push(match part {
                Part::Begin(element, depth) => {
                    format!("{depth}{}{:?}", element.name(), element.attributes()?)
                }
                Part::End(name, depth, text) => format!("{depth}/{name}={text}"),
            });
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn documents_are_read_in_parts() {
        let found = parts(
            "<?xml version=\"1.0\"?>\n<!-- x --><a><b k=\"1&amp;2\" l='3'/> t&lt;&#65;<![CDATA[<]]></a>\n",
        )
        .unwrap();
        assert_eq!(
            found,
            [
                "1a[]",
                "2b[(\"k\", \"1&2\"), (\"l\", \"3\")]",
                "2/b=",
                "1/a= t<A<"
            ]
        );
    }

    #[test]
    fn other_documents_are_refused() {
        for wrong in [
            "",
            "text",
            "<b/>",
            "<a>",
            "<a></b>",
            "<a/><a/>",
            "</a>",
            "<a x=1/>",
            "<a xmlns='http://x'/>",
            "<a><n:b/></a>",
            "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
            "<a>&unknown;</a>",
            "\u{fffd}",
        ] {
            let error = parts(wrong).unwrap_err();
            assert!(
                !error.0.contains('\n') && error.0.contains("XML"),
                "{wrong}: {error}"
            );
        }
        assert!(parts(&format!("<a>{}", "<b>".repeat(100))).is_err());
    }

    #[test]
    fn texts_and_attributes_are_escaped() {
        let mut document = Document::new();
        document.begin("a", &[("k", &"<\"&"), ("n", &7)]);
        document.text("b", "<&>");
        document.empty("c", &[]);
        document.end("a");
        assert_eq!(
            document.finish(),
            format!("{HEAD}<a k=\"&lt;&quot;&amp;\" n=\"7\"><b>&lt;&amp;&gt;</b><c/></a>")
        );
    }
}
