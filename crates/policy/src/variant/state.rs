//! From projected facts to the next view of one variant.

use std::sync::Arc;
use std::time::Duration;

use super::clock::Clocks;
use crate::accelerator;
use crate::accelerator::{Accelerator, Placement};
use crate::gpu::GpuCount;
use crate::key::{ModelKey, TargetKey, VariantKey};
use crate::object::{Lifecycle, SpecReading, TargetObject, VariantObject, VariantSpec};
use crate::scaler::Scalers;
use crate::snapshot::{
    DeclaredBounds, GenerationState, PodView, ReplicaTemplate, ResolvedTarget, RouterPresence,
    TargetPast, TargetView, VariantView,
};
use crate::units::{Cost, Replicas};
use wva_base::moment::Moment;

/// How long a target that is not there is looked for again before that is said. Object and target
/// are seen through two watches, and either may be a moment ahead.
const SECOND_LOOK: Duration = Duration::from_millis(250);

/// What is said of a kind that stands for itself, and of a version that is none.
const NO_VERSION: &str = "set scaleTargetRef.kind to Deployment, StatefulSet or LeaderWorkerSet, or scaleTargetRef.apiVersion to the group/version of a kind with a scale subresource";

/// How often a target is looked for while the API server does not answer.
const UNANSWERED_RETRY: Duration = Duration::from_secs(1);

/// Everything that concerns one variant, as its mirrors hold it now.
#[derive(Debug, Clone, Copy)]
pub struct VariantObjects<'a> {
    /// The object.
    pub object: &'a VariantObject,
    /// Its scale target.
    pub target: TargetLookupRef<'a>,
    /// The live pods of the target, sorted by name; `None` while mirrors of pods and their owners are not filled.
    pub pods: Option<&'a Arc<[PodView]>>,
    /// All variants that name the target, sorted, this one included.
    pub claimants: &'a [VariantKey],
    /// An older object of another kind that scales the target.
    pub owner: Option<&'a Arc<str>>,
    /// Younger objects of another kind that name the target, and give way.
    pub yielding: &'a [Arc<str>],
    /// The count that this process exposed last for the variant; `None` before it exposed one and
    /// once it withdrew it. It outranks the stored one, which lags behind, and for long where status
    /// cannot be written.
    pub published: Option<Replicas>,
    /// What scales the target.
    pub scalers: &'a Scalers,
}

