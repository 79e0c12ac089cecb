//! Contended budgets that are shared by priority instead of by claims.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::limits::{aside_minima, drawn};
use super::multi_analyzer::AnalyzerDecision;
use super::{Cycle, Work, scale_to_zero};
use crate::analyzers::AnalyzerConfig;
use crate::capacity::{AnalyzerName, ServingRole};
use crate::gpu::{GpuCount, GpuPool, GpuPools};
use crate::key::{ModelKey, VariantKey};
use crate::limit::{
    AwaitedStart, RescaleCandidate, ShareVariant, Turn, by_headroom, gpu_demand, rescale,
};
use crate::pending_decision::PendingDecision;
use crate::plan::PlanStage;
use crate::reason::{BlockReason, CapacitySource, DemandGap, Reason, Withheld};
use crate::units::{Gpus, Replicas};

#[derive(Debug)]
pub(super) struct Share {
    /// Whose unit demand and capacities are in.
    analyzer: AnalyzerName,
    /// Utilization that growth aims at.
    scale_up: f64,
    sharer: RescaleCandidate,
}

#[derive(Debug)]
pub(super) enum Sharing {
    /// Nothing: none is, or it is left alone.
    None,
    /// Its demand is not known in full: it would look as if it needed less.
    Unknown(DemandGap),
    Asked(Share),
}

impl Sharing {
    pub(super) fn of(
        cycle: &Cycle<'_>,
        work: &Work<'_>,
        share: impl FnOnce() -> Result<Share, DemandGap>,
    ) -> Self {
        let settings = &cycle.settings.saturation;
        let is_shared =
            settings.rescale_enabled(None) || settings.rescale_enabled(Some(&work.key.namespace));
        // A budget with GPUs that are not counted has none to give.
        let mut counts = (work.drafts.iter()).map(|draft| &draft.view.template.gpu_count);
        let is_asked = is_shared && counts.all(GpuCount::is_counted);
        if cycle.settings.limits_growth() && is_asked {
            share().map_or_else(Self::Unknown, Self::Asked)
        } else {
            Self::None
        }
    }
}

impl Share {
    pub(super) fn of(
        work: &Work<'_>,
        configs: &[AnalyzerConfig],
        decision: &AnalyzerDecision,
    ) -> Result<Self, DemandGap> {
        if let Some(gap) = decision.gap() {
            return Err(gap);
        }
        // Replicas on their way up hold GPUs and serve no request yet: they have nothing to report.
        let is_silent = |draft: &&PendingDecision<'_>| {
            draft.figures.reporting < draft.scale.ready.0
                || !decision.candidates.contains_key(&draft.view.key)
        };
        if let Some(draft) = work.drafts.iter().find(is_silent) {
            let variant = draft.view.key.clone();
            return Err(DemandGap::Silent { variant });
        }
        let by = match &decision.consensus.anchor {
            CapacitySource::Sized { by } => *by,
            anchor => {
                let anchor = anchor.clone();
                let hold = BlockReason::Unsized { anchor };
                return Err(DemandGap::Held { hold });
            }
        };
        let partial = || DemandGap::Partial { missing: decision.missing() };
        // The size of requests that wait for a model without replicas is not known.
        let is_served = |draft: &PendingDecision<'_>| draft.scale.current > Replicas::ZERO;
        let is_whole = by != AnalyzerName::Saturation
            || !work.drafts.iter().any(is_served)
            || (decision.opinions.tokens.as_ref()).is_none_or(|said| said.model.is_demand_known);
        if !is_whole {
            return Err(partial());
        }
        let config = configs.iter().find(|config| config.analyzer == by);
        let said = decision.opinions.assessments.get(&by);
        let (config, said) = config.zip(said).ok_or_else(partial)?;
        let roles: BTreeSet<ServingRole> =
            (work.drafts.iter()).map(|draft| draft.view.template.role).collect();
        let demand: Option<BTreeMap<ServingRole, f64>> =
            roles.into_iter().map(|role| Some((role, *said.demand.get(&role)?))).collect();
        let variants = work.drafts.iter().filter_map(|draft| {
            let key = &draft.view.key;
            let bounds = decision.candidates.get(key)?.bounds;
            let sized = said.variants.get(key);
            let variant = ShareVariant {
                role: draft.view.template.role,
                accelerator: draft.view.accelerator.clone(),
                gpus: draft.view.template.gpus_per_replica(),
                current: draft.scale.current_excluding_surge(),
                ordered: Replicas::ZERO,
                bounds,
                cost: draft.view.cost,
                per_replica: sized.map_or(0.0, |variant| variant.per_replica),
            };
            Some((key.clone(), variant))
        });
        Ok(Self {
            analyzer: by,
            scale_up: config.band.scale_up,
            sharer: RescaleCandidate {
                priority: work.policy.priority,
                demand: demand.ok_or_else(partial)?,
                variants: variants.collect(),
            },
        })
    }
}

