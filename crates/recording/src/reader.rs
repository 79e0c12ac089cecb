//! Reads recordings, one entry at a time.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;
use serde_json::Value;

use super::FORMAT;
use super::autoscaler::RecordedAutoscaler;
use super::cycle::RecordedCycle;
use super::patch::{PatchError, apply};
use super::segment::{AUTOSCALER_TEXT, MAX_LINE, RecordingHeader};
use wva_base::moment::Moment;
use wva_policy::key::ObjectKey;

/// Most bytes of a recording that are read, after decompression.
pub const MAX_RECORDING: u64 = 16 * 1024 * 1024 * 1024;

/// Why a recording is not read any further.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be read, or is no gzip.
    #[error("{0}; name a recording as DECISION_RECORD_FILE or /debug/recording has it")]
    Unreadable(#[from] io::Error),
    /// It ends within an entry.
    #[error("the recording ends within an entry; the entries before are whole")]
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
    /// The last decision about each `PodAutoscaler` of the segment.
    autoscalers: BTreeMap<ObjectKey, Value>,
    /// Bytes of lines about them.
    autoscaler_text: u64,
    line: u64,
    read: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Line {
    Header(Value),
    Cycle(Value),
    Delta(Value),
    Autoscaler(ObjectKey, Value),
}

/// What a recording holds.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordedEntry {
    /// A planning cycle.
    Cycle(Box<RecordedCycle>),
    /// A decision about a `PodAutoscaler`.
    Autoscaler(Box<RecordedAutoscaler>),
}

impl RecordedEntry {
    /// When it was decided.
    pub fn now(&self) -> Moment {
        match self {
            Self::Cycle(cycle) => cycle.now,
            Self::Autoscaler(autoscaler) => autoscaler.now,
        }
    }
}

impl<R: Read> RecordingReader<R> {
    /// Reads from `source`.
    pub fn new(source: R) -> Self {
        Self {
            source: BufReader::new(MultiGzDecoder::new(BufReader::new(source))),
            header: None,
            last: None,
            autoscalers: BTreeMap::new(),
            autoscaler_text: 0,
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
        while let Some((line, _)) = self.next_line()? {
            if let Line::Header(header) = line {
                self.take_header(header)?;
                return Ok(self.header.as_ref());
            }
        }
        Ok(None)
    }

    /// Reads the next cycle; `None` at the end. Decisions about PodAutoscalers on the way are skipped.
    pub fn next_cycle(&mut self) -> Result<Option<RecordedCycle>, RecordingError> {
        while let Some(entry) = self.next_entry()? {
            if let RecordedEntry::Cycle(cycle) = entry {
                return Ok(Some(*cycle));
            }
        }
        Ok(None)
    }

    /// Reads the next entry; `None` at the end.
    pub fn next_entry(&mut self) -> Result<Option<RecordedEntry>, RecordingError> {
        while let Some((line, length)) = self.next_line()? {
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
                Line::Autoscaler(key, patch) => {
                    let recorded = self.autoscaler(key, patch, length)?;
                    return Ok(Some(RecordedEntry::Autoscaler(Box::new(recorded))));
                }
            }
            let cycle = self.understood(self.last.as_ref().unwrap_or(&Value::Null))?;
            return Ok(Some(RecordedEntry::Cycle(Box::new(cycle))));
        }
        Ok(None)
    }

    fn autoscaler(
        &mut self,
        key: ObjectKey,
        patch: Value,
        length: u64,
    ) -> Result<RecordedAutoscaler, RecordingError> {
        self.autoscaler_text = self.autoscaler_text.saturating_add(length);
        let limit = AUTOSCALER_TEXT.saturating_mul(2);
        if self.autoscaler_text > limit {
            return Err(RecordingError::TooLarge { what: "a segment about PodAutoscalers", limit });
        }
        let mut last = self.autoscalers.remove(&key).unwrap_or(Value::Null);
        apply(&mut last, patch).map_err(|error| self.malformed(&error))?;
        let recorded = self.understood(&last)?;
        self.autoscalers.insert(key, last);
        Ok(recorded)
    }

    fn understood<'a, T: Deserialize<'a>>(&self, value: &'a Value) -> Result<T, RecordingError> {
        T::deserialize(value).map_err(|error| RecordingError::OtherVersion {
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
        RecordingError::Malformed { line: self.line, why: why.to_string() }
    }

    fn take_header(&mut self, header: Value) -> Result<(), RecordingError> {
        let format = header.get("format").and_then(Value::as_u64).unwrap_or(0);
        if format != u64::from(FORMAT) {
            let version = header.get("version").and_then(Value::as_str).unwrap_or("?");
            return Err(RecordingError::OtherFormat { format, version: version.to_owned() });
        }
        let header = serde_json::from_value(header).map_err(|error| self.malformed(&error))?;
        self.header = Some(header);
        self.last = None;
        self.autoscalers.clear();
        self.autoscaler_text = 0;
        Ok(())
    }

    fn next_line(&mut self) -> Result<Option<(Line, u64)>, RecordingError> {
        let Some(text) = self.text()? else {
            return Ok(None);
        };
        self.line = self.line.saturating_add(1);
        let line = serde_json::from_slice(&text).map_err(|error| self.malformed(&error))?;
        Ok(Some((line, u64::try_from(text.len()).unwrap_or(u64::MAX))))
    }

    /// The bytes up to the next line end. The last segment of a process that still runs has no end.
    fn text(&mut self) -> Result<Option<Vec<u8>>, RecordingError> {
        let limit = u64::try_from(MAX_LINE).unwrap_or(u64::MAX).saturating_add(1);
        let mut text = Vec::new();
        let ended = (&mut self.source).take(limit).read_until(b'\n', &mut text);
        match ended {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && self.line > 0 => {
                return if text.is_empty() { Ok(None) } else { Err(RecordingError::Truncated) };
            }
            other => other?,
        };
        if text.is_empty() {
            return Ok(None);
        }
        if text.len() > MAX_LINE {
            return Err(RecordingError::TooLarge { what: "a line", limit });
        }
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.read = self.read.saturating_add(length);
        if self.read > MAX_RECORDING {
            return Err(RecordingError::TooLarge { what: "text", limit: MAX_RECORDING });
        }
        if text.pop() == Some(b'\n') { Ok(Some(text)) } else { Err(RecordingError::Truncated) }
    }
}
