//! Writes segments.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::FORMAT;
use super::autoscaler::{AutoscalerInputs, RecordedAutoscalerDecision};
use super::cycle::CycleInputs;
use super::patch::diff;
use wva_policy::key::ObjectKey;
use wva_policy::learned::LEARNED_VERSION;
use wva_policy::plan::Plan;

/// Cycles of one segment: the first is whole, the others are differences.
const CYCLES: u32 = 60;

/// Longest line of a recording, in bytes.
pub const MAX_LINE: usize = 32 * 1024 * 1024;

/// Bytes of lines about PodAutoscalers at which a segment ends: what is read of one has to be held.
pub(crate) const AUTOSCALER_TEXT: u64 = 64 * 1024 * 1024;

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
        Self { format: FORMAT, version: version.into(), learned: LEARNED_VERSION }
    }
}

/// Bytes of one entry, to be appended to those before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedEntry {
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
    last: Option<Value>,
    cycles: u32,
    /// The last decision about each `PodAutoscaler`, as JSON: there may be thousands, and text is smaller than a value.
    autoscalers: BTreeMap<ObjectKey, Vec<u8>>,
    /// Bytes of lines about them.
    autoscaler_text: u64,
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
    pub fn encode(&mut self, inputs: &CycleInputs<'_>, plan: &Plan) -> io::Result<EncodedEntry> {
        let open = self.open.as_ref();
        let is_first = open.is_none_or(|open| open.is_full() || open.last.is_none());
        let recorded = inputs.recorded(plan, is_first)?;
        self.entry(|segment| segment.cycle(recorded))
    }

    /// Encodes one decision about a `PodAutoscaler`, as [`Self::encode`] does.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_autoscaler(
        &mut self,
        inputs: &AutoscalerInputs<'_>,
        decided: &RecordedAutoscalerDecision,
    ) -> io::Result<EncodedEntry> {
        let recorded = inputs.recorded(decided)?;
        self.entry(|segment| segment.autoscaler(inputs.key(), &recorded))
    }

    fn entry(
        &mut self,
        add: impl FnOnce(&mut OpenSegment) -> io::Result<Vec<u8>>,
    ) -> io::Result<EncodedEntry> {
        let encoded = match &mut self.open {
            Some(open) if !open.is_full() => add(open).map(|bytes| EncodedEntry {
                ends: Vec::new(),
                begins_segment: false,
                bytes,
            }),
            _ => self.begin(add),
        };
        if encoded.is_err() {
            self.begin_segment();
        }
        encoded
    }

    /// Ends a segment only once the next is sure, since its end is to be written with it.
    fn begin(
        &mut self,
        add: impl FnOnce(&mut OpenSegment) -> io::Result<Vec<u8>>,
    ) -> io::Result<EncodedEntry> {
        let mut next = OpenSegment {
            writer: GzEncoder::new(Vec::new(), Compression::default()),
            last: None,
            cycles: 0,
            autoscalers: BTreeMap::new(),
            autoscaler_text: 0,
        };
        (next.writer).write_all(&line(&json!({ "header": self.header }))?)?;
        let bytes = add(&mut next)?;
        let ended = self.open.replace(next);
        let ends = ended.map(|ended| ended.writer.finish()).transpose()?;
        Ok(EncodedEntry { ends: ends.unwrap_or_default(), begins_segment: true, bytes })
    }
}

impl OpenSegment {
    fn is_full(&self) -> bool {
        self.cycles >= CYCLES || self.autoscaler_text >= AUTOSCALER_TEXT
    }

    fn cycle(&mut self, cycle: Value) -> io::Result<Vec<u8>> {
        let text = match &self.last {
            None => line(&json!({ "cycle": cycle }))?,
            Some(last) => line(&json!({ "delta": patch(last, &cycle) }))?,
        };
        let bytes = flushed(&mut self.writer, &text)?;
        self.cycles = self.cycles.saturating_add(1);
        self.last = Some(cycle);
        Ok(bytes)
    }

    fn autoscaler(&mut self, key: ObjectKey, recorded: &Value) -> io::Result<Vec<u8>> {
        let patch = match self.autoscalers.get(&key) {
            None => json!([recorded]),
            Some(last) => patch(&serde_json::from_slice(last)?, recorded),
        };
        let text = line(&json!({ "autoscaler": [key, patch] }))?;
        let bytes = flushed(&mut self.writer, &text)?;
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.autoscaler_text = self.autoscaler_text.saturating_add(length);
        self.autoscalers.insert(key, serde_json::to_vec(recorded)?);
        Ok(bytes)
    }
}

fn patch(last: &Value, next: &Value) -> Value {
    diff(last, next).unwrap_or_else(|| json!({}))
}

fn line(value: &Value) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    if text.len() > MAX_LINE {
        return Err(io::Error::other(format!(
            "the entry has {} bytes, and at most {MAX_LINE} are recorded",
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