/// Leaves budgets alone that a model holds GPUs of whose demand is not known in full: no
/// replica is given up for what is not known. Every model that draws from one says so.
pub(super) fn withdraw(works: &mut [Work<'_>], pools: &GpuPools) {
    let holds = |draft: &PendingDecision<'_>| draft.scale.current > Replicas::ZERO;
    let withholds = |work: &Work<'_>| match &work.sharing {
        Sharing::Unknown(gap) if work.drafts.iter().any(holds) => {
            Some(Arc::new(Withheld { model: work.key.clone(), because: gap.clone() }))
        }
        _ => None,
    };
    let mut gaps: BTreeMap<GpuPool, Arc<Withheld>> = BTreeMap::new();
    for work in works.iter() {
        if let Some(withheld) = withholds(work) {
            for pool in drawn(work, pools) {
                (gaps.entry(pool)).or_insert_with(|| Arc::clone(&withheld));
            }
        }
    }
    for work in works {
        let first = || {
            let pools = drawn(work, pools);
            let all = pools.iter().filter_map(|pool| gaps.get(pool));
            all.min_by(|one, other| one.model.cmp(&other.model))
        };
        let withheld = match work.sharing {
            Sharing::None => None,
            Sharing::Unknown(_) => withholds(work),
            Sharing::Asked(_) => first().cloned(),
        };
        if let Some(withheld) = withheld {
            work.sharing = Sharing::None;
            for draft in &mut work.drafts {
                draft.keep(PlanStage::Limit, Reason::Withheld(Arc::clone(&withheld)));
            }
        }
    }
}

/// Shares every contended budget whose switch is on, and says how each would be shared by headroom.
/// Models that are served here claim nothing else. Starts from zero take what is free before models
/// that are not of higher priority take their shares.
pub(super) fn share_budgets(cycle: &Cycle<'_>, works: &mut [Work<'_>], pools: &mut GpuPools) {
    let asked: BTreeMap<ModelKey, Share> =
        works.iter_mut().filter_map(|work| Some((work.key.clone(), take_share(work)?))).collect();
    if asked.is_empty() {
        return;
    }
    let settings = &cycle.settings.saturation;
    let is_shared = |scope: Option<&str>| settings.rescale_enabled(scope);
    let needs = asked
        .iter()
        .map(|(key, share)| (key.clone(), gpu_demand(&share.sharer, share.scale_up)))
        .collect();
    let sharers = in_one_unit(asked);
    let mut headroom = by_headroom(&sharers, &needs, is_shared, pools);
    let mut starts = Starts::of(cycle, works, pools);
    let awaited = starts.awaited(cycle, works, pools, &sharers);
    let rescaled = rescale(&sharers, is_shared, pools, &awaited, |turn, pools| {
        starts.serve(cycle, works, turn, pools)
    });
    for work in works {
        if let Some(figures) = &mut work.figures {
            figures.headroom = headroom.remove(work.key).unwrap_or_default();
            figures.rescale = rescaled.claims.get(work.key).copied();
        }
        if !rescaled.handled.contains(work.key) {
            continue;
        }
        let was_growing = work.growth.take().is_some();
        for draft in &mut work.drafts {
            if let Some(change) = rescaled.changes.get(&draft.view.key) {
                // What was added for a queue has no GPUs yet.
                let existing = draft.scale.current_excluding_surge();
                let kept = draft.count().min(draft.base().max(existing));
                let to = match change.why {
                    Reason::Reclaimed { .. } if !was_growing => change.to.min(kept),
                    Reason::ShareKept { .. } if !was_growing => kept,
                    Reason::Reclaimed { .. } => change.to,
                    _ => change.to.max(kept),
                };
                if matches!(change.why, Reason::Filled { .. }) {
                    let filled = change.to.saturating_sub(draft.scale.current_excluding_surge());
                    draft.reserved = draft.reserved.max(filled);
                }
                draft.step(PlanStage::Optimizer, to, change.why.clone());
            }
        }
    }
}

