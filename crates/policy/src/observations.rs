//! What one collection teaches about engines, service times, analyzers and use.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::analyzers::{
    AnalyzedModel, AnalyzerConfig, AnalyzerInputs, InputsFor, analyzer_inputs, decision_mode,
    load_of, occupancy_of, opinions, waiting_of,
};
use super::backlog::Waiting;
use super::capacity::ServingRole;
use super::combine::Participation;
use super::group::{Group, group_by_model};
use super::key::{ModelKey, VariantKey};
use super::learned::Learned;
use super::sample_reader::SampleReader;
use super::scale_down_memory::{FleetState, Occupancy};
use super::snapshot::{ClusterSnapshot, PodView, VariantView};
use super::startup::StartOutlook;
use super::throughput;
use super::units::Replicas;
use super::zero::{Look, ModelLoad};
use crate::params::DynamicSettings;
use wva_base::moment::{Moment, Since};

/// What one collection says, model by model.
#[derive(Debug, Default)]
pub(super) struct Observations {
    voted: BTreeMap<ModelKey, (Vec<AnalyzerConfig>, AnalyzerInputs)>,
    loads: BTreeMap<ModelKey, ModelLoad>,
    /// What waits for each model, and how many requests each replica may have waiting.
    waiting: BTreeMap<ModelKey, (Waiting, f64)>,
    fleet_states: BTreeMap<ModelKey, BTreeMap<ServingRole, FleetState>>,
    /// Every variant: its model, how long it is kept once started from zero, and whether it is there.
    variants: BTreeMap<VariantKey, (ModelKey, Duration, Presence)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// It is to have none.
    AtZero,
    Wanted,
    /// It is to have some, and may have been at zero since the last collection.
    Started,
    Unknown,
}

impl Observations {
    /// What is known of use without samples: nothing, so that every model may be in use.
    pub(super) fn without_samples(
        snapshot: &ClusterSnapshot,
        before: &Learned,
        settings: &DynamicSettings,
        outlook: StartOutlook<'_>,
    ) -> Self {
        let mut observed = Self::default();
        for (key, group) in group_by_model(snapshot) {
            observed.loads.insert(key.clone(), ModelLoad::default());
            observed.add_variants(key, &group, before, settings, outlook);
        }
        observed
    }

    pub(super) fn of(
        snapshot: &ClusterSnapshot,
        before: &Learned,
        settings: &DynamicSettings,
        reader: SampleReader<'_>,
        outlook: StartOutlook<'_>,
    ) -> Self {
        let mut observed = Self::default();
        for (key, group) in group_by_model(snapshot) {
            let reader = reader.of_model(key);
            let subject = AnalyzedModel { members: &group.resolved, reader, outlook };
            let policy = settings.saturation.policy(key);
            let configs = decision_mode(settings, &policy).configs();
            if !configs.is_empty() && !group.resolved.is_empty() {
                let asked = (&*configs, InputsFor::Memory);
                let inputs = analyzer_inputs(key, subject, asked, settings, &policy);
                observed.voted.insert(key.clone(), (configs, inputs));
            }
            let may_rest = settings.may_go_to_zero(key) && !group.may_serve_unseen();
            let load = if may_rest { load_of(key, subject) } else { ModelLoad::default() };
            observed.loads.insert(key.clone(), load);
            let most = policy.thresholds.queue_length_threshold;
            (observed.waiting).insert(key.clone(), (waiting_of(key, subject), most));
            let roles =
                if group.unseen().is_empty() { fleet_states(subject) } else { BTreeMap::new() };
            observed.fleet_states.insert(key.clone(), roles);
            observed.add_variants(key, &group, before, settings, outlook);
        }
        observed
    }

    fn add_variants(
        &mut self,
        key: &ModelKey,
        group: &Group<'_>,
        before: &Learned,
        settings: &DynamicSettings,
        outlook: StartOutlook<'_>,
    ) {
        let retention = settings.scale_to_zero.retention(key);
        let hold = |variant| outlook.of(variant).estimate.pending_limit(retention);
        let resolved = group.resolved.iter().map(|(view, _)| *view);
        for view in resolved.chain(group.others.iter().copied()) {
            let presence = if is_started(view, before, outlook.now) {
                Presence::Started
            } else {
                presence(view)
            };
            let entry = (key.clone(), hold(&view.key), presence);
            self.variants.insert(view.key.clone(), entry);
        }
    }

    pub(super) fn throughput(&self) -> BTreeMap<ModelKey, &throughput::ThroughputModelInput> {
        self.inputs(|inputs| inputs.throughput.as_ref())
    }

    fn inputs<'a, T>(
        &'a self,
        of: impl Fn(&'a AnalyzerInputs) -> Option<T>,
    ) -> BTreeMap<ModelKey, T> {
        let voted = self.voted.iter();
        voted.filter_map(|(key, (_, inputs))| Some((key.clone(), of(inputs)?))).collect()
    }

