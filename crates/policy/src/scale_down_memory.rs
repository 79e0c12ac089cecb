//! Releases that did not last.
//!
//! What replicas hold is not linear in the load: the more requests run together, the longer each
//! stays, so that by the occupancy of four replicas one may seem enough that is not. A decision by
//! occupancy releases then, grows again, and would go on so for ever. A fleet that a release led
//! to and that had to grow soon is therefore remembered with what replicas held before the release,
//! and is not tried again while they hold as much.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::capacity::ServingRole;
use super::key::{ModelKey, VariantKey};
use super::units::Replicas;
use wva_base::moment::Moment;

/// How long a smaller fleet must last, once it is all there is, to have been enough.
pub(crate) const TRIAL: Duration = Duration::from_mins(10);

/// Share of what replicas held before a release that did not last, up to which it is tried again.
pub(crate) const RETRY_BELOW: f64 = 0.8;

/// Releases that are remembered of one role; the oldest goes first.
const KEPT: usize = 16;

pub(crate) type Fleet = BTreeMap<VariantKey, Replicas>;

/// KV caches in use, summed over the shares of all replicas: 1.5 is one and a half full ones.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Occupancy(pub f64);

/// One role of a model at one collection.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetState {
    /// What was published last, else what exists.
    pub published: Fleet,
    pub current: Fleet,
    /// What its ready replicas hold; `None` where one of them does not say.
    pub occupancy: Option<Occupancy>,
}

impl FleetState {
    /// Of a role without variants.
    pub fn empty() -> Self {
        Self { published: Fleet::new(), current: Fleet::new(), occupancy: Some(Occupancy(0.0)) }
    }
}

/// A fleet that a release led to, and that had to grow soon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailedScaleDown {
    pub fleet: Fleet,
    /// What replicas held before the release.
    pub occupancy: Occupancy,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Trial {
    release: FailedScaleDown,
    /// Since when no more than the smaller fleet exists.
    applied: Option<Moment>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct RoleMemory {
    fleet: Fleet,
    occupancy: Option<Occupancy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trial: Option<Trial>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    relapses: Vec<FailedScaleDown>,
}

/// What is known of every role of every model. Holds those of the last look, and at most
/// 16 relapses of each.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ScaleDownMemory {
    models: BTreeMap<ModelKey, BTreeMap<ServingRole, RoleMemory>>,
}

impl ScaleDownMemory {
    /// Adds one collection. `fleet_states` names every model there is; one without roles could not be
    /// judged and is left as it was.
    #[must_use]
    pub fn learn(
        mut self,
        fleet_states: &BTreeMap<ModelKey, BTreeMap<ServingRole, FleetState>>,
        now: Moment,
    ) -> Self {
        self.models.retain(|model, _| fleet_states.contains_key(model));
        for (model, roles) in fleet_states.iter().filter(|(_, roles)| !roles.is_empty()) {
            let known = self.models.entry(model.clone()).or_default();
            known.retain(|role, _| roles.contains_key(role));
            for (role, fleet_state) in roles {
                let memory = known.remove(role).unwrap_or_default();
                known.insert(*role, memory.learn(fleet_state, now));
            }
        }
        self
    }

    /// Forgets the fleets of variants that are gone, also where a model could not be judged since.
    #[must_use]
    pub fn keep(mut self, exists: impl Fn(&VariantKey) -> bool) -> Self {
        for roles in self.models.values_mut() {
            roles.retain(|_, memory| memory.fleet.keys().all(&exists));
        }
        self
    }

    /// A release that led to this fleet or a larger one and did not last, and would not now; with
    /// what replicas hold now.
    pub fn against(
        &self,
        model: &ModelKey,
        role: ServingRole,
        fleet: &Fleet,
    ) -> Option<(&FailedScaleDown, Option<Occupancy>)> {
        let memory = self.models.get(model)?.get(&role)?;
        let holds = |relapse: &&FailedScaleDown| {
            let has_fallen =
                (memory.occupancy).is_some_and(|now| now.0 <= relapse.occupancy.0 * RETRY_BELOW);
            !has_fallen && is_within(fleet, &relapse.fleet)
        };
        let found = memory.relapses.iter().find(holds)?;
        Some((found, memory.occupancy))
    }
}

impl RoleMemory {
    fn learn(mut self, seen: &FleetState, now: Moment) -> Self {
        let same_variants = self.fleet.keys().eq(seen.published.keys());
        if !same_variants {
            self = Self::default();
        } else if exceeds(&seen.published, &self.fleet) {
            self.end_trial_by_growth();
        } else if exceeds(&self.fleet, &seen.published) {
            let release = self
                .occupancy
                .map(|occupancy| FailedScaleDown { fleet: seen.published.clone(), occupancy });
            self.trial = release.map(|release| Trial { release, applied: None });
        }
        self.pass_trial(seen, now);
        self.fleet.clone_from(&seen.published);
        self.occupancy = seen.occupancy.or(self.occupancy);
        self
    }

    /// More was asked for. That says something about the smaller fleet only if it was all there was.
    fn end_trial_by_growth(&mut self) {
        let Some(trial) = self.trial.take() else {
            return;
        };
        if trial.applied.is_none() {
            return;
        }
        let fleet = &trial.release.fleet;
        self.relapses.retain(|known| known.fleet != *fleet);
        self.relapses.push(trial.release);
        if self.relapses.len() > KEPT {
            self.relapses.remove(0);
        }
    }

