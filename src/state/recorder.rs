//! Records decisions outside of the pure core: a ring in memory, and a file that is rotated.
//!
//! The optimizer hands over each cycle, and a PodAutoscaler each decision; neither waits. A thread of its own
//! encodes and writes, since a file may take any time. What does not fit into its queue is counted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use prometheus::IntCounterVec;

use crate::policy::learned::Learned;
use crate::policy::params::DynamicSettings;
use crate::policy::plan::Plan;
use crate::policy::pod_autoscaler::demand::SourceReading;
use crate::policy::pod_autoscaler::{
    AutoscalerDecision, AutoscalerState, AutoscalerView, PodAutoscalerObject,
};
use crate::policy::snapshot::ClusterSnapshot;
use crate::settings::statics::RecordSettings;
use wva_base::moment::Moment;
use wva_recording::{
    AutoscalerInputs, CycleInputs, DecisionRing, EncodedEntry, RecordedAutoscalerDecision,
    RecordingHeader, SegmentEncoder,
};

/// Cycles that wait for the thread.
const CYCLES: usize = 8;

/// Entries of all kinds that wait for it. A new leader decides on thousands of PodAutoscalers at once.
const QUEUE: usize = 4096;

/// Most bytes of PodAutoscalers that wait for it, about.
const QUEUE_BYTES: usize = 32 << 20;

/// Bytes of a pod, a sample or a remembered demand, about.
const ITEM_BYTES: usize = 64;

/// Why an entry is left out that does not fit into the queue.
const QUEUE_FULL: &str = "queue-full";

/// Files of a recording: the one that is written, and older ones with a number at their end.
const FILES: u64 = 4;

/// What a cycle was made from, and its plan.
#[derive(Debug, Clone)]
pub struct CycleRecord {
    pub now: Moment,
    pub generation: u64,
    pub snapshot: ClusterSnapshot,
    /// What was learned before.
    pub learned: Arc<Learned>,
    pub settings: Arc<DynamicSettings>,
    pub plan: Arc<Plan>,
}

/// What a decision on a `PodAutoscaler` was made from, and what was decided.
#[derive(Debug, Clone)]
pub struct AutoscalerEntry {
    pub now: Moment,
    pub object: Arc<PodAutoscalerObject>,
    /// What was seen of its target.
    pub view: AutoscalerView,
    /// What was remembered before.
    pub before: AutoscalerState,
    pub decision: AutoscalerDecision,
    /// What is remembered after it.
    pub after: AutoscalerState,
}

impl AutoscalerEntry {
    /// Bytes that it holds in memory, about.
    fn bytes(&self) -> usize {
        let samples = self.view.readings.iter().map(|reading| match reading {
            SourceReading::Pods(pods) => pods.len(),
            SourceReading::Total(_) => 1,
        });
        let remembered = self.before.remembered() + self.after.remembered();
        let items = self.view.pods.len() + samples.sum::<usize>() + remembered;
        size_of::<Self>() + items * ITEM_BYTES
    }
}

#[derive(Debug)]
enum RecorderEntry {
    Cycle(Box<CycleRecord>),
    Autoscaler(Box<AutoscalerEntry>),
}

/// Takes cycles in. Clones are handles on the same record.
#[derive(Debug, Clone, Default)]
pub struct DecisionRecorder(Option<Arc<RecorderQueue>>);

#[derive(Debug)]
struct RecorderQueue {
    entries: SyncSender<RecorderEntry>,
    /// Cycles among those that wait.
    cycles: Arc<AtomicUsize>,
    /// Bytes of PodAutoscalers among them, about.
    bytes: Arc<AtomicUsize>,
    ring: Arc<Mutex<DecisionRing>>,
    unrecorded: IntCounterVec,
}

