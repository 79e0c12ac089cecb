//! Cuts a Prometheus answer into its samples while it arrives, so that the whole of it is never held.
//!
//! The text of each element of `data.result` is handed out by itself; everything around them, the
//! envelope, is handed out in pieces that together are a JSON document with an empty `result`. Only
//! the nesting is understood here: both kinds of piece are parsed, and so judged, by serde_json.

/// Longest element that is put together. A sample has a handful of labels; a model name may have
/// 1 kB.
const MAX_ELEMENT: usize = 64 * 1024;

/// Longest key that matters, plus one: longer keys cannot be mistaken for it.
const MAX_KEY: usize = "result".len() + 1;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Element(&'a [u8]),
    /// Some more of what surrounds the samples.
    Envelope(&'a [u8]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SplitError {
    /// Samples are not separated as a JSON array demands.
    Separator,
    LongElement,
}

/// Where in the document the next byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Around the samples.
    Envelope,
    Gap(Gap),
    /// Within one; the number counts its open brackets.
    Element(usize),
}

/// What stands before the next byte between samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    Opening,
    Comma,
    Element,
}

/// Whether the next byte belongs to a string literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Literal {
    Outside,
    Inside,
    Escaped,
}

#[derive(Debug)]
pub(super) struct Splitter {
    place: Place,
    literal: Literal,
    depth: usize,
    key: Vec<u8>,
    in_data: bool,
    in_result: bool,
    carry: Vec<u8>,
}

/// What to do with the bytes up to the current one.
enum Cut {
    /// Nothing yet.
    Keep,
    EnvelopeThrough,
    DropThrough,
    ElementThrough,
    DropBefore,
}

impl Splitter {
    pub(super) fn new() -> Self {
        Self {
            place: Place::Envelope,
            literal: Literal::Outside,
            depth: 0,
            key: Vec::new(),
            in_data: false,
            in_result: false,
            carry: Vec::new(),
        }
    }

    /// Whether the answer may end here.
    pub(super) fn is_complete(&self) -> bool {
        self.place == Place::Envelope && self.depth == 0 && self.literal == Literal::Outside
    }

    /// Takes the next bytes and hands out what they complete.
    pub(super) fn feed<E: From<SplitError>>(
        &mut self,
        chunk: &[u8],
        mut hand_out: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut start = 0;
        let mut next = 0;
        while let Some(byte) = chunk.get(next) {
            let index = next;
            next += 1;
            if let (Place::Element(_), Literal::Inside) = (self.place, self.literal) {
                // Most of an answer is text within literals, which only two bytes can end.
                let rest = chunk.get(index..).unwrap_or_default();
                match memchr::memchr2(b'"', b'\\', rest) {
                    Some(0) => {}
                    Some(length) => {
                        next = index + length;
                        continue;
                    }
                    None => break,
                }
            }
            let cut = match self.place {
                Place::Envelope => self.envelope(*byte),
                Place::Gap(gap) => self.gap(gap, *byte)?,
                Place::Element(open) => self.element(open, *byte),
            };
            let through = chunk.get(start..=index).unwrap_or_default();
            match cut {
                Cut::Keep => continue,
                Cut::EnvelopeThrough => hand_out(Piece::Envelope(through))?,
                Cut::ElementThrough => {
                    self.extend_carry(through)?;
                    hand_out(Piece::Element(&self.carry))?;
                    self.carry.clear();
                }
                Cut::DropThrough => {}
                Cut::DropBefore => {
                    start = index;
                    continue;
                }
            }
            start = index + 1;
        }
        let rest = chunk.get(start..).unwrap_or_default();
        match self.place {
            Place::Envelope => hand_out(Piece::Envelope(rest)),
            Place::Element(_) => Ok(self.extend_carry(rest)?),
            Place::Gap(_) => Ok(()),
        }
    }

    fn extend_carry(&mut self, bytes: &[u8]) -> Result<(), SplitError> {
        if self.carry.len() + bytes.len() > MAX_ELEMENT {
            return Err(SplitError::LongElement);
        }
        self.carry.extend_from_slice(bytes);
        Ok(())
    }

    /// Follows string literals; true while the byte is part of one.
    fn literal(&mut self, byte: u8) -> bool {
        match (self.literal, byte) {
            (Literal::Outside, b'"') | (Literal::Escaped, _) => self.literal = Literal::Inside,
            (Literal::Outside, _) => return false,
            (Literal::Inside, b'"') => self.literal = Literal::Outside,
            (Literal::Inside, b'\\') => self.literal = Literal::Escaped,
            (Literal::Inside, _) => {}
        }
        true
    }

    fn envelope(&mut self, byte: u8) -> Cut {
        let began = self.literal == Literal::Outside;
        if self.literal(byte) {
            if began {
                self.key.clear();
            } else if self.literal != Literal::Outside && self.key.len() < MAX_KEY {
                self.key.push(byte);
            }
            return Cut::Keep;
        }
        match (byte, self.depth) {
            (b':', 1) => self.in_data = self.key == b"data",
            (b':', 2) => self.in_result = self.key == b"result",
            (b'[', 2) if self.in_data && self.in_result => {
                self.depth += 1;
                self.place = Place::Gap(Gap::Opening);
                return Cut::EnvelopeThrough;
            }
            (b'[' | b'{', _) => self.depth += 1,
            (b']' | b'}', _) => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        Cut::Keep
    }

    fn gap(&mut self, gap: Gap, byte: u8) -> Result<Cut, SplitError> {
        match (byte, gap) {
            (b' ' | b'\t' | b'\r' | b'\n', _) => {}
            (b'{', Gap::Opening | Gap::Comma) => {
                self.place = Place::Element(1);
                return Ok(Cut::DropBefore);
            }
            (b',', Gap::Element) => self.place = Place::Gap(Gap::Comma),
            (b']', Gap::Opening | Gap::Element) => {
                self.place = Place::Envelope;
                self.in_result = false;
                self.depth = self.depth.saturating_sub(1);
                return Ok(Cut::DropBefore);
            }
            (_, Gap::Opening) => {
                // The result of a scalar: a number and a string, which the envelope keeps.
                self.place = Place::Envelope;
                self.in_result = false;
                self.envelope(byte);
                return Ok(Cut::DropBefore);
            }
            (_, Gap::Comma | Gap::Element) => return Err(SplitError::Separator),
        }
        Ok(Cut::DropThrough)
    }

    fn element(&mut self, open: usize, byte: u8) -> Cut {
        if self.literal(byte) {
            return Cut::Keep;
        }
        match (byte, open) {
            (b'{' | b'[', _) => self.place = Place::Element(open + 1),
            (b'}' | b']', 1) => {
                self.place = Place::Gap(Gap::Element);
                return Cut::ElementThrough;
            }
            (b'}' | b']', _) => self.place = Place::Element(open - 1),
            _ => {}
        }
        Cut::Keep
    }
}
