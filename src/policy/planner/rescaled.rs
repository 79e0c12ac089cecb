//! Contended budgets that are shared by priority instead of by claims.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::voted::Ballot;
use super::{Cycle, Work};
use crate::policy::analyzers::{Approach, Chair};
use crate::policy::capacity::{AnalyzerName, ServingRole};
use crate::policy::combine::Anchor;
use crate::policy::draft::Draft;
use crate::policy::key::ModelKey;
use crate::policy::limit::{
    Need, Pool, Pools, RescaleSwitches, ShareVariant, Sharer, WhyRescaled, by_headroom, rescale,
};
use crate::policy::plan::{Stage, Why};
use crate::policy::units::Replicas;

/// A model that may share a budget.
#[derive(Debug)]
pub(super) struct Share {
    /// Whose unit demand and capacities are in.
    analyzer: AnalyzerName,
    /// Utilization that growth aims at.
    scale_up: f64,
    sharer: Sharer,
}

impl Share {
    /// None where no budget of the model is shared, or where its demand is not known in full: it
    /// would look as if it needed less.
    pub(super) fn of(
        cycle: &Cycle<'_>,
        work: &Work<'_>,
        chairs: &[Chair],
        ballot: &Ballot,
    ) -> Option<Self> {
        // Replicas on their way up hold GPUs and serve nobody yet: they have nothing to tell.
        let is_heard = |draft: &Draft<'_>| draft.figures.reporting >= draft.scale.ready.0;
        let is_known = ballot.may_shrink()
            && ballot.candidates.len() == work.drafts.len()
            && work.drafts.iter().all(is_heard);
        let Anchor::Sized { by } = ballot.consensus.anchor else {
            return None;
        };
        // Nobody tells how large the requests are that wait for a model without replicas.
        let is_served = |draft: &Draft<'_>| draft.scale.current > Replicas::ZERO;
        let is_whole = by != AnalyzerName::Saturation
            || !work.drafts.iter().any(is_served)
            || (ballot.opinions.tokens.as_ref()).is_none_or(|said| said.model.is_demand_known);
        if !is_asked(cycle, work) || !is_known || !is_whole {
            return None;
        }
        let chair = chairs.iter().find(|chair| chair.analyzer == by)?;
        let said = ballot.opinions.assessments.get(&by)?;
        let roles: BTreeSet<ServingRole> = (work.drafts.iter())
            .map(|draft| draft.view.template.role)
            .collect();
        let demand: Option<BTreeMap<ServingRole, f64>> = roles
            .into_iter()
            .map(|role| Some((role, *said.demand.get(&role)?)))
            .collect();
        let variants = work.drafts.iter().filter_map(|draft| {
            let key = &draft.view.key;
            let bounds = ballot.candidates.get(key)?.bounds;
            let sized = said.variants.get(key);
            let variant = ShareVariant {
                bounds,
                per_replica: sized.map_or(0.0, |variant| variant.per_replica),
                ..shared_part(draft)
            };
            Some((key.clone(), variant))
        });
        Some(Self {
            analyzer: by,
            scale_up: chair.band.scale_up,
            sharer: Sharer {
                priority: work.policy.priority,
                demand: demand?,
                variants: variants.collect(),
            },
        })
    }
}

/// Leaves budgets alone that a model holds GPUs of whose demand is not known in full: nobody gives
/// replicas up for what is not known.
pub(super) fn withdraw(cycle: &Cycle<'_>, works: &mut [Work<'_>], pools: &Pools) {
    let drawn = |work: &Work<'_>| -> BTreeSet<Pool> {
        (work.drafts.iter())
            .flat_map(|draft| pools.rooms(&draft.view.key.namespace, &draft.view.accelerator))
            .map(|room| room.pool)
            .collect()
    };
    let holds = |draft: &Draft<'_>| draft.scale.current > Replicas::ZERO;
    let is_unheard = |work: &&Work<'_>| {
        work.share.is_none()
            && work.approach != Approach::Percentage
            && is_asked(cycle, work)
            && work.drafts.iter().any(holds)
    };
    let unheard: BTreeSet<Pool> = works.iter().filter(is_unheard).flat_map(drawn).collect();
    for work in works {
        if work.share.is_some() && !drawn(work).is_disjoint(&unheard) {
            work.share = None;
        }
    }
}

