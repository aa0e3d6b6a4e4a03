//! The tags of a report one after the other, and the text between them.
//!
//! quick-xml reads the tags, comments and declarations. Texts are read here, because they may be far
//! larger than what is kept of them. Nothing is ever fetched, and no entity is expanded but those
//! that XML itself defines.

use std::io::{self, BufRead};

use quick_xml::Reader;
use quick_xml::errors::SyntaxError;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::JunitError;
use super::excerpt::Excerpt;
use super::source::{LOOK_AHEAD, MARKUP_LIMIT, Source};

/// How deep elements may be nested. Reports need a dozen levels at most.
pub(super) const DEPTH_LIMIT: usize = 256;

const CDATA: &[u8] = b"<![CDATA[";
const CDATA_END: &[u8] = b"]]>";

/// What comes next in a report.
pub(super) enum Piece {
    /// The start of an element.
    Open(Element),
    /// The end of the element that was opened last.
    Close,
    /// The end of the report, outside of all elements.
    End,
}

/// The start of an element.
pub(super) struct Element {
    /// Its name without a namespace.
    pub(super) name: String,
    attributes: Vec<(String, String)>,
}

impl Element {
    /// The value of an attribute, which is then no longer there.
    pub(super) fn take(&mut self, key: &str) -> Option<String> {
        let at = self.attributes.iter().position(|(one, _)| one == key)?;
        Some(self.attributes.swap_remove(at).1)
    }
}

/// A report as a sequence of pieces.
pub(super) struct Markup<R> {
    reader: Reader<Source<R>>,
    buffer: Vec<u8>,
    /// The names of the elements around the next piece.
    open: Vec<String>,
    /// Whether the element that was opened last has closed itself.
    is_closing: bool,
}

impl<R: BufRead> Markup<R> {
    /// Looks at the start of `reader` to learn its encoding.
    pub(super) fn new(reader: R) -> Result<Self, JunitError> {
        Ok(Self {
            reader: Reader::from_reader(Source::new(reader)?),
            buffer: Vec::new(),
            open: Vec::new(),
            is_closing: false,
        })
    }

    /// The line of the next piece, or of the text before it.
    pub(super) fn line(&self) -> u64 {
        self.reader.get_ref().line()
    }

    /// The next piece; the text before it goes to the end of `text`.
    pub(super) fn next(&mut self, text: &mut Excerpt) -> Result<Piece, JunitError> {
        if self.is_closing {
            self.is_closing = false;
            self.open.pop();
            return Ok(Piece::Close);
        }
        loop {
            self.read_text(text)?;
            let line = self.line();
            self.reader.get_mut().begin_markup();
            self.buffer.clear();
            let event = match self.reader.read_event_into(&mut self.buffer) {
                Ok(event) => event,
                Err(error) => return Err(self.explain(line, error)),
            };
            let (element, is_empty) = match event {
                Event::Start(tag) => (to_element(&tag, line)?, false),
                Event::Empty(tag) => (to_element(&tag, line)?, true),
                Event::End(_) => {
                    self.open.pop();
                    return Ok(Piece::Close);
                }
                Event::Eof => return self.end(line),
                // The texts among these were read above.
                Event::Text(_)
                | Event::CData(_)
                | Event::GeneralRef(_)
                | Event::Comment(_)
                | Event::Decl(_)
                | Event::PI(_)
                | Event::DocType(_) => continue,
            };
            if self.open.len() == DEPTH_LIMIT {
                let limit = DEPTH_LIMIT;
                return Err(JunitError::TooDeep { line, limit });
            }
            self.open.push(element.name.clone());
            self.is_closing = is_empty;
            return Ok(Piece::Open(element));
        }
    }

    /// Reads on to the end of the element that was opened last.
    pub(super) fn skip(&mut self) -> Result<(), JunitError> {
        let depth = self.open.len();
        while self.open.len() >= depth {
            self.next(&mut Excerpt::default())?;
        }
        Ok(())
    }