/// The outcome of looking a target up.
#[derive(Debug, Clone, Copy)]
pub enum TargetLookupRef<'a> {
    /// The mirror of its kind has not been filled yet.
    Unsynced,
    /// The mirror does not hold it, and the API server has not answered since something failed.
    Unanswered,
    /// The mirror does not hold it.
    Missing,
    /// Its kind cannot be scaled, for this reason and until this is done.
    Unscalable(&'a Arc<str>),
    /// Here it is.
    Found(&'a TargetObject),
}

/// The outcome of a refresh.
#[derive(Debug, Clone)]
pub struct Refreshed {
    /// The view to publish; the same `Arc` as before where nothing has changed.
    pub view: Arc<VariantView>,
    /// After this time the facts want to be looked at again, changed or not.
    pub look_again: Option<Duration>,
}

/// What one variant's actor remembers between refreshes.
#[derive(Debug, Clone)]
pub struct VariantState {
    key: VariantKey,
    last: Option<Arc<VariantView>>,
    clocks: Clocks,
    target_uid: Option<Arc<str>>,
    /// Whether the target was looked for in vain: once, it may only be late.
    was_missing: bool,
    /// Whether the target that the count in the object's status is about is gone, and status does not say so yet.
    is_outlived: bool,
    /// The target that was there last.
    existed: Option<TargetKey>,
}

impl VariantState {
    /// Begins a life. `published` is the view that an earlier life of the same variant published in
    /// this process, if there was one: its clocks go on.
    pub fn new(key: VariantKey, published: Option<Arc<VariantView>>) -> Self {
        let clocks = published.as_deref().map_or_else(Clocks::default, Clocks::resume);
        let target = published.as_deref().map(|view| &view.target);
        let is_gone = matches!(target, Some(TargetView::NotFound { .. }));
        let existed = match target {
            Some(TargetView::Resolved(target)) => Some(target.key.clone()),
            Some(TargetView::NotFound { target, past: TargetPast::Existed }) => {
                Some(target.clone())
            }
            _ => None,
        };
        Self {
            key,
            clocks,
            target_uid: None,
            last: published,
            was_missing: is_gone,
            is_outlived: is_gone,
            existed,
        }
    }

    /// Joins the facts into the next view.
    pub fn refresh(&mut self, objects: &VariantObjects<'_>, now: Moment) -> Refreshed {
        let is_of_another = |last: &Arc<VariantView>| last.uid != objects.object.uid;
        if self.last.as_ref().is_some_and(is_of_another) {
            // Of another object with this name nothing goes on.
            *self = Self::new(self.key.clone(), None);
        }
        let spec = match read(objects.object) {
            Ok(spec) => spec,
            Err(why) => return self.malformed(objects, why),
        };
        let target = self.target(objects, spec);
        let look_again = match (&target, objects.target) {
            (TargetView::Unknown { .. }, TargetLookupRef::Missing | TargetLookupRef::Found(_)) => {
                Some(SECOND_LOOK)
            }
            (TargetView::Unknown { .. }, TargetLookupRef::Unanswered) => Some(UNANSWERED_RETRY),
            _ => None,
        };
        let (cost, mut notes) = cost(spec);
        if let (TargetView::Resolved(target), false) = (&target, objects.yielding.is_empty()) {
            let (kind, name) = (&target.key.kind, &target.key.name);
            let others = objects.yielding.join(", ");
            let note = format!(
                "scale target {kind} {name} is also named by {others}; this object scales it, remove the others"
            );
            notes = notes.iter().cloned().chain([note.into()]).collect();
        }
        let stored = self.stored(objects);
        let mut view = VariantView {
            key: self.key.clone(),
            uid: Arc::clone(&objects.object.uid),
            generation: objects.object.generation,
            model: ModelKey::new(Arc::clone(&self.key.namespace), Arc::clone(&spec.model_id)),
            cost,
            accelerator: self.accelerator(objects, &target),
            template: self.template(objects, &target),
            bounds: DeclaredBounds {
                min: spec.min.map(Replicas::from_count),
                max: spec.max.map(Replicas::from_count),
            },
            policy: spec.policy.clone(),
            desired: objects.published.or(stored),
            target,
            pods: Arc::from([]),
            pending_since: None,
            unapplied_since: None,
            notes,
            scalers: objects.scalers.clone(),
            router: RouterPresence::Possible,
        };
        self.complete(&mut view, objects, now);
        Refreshed { view: self.publish(view), look_again }
    }

    /// Keeps what the object last said in good order, and says what is wrong with it now.
    fn malformed(&mut self, objects: &VariantObjects<'_>, why: Arc<str>) -> Refreshed {
        let stored = &objects.object.stored;
        let target = TargetView::Malformed { why };
        let unseen = || {
            let model = ModelKey::new(Arc::clone(&self.key.namespace), "");
            VariantView {
                uid: Arc::clone(&objects.object.uid),
                accelerator: stated(stored.accelerator.as_ref())
                    .or_else(|| stated(objects.object.accelerator_label.as_ref()))
                    .unwrap_or(Accelerator::Unresolved),
                ..VariantView::new(self.key.clone(), model, target.clone())
            }
        };
        let mut view = self.last.as_deref().cloned().unwrap_or_else(unseen);
        view.desired = objects.published.or(stored.desired).or(view.desired);
        view.generation = objects.object.generation;
        view.target = target;
        view.pods = Arc::from([]);
        view.pending_since = None;
        view.unapplied_since = None;
        Refreshed { view: self.publish(view), look_again: None }
    }

    fn target(&mut self, objects: &VariantObjects<'_>, spec: &VariantSpec) -> TargetView {
        let Some(key) = spec.target.resolve(&self.key.namespace) else {
            return unsupported(spec, &Arc::from(NO_VERSION));
        };
        if objects.claimants.len() > 1 || objects.owner.is_some() {
            return TargetView::Contested {
                target: key,
                claimants: objects.claimants.into(),
                owner: objects.owner.cloned(),
            };
        }
        match objects.target {
            TargetLookupRef::Found(target) if target.lifecycle == Lifecycle::Live => {
                self.was_missing = false;
                self.existed = Some(key);
                TargetView::Resolved(scale(target))
            }
            TargetLookupRef::Found(_) | TargetLookupRef::Missing => self.missing(key, objects),
            TargetLookupRef::Unscalable(why) => unsupported(spec, why),
            // What was concluded from a mirror with answers stays until there are answers again.
            TargetLookupRef::Unanswered if self.was_missing => self.not_found(key, objects),
            TargetLookupRef::Unsynced | TargetLookupRef::Unanswered => {
                TargetView::Unknown { target: key }
            }
        }
    }

    /// Not found is said at the second look; see [`SECOND_LOOK`].
    fn missing(&mut self, target: TargetKey, objects: &VariantObjects<'_>) -> TargetView {
        if self.was_missing {
            return self.not_found(target, objects);
        }
        self.was_missing = true;
        TargetView::Unknown { target }
    }

    /// A count in the status was decided for a target that was there, which a new process
    /// goes by.
    fn not_found(&mut self, target: TargetKey, objects: &VariantObjects<'_>) -> TargetView {
        if self.existed.is_none() && objects.object.stored.desired.is_some() {
            self.existed = Some(target.clone());
        }
        let past = if self.existed.as_ref() == Some(&target) {
            TargetPast::Existed
        } else {
            TargetPast::Unseen
        };
        TargetView::NotFound { target, past }
    }

    fn stored(&mut self, objects: &VariantObjects<'_>) -> Option<Replicas> {
        let stored = objects.object.stored.desired;
        if stored.is_none() || stored == objects.published {
            self.is_outlived = false;
        }
        stored.filter(|_| !self.is_outlived)
    }

    fn complete(&mut self, view: &mut VariantView, objects: &VariantObjects<'_>, now: Moment) {
        match (&view.target, objects.target) {
            (TargetView::Resolved(target), TargetLookupRef::Found(object)) => {
                if self.target_uid.as_ref().is_some_and(|uid| *uid != object.uid) {
                    self.clocks = Clocks::default();
                }
                self.target_uid = Some(Arc::clone(&object.uid));
                let pods = objects.pods;
                self.clocks.advance(target, view.desired, pods.map(|pods| &**pods), now);
                view.pods = pods.cloned().unwrap_or_else(|| Arc::from([]));
                view.pending_since = self.clocks.pending_since();
                view.unapplied_since = self.clocks.unapplied_since();
            }
            (TargetView::NotFound { .. }, _) => {
                self.clocks = Clocks::default();
                self.target_uid = None;
                self.is_outlived = true;
                view.desired = None;
            }
            _ => {}
        }
    }

    /// By the target where it is seen; otherwise what was known last stays, so that no series
    /// changes its labels because a mirror is empty.
    fn accelerator(&self, objects: &VariantObjects<'_>, target: &TargetView) -> Accelerator {
        let label = objects.object.accelerator_label.as_ref();
        match (target, objects.target) {
            (TargetView::Resolved(_), TargetLookupRef::Found(target)) => {
                let shown = self.shown(target).map(|view| view.accelerator.clone());
                shown.unwrap_or_else(|| accelerator::resolve(&target.placement, label))
            }
            _ => self
                .last
                .as_deref()
                .map(|view| view.accelerator.clone())
                .or_else(|| stated(objects.object.stored.accelerator.as_ref()))
                .unwrap_or_else(|| accelerator::resolve(&Placement::default(), label)),
        }
    }

    /// What pods of the target showed while there were any, where nothing shows what a replica holds.
    fn shown(&self, target: &TargetObject) -> Option<&VariantView> {
        self.last.as_deref().filter(|view| {
            let was_known = view.template.gpu_count != GpuCount::Unknown;
            let before = view.target.resolved();
            target.template.gpu_count == GpuCount::Unknown
                && was_known
                && before.is_some_and(|before| before.key == target.key)
        })
    }

    /// As with the accelerator, what was seen last stays while nothing is seen.
    fn template(&self, objects: &VariantObjects<'_>, target: &TargetView) -> ReplicaTemplate {
        let last = self.last.as_deref();
        match (target, objects.target) {
            (TargetView::Resolved(_), TargetLookupRef::Found(target)) => {
                let shown = self.shown(target);
                shown.map_or_else(|| target.template.clone(), |view| view.template.clone())
            }
            _ => last.map(|view| view.template.clone()).unwrap_or_default(),
        }
    }

    fn publish(&mut self, view: VariantView) -> Arc<VariantView> {
        match &self.last {
            Some(last) if **last == view => Arc::clone(last),
            _ => {
                let view = Arc::new(view);
                self.last = Some(Arc::clone(&view));
                view
            }
        }
    }
}

fn stated(name: Option<&Arc<str>>) -> Option<Accelerator> {
    name.filter(|name| !name.is_empty() && &***name != Accelerator::Unresolved.label())
        .map(|name| Accelerator::Named(Arc::clone(name)))
}

/// The specification of an object, if it makes sense. Checks again what the schema guards: the
/// schema in the cluster may be older.
///
/// # Errors
/// The field, its value and the remedy.
pub fn read(object: &VariantObject) -> Result<&VariantSpec, Arc<str>> {
    let spec = match &object.spec {
        SpecReading::Read(spec) => spec,
        SpecReading::Malformed { why } => return Err(Arc::clone(why)),
    };
    let key = &object.key;
    if spec.model_id.is_empty() {
        return Err(format!(
            "{key}: spec.modelID is empty; set it to the model name that the engine reports"
        )
        .into());
    }
    if spec.model_id.chars().any(char::is_control) {
        return Err(format!(
            "{key}: spec.modelID {:?} contains a control character, which no engine's series is read with; set it to the model name that the engine reports",
            &*spec.model_id
        )
        .into());
    }
    if spec.target.name.is_empty() {
        return Err(format!(
            "{key}: spec.scaleTargetRef.name is empty; set it to the name of the {} in {} that serves the model",
            spec.target.kind, key.namespace
        )
        .into());
    }
    match (spec.min, spec.max) {
        (Some(min), _) if min < 0 => {
            Err(format!("{key}: spec.minReplicas is {min}; it must be at least 0").into())
        }
        (_, Some(max)) if max < 1 => {
            Err(format!("{key}: spec.maxReplicas is {max}; it must be at least 1").into())
        }
        _ => Ok(spec),
    }
}

/// The cost, and a note where it cannot be read.
fn cost(spec: &VariantSpec) -> (Cost, Arc<[Arc<str>]>) {
    let stated = spec.cost.as_deref().filter(|text| !text.is_empty());
    match stated.map(Cost::parse).transpose() {
        Ok(cost) => (cost.unwrap_or(Cost::DEFAULT), Arc::from([])),
        Err(invalid) => (Cost::DEFAULT, Arc::from([Arc::from(invalid.to_string())])),
    }
}

fn unsupported(spec: &VariantSpec, why: &Arc<str>) -> TargetView {
    let kind = match &spec.target.api_version {
        Some(version) => format!("{} ({version})", spec.target.kind).into(),
        None => Arc::clone(&spec.target.kind),
    };
    TargetView::UnsupportedKind { kind, name: Arc::clone(&spec.target.name), why: Arc::clone(why) }
}

fn scale(target: &TargetObject) -> ResolvedTarget {
    let current = match target.status_replicas {
        Replicas::ZERO => target.spec_replicas.unwrap_or(Replicas::ONE),
        replicas => replicas,
    };
    ResolvedTarget {
        key: target.key.clone(),
        current,
        surge: surge(target),
        ready: target.ready_replicas,
        generation: if target.observed_generation < target.generation {
            GenerationState::Lagging
        } else {
            GenerationState::Observed
        },
    }
}

/// What a rollout has beyond what is asked for, while something is. Without a rollout, replicas beyond
/// that are being scaled away, and until they are the count that is asked for has not been applied.
fn surge(target: &TargetObject) -> Replicas {
    let asked = target.spec_replicas.filter(|asked| *asked > Replicas::ZERO);
    asked.map_or(Replicas::ZERO, |asked| {
        let beyond = target.status_replicas.saturating_sub(asked);
        beyond.min(target.outdated_replicas)
    })
}
