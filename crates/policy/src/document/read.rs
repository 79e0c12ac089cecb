//! From a document to what a plan is made from. Every fault is named with its path and its remedy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::inventory::{InventoryDocument, sums};
use super::pod_autoscaler::AutoscalerSituation;
use super::read_learned::moments;
use super::reading::DocumentReading;
use super::variant::{PodDocument, SignalsDocument};
use super::{CollectionState, DOCUMENT_VERSION, MAX_DOCUMENT, SnapshotDocument};
use crate::bounds::CEILING;
use crate::gpu::{GpuPod, PodPhase};
use crate::key::ModelKey;
use crate::learned::Learned;
use crate::quantity::Quantity;
use crate::samples::{PodSamples, RankSamples, Sample};
use crate::signal::FreshnessBands;
use crate::snapshot::{ClusterSnapshot, CycleId, GpuInventory, MetricsSnapshot, VariantView};
use wva_base::moment::{Moment, WallTime};
use wva_base::names::check_object_name;
use wva_base::text::shortened;
use wva_base::yaml::{check_bounds, check_keys, plain_words};

/// Uptime of a process whose document states none: longer than anything that is remembered matters.
const DEFAULT_UPTIME: Duration = Duration::from_hours(24);

/// A difference of shares that is a rounding error.
const ROUNDING: f64 = 1e-9;

/// Everything that one plan is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Situation {
    /// The fleet.
    pub snapshot: ClusterSnapshot,
    /// What was learned before; `None` if nothing was.
    pub learned: Option<Learned>,
    /// PodAutoscalers, each with its target.
    pub autoscalers: Vec<AutoscalerSituation>,
    /// When the plan is made.
    pub now: Moment,
}

/// Something in a document that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocumentFault {
    /// Path of the field, like `variants[0].pods[1].signals.kvUsage`.
    pub path: String,
    /// What is wrong, and what to write instead.
    pub why: String,
}

// A name or a key that it quotes may be of any length.
wva_base::display_of! { DocumentFault: Self { path, why } => "{}", plain_words(&format!("{path}: {why}")); }

/// Why a document was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Too long to look at.
    #[error("the document has {0} bytes; at most {MAX_DOCUMENT} are read")]
    TooLarge(usize),
    /// Not YAML or JSON, or not of the documented form; with path and position.
    #[error("{0}; `wva plan --schema` describes every field")]
    Form(String),
    /// Of the documented form, and impossible.
    #[error("{}", lines(.0))]
    Faults(Vec<DocumentFault>),
}

/// How many faults are shown. A file with more has one mistake many times.
const FAULTS_SHOWN: usize = 50;

fn lines(faults: &[DocumentFault]) -> String {
    let shown = faults.iter().take(FAULTS_SHOWN).map(ToString::to_string);
    let mut lines: Vec<String> = shown.collect();
    match faults.len().saturating_sub(FAULTS_SHOWN) {
        0 => {}
        more => lines.push(format!("and {more} more; mend these first")),
    }
    lines.join("\n")
}

/// What the parser expects of a count.
const EXPECTED_COUNTS: [&str; 2] = [", expected u32", ", expected i32"];

/// The fault of a text that is no snapshot. The content of one that is no mapping is not quoted: it may
/// be any file.
fn fault(error: &serde_yaml::Error, document: &str) -> String {
    let mut text = error.to_string();
    for expected in EXPECTED_COUNTS {
        text = text.replace(expected, &format!("; write a whole number from 0 to {CEILING}"));
    }
    let text = plain_words(&text);
    let Some(found) = text.strip_prefix("invalid type: ") else {
        let object = faulty_object(&text, document);
        return object.map_or_else(|| text.clone(), |object| format!("{text} ({object})"));
    };
    let kind = found.split([' ', ',']).next().unwrap_or_default();
    format!("it is a {kind} and not a mapping; name a file as /debug/snapshot writes it")
}

/// The object that a fault is in, whose path has no more than its place in a list.
fn faulty_object(fault: &str, document: &str) -> Option<String> {
    let (list, rest) = fault.split_once('[')?;
    let (index, _) = rest.split_once(']')?;
    let index: usize = index.parse().ok()?;
    let document: serde_yaml::Value = serde_yaml::from_str(document).ok()?;
    let entry = document.get(list)?.get(index)?;
    let metadata = match list {
        "variants" => entry,
        "podAutoscalers" => entry.get("object")?.get("metadata")?,
        _ => return None,
    };
    let name = |field: &str| metadata.get(field)?.as_str();
    let key = format!("{}/{}", name("namespace")?, name("name")?);
    Some(shortened(&key))
}

