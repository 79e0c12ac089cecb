//! Reads recordings, one cycle at a time.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use serde_json::Value;

use super::FORMAT;
use super::cycle::RecordedCycle;
use super::patch::{PatchError, apply};
use super::segment::RecordingHeader;

/// Longest line of a recording, in bytes.
pub const MAX_LINE: usize = 32 * 1024 * 1024;

/// Most bytes of a recording that are read, after decompression.
pub const MAX_RECORDING: u64 = 16 * 1024 * 1024 * 1024;

/// Why a recording is not read any further.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be read, or is no gzip.
    #[error("{0}; name a recording as DECISION_RECORD_FILE or /debug/recording has it")]
    Unreadable(#[from] io::Error),
    /// It ends within a cycle.
    #[error("the recording ends within a cycle; the cycles before are whole")]
    Truncated,
    /// A line or the whole is too long.
    #[error("the recording has {what} of more than {limit} bytes; it is damaged, or too large")]
    TooLarge {
        /// What is too long.
        what: &'static str,
        /// How much is read.
        limit: u64,
    },
    /// A line that no recorder writes.
    #[error("line {line}: {why}")]
    Malformed {
        /// The line.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
    /// Another layout.
    #[error(
        "the recording has format {format} of version {version}, and this is format {FORMAT}; replay it with wva {version}"
    )]
    OtherFormat {
        /// Its layout.
        format: u64,
        /// The version that recorded.
        version: String,
    },
    /// A cycle that this version does not understand.
    #[error("line {line}: {why}; it was recorded by version {version}, replay it with that one")]
    OtherVersion {
        /// The line.
        line: u64,
        /// What is not understood.
        why: String,
        /// The version that recorded.
        version: String,
    },
}

/// Reads a recording.
#[derive(Debug)]
pub struct RecordingReader<R: Read> {
    source: BufReader<MultiGzDecoder<BufReader<R>>>,
    header: Option<RecordingHeader>,
    last: Option<Value>,
    line: u64,
    read: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Line {
    Header(Value),
    Cycle(Value),
    Delta(Value),
}

impl<R: Read> RecordingReader<R> {
    /// Reads from `source`.
    pub fn new(source: R) -> Self {
        Self {
            source: BufReader::new(MultiGzDecoder::new(BufReader::new(source))),
            header: None,
            last: None,
            line: 0,
            read: 0,
        }
    }

    /// The header of the segment that was read last.
    pub fn header(&self) -> Option<&RecordingHeader> {
        self.header.as_ref()
    }

    /// Reads up to the next header; `None` at the end. Cycles on the way are skipped.
    pub fn next_header(&mut self) -> Result<Option<&RecordingHeader>, RecordingError> {
        while let Some(line) = self.next_line()? {
            if let Line::Header(header) = line {
                self.take_header(header)?;
                return Ok(self.header.as_ref());
            }
        }
        Ok(None)
    }

    /// Reads the next cycle; `None` at the end.
    pub fn next_cycle(&mut self) -> Result<Option<RecordedCycle>, RecordingError> {
        while let Some(line) = self.next_line()? {
            match line {
                Line::Header(header) => {
                    self.take_header(header)?;
                    continue;
                }
                Line::Cycle(cycle) => self.last = Some(cycle),
                Line::Delta(patch) => {
                    let last = self.last.as_mut().ok_or(PatchError);
                    let applied = last.and_then(|last| apply(last, patch));
                    applied.map_err(|error| self.malformed(&error))?;
                }
            }
            return self.cycle().map(Some);
        }
        Ok(None)
    }

    fn cycle(&self) -> Result<RecordedCycle, RecordingError> {
        let cycle = self.last.as_ref().unwrap_or(&Value::Null);
        RecordedCycle::deserialize(cycle).map_err(|error| RecordingError::OtherVersion {
            line: self.line,
            why: error.to_string(),
            version: self.version(),
        })
    }

    fn version(&self) -> String {
        let header = self.header.as_ref();
        header.map_or_else(|| "?".to_owned(), |header| header.version.clone())
    }

    fn malformed(&self, why: &dyn ToString) -> RecordingError {
        RecordingError::Malformed {
            line: self.line,
            why: why.to_string(),
        }
    }

    fn take_header(&mut self, header: Value) -> Result<(), RecordingError> {
        let format = header.get("format").and_then(Value::as_u64).unwrap_or(0);
        if format != u64::from(FORMAT) {
            let version = header.get("version").and_then(Value::as_str).unwrap_or("?");
            return Err(RecordingError::OtherFormat {
                format,
                version: version.to_owned(),
            });
        }
        let header = serde_json::from_value(header).map_err(|error| self.malformed(&error))?;
        self.header = Some(header);
        self.last = None;
        Ok(())
    }

    fn next_line(&mut self) -> Result<Option<Line>, RecordingError> {
        let Some(text) = self.text()? else {
            return Ok(None);
        };
        self.line = self.line.saturating_add(1);
        let line = serde_json::from_slice(&text).map_err(|error| self.malformed(&error))?;
        Ok(Some(line))
    }

    /// The bytes up to the next line end. The last segment of a process that still runs has no end.
    fn text(&mut self) -> Result<Option<Vec<u8>>, RecordingError> {
        let limit = u64::try_from(MAX_LINE)
            .unwrap_or(u64::MAX)
            .saturating_add(1);
        let mut text = Vec::new();
        let ended = (&mut self.source).take(limit).read_until(b'\n', &mut text);
        match ended {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && self.line > 0 => {
                return if text.is_empty() {
                    Ok(None)
                } else {
                    Err(RecordingError::Truncated)
                };
            }
            other => other?,
        };
        if text.is_empty() {
            return Ok(None);
        }
        if text.len() > MAX_LINE {
            return Err(RecordingError::TooLarge {
                what: "a line",
                limit,
            });
        }
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.read = self.read.saturating_add(length);
        if self.read > MAX_RECORDING {
            return Err(RecordingError::TooLarge {
                what: "text",
                limit: MAX_RECORDING,
            });
        }
        if text.pop() == Some(b'\n') {
            Ok(Some(text))
        } else {
            Err(RecordingError::Truncated)
        }
    }
}
