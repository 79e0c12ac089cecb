//! A recording as the frames that the page draws.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::{autoscaler_step, step, time};
use crate::policy::key::{ModelKey, ObjectKey, VariantKey};
use crate::policy::pod_autoscaler::demand::AutoscaledPod;
use crate::policy::samples::{PodSamples, Sample};
use crate::policy::signal::Signal;
use crate::policy::slo::SloGoal;
use crate::policy::snapshot::VariantView;
use crate::policy::units::Replicas;
use wva_base::moment::WallTime;
use wva_recording::{
    RecordedAutoscaler, RecordedCycle, RecordedEntry, RecordingError, RecordingReader,
};

/// How large a film becomes. Past it every other frame goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilmLimits {
    /// Most frames.
    pub(crate) frames: usize,
    /// Most variants of all frames together. A single frame may have more.
    pub(crate) rows: usize,
}

/// A page of a few megabytes: 50 variants have every frame.
const LIMITS: FilmLimits = FilmLimits { frames: 600, rows: 30_000 };

/// What the page draws. Names of fields are those of the demo's frames.
#[derive(Debug, Default, Serialize)]
pub(crate) struct RecordedFilm {
    /// The version that recorded.
    run: String,
    frames: Vec<Shot>,
    latest: Option<Shot>,
    /// Changes of published counts, also between two frames.
    changes: usize,
    /// Cost of the replicas that existed: `variantCost` times hours.
    cost: f64,
}

#[derive(Debug, Clone, Serialize)]
struct Shot {
    number: usize,
    /// Since the first cycle.
    seconds: f64,
    frame: FilmFrame,
}

#[derive(Debug, Clone, Serialize)]
struct FilmFrame {
    at: String,
    cost_per_hour: f64,
    models: Vec<FilmModel>,
}

/// Means over the pods that report them.
#[derive(Debug, Clone, Default, Serialize)]
struct FilmModel {
    name: String,
    rate: Option<f64>,
    held: Option<f64>,
    queue: Option<f64>,
    kv_usage: Option<f64>,
    first_token_mean_ms: Option<f64>,
    per_token_mean_ms: Option<f64>,
    /// First token, between tokens.
    slo_ms: (f64, f64),
    /// Of a `PodAutoscaler`, instead of what a model has.
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<String>,
    variants: Vec<FilmVariant>,
}

#[derive(Debug, Clone, Serialize)]
struct FilmVariant {
    name: Arc<str>,
    accelerator: String,
    /// `None` with the cost where a `PodAutoscaler` scales it, which states neither.
    gpus: Option<f64>,
    cost: Option<f64>,
    desired: Option<i32>,
    scaled_to: Option<i32>,
    ready: Option<i32>,
    pending: Option<i32>,
    /// The last change of the published count.
    #[serde(flatten)]
    change: Option<Arc<CountChange>>,
}

#[derive(Debug, Default, Serialize)]
struct CountChange {
    /// When it was decided.
    action: String,
    why: String,
    steps: Vec<String>,
}

/// Published counts with their last changes.
type Counts<K> = BTreeMap<K, (Option<Replicas>, Arc<CountChange>)>;

/// The last decision on each `PodAutoscaler`.
#[derive(Debug, Default)]
struct Autoscaled {
    last: BTreeMap<ObjectKey, Box<RecordedAutoscaler>>,
    counts: Counts<ObjectKey>,
}

/// A `PodAutoscaler` without a decision for so long is in conflict, invalid or gone: they are ten seconds apart.
const SILENT: Duration = Duration::from_mins(1);

/// Reads a recording.
///
/// # Errors
/// It cannot be read, or has no cycle.
pub(crate) fn film<R: Read>(reader: &mut RecordingReader<R>) -> Result<RecordedFilm, String> {
    film_within(reader, LIMITS)
}

/// The same within these limits.
///
/// # Errors
/// It cannot be read, or has no cycle.
pub(crate) fn film_within<R: Read>(
    reader: &mut RecordingReader<R>,
    limits: FilmLimits,
) -> Result<RecordedFilm, String> {
    let mut film = RecordedFilm::default();
    let mut counts = Counts::new();
    let mut autoscaled = Autoscaled::default();
    let (mut begin, mut number, mut every) = (None, 0_usize, 1_usize);
    loop {
        let cycle = match reader.next_entry() {
            Ok(Some(RecordedEntry::Cycle(cycle))) => cycle,
            Ok(Some(RecordedEntry::Autoscaler(recorded))) => {
                film.changes = film.changes.saturating_add(autoscaled.take(recorded));
                continue;
            }
            Ok(None) => break,
            // What comes before is whole.
            Err(RecordingError::Truncated) if number > 0 => break,
            Err(error) => return Err(error.to_string()),
        };
        let seconds = seconds(*begin.get_or_insert(cycle.now.wall), cycle.now.wall);
        film.changes = film.changes.saturating_add(take(&mut counts, &cycle));
        let mut frame = frame(&cycle, &counts);
        frame.models.extend(autoscaled.models(cycle.now.wall));
        if let Some(before) = &film.latest {
            film.cost += before.frame.cost_per_hour * (seconds - before.seconds) / 3_600.0;
        }
        let shot = Shot { number, seconds, frame };
        if number.is_multiple_of(every) {
            film.frames.push(shot.clone());
        }
        film.latest = Some(shot);
        number = number.saturating_add(1);
        while film.exceeds(limits) {
            film.thin();
            every = every.saturating_mul(2);
        }
    }
    if film.latest.is_none() {
        let why = if autoscaled.last.is_empty() {
            "the recording has no cycle; name one of a controller that has decided"
        } else {
            "the recording has decisions about PodAutoscalers alone, and a frame of the page is a cycle of \
             variants; wva replay repeats them"
        };
        return Err(why.to_owned());
    }
    let header = reader.header();
    film.run = header.map_or_else(String::new, |header| header.version.clone());
    drop_repeated(&mut film.frames);
    Ok(film)
}