impl DecisionRecorder {
    /// Starts the thread where anything is to be recorded. `unrecorded` counts by reason what is not.
    pub fn start(settings: &RecordSettings, version: String, unrecorded: IntCounterVec) -> Self {
        if settings.history_bytes == 0 && settings.file.is_none() {
            return Self(None);
        }
        let (sender, receiver) = sync_channel(QUEUE);
        let ring = Arc::new(Mutex::new(DecisionRing::new(settings.history_bytes)));
        let cycles = Arc::new(AtomicUsize::new(0));
        let bytes = Arc::new(AtomicUsize::new(0));
        let writer = RecordWriter {
            cycles: Arc::clone(&cycles),
            bytes: Arc::clone(&bytes),
            encoder: SegmentEncoder::new(RecordingHeader::of(version)),
            ring: Arc::clone(&ring),
            file: (settings.file.clone()).map(|path| RecordFile::new(path, settings.file_bytes)),
            unrecorded: unrecorded.clone(),
        };
        let thread = thread::Builder::new()
            .name("decision-recorder".to_owned())
            .spawn(move || writer.run(&receiver));
        if let Err(error) = thread {
            tracing::error!(%error, "decisions are not recorded: the thread cannot start; raise the limit of threads");
            return Self(None);
        }
        Self(Some(Arc::new(RecorderQueue { entries: sender, cycles, bytes, ring, unrecorded })))
    }

    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Records a cycle, or counts it.
    pub fn record(&self, cycle: CycleRecord) {
        let Some(queue) = &self.0 else {
            return;
        };
        if queue.cycles.fetch_add(1, Ordering::Relaxed) >= CYCLES {
            queue.cycles.fetch_sub(1, Ordering::Relaxed);
            queue.left_out(QUEUE_FULL);
        } else if let Err(reason) = queue.send(RecorderEntry::Cycle(Box::new(cycle))) {
            queue.cycles.fetch_sub(1, Ordering::Relaxed);
            queue.left_out(reason);
        }
    }

    /// Records a decision on a `PodAutoscaler`, or counts it.
    pub fn record_autoscaler(&self, entry: impl FnOnce() -> AutoscalerEntry) {
        let Some(queue) = &self.0 else {
            return;
        };
        let entry = entry();
        let bytes = entry.bytes();
        let sent = if queue.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > QUEUE_BYTES {
            Err(QUEUE_FULL)
        } else {
            queue.send(RecorderEntry::Autoscaler(Box::new(entry)))
        };
        if let Err(reason) = sent {
            queue.bytes.fetch_sub(bytes, Ordering::Relaxed);
            queue.left_out(reason);
        }
    }

    /// The recording in memory; `None` where nothing is recorded.
    pub fn recording(&self) -> Option<Vec<u8>> {
        let queue = self.0.as_ref()?;
        let ring = locked(&queue.ring);
        (!ring.is_empty()).then(|| ring.recording())
    }
}

impl RecorderQueue {
    fn send(&self, entry: RecorderEntry) -> Result<(), &'static str> {
        self.entries.try_send(entry).map_err(|error| match error {
            TrySendError::Full(_) => QUEUE_FULL,
            TrySendError::Disconnected(_) => "stopped",
        })
    }

    fn left_out(&self, reason: &str) {
        tracing::warn!(reason, "decision not recorded");
        self.unrecorded.with_label_values(&[reason]).inc();
    }
}

fn locked(ring: &Mutex<DecisionRing>) -> MutexGuard<'_, DecisionRing> {
    ring.lock().unwrap_or_else(PoisonError::into_inner)
}

struct RecordWriter {
    cycles: Arc<AtomicUsize>,
    bytes: Arc<AtomicUsize>,
    encoder: SegmentEncoder,
    ring: Arc<Mutex<DecisionRing>>,
    file: Option<RecordFile>,
    unrecorded: IntCounterVec,
}

impl RecordWriter {
    /// Ends with the last handle.
    fn run(mut self, entries: &Receiver<RecorderEntry>) {
        while let Ok(entry) = entries.recv() {
            self.take(&entry);
        }
    }

