//! Writes segments.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cycle::CycleInputs;
use super::patch::diff;
use super::{FORMAT, MAX_LINE};
use wva_policy::learned::LEARNED_VERSION;
use wva_policy::plan::Plan;

/// Cycles of one segment: the first is whole, the others are differences.
const CYCLES: u32 = 60;

/// What a segment begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingHeader {
    /// Version of the layout.
    pub format: u32,
    /// Version of the program that recorded.
    pub version: String,
    /// Version of the layout of learned state.
    pub learned: u32,
}

impl RecordingHeader {
    /// The header of this build, whose version is given.
    pub fn of(version: impl Into<String>) -> Self {
        Self {
            format: FORMAT,
            version: version.into(),
            learned: LEARNED_VERSION,
        }
    }
}

/// Bytes of one cycle, to be appended to those before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedCycle {
    /// The end of the segment before, where one ends.
    pub ends: Vec<u8>,
    /// Whether a segment begins with it.
    pub begins_segment: bool,
    /// The bytes. They can be read as soon as they are there.
    pub bytes: Vec<u8>,
}

/// Encodes cycles one after the other.
#[derive(Debug)]
pub struct SegmentEncoder {
    header: RecordingHeader,
    open: Option<OpenSegment>,
}

#[derive(Debug)]
struct OpenSegment {
    writer: GzEncoder<Vec<u8>>,
    /// The last cycle.
    last: Value,
    cycles: u32,
}

impl SegmentEncoder {
    /// Begins with a whole cycle.
    pub fn new(header: RecordingHeader) -> Self {
        Self { header, open: None }
    }

    /// Makes the next cycle a whole one: after cycles that were lost, or for another file.
    pub fn begin_segment(&mut self) {
        if let Some(open) = &mut self.open {
            open.cycles = CYCLES;
        }
    }

    /// Encodes one cycle. After one that fails the next is whole.
    ///
    /// # Errors
    /// The cycle cannot be written as JSON, or is larger than any that is read.
    pub fn encode(&mut self, inputs: &CycleInputs<'_>, plan: &Plan) -> io::Result<EncodedCycle> {
        let cycle = inputs.recorded(plan)?;
        let encoded = match &mut self.open {
            Some(open) if open.cycles < CYCLES => open.add(cycle),
            _ => self.begin(cycle),
        };
        if encoded.is_err() {
            self.begin_segment();
        }
        encoded
    }

    /// Ends a segment only once the next is sure, since its end is to be written with it.
    fn begin(&mut self, cycle: Value) -> io::Result<EncodedCycle> {
        let header = line(&json!({ "header": self.header }))?;
        let whole = line(&json!({ "cycle": cycle }))?;
        let mut writer = GzEncoder::new(Vec::new(), Compression::default());
        writer.write_all(&header)?;
        let bytes = flushed(&mut writer, &whole)?;
        let next = OpenSegment {
            writer,
            last: cycle,
            cycles: 1,
        };
        let ended = self.open.replace(next);
        let ends = ended.map(|ended| ended.writer.finish()).transpose()?;
        Ok(EncodedCycle {
            ends: ends.unwrap_or_default(),
            begins_segment: true,
            bytes,
        })
    }
}

impl OpenSegment {
    fn add(&mut self, cycle: Value) -> io::Result<EncodedCycle> {
        let patch = diff(&self.last, &cycle).unwrap_or_else(|| json!({}));
        let delta = line(&json!({ "delta": patch }))?;
        let bytes = flushed(&mut self.writer, &delta)?;
        self.cycles = self.cycles.saturating_add(1);
        self.last = cycle;
        Ok(EncodedCycle {
            ends: Vec::new(),
            begins_segment: false,
            bytes,
        })
    }
}

fn line(value: &Value) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    if text.len() > MAX_LINE {
        return Err(io::Error::other(format!(
            "the cycle has {} bytes, and at most {MAX_LINE} are recorded",
            text.len()
        )));
    }
    Ok(text)
}

fn flushed(writer: &mut GzEncoder<Vec<u8>>, text: &[u8]) -> io::Result<Vec<u8>> {
    writer.write_all(text)?;
    writer.flush()?;
    Ok(std::mem::take(writer.get_mut()))
}