/// Takes the share of a model, with the replicas that have their GPUs by now and do not exist.
fn take_share(work: &mut Work<'_>) -> Option<Share> {
    let Sharing::Asked(mut share) = std::mem::replace(&mut work.sharing, Sharing::None) else {
        return None;
    };
    for draft in &work.drafts {
        if let Some(variant) = share.sharer.variants.get_mut(&draft.view.key) {
            variant.ordered = draft.reserved;
        }
    }
    Some(share)
}

/// Models that something may be started of, the highest priority first, each with the pools that it draws
/// from.
struct Starts(Vec<(usize, f64, BTreeSet<GpuPool>)>);

impl Starts {
    fn of(cycle: &Cycle<'_>, works: &[Work<'_>], pools: &GpuPools) -> Self {
        let asked = scale_to_zero::asked_at_zero(cycle, works).into_iter();
        let placed = asked.filter_map(|index| {
            let work = works.get(index)?;
            Some((index, work.policy.priority, drawn(work, pools)))
        });
        Self(placed.collect())
    }

    fn awaited(
        &self,
        cycle: &Cycle<'_>,
        works: &[Work<'_>],
        pools: &GpuPools,
        sharers: &BTreeMap<ModelKey, RescaleCandidate>,
    ) -> Vec<AwaitedStart> {
        let starts = self.0.iter().filter_map(|(index, priority, drawn)| {
            let work = works.get(*index)?;
            let gpus = scale_to_zero::awaited(cycle, work, pools);
            let is_awaited = gpus > Gpus::ZERO && !sharers.contains_key(work.key);
            is_awaited.then(|| AwaitedStart { priority: *priority, pools: drawn.clone(), gpus })
        });
        starts.collect()
    }

    /// Starts what comes before the growth of a model, and returns it. What lacks GPUs still holds those that
    /// are free from models of less priority.
    fn serve(
        &mut self,
        cycle: &Cycle<'_>,
        works: &mut [Work<'_>],
        turn: &Turn<'_>,
        pools: &mut GpuPools,
    ) -> Vec<VariantKey> {
        let is_due = |start: &(usize, f64, BTreeSet<GpuPool>)| {
            let (_, priority, drawn) = start;
            *priority >= turn.priority && !drawn.is_disjoint(turn.pools)
        };
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.0).into_iter().partition(is_due);
        self.0 = later;
        if due.is_empty() {
            return Vec::new();
        }
        aside_minima(works, &turn.counts(), pools, |works, pools| {
            let mut started = Vec::new();
            for start in due {
                let Some(work) = works.get_mut(start.0) else {
                    continue;
                };
                if let Some(variant) = scale_to_zero::start_if_free(cycle, work, pools) {
                    started.push(variant);
                    continue;
                }
                if start.1 > turn.priority {
                    scale_to_zero::hold(cycle, work, pools);
                }
                self.0.push(start);
            }
            started
        })
    }
}

/// Demands of analyzers with different units are compared in GPUs.
fn in_one_unit(asked: BTreeMap<ModelKey, Share>) -> BTreeMap<ModelKey, RescaleCandidate> {
    let units: BTreeSet<AnalyzerName> = asked.values().map(|share| share.analyzer).collect();
    let is_one = units.len() == 1;
    asked
        .into_iter()
        .map(|(key, Share { sharer, .. })| (key, if is_one { sharer } else { sharer.in_gpus() }))
        .collect()
}