    /// A fleet that lasts was enough, and so were larger ones.
    fn pass_trial(&mut self, seen: &FleetState, now: Moment) {
        let Some(trial) = &mut self.trial else {
            return;
        };
        if trial.applied.is_none() && is_within(&seen.current, &trial.release.fleet) {
            trial.applied = Some(now);
        }
        let lasts = trial.applied.map(|applied| now.since(applied));
        if lasts.is_some_and(|lasts| lasts >= TRIAL) {
            let enough = trial.release.fleet.clone();
            self.trial = None;
            self.relapses.retain(|known| !is_within(&enough, &known.fleet));
        }
    }
}

fn is_within(fleet: &Fleet, other: &Fleet) -> bool {
    !exceeds(fleet, other)
}

fn exceeds(fleet: &Fleet, other: &Fleet) -> bool {
    let there = |key| other.get(key).copied().unwrap_or(Replicas::ZERO);
    fleet.iter().any(|(key, count)| *count > there(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(count: u32) -> Fleet {
        BTreeMap::from([(VariantKey::new("ns", "v"), Replicas(count))])
    }

    /// Published and current counts, what is held, and seconds.
    fn seen(
        known: ScaleDownMemory,
        counts: (u32, u32),
        occupancy: f64,
        seconds: u64,
    ) -> ScaleDownMemory {
        let fleet_state = FleetState {
            published: fleet(counts.0),
            current: fleet(counts.1),
            occupancy: Some(Occupancy(occupancy)),
        };
        let roles = BTreeMap::from([(ServingRole::Both, fleet_state)]);
        let now = crate::tests::world::at(seconds);
        known.learn(&BTreeMap::from([(ModelKey::new("ns", "m"), roles)]), now)
    }

    fn forbids(known: &ScaleDownMemory, count: u32) -> bool {
        let model = ModelKey::new("ns", "m");
        known.against(&model, ServingRole::Both, &fleet(count)).is_some()
    }

    /// From four replicas to one at 2.0, and back to four within half a minute.
    fn relapsed() -> ScaleDownMemory {
        let mut known = ScaleDownMemory::default();
        known = seen(known, (4, 4), 2.0, 0);
        known = seen(known, (1, 4), 2.0, 15);
        known = seen(known, (1, 1), 0.9, 30);
        assert!(!forbids(&known, 1), "nothing is known yet");
        known = seen(known, (4, 1), 1.0, 45);
        seen(known, (4, 4), 2.0, 60)
    }

    #[test]
    fn a_fleet_that_had_to_grow_is_not_tried_again_at_the_same_occupancy() {
        let known = relapsed();
        assert!(forbids(&known, 1));
        assert!(forbids(&known, 0), "less is no better");
        assert!(!forbids(&known, 2), "one more was not tried");
    }

    #[test]
    fn it_is_tried_again_once_replicas_hold_a_fifth_less() {
        let known = seen(relapsed(), (4, 4), 1.61, 75);
        assert!(forbids(&known, 1));
        let known = seen(known, (4, 4), 1.6, 90);
        assert!(!forbids(&known, 1));
    }

    #[test]
    fn a_fleet_that_lasts_clears_what_was_held_against_it() {
        let mut known = seen(relapsed(), (1, 4), 1.5, 100);
        known = seen(known, (1, 1), 1.5, 200);
        known = seen(known, (1, 1), 2.0, 799);
        assert!(forbids(&known, 1), "its trial is not over");
        known = seen(known, (1, 1), 2.0, 800);
        assert!(!forbids(&known, 1));
    }

    #[test]
    fn growth_before_the_release_was_applied_says_nothing() {
        let mut known = ScaleDownMemory::default();
        known = seen(known, (4, 4), 2.0, 0);
        known = seen(known, (1, 4), 2.0, 15);
        known = seen(known, (4, 4), 2.0, 30);
        assert!(!forbids(&known, 1));
    }

    #[test]
    fn growth_long_after_a_release_is_another_load() {
        let mut known = ScaleDownMemory::default();
        known = seen(known, (4, 4), 2.0, 0);
        known = seen(known, (1, 4), 2.0, 15);
        known = seen(known, (1, 1), 0.9, 30);
        known = seen(known, (1, 1), 0.9, 630);
        known = seen(known, (4, 1), 1.0, 645);
        assert!(!forbids(&known, 1));
    }

    #[test]
    fn another_set_of_variants_begins_anew() {
        let fleet_state = FleetState {
            published: BTreeMap::from([(VariantKey::new("ns", "w"), Replicas(4))]),
            current: BTreeMap::new(),
            occupancy: None,
        };
        let roles = BTreeMap::from([(ServingRole::Both, fleet_state)]);
        let now = crate::tests::world::at(75);
        let known = relapsed().learn(&BTreeMap::from([(ModelKey::new("ns", "m"), roles)]), now);
        assert!(!forbids(&known, 1));
    }

    /// A model that cannot be judged is left as it was, and one of its variants may be gone all the same
    /// (seed 1126 of storm).
    #[test]
    fn the_fleet_of_a_variant_that_is_gone_is_forgotten() {
        let unjudged = BTreeMap::from([(ModelKey::new("ns", "m"), BTreeMap::new())]);
        let now = crate::tests::world::at(75);
        let known = relapsed().learn(&unjudged, now);
        assert!(forbids(&known.clone().keep(|_| true), 1));
        let v = VariantKey::new("ns", "v");
        assert!(!forbids(&known.keep(|key| *key != v), 1));
    }
}