/// Whether a budget that a model may draw from is to be shared.
fn is_asked(cycle: &Cycle<'_>, work: &Work<'_>) -> bool {
    let settings = &cycle.settings.saturation;
    settings.rescale_enabled(None) || settings.rescale_enabled(Some(&work.key.namespace))
}

fn shared_part(draft: &Draft<'_>) -> ShareVariant {
    ShareVariant {
        role: draft.view.template.role,
        accelerator: draft.view.accelerator.clone(),
        gpus: draft.view.template.gpus_per_replica(),
        current: draft.scale.current,
        bounds: draft.bounds,
        cost: draft.view.cost,
        per_replica: 0.0,
    }
}

/// Shares every contended budget whose switch is on, and says how each would be shared by headroom.
/// Models that are served here claim nothing else.
pub(super) fn share_budgets(cycle: &Cycle<'_>, works: &mut [Work<'_>], pools: &mut Pools) {
    let asked: BTreeMap<ModelKey, Share> = works
        .iter_mut()
        .filter_map(|work| Some((work.key.clone(), work.share.take()?)))
        .collect();
    if asked.is_empty() {
        return;
    }
    let switches = switches(cycle, &asked);
    let needs = asked
        .iter()
        .map(|(key, share)| (key.clone(), Need::of(&share.sharer, share.scale_up)))
        .collect();
    let sharers = in_one_unit(asked);
    let mut headroom = by_headroom(&sharers, &needs, &switches, pools);
    let rescaled = rescale(&sharers, &switches, pools);
    for work in works {
        if let Some(figures) = &mut work.figures {
            figures.headroom = headroom.remove(work.key).unwrap_or_default();
        }
        if !rescaled.handled.contains(work.key) {
            continue;
        }
        let was_growing = work.growth.take().is_some();
        for draft in &mut work.drafts {
            if let Some(change) = rescaled.changes.get(&draft.view.key) {
                let to = match change.why {
                    WhyRescaled::Reclaimed { .. } if !was_growing => change.to.min(draft.count()),
                    WhyRescaled::Kept { .. } if !was_growing => draft.count(),
                    WhyRescaled::Reclaimed { .. } => change.to,
                    _ => change.to.max(draft.count()),
                };
                if matches!(change.why, WhyRescaled::Filled { .. }) {
                    let filled = change.to.saturating_sub(draft.scale.current);
                    draft.reserved = draft.reserved.max(filled);
                }
                draft.step(Stage::Optimizer, to, Why::Rescaled(change.why));
            }
        }
    }
}

fn switches(cycle: &Cycle<'_>, asked: &BTreeMap<ModelKey, Share>) -> RescaleSwitches {
    let settings = &cycle.settings.saturation;
    let namespaces: BTreeSet<&Arc<str>> = asked.keys().map(|key| &key.namespace).collect();
    RescaleSwitches {
        cluster: settings.rescale_enabled(None),
        namespaces: (namespaces.into_iter())
            .filter(|namespace| settings.rescale_enabled(Some(namespace)))
            .map(Arc::clone)
            .collect(),
    }
}

/// Demands of analyzers with different units are compared in GPUs.
fn in_one_unit(asked: BTreeMap<ModelKey, Share>) -> BTreeMap<ModelKey, Sharer> {
    let units: BTreeSet<AnalyzerName> = asked.values().map(|share| share.analyzer).collect();
    let is_one = units.len() == 1;
    asked
        .into_iter()
        .map(|(key, Share { sharer, .. })| (key, if is_one { sharer } else { sharer.in_gpus() }))
        .collect()
}