    /// The text of the element that was opened last, to its end and without that of elements in it.
    ///
    /// A text of nothing but white space is none: it indents the elements.
    pub(super) fn text(&mut self) -> Result<String, JunitError> {
        let mut text = Excerpt::default();
        while let Piece::Open(_) = self.next(&mut text)? {
            self.skip()?;
        }
        Ok(text.into_text())
    }

    fn end(&self, line: u64) -> Result<Piece, JunitError> {
        match self.open.last() {
            None => Ok(Piece::End),
            Some(open) => Err(JunitError::Truncated {
                line,
                open: open.clone(),
            }),
        }
    }

    /// Reads up to the next tag, comment or declaration.
    fn read_text(&mut self, text: &mut Excerpt) -> Result<(), JunitError> {
        let read = |source| JunitError::Read { source };
        loop {
            let line = self.line();
            let source = self.reader.get_mut();
            let ahead = source.peek().map_err(read)?;
            if ahead.starts_with(CDATA) {
                source.skip(CDATA.len());
                if !read_cdata(source, text).map_err(read)? {
                    return self.end(line).map(|_| ());
                }
                continue;
            }
            let count = match ahead.first() {
                None | Some(b'<') => return Ok(()),
                Some(b'&') => push_reference(&String::from_utf8_lossy(first(ahead)), text),
                Some(_) => {
                    let is_special = |byte: &u8| matches!(byte, b'<' | b'&');
                    let count = ahead.iter().position(is_special);
                    let count = count.unwrap_or(ahead.len());
                    text.push(&String::from_utf8_lossy(&ahead[..count]));
                    count
                }
            };
            source.skip(count);
        }
    }

    fn explain(&self, line: u64, error: quick_xml::Error) -> JunitError {
        if self.reader.get_ref().is_over_limit() {
            let limit = MARKUP_LIMIT;
            return JunitError::TooLong { line, limit };
        }
        if let quick_xml::Error::Io(source) = error {
            let source = io::Error::new(source.kind(), source);
            return JunitError::Read { source };
        }
        // All syntax errors but this one say that the report ended before the markup did.
        let is_cut = matches!(&error, quick_xml::Error::Syntax(error)
            if *error != SyntaxError::InvalidBangMarkup);
        match self.open.last() {
            Some(open) if is_cut => JunitError::Truncated {
                line,
                open: open.clone(),
            },
            Some(_) | None => JunitError::Malformed {
                line,
                reason: error.to_string(),
            },
        }
    }
}

/// Reads up to the end of a CDATA section. False if the report ends first.
fn read_cdata<R: BufRead>(source: &mut Source<R>, text: &mut Excerpt) -> io::Result<bool> {
    loop {
        let ahead = source.peek()?;
        let end = ahead
            .windows(CDATA_END.len())
            .position(|window| window == CDATA_END);
        // The last two bytes may be the start of the end.
        let count = end.unwrap_or(ahead.len().saturating_sub(CDATA_END.len() - 1));
        if count == 0 && end.is_none() {
            return Ok(false);
        }
        text.push(&String::from_utf8_lossy(&ahead[..count]));
        source.skip(count);
        if end.is_some() {
            source.skip(CDATA_END.len());
            return Ok(true);
        }
    }
}

fn first(ahead: &[u8]) -> &[u8] {
    &ahead[..ahead.len().min(LOOK_AHEAD)]
}

fn to_element(tag: &BytesStart<'_>, line: u64) -> Result<Element, JunitError> {
    let mut attributes = Vec::new();
    for attribute in tag.attributes().with_checks(false) {
        let attribute = attribute.map_err(|error| JunitError::Malformed {
            line,
            reason: error.to_string(),
        })?;
        let key = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
        let mut value = Excerpt::default();
        push_unescaped(&String::from_utf8_lossy(&attribute.value), &mut value);
        attributes.push((key, value.into_string()));
    }
    let name = String::from_utf8_lossy(tag.local_name().as_ref()).into_owned();
    Ok(Element { name, attributes })
}

fn push_unescaped(mut escaped: &str, text: &mut Excerpt) {
    while let Some(at) = escaped.find('&') {
        text.push(&escaped[..at]);
        let count = push_reference(&escaped[at..], text);
        escaped = &escaped[at + count..];
    }
    text.push(escaped);
}