    fn take(&mut self, entry: &RecorderEntry) {
        let encoded = match entry {
            RecorderEntry::Cycle(cycle) => {
                self.cycles.fetch_sub(1, Ordering::Relaxed);
                self.encode(cycle)
            }
            RecorderEntry::Autoscaler(entry) => {
                self.bytes.fetch_sub(entry.bytes(), Ordering::Relaxed);
                self.encode_autoscaler(entry)
            }
        };
        let encoded = match encoded {
            Ok(encoded) => encoded,
            Err(error) => {
                self.failed("encoding");
                tracing::warn!(%error, "decision not recorded");
                return;
            }
        };
        if locked(&self.ring).push(&encoded) {
            self.encoder.begin_segment();
        }
        let Some(file) = &mut self.file else {
            return;
        };
        match file.append(&encoded) {
            Ok(FileState::Open) => {}
            Ok(FileState::Full) => self.encoder.begin_segment(),
            Err(error) => {
                let path = file.path.display().to_string();
                tracing::error!(
                    path, %error,
                    "DECISION_RECORD_FILE cannot be written; make its folder writable, and free space on its volume"
                );
                self.encoder.begin_segment();
                self.failed("file");
            }
        }
    }

    fn encode(&mut self, cycle: &CycleRecord) -> io::Result<EncodedEntry> {
        let inputs = CycleInputs {
            now: cycle.now,
            generation: cycle.generation,
            snapshot: &cycle.snapshot,
            learned: &cycle.learned,
            settings: &cycle.settings,
        };
        self.encoder.encode(&inputs, &cycle.plan)
    }

    fn encode_autoscaler(&mut self, entry: &AutoscalerEntry) -> io::Result<EncodedEntry> {
        let inputs = AutoscalerInputs {
            now: entry.now,
            object: &entry.object,
            view: &entry.view,
            state: &entry.before,
        };
        let decided = RecordedAutoscalerDecision::of(&entry.decision, &entry.after)?;
        self.encoder.encode_autoscaler(&inputs, &decided)
    }

    fn failed(&self, reason: &str) {
        self.unrecorded.with_label_values(&[reason]).inc();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileState {
    Open,
    /// The next segment is to begin, with a file of its own.
    Full,
}

#[derive(Debug)]
struct RecordFile {
    path: PathBuf,
    /// Most bytes of one file.
    limit: u64,
    open: Option<File>,
    written: u64,
}

impl RecordFile {
    fn new(path: PathBuf, limit: u64) -> Self {
        Self { path, limit: limit / FILES, open: None, written: 0 }
    }

    fn append(&mut self, cycle: &EncodedEntry) -> io::Result<FileState> {
        let mut open = self.open.take();
        if let Some(file) = &mut open {
            file.write_all(&cycle.ends)?;
        }
        let is_full = self.written >= self.limit;
        let mut file = match open {
            Some(file) if !(cycle.begins_segment && is_full) => file,
            // What follows a segment that was not written cannot be read.
            None if !cycle.begins_segment => return Ok(FileState::Full),
            _ => {
                rotate(&self.path)?;
                self.written = 0;
                let mut options = OpenOptions::new();
                // Arguments and labels of users may be no business of other accounts.
                let options = options.write(true).create_new(true).mode(0o600);
                options.open(&self.path)?
            }
        };
        if let Err(error) = file.write_all(&cycle.bytes) {
            // A part of a first cycle is not worth an older file.
            if self.written == 0 {
                drop(fs::remove_file(&self.path));
            }
            return Err(error);
        }
        let more = cycle.ends.len().saturating_add(cycle.bytes.len());
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        self.written = self.written.saturating_add(more);
        self.open = Some(file);
        Ok(if self.written >= self.limit { FileState::Full } else { FileState::Open })
    }
}

/// Renames a file that has content to `.1`, that one to `.2`, and so on; the oldest goes. An empty one is removed.
fn rotate(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.len() > 0 => {}
        Ok(_) => return fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    let named = |number: u64| match number {
        0 => path.to_owned(),
        number => {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        }
    };
    for number in (1..FILES).rev() {
        match fs::rename(named(number.saturating_sub(1)), named(number)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
