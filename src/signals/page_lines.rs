//! Cuts a page into lines while it arrives: no more than one line is kept.

use super::exposition::InvalidPage;

/// Longest line, in bytes.
pub(crate) const LINE_LIMIT: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageFault {
    #[error("the page exceeds {limit} bytes, and no more are read; serve fewer series there")]
    TooLarge { limit: u64 },
    #[error(
        "line {line} of the page exceeds {LINE_LIMIT} bytes; serve the text format of Prometheus there"
    )]
    LongLine {
        /// The line, counted from 1.
        line: usize,
    },
    #[error("line {line} of the page is not UTF-8; serve the text format of Prometheus there")]
    NotText {
        /// The line, counted from 1.
        line: usize,
    },
    /// A line is neither sample nor comment.
    #[error("{0}; serve the text format of Prometheus there")]
    Invalid(#[from] InvalidPage),
    #[error(
        "the page shows more than {limit} samples of {series}; name a series with fewer label sets"
    )]
    TooMany { series: String, limit: usize },
}

#[derive(Debug)]
pub(super) struct PageLines {
    limit: u64,
    length: u64,
    lines: usize,
    /// The beginning of a line of which the rest has not arrived.
    begun: Vec<u8>,
}

impl PageLines {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, length: 0, lines: 0, begun: Vec::new() }
    }

    /// Takes the next part of the page, and hands on the lines that it ends, with their numbers.
    pub(super) fn feed<E: From<PageFault>>(
        &mut self,
        chunk: &[u8],
        mut take: impl FnMut(usize, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        self.length = self.length.saturating_add(length);
        if self.length > self.limit {
            return Err(PageFault::TooLarge { limit: self.limit }.into());
        }
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            if self.begun.len() + piece.len() > LINE_LIMIT {
                let line = self.lines + 1;
                return Err(PageFault::LongLine { line }.into());
            }
            self.begun.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.end_line(&mut take)?;
            }
        }
        Ok(())
    }

    /// Hands on the last line, which may have no end.
    pub(super) fn end_line<E: From<PageFault>>(
        &mut self,
        mut take: impl FnMut(usize, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.lines += 1;
        let line = self.lines;
        let text =
            std::str::from_utf8(&self.begun).map_err(|_position| PageFault::NotText { line })?;
        take(line, text.trim_end_matches(['\n', '\r']))?;
        self.begun.clear();
        Ok(())
    }
}
