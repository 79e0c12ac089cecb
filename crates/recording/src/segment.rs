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

    /// Encodes one cycle.
    ///
    /// # Errors
    /// The cycle cannot be written as JSON, or is larger than any that is read.
    pub fn encode(&mut self, inputs: &CycleInputs<'_>, plan: &Plan) -> io::Result<EncodedCycle> {
        let cycle = inputs.recorded(plan)?;
        let mut open = match self.open.take() {
            Some(open) if open.cycles < CYCLES => open,
            ended => {
                let ends = ended.map(|ended| ended.writer.finish()).transpose()?;
                return Ok(EncodedCycle {
                    ends: ends.unwrap_or_default(),
                    begins_segment: true,
                    bytes: self.begin(cycle)?,
                });
            }
        };
        let patch = diff(&open.last, &cycle).unwrap_or_else(|| json!({}));
        write_line(&mut open.writer, &json!({ "delta": patch }))?;
        open.cycles = open.cycles.saturating_add(1);
        open.last = cycle;
        let bytes = std::mem::take(open.writer.get_mut());
        self.open = Some(open);
        Ok(EncodedCycle {
            ends: Vec::new(),
            begins_segment: false,
            bytes,
        })
    }

    fn begin(&mut self, cycle: Value) -> io::Result<Vec<u8>> {
        let mut writer = GzEncoder::new(Vec::new(), Compression::default());
        write_line(&mut writer, &json!({ "header": self.header }))?;
        write_line(&mut writer, &json!({ "cycle": cycle }))?;
        let bytes = std::mem::take(writer.get_mut());
        self.open = Some(OpenSegment {
            writer,
            last: cycle,
            cycles: 1,
        });
        Ok(bytes)
    }
}

fn write_line(writer: &mut GzEncoder<Vec<u8>>, line: &Value) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    if text.len() > MAX_LINE {
        return Err(io::Error::other(format!(
            "the cycle has {} bytes, and at most {MAX_LINE} are recorded",
            text.len()
        )));
    }
    text.push(b'\n');
    writer.write_all(&text)?;
    writer.flush()
}