impl SnapshotDocument {
    /// Reads YAML or JSON.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        if text.len() > MAX_DOCUMENT {
            return Err(DocumentError::TooLarge(text.len()));
        }
        // Some editors begin a file with a mark of its byte order, which the parser takes for a key.
        let text = text.trim_start_matches('\u{feff}');
        if text.trim_start().starts_with('{')
            && let Ok(document) = serde_json::from_str(text)
            && check_keys(&mut serde_json::Deserializer::from_str(text)).is_ok()
        {
            return Ok(document);
        }
        // YAML holds nearly all of JSON, and its parser knows the path of what is wrong.
        check_bounds(text).map_err(|error| DocumentError::Form(error.to_string()))?;
        serde_yaml::from_str(text).map_err(|error| DocumentError::Form(fault(&error, text)))
    }

    /// What it says. `bands` are the ages that the settings in force call fresh and stale.
    pub fn situation(&self, bands: &FreshnessBands) -> Result<Situation, DocumentError> {
        let mut reader = Reader::new(self, *bands);
        let variants = reader.variants(self);
        let metrics = reader.metrics(self, &variants);
        let direct = reader.direct_queues(self);
        let autoscalers = reader.autoscalers(self, &variants);
        let gpus =
            self.inventory.as_ref().and_then(|inventory| reader.inventory(inventory, &variants));
        if self.version != DOCUMENT_VERSION {
            reader.fault(
                "version",
                format!("{} is not read; write {DOCUMENT_VERSION}", self.version),
            );
        }
        let learned = self.learned.as_ref().and_then(|learned| reader.learned(learned));
        if !reader.faults.is_empty() {
            return Err(DocumentError::Faults(reader.faults));
        }
        Ok(Situation {
            snapshot: ClusterSnapshot {
                cycle: CycleId(self.cycle.unwrap_or_default()),
                variants: variants
                    .into_iter()
                    .map(|view| (view.key.clone(), Arc::new(view)))
                    .collect(),
                metrics: Arc::new(metrics),
                direct: Arc::new(direct),
                gpus: gpus.map(Arc::new),
            },
            learned,
            autoscalers,
            now: reader.now,
        })
    }
}

/// The uptime at `time.now` by the clock of the newest memory of a PodAutoscaler: a plan that goes on from another one
/// is so much later.
fn carried_uptime(document: &SnapshotDocument) -> Option<Duration> {
    let now = WallTime(document.time.now?.as_millisecond());
    let states = document.pod_autoscalers.iter();
    let states = states.filter_map(|one| one.state.as_ref());
    let moments = states.flat_map(|state| moments("", state));
    // A plan without `now` was made at the start of 1970, which is no time to count from.
    let dated = moments.filter(|(_, moment)| moment.wall > WallTime(0));
    dated.map(|(_, moment)| moment.monotonic.saturating_add(now.since(moment.wall))).max()
}

#[derive(Debug)]
pub(super) struct Reader {
    pub(super) now: Moment,
    pub(super) lag: Duration,
    pub(super) bands: FreshnessBands,
    faults: Vec<DocumentFault>,
}

impl Reader {
    fn new(document: &SnapshotDocument, bands: FreshnessBands) -> Self {
        let stated = document.time.uptime.map(|span| span.0);
        let uptime = stated.or_else(|| carried_uptime(document));
        let uptime = uptime.unwrap_or(DEFAULT_UPTIME);
        let wall = document.time.now.map_or(0, jiff::Timestamp::as_millisecond);
        let mut reader = Self {
            now: Moment { monotonic: uptime, wall: WallTime(wall) },
            lag: document.collection.ago.unwrap_or_default().0,
            bands,
            faults: Vec::new(),
        };
        if document.collection.state == CollectionState::Never && document.collection.ago.is_some()
        {
            reader.fault(
                "collection.ago",
                "what was never collected did not end; drop ago, or the state never",
            );
        }
        if reader.lag > uptime {
            reader.fault(
                "collection.ago",
                format!(
                    "{} s ago the process did not run; write at most time.uptime, {} s",
                    reader.lag.as_secs(),
                    uptime.as_secs()
                ),
            );
        }
        reader
    }

    pub(super) fn fault(&mut self, path: impl Into<String>, why: impl Into<String>) {
        self.faults.push(DocumentFault { path: path.into(), why: why.into() });
    }

    /// No count is larger than those that the API server stores. `object` states it.
    pub(super) fn check_count(&mut self, path: String, count: Option<u32>, object: &str) {
        if let Some(count) = count.filter(|count| *count > CEILING.0) {
            let why = format!(
                "{count} replicas are more than there can be; write at most {CEILING} ({object})"
            );
            self.fault(path, why);
        }
    }

    pub(super) fn before(&self, length: Duration) -> Moment {
        Moment {
            monotonic: self.now.monotonic.saturating_sub(length),
            wall: self.now.wall.earlier(length),
        }
    }