    pub(super) fn update(self, before: Learned, now: Moment) -> Learned {
        let tokens = self.inputs(|inputs| Some(&inputs.tokens));
        let queueing = self.inputs(|inputs| Some(&inputs.queueing));
        let slo = self.inputs(|inputs| inputs.slo.as_ref());
        let mut next = before;
        next.throughput = next.throughput.learn(&self.throughput(), now);
        next.slo = next.slo.learn(&slo, now);
        next.tokens = next.tokens.learn(&tokens, now);
        next.queueing = next.queueing.learn(&queueing);
        let exists = |key: &VariantKey| self.variants.contains_key(key);
        next.backlogs = next.backlogs.learn(&self.waiting, now);
        next.router_backlogs = next.router_backlogs.learn(&self.waiting, now);
        next.relapses = next.relapses.learn(&self.fleet_states, now).keep(exists);
        self.update_analyzers(&mut next, now);
        self.update_use(&mut next, now);
        next
    }

    /// Notes who was asked and who was informative, by what is known now.
    fn update_analyzers(&self, next: &mut Learned, now: Moment) {
        let mut active = BTreeMap::new();
        for (key, (configs, inputs)) in &self.voted {
            let said = opinions(key, configs, inputs, next, now);
            active.insert(key.clone(), said.informative().collect());
        }
        next.analyzers = std::mem::take(&mut next.analyzers).learn(&active, now);
        let voters = self.voted.iter().map(|(key, (configs, _))| {
            let votes = |config: &&AnalyzerConfig| config.participation == Participation::Votes;
            let names = configs.iter().filter(votes).map(|config| config.analyzer);
            (key.clone(), names.collect())
        });
        next.asked = std::mem::take(&mut next.asked).learn(&voters.collect(), now);
    }

    pub(super) fn update_use(self, next: &mut Learned, now: Moment) {
        let (mut started, mut woken) = (BTreeSet::new(), BTreeSet::new());
        for (key, (model, _, presence)) in &self.variants {
            if *presence == Presence::Started {
                started.insert(key.clone());
                woken.insert(model.clone());
            }
        }
        let holds = self.variants.iter().map(|(key, (_, hold, _))| (key.clone(), *hold)).collect();
        let look = Look {
            now,
            after: next
                .collected
                .map_or(Duration::ZERO, |before| now.monotonic.saturating_sub(before)),
        };
        next.activity = std::mem::take(&mut next.activity).learn(&self.loads, &woken, look);
        next.wakes = std::mem::take(&mut next.wakes).learn(&started, &holds, now);
        next.at_zero = self
            .variants
            .into_iter()
            .filter(|(key, (_, _, presence))| match presence {
                Presence::AtZero => true,
                Presence::Wanted | Presence::Started => false,
                Presence::Unknown => next.at_zero.contains(key),
            })
            .map(|(key, _)| key)
            .collect();
    }
}

fn fleet_states(subject: AnalyzedModel<'_>) -> BTreeMap<ServingRole, FleetState> {
    let mut roles: BTreeMap<ServingRole, FleetState> = BTreeMap::new();
    for (view, target) in subject.members {
        let fleet_state = roles.entry(view.template.role).or_insert_with(FleetState::empty);
        let published = view.base().unwrap_or(target.current);
        fleet_state.published.insert(view.key.clone(), published);
        fleet_state.current.insert(view.key.clone(), target.current);
        fleet_state.occupancy = (fleet_state.occupancy)
            .zip(occupancy_of(subject, view))
            .map(|(one, other)| Occupancy(one.0 + other.0));
    }
    roles
}

/// Whether a variant was started from zero since the collection that was `learned` last: it was at zero
/// then, or may have been in between.
pub(super) fn is_started(view: &VariantView, learned: &Learned, now: Moment) -> bool {
    presence(view) == Presence::Wanted
        && (learned.at_zero.contains(&view.key) || is_new(view, learned, now))
}

/// Whether nothing of a variant that the last collection saw is as old as that collection: it went and
/// came back since, and of who asked for it the collection cannot know.
fn is_new(view: &VariantView, learned: &Learned, now: Moment) -> bool {
    let (Some(collected), Some(target)) = (learned.collected, view.target.resolved()) else {
        return false;
    };
    let since = now.monotonic.saturating_sub(collected);
    let is_late = |began: Option<Since>| began.is_some_and(|began| began.elapsed(now) < since);
    let mut pods = view.pods.iter();
    let is_new = if target.current == Replicas::ZERO {
        is_late(view.unapplied_since)
    } else if target.ready == Replicas::ZERO {
        is_late(view.pending_since) && pods.all(|pod| now.wall.since(pod.created) < since)
    } else {
        let is_young =
            |pod: &PodView| pod.ready_since.is_some() && now.wall.since(pod.created) < since;
        !view.pods.is_empty() && pods.all(is_young)
    };
    is_new && learned.reporting.contains_key(&view.key)
}

fn presence(view: &VariantView) -> Presence {
    match (view.base(), view.target.resolved()) {
        // Its last replica may not have gone yet.
        (Some(Replicas::ZERO), Some(_)) => Presence::AtZero,
        (Some(base), Some(_)) if base > Replicas::ZERO => Presence::Wanted,
        _ => Presence::Unknown,
    }
}
