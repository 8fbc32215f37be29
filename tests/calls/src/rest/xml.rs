//! XML as a tree, in the small part of it that the interface has.

use std::fmt::Write as _;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

/// The first line of documents that are sent.
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>";

/// An element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) attributes: Vec<(String, String)>,
    /// Text outside of its elements.
    pub(super) text: String,
    pub(super) elements: Vec<Element>,
}

impl Element {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// An element with a text.
    pub(super) fn of_text(name: &str, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::new(name)
        }
    }

    /// Sets an attribute that is there.
    pub(super) fn set(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.attributes.push((name.to_owned(), value.to_string()));
        }
    }

    /// An attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The elements of a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.elements.iter().filter(move |element| element.name == name)
    }

    /// A document with this root.
    pub(super) fn document(&self) -> Vec<u8> {
        let mut text = HEAD.to_owned();
        self.write(&mut text);
        text.into_bytes()
    }

    fn write(&self, to: &mut String) {
        // Writing to a string cannot fail.
        let _ = write!(to, "<{}", self.name);
        for (name, value) in &self.attributes {
            let _ = write!(to, " {name}=\"{}\"", quick_xml::escape::escape(value.as_str()));
        }
        let _ = write!(to, ">{}", quick_xml::escape::escape(self.text.as_str()));
        for element in &self.elements {
            element.write(to);
        }
        let _ = write!(to, "</{}>", self.name);
    }

    /// The root of a document.
    pub(super) fn parse(document: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(document).map_err(|error| error.to_string())?;
        let mut reader = Reader::from_str(text);
        let mut open = vec![Element::default()];
        loop {
            match reader.read_event().map_err(|error| error.to_string())? {
                Event::Start(start) => open.push(begun(&start)?),
                Event::Empty(start) => last(&mut open)?.elements.push(begun(&start)?),
                Event::End(_) => {
                    let ended = open.pop().ok_or("an end without a beginning")?;
                    last(&mut open)?.elements.push(ended);
                }
                Event::Text(part) => last(&mut open)?.text.push_str(&part.xml10_content()),
                Event::CData(part) => last(&mut open)?.text.push_str(&part.xml10_content()),
                Event::GeneralRef(reference) => {
                    let whole = format!("&{};", reference.into_inner());
                    let text = quick_xml::escape::unescape(&whole).map_err(|error| error.to_string())?;
                    last(&mut open)?.text.push_str(&text);
                }
                Event::Eof => break,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
            }
        }
        let root = open
            .pop()
            .filter(|_| open.is_empty())
            .and_then(|all| all.elements.into_iter().next());
        root.ok_or_else(|| "a document without a root".to_owned())
    }
}

fn last(open: &mut [Element]) -> Result<&mut Element, String> {
    open.last_mut()
        .ok_or_else(|| "an end without a beginning".to_owned())
}

fn begun(start: &BytesStart<'_>) -> Result<Element, String> {
    let mut element = Element::new(start.name().0);
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value = value.map_err(|error| error.to_string())?;
        element
            .attributes
            .push((attribute.key.0.to_owned(), value.into_owned()));
    }
    Ok(element)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_written_and_read_back() {
        let mut root = Element::new("Scanner");
        root.set("batch", Some(3));
        root.set("endRow", None::<String>);
        root.elements.push(Element::of_text("filter", "{\"a\":\"<&>\"}"));
        root.elements.push(Element::new("column"));
        assert_eq!(Element::parse(&root.document()), Ok(root.clone()));
        assert_eq!(root.attribute("batch"), Some("3"));
        assert_eq!(root.all("column").count(), 1);
        assert!(Element::parse(b"<a><b></a>").is_err());
        assert!(Element::parse(b"").is_err());
    }
}