    fn metrics(
        &mut self,
        document: &SnapshotDocument,
        variants: &[VariantView],
    ) -> MetricsSnapshot {
        self.check_models(document, variants);
        if document.collection.state == CollectionState::Never {
            return MetricsSnapshot::never();
        }
        let mut metrics = MetricsSnapshot {
            failures: document.collection.failures.clone(),
            ..MetricsSnapshot::empty(Some(self.before(self.lag)))
        };
        for (index, variant) in document.variants.iter().enumerate() {
            let model = ModelKey::new(Arc::clone(&variant.namespace), Arc::clone(&variant.model));
            for (number, pod) in variant.pods.iter().enumerate() {
                let path = format!("variants[{index}].pods[{number}].signals");
                let samples = self.samples(&path, &pod.signals);
                if samples != PodSamples::default() {
                    let pods = metrics.models.entry(model.clone()).or_default();
                    pods.insert(Arc::clone(&pod.name), samples);
                }
            }
        }
        metrics.routers = self.routers(document);
        metrics
    }

    /// The sample of a reading whose age counts from `lag` ago.
    pub(super) fn sample(
        &mut self,
        path: &str,
        reading: DocumentReading,
        quantity: Quantity,
        lag: Duration,
    ) -> Option<Sample> {
        let judged = reading.sample(&self.bands, lag).and_then(|sample| {
            let stated = sample.filter(|_| reading.why.is_none());
            stated.map_or(Ok(()), |sample| quantity.check(sample.value))?;
            Ok(sample)
        });
        judged.unwrap_or_else(|why| {
            self.fault(path, why);
            None
        })
    }

    fn samples(&mut self, path: &str, signals: &SignalsDocument) -> PodSamples {
        let lag = self.lag;
        let samples = signals.map(&mut |field, reading, quantity| {
            self.sample(&format!("{path}.{field}"), reading, quantity, lag)
        });
        self.check_mean(path, signals, &samples.ranks);
        samples
    }

    /// What a replica holds is the mean of what its ranks hold: by tokens those count, by percentages
    /// the mean does.
    fn check_mean(
        &mut self,
        path: &str,
        signals: &SignalsDocument,
        ranks: &BTreeMap<Arc<str>, RankSamples>,
    ) {
        let own = signals.kv_usage.and_then(|reading| reading.value);
        let usage = |rank: &RankSamples| Some(rank.kv_usage?.value).filter(|kv| kv.is_finite());
        let held = ranks.values().map(usage);
        let held: Option<Vec<f64>> = held.collect();
        let (Some(own), Some(held)) = (own, held.filter(|held| !held.is_empty())) else {
            return;
        };
        let least = held.iter().copied().fold(f64::INFINITY, f64::min);
        let most = held.iter().copied().fold(0.0, f64::max);
        if own < least - ROUNDING || own > most + ROUNDING {
            self.fault(
                format!("{path}.kvUsage"),
                format!(
                    "{own} is not the mean of what its ranks hold, {least} to {most}; write the mean, \
                     or leave it out"
                ),
            );
        }
    }

    pub(super) fn check_pods(&mut self, path: &str, pods: &[PodDocument]) {
        let mut names = BTreeSet::new();
        for (index, pod) in pods.iter().enumerate() {
            if !names.insert(&pod.name) {
                self.fault(
                    format!("{path}.pods[{index}].name"),
                    format!("{:?} stands twice; give each pod its own name", pod.name),
                );
            }
            if let Err(error) = check_object_name(&pod.name) {
                self.fault(
                    format!("{path}.pods[{index}].name"),
                    format!("{error}; write a valid name"),
                );
            }
            if let Some(ready_for) = pod.ready_for {
                let why = match pod.age {
                    _ if !pod.ready => "a pod that is not ready has been so for no time; drop it",
                    Some(age) if ready_for > age => {
                        "it is longer than age; no pod is ready before it is created"
                    }
                    _ => continue,
                };
                self.fault(format!("{path}.pods[{index}].readyFor"), why);
            }
        }
    }

    fn inventory(
        &mut self,
        inventory: &InventoryDocument,
        variants: &[VariantView],
    ) -> Option<GpuInventory> {
        let InventoryDocument { unknown, types, nodes, pods } = inventory;
        match (unknown, types, nodes, pods) {
            (Some(why), None, None, None) => Some(GpuInventory::Unknown { why: Arc::clone(why) }),
            (None, Some(types), None, None) => Some(sums(types, variants)),
            (None, None, Some(nodes), Some(pods)) => Some(GpuInventory::Nodes {
                nodes: nodes.clone(),
                pods: pods.iter().map(gpu_pod).collect(),
            }),
            _ => {
                self.fault(
                    "inventory",
                    "write either types, or nodes with pods, or unknown with a reason",
                );
                None
            }
        }
    }
}

fn gpu_pod(pod: &super::GpuPodDocument) -> GpuPod {
    let name = pod.name.as_deref().and_then(|name| name.split_once('/'));
    GpuPod {
        named: name.map(|(namespace, name)| (namespace.into(), name.into())),
        node: pod.node.clone(),
        phase: match (pod.finished, pod.terminating) {
            (true, _) => PodPhase::Finished,
            (false, true) => PodPhase::Leaving,
            (false, false) => PodPhase::Active,
        },
        containers: pod.containers.clone(),
        init_containers: pod.init_containers.clone(),
    }
}