impl RecordedFilm {
    fn exceeds(&self, limits: FilmLimits) -> bool {
        let frames = self.frames.len();
        let models = self.frames.iter().flat_map(|shot| &shot.frame.models);
        let rows: usize = models.map(|model| model.variants.len()).sum();
        frames > limits.frames || frames > 1 && rows > limits.rows
    }

    fn thin(&mut self) {
        let mut place = 0_usize;
        self.frames.retain(|_| {
            place = place.saturating_add(1);
            !place.is_multiple_of(2)
        });
    }
}

/// Takes in what a cycle decided. Returns how many counts changed.
fn take(counts: &mut Counts<VariantKey>, cycle: &RecordedCycle) -> usize {
    counts.retain(|key, _| cycle.decided.variants.contains_key(key));
    let mut changes = 0_usize;
    for (key, decision) in &cycle.decided.variants {
        let one = count(counts, key, decision.target, || CountChange {
            action: time(cycle.now.wall),
            why: decision.to_string(),
            steps: decision.steps.iter().map(step).collect(),
        });
        changes = changes.saturating_add(one);
    }
    changes
}

/// Takes in one count. Returns how many changed: one or none.
fn count<K: Ord + Clone>(
    counts: &mut Counts<K>,
    key: &K,
    target: Option<Replicas>,
    change: impl FnOnce() -> CountChange,
) -> usize {
    let before = counts.get(key).map(|(target, _)| *target);
    if before == Some(target) {
        return 0;
    }
    counts.insert(key.clone(), (target, Arc::new(change())));
    usize::from(before.flatten().is_some() && target.is_some())
}

impl Autoscaled {
    /// Takes in a decision. Returns how many counts changed.
    fn take(&mut self, recorded: Box<RecordedAutoscaler>) -> usize {
        let (key, decided) = (recorded.key(), &recorded.decided);
        let changed = count(&mut self.counts, &key, Some(decided.desired), || {
            let steps = decided.steps.iter();
            CountChange {
                action: time(recorded.now.wall),
                why: decided.to_string(),
                steps: steps.map(autoscaler_step).collect(),
            }
        });
        self.last.insert(key, recorded);
        changed
    }

    /// Each as a model of one variant. What is no longer decided on stays as it was, with the time of its last
    /// decision: a recording does not say why there is none.
    fn models(&self, now: WallTime) -> Vec<FilmModel> {
        let models = self.last.iter().map(|(key, recorded)| {
            let mut model = autoscaled(key, recorded, self.counts.get(key));
            let decided = recorded.now.wall;
            if let Some(facts) = &mut model.facts
                && now.since(decided) >= SILENT
            {
                write!(facts, ", no decision since {}", time(decided)).unwrap_or_default();
            }
            model
        });
        models.collect()
    }
}

fn autoscaled(
    key: &ObjectKey,
    recorded: &RecordedAutoscaler,
    count: Option<&(Option<Replicas>, Arc<CountChange>)>,
) -> FilmModel {
    let (view, spec) = (recorded.view(), &recorded.object.spec);
    let pods = |is: fn(&AutoscaledPod) -> bool| {
        let pods = view.pods.values().filter(|pod| is(pod)).count();
        i32::try_from(pods).ok()
    };
    let (least, most) = (spec.min_replicas.unwrap_or(1), spec.max_replicas);
    let most = most.unwrap_or_default();
    FilmModel {
        // A model may have the same name.
        name: format!("PodAutoscaler {key}"),
        held: view.held.and_then(Signal::value),
        facts: Some(format!("{}, {least} to {most} replicas", spec.scaling_strategy)),
        variants: vec![FilmVariant {
            name: Arc::clone(&spec.scale_target_ref.name),
            accelerator: String::new(),
            gpus: None,
            cost: None,
            desired: count.and_then(|(target, _)| target.map(Replicas::to_count)),
            scaled_to: Some(view.current.to_count()),
            ready: pods(|pod| matches!(pod, AutoscaledPod::Ready { .. })),
            pending: pods(|pod| matches!(pod, AutoscaledPod::Pending)),
            change: count.map(|(_, change)| Arc::clone(change)),
        }],
        ..FilmModel::default()
    }
}