/// Appends what the reference at the start of `ahead` stands for, and says how long it is.
///
/// What is not a reference to a character is text, as are the `&` and the entities of careless tools.
fn push_reference(ahead: &str, text: &mut Excerpt) -> usize {
    let end = ahead.bytes().take(LOOK_AHEAD).position(|byte| byte == b';');
    let name = end.map(|end| &ahead[1..end]);
    if let Some(entity) = name.and_then(resolve_xml_entity) {
        text.push(entity);
    } else if let Some(Ok(Some(character))) =
        name.map(|name| BytesRef::new(name).resolve_char_ref())
    {
        text.push(character.encode_utf8(&mut [0; 4]));
    } else {
        text.push("&");
        return 1;
    }
    end.map_or(1, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    /// Tags in angle brackets, texts between them, as they are read in steps of `step` bytes.
    fn flatten(xml: &str, step: usize) -> Result<String, JunitError> {
        let mut markup = Markup::new(BufReader::with_capacity(step, xml.as_bytes()))?;
        let mut flat = Vec::new();
        loop {
            let mut text = Excerpt::default();
            let piece = markup.next(&mut text)?;
            flat.push(text.into_string());
            flat.push(match piece {
                Piece::Open(element) => format!("<{} {:?}>", element.name, element.attributes),
                Piece::Close => "</>".to_owned(),
                Piece::End => return Ok(flat.concat()),
            });
        }
    }

    #[test]
    fn texts_are_what_they_stand_for_however_the_bytes_arrive() {
        let xml =
            "<a>&lt;&#65;&#x1F600;<![CDATA[]]&amp;]]]]><![CDATA[>é]]>\r\n<!-- & -->&quot;</a>";
        for step in 1..30 {
            let flat = flatten(xml, step).unwrap();
            assert_eq!(flat, "<a []><A😀]]&amp;]]>é\n\"</>", "step {step}");
        }
    }

    #[test]
    fn what_is_no_reference_is_text() {
        let xml = "<a b='&nbsp;&#0;&#xD800;&' c='1 &amp; 2'>a & b &c; &#x110000; &</a>";
        let flat = flatten(xml, 5).unwrap();
        assert_eq!(
            flat,
            "<a [(\"b\", \"&nbsp;&#0;&#xD800;&\"), (\"c\", \"1 & 2\")]>a & b &c; &#x110000; &</>"
        );
    }

    #[test]
    fn entities_of_the_document_are_neither_fetched_nor_expanded() {
        let xml = "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'><!ENTITY y 'lol'>]>\
                   <a>&x;&y;</a>";
        assert_eq!(flatten(xml, 64).unwrap(), "<a []>&x;&y;</>");
    }

    #[test]
    fn prefixes_of_elements_are_dropped() {
        let xml = "<j:a xmlns:j='x' xsi:type='y'/>";
        let flat = flatten(xml, 64).unwrap();
        assert_eq!(flat, "<a [(\"xmlns:j\", \"x\"), (\"xsi:type\", \"y\")]></>");
    }

    #[test]
    fn a_skipped_element_takes_its_elements_along() {
        let mut markup = Markup::new("<a><b>1<c/><b>2</b></b>3</a>".as_bytes()).unwrap();
        let mut text = Excerpt::default();
        for _ in 0..2 {
            assert!(matches!(markup.next(&mut text), Ok(Piece::Open(_))));
        }
        markup.skip().unwrap();
        assert!(matches!(markup.next(&mut text), Ok(Piece::Close)));
        assert_eq!(text.into_string(), "3");
        assert!(matches!(
            markup.next(&mut Excerpt::default()),
            Ok(Piece::End)
        ));
    }

    #[test]
    fn an_end_inside_anything_is_an_early_end() {
        for xml in [
            "<a>\n<b",
            "<a>\n<!-- ",
            "<a>\n<![CDATA[ ]]",
            "<a>\n",
            "<a>\n</",
        ] {
            let error = flatten(xml, 64).unwrap_err();
            assert!(
                matches!(&error, JunitError::Truncated { line: 2, open } if open == "a"),
                "{xml}: {error:?}"
            );
        }
    }
}