/// A change is shown once, with the first frame after it.
fn drop_repeated(frames: &mut [Shot]) {
    let mut shown: BTreeMap<(String, Arc<str>), Arc<CountChange>> = BTreeMap::new();
    for model in frames.iter_mut().flat_map(|shot| &mut shot.frame.models) {
        for variant in &mut model.variants {
            let Some(change) = variant.change.take() else {
                continue;
            };
            let key = (model.name.clone(), Arc::clone(&variant.name));
            let before = shown.insert(key, Arc::clone(&change));
            if before.is_none_or(|before| !Arc::ptr_eq(&before, &change)) {
                variant.change = Some(change);
            }
        }
    }
}

fn frame(cycle: &RecordedCycle, counts: &Counts<VariantKey>) -> FilmFrame {
    let mut models: BTreeMap<&ModelKey, FilmModel> = BTreeMap::new();
    let mut cost_per_hour = 0.0;
    for (key, view) in &cycle.snapshot.variants {
        let variant = variant(view, counts.get(key));
        cost_per_hour +=
            variant.cost.unwrap_or_default() * variant.scaled_to.map_or(0.0, f64::from);
        let model = models.entry(&view.model);
        let model = model.or_insert_with(|| model_of(cycle, view));
        model.variants.push(variant);
    }
    FilmFrame { at: time(cycle.now.wall), cost_per_hour, models: models.into_values().collect() }
}

fn variant(
    view: &VariantView,
    count: Option<&(Option<Replicas>, Arc<CountChange>)>,
) -> FilmVariant {
    let target = view.target.resolved();
    let current = target.map(|target| target.current.to_count());
    let ready = target.map(|target| target.ready.to_count());
    FilmVariant {
        name: Arc::clone(&view.key.name),
        accelerator: view.accelerator.label().to_owned(),
        gpus: Some(view.template.gpus_per_replica().to_f64()),
        cost: Some(view.cost.millionths() / 1e6),
        desired: count.and_then(|(target, _)| target.map(Replicas::to_count)),
        scaled_to: current,
        ready,
        pending: current.zip(ready).map(|(current, ready)| current.saturating_sub(ready).max(0)),
        change: count.map(|(_, change)| Arc::clone(change)),
    }
}

/// A model without its variants.
fn model_of(cycle: &RecordedCycle, view: &VariantView) -> FilmModel {
    let metrics = &cycle.snapshot.metrics;
    let pods = metrics.models.get(&view.model);
    let router = metrics.routers.get(&view.model);
    let values = |read: fn(&PodSamples) -> Option<Sample>| {
        let pods = pods.into_iter().flat_map(BTreeMap::values);
        pods.filter_map(read)
            .map(|sample| sample.value)
            .filter(|value| value.is_finite())
            .collect::<Vec<f64>>()
    };
    let mean = |read| {
        let values = values(read);
        let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
        (count > 0).then(|| values.iter().sum::<f64>() / f64::from(count))
    };
    let sum = |read| {
        let values = values(read);
        (!values.is_empty()).then(|| values.iter().sum::<f64>())
    };
    let of_router = |sample: Option<Sample>| sample.map(|sample| sample.value);
    let variants = cycle.snapshot.variants.values();
    let variants = variants.filter(|other| other.model == view.model);
    let classes = variants.filter_map(|other| other.template.service_class.as_deref());
    let goal = SloGoal::from(cycle.settings.latency_goal(&view.model, classes));
    let milliseconds = |seconds: f64| seconds * 1e3;
    FilmModel {
        name: format!("{}/{}", view.model.namespace, view.model.model),
        rate: router
            .and_then(|router| of_router(router.arrival_rate))
            .or_else(|| sum(|pod| pod.arrival_rate.or(pod.completion_rate))),
        held: router.and_then(|router| of_router(router.queue_requests)),
        queue: mean(|pod| pod.queue_length),
        kv_usage: mean(|pod| pod.kv_usage),
        first_token_mean_ms: mean(|pod| pod.time_to_first_token).map(milliseconds),
        per_token_mean_ms: mean(|pod| pod.inter_token_latency).map(milliseconds),
        slo_ms: (milliseconds(goal.time_to_first_token), milliseconds(goal.inter_token_latency)),
        facts: None,
        variants: Vec::new(),
    }
}

fn seconds(from: WallTime, to: WallTime) -> f64 {
    let milliseconds = u64::try_from(to.0.saturating_sub(from.0)).unwrap_or_default();
    Duration::from_millis(milliseconds).as_secs_f64()
}
