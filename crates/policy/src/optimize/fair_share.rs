//! Growth of many models out of shared pools of GPUs.
//!
//! A model claims the GPUs that it needs: for each role the largest claim of any voter. Priority
//! weighs claims against each other and decides who is served first; it never makes a claim larger.
//! The largest weighted claim is served down to the mean of all, again and again, so that scarcity
//! levels the claims instead of starving the rest. What no variant can serve is no claim.
//!
//! Before that each model takes its cheapest adequate set, unless a pool that it draws from has less than all these
//! sets need: a limit that does not bind changes nothing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::candidate::{gains, late_supply, outstanding};
use super::contest::{Contender, Contest};
use super::cover::prices;
use super::feed::{SINGLY, TOLERANCE, follow, reach};
use crate::capacity::ServingRole;
use crate::change::CountChange;
use crate::combine::{CapacityClaim, RoleTarget, Weighed};
use crate::gpu::{Budget, GpuPool, GpuPools, NotCounted, PoolFigures};
use crate::key::{ModelKey, VariantKey};
use crate::reason::Reason;
use crate::rounding;
use crate::units::{Gpus, Replicas};

/// Serves the growth of all models. Every contender of a model that grows is in the answer.
pub(crate) fn share(
    contests: &BTreeMap<ModelKey, Contest>,
    pools: &mut GpuPools,
) -> BTreeMap<VariantKey, CountChange> {
    let mut works: Vec<ModelDemand<'_>> =
        (contests.values()).filter_map(|contest| ModelDemand::of(contest, pools)).collect();
    let scarce = scarce(&works, pools);
    for work in &mut works {
        if !work.needs_any(&scarce, pools) {
            work.take_cheapest(pools);
        }
    }
    let mut round = Round::default();
    for (index, work) in works.iter().enumerate() {
        round.put(work.value(pools), index);
    }
    while let Some((largest, index)) = round.largest() {
        let goal = round.goal(largest);
        round.take(largest, index);
        let Some(work) = works.get_mut(index) else {
            continue;
        };
        if work.serve((largest - goal) / largest, pools) > Gpus::ZERO {
            round.put(work.value(pools), index);
        }
    }
    works.iter().flat_map(|work| &work.needs).flat_map(|need| need.changes(pools)).collect()
}

/// Pools that have less than the cheapest sets of all models need.
fn scarce(works: &[ModelDemand<'_>], pools: &GpuPools) -> BTreeSet<GpuPool> {
    let mut asked: BTreeMap<GpuPool, (Gpus, Budget)> = BTreeMap::new();
    for taker in works.iter().flat_map(ModelDemand::buyers) {
        for figures in taker.pools(pools) {
            let none = (Gpus::ZERO, figures.left);
            let (gpus, _) = asked.entry(figures.pool()).or_insert(none);
            *gpus = gpus.plus(taker.to_buy());
        }
    }
    let asked = asked.into_iter();
    let short = asked.filter(|(_, (gpus, left))| left.grant(*gpus) < *gpus);
    short.map(|(pool, _)| pool).collect()
}

/// The claims that are open, by size.
#[derive(Debug, Default)]
struct Round {
    /// Bits of a positive number, which are in the order of the numbers; of equal claims the first
    /// model comes first.
    open: BTreeSet<(u64, Reverse<usize>)>,
    /// Of all claims that are open.
    sum: f64,
}

impl Round {
    fn put(&mut self, claim: f64, index: usize) {
        if claim > 0.0 {
            self.open.insert((claim.to_bits(), Reverse(index)));
            self.sum += claim;
        }
    }

    fn take(&mut self, claim: f64, index: usize) {
        self.open.remove(&(claim.to_bits(), Reverse(index)));
        self.sum -= claim;
    }

    fn largest(&self) -> Option<(f64, usize)> {
        let (bits, Reverse(index)) = self.open.last()?;
        Some((f64::from_bits(*bits), *index))
    }

    /// What the largest claim is served down to: the mean, and where all are equal, or rounding errors
    /// of the sum say more, a part less.
    fn goal(&self, largest: f64) -> f64 {
        let count = f64::from(u32::try_from(self.open.len()).unwrap_or(u32::MAX));
        let mean = (self.sum / count).max(0.0);
        if self.open.len() == 1 {
            0.0
        } else if mean < largest * (1.0 - TOLERANCE) {
            mean
        } else {
            largest - largest / count
        }
    }
}

#[derive(Debug)]
struct ModelDemand<'a> {
    priority: f64,
    needs: Vec<RoleDemand<'a>>,
}

#[derive(Debug)]
struct RoleDemand<'a> {
    /// What each voter claimed at first, and still claims.
    claimed: Vec<f64>,
    left: Vec<f64>,
    /// The least cost for its capacity first.
    takers: Vec<Taker<'a>>,
    /// The share of its need that prefill lets through, where that is less than all of it.
    fed: Option<f64>,
}

#[derive(Debug)]
struct Taker<'a> {
    key: &'a VariantKey,
    contender: &'a Contender,
    gains: Vec<f64>,
    /// Replicas that the cheapest set of its model adds.
    cheapest: u32,
    added: u32,
}

impl<'a> ModelDemand<'a> {
    fn of(contest: &'a Contest, pools: &GpuPools) -> Option<Self> {
        let cheapest = contest.cheapest(pools);
        let mut reached = None;
        let mut needs = Vec::new();
        // Prefill, which decides what decode receives, is before it in order.
        for (role, role_target) in &contest.role_targets {
            let RoleTarget::Grow(Weighed { claims, .. }) = role_target else {
                continue;
            };
            let candidates =
                (contest.contenders.iter()).map(|(key, contender)| (key, &contender.candidate));
            // Late replicas hold their GPUs: no claim counts them twice.
            let claims = outstanding(candidates.clone(), *role, claims).into_iter().map(|claim| {
                let late = late_supply(candidates.clone(), *role, &claim);
                claim.covered(late)
            });
            let claims: Vec<CapacityClaim> = claims.collect();
            let fed = reached.filter(|_| *role == ServingRole::Decode);
            let need = RoleDemand::of(contest, *role, &claims, fed, &cheapest);
            if *role == ServingRole::Prefill {
                reached = need.reach(&claims);
            }
            needs.push(need);
        }
        (!needs.is_empty()).then_some(Self { priority: contest.priority, needs })
    }

    fn buyers(&self) -> impl Iterator<Item = &Taker<'a>> {
        let takers = self.needs.iter().flat_map(|need| &need.takers);
        takers.filter(|taker| taker.cheapest > 0)
    }

    fn needs_any(&self, scarce: &BTreeSet<GpuPool>, pools: &GpuPools) -> bool {
        let mut drawn = self.buyers().flat_map(|taker| taker.pools(pools));
        drawn.any(|figures| scarce.contains(&figures.pool()))
    }

    fn take_cheapest(&mut self, pools: &mut GpuPools) {
        for need in &mut self.needs {
            for taker in &mut need.takers {
                let count = taker.take(taker.cheapest, pools);
                taker.serve(count, &mut need.left);
            }
        }
    }

    /// The weighted claim in GPUs, as far as it can be served now.
    fn value(&self, pools: &GpuPools) -> f64 {
        let gpus = self.needs.iter().map(|need| need.gpus(pools));
        self.priority * gpus.sum::<f64>()
    }

    /// Serves a share of what every role still needs; what one role cannot take goes to no other. Replicas go one by
    /// one, beyond [`SINGLY`] GPUs in groups, to the role that lacks most: a small pool is split by need.
    fn serve(&mut self, share: f64, pools: &mut GpuPools) -> Gpus {
        if let [need] = self.needs.as_mut_slice() {
            let goals = need.goals(share);
            return need.serve(&goals, u32::MAX, pools);
        }
        let mut open: Vec<(Vec<f64>, Vec<f64>, &mut RoleDemand<'a>)> = (self.needs.iter_mut())
            .map(|need| (need.goals(share), need.left.clone(), need))
            .collect();
        let mut granted = Gpus::ZERO;
        loop {
            let lacks = (open.iter()).map(|(goals, from, need)| need.lack(goals, from));
            // The first one of equal ones.
            let most = (lacks.enumerate().rev()).max_by(|one, other| one.1.total_cmp(&other.1));
            let Some((index, _)) = most else {
                return granted;
            };
            let count = 1 + granted.0 / SINGLY;
            let served = (open.get_mut(index))
                .map_or(Gpus::ZERO, |(goals, _, need)| need.serve(goals, count, pools));
            granted = granted.plus(served);
            if served == Gpus::ZERO {
                open.remove(index);
            }
        }
    }
}

impl<'a> RoleDemand<'a> {
    fn of(
        contest: &'a Contest,
        role: ServingRole,
        claims: &[CapacityClaim],
        fed: Option<f64>,
        cheapest: &BTreeMap<VariantKey, u32>,
    ) -> Self {
        let bounded = fed.map(|share| follow(claims, share));
        let fed = fed.filter(|_| bounded.as_deref().is_some_and(|bounded| bounded != claims));
        let claims = bounded.as_deref().unwrap_or(claims);
        let claimed: Vec<f64> = claims.iter().map(|claim| claim.amount).collect();
        let takers: Vec<Taker<'a>> = contest
            .contenders
            .iter()
            .filter(|(_, contender)| contender.candidate.role == role)
            .filter_map(|(key, contender)| {
                Some(Taker {
                    key,
                    contender,
                    gains: gains(claims, key)?,
                    cheapest: cheapest.get(key).copied().unwrap_or(0),
                    added: 0,
                })
            })
            .collect();
        let supplies: Vec<(f64, &[f64])> = (takers.iter())
            .map(|taker| {
                let cost = taker.contender.candidate.growth_cost();
                (cost, taker.gains.as_slice())
            })
            .collect();
        let prices = prices(&claimed, &supplies);
        let mut takers: Vec<(f64, Taker<'a>)> = prices.into_iter().zip(takers).collect();
        takers.sort_by(|one, other| one.0.total_cmp(&other.0));
        Self {
            left: claimed.clone(),
            claimed,
            takers: takers.into_iter().map(|(_, taker)| taker).collect(),
            fed,
        }
    }

    /// GPUs that the role still needs and may get: the largest claim, each in replicas of the first
    /// variant that can serve it.
    fn gpus(&self, pools: &GpuPools) -> f64 {
        (self.left.iter().zip(&self.claimed))
            .enumerate()
            .filter(|(_, (left, claimed))| **left > *claimed * TOLERANCE)
            .filter_map(|(index, (left, _))| {
                self.takers.iter().find_map(|taker| {
                    let gain = taker.gains.get(index).filter(|gain| **gain > 0.0)?;
                    let gpus = taker.contender.gpus.at_least_one();
                    (taker.may_take(pools)).then(|| left / gain * gpus.to_f64())
                })
            })
            .fold(0.0, f64::max)
    }

    fn reach(&self, claims: &[CapacityClaim]) -> Option<f64> {
        let rooms: Vec<(&[f64], u32)> =
            (self.takers.iter()).map(|taker| (taker.gains.as_slice(), taker.room())).collect();
        reach(claims, &rooms)
    }

    fn goals(&self, share: f64) -> Vec<f64> {
        self.left.iter().map(|left| left * (1.0 - share)).collect()
    }

    /// The largest part of a claim on its way from where it was to its goal that is not served yet.
    fn lack(&self, goals: &[f64], from: &[f64]) -> f64 {
        (self.left.iter().zip(goals).zip(from))
            .filter(|((_, goal), from)| *from > *goal)
            .map(|((left, goal), from)| (left - goal) / (from - goal))
            .fold(0.0, f64::max)
    }

    /// Serves claims down to their goals with as many replicas at most.
    fn serve(&mut self, goals: &[f64], most: u32, pools: &mut GpuPools) -> Gpus {
        let mut granted = Gpus::ZERO;
        let mut rest = most;
        for taker in &mut self.takers {
            let wanted = wanted(&self.left, goals, &self.claimed, &taker.gains);
            let count = taker.take(wanted.min(rest), pools);
            rest = rest.saturating_sub(count);
            taker.serve(count, &mut self.left);
            granted = granted.plus(taker.contender.gpus.at_least_one().times(Replicas(count)));
        }
        granted
    }

    fn changes(&self, pools: &GpuPools) -> Vec<(VariantKey, CountChange)> {
        let goals = vec![0.0; self.left.len()];
        self.takers
            .iter()
            .map(|taker| {
                let unmet = wanted(&self.left, &goals, &self.claimed, &taker.gains);
                (taker.key.clone(), taker.change(unmet, self.fed, pools))
            })
            .collect()
    }
}

fn wanted(left: &[f64], goals: &[f64], claimed: &[f64], gains: &[f64]) -> u32 {
    (left.iter().zip(goals).zip(claimed))
        .zip(gains)
        .filter(|(((left, goal), claimed), gain)| {
            **gain > 0.0 && **left > **goal && **left > **claimed * TOLERANCE
        })
        .map(|(((left, goal), _), gain)| rounding::ceil((left - goal) / gain))
        .max()
        .unwrap_or(0)
}

impl Taker<'_> {
    fn pools(&self, pools: &GpuPools) -> Vec<PoolFigures> {
        pools.figures(&self.key.namespace, &self.contender.accelerator)
    }

    /// GPUs that its part of the cheapest set takes of pools.
    fn to_buy(&self) -> Gpus {
        let more = Replicas(self.cheapest).saturating_sub(self.contender.reserved);
        let gpus = self.contender.gpu_count.taken(self.contender.gpus);
        gpus.times(more)
    }

    /// What claims leave once so many replicas are added.
    fn serve(&self, count: u32, left: &mut [f64]) {
        for (left, gain) in left.iter_mut().zip(&self.gains) {
            *left = (*left - gain * f64::from(count)).max(0.0);
        }
    }

    fn room(&self) -> u32 {
        let room = self.contender.candidate.room_above();
        room.saturating_sub(self.added)
    }

    /// Takes as many replicas as are wanted, and as room and pools allow; those that it has GPUs for
    /// first.
    fn take(&mut self, wanted: u32, pools: &mut GpuPools) -> u32 {
        let wanted = wanted.min(self.room());
        let (own, granted) = (self.contender).affordable(self.key, wanted, self.added, pools);
        let Contender { accelerator, gpus, gpu_count, .. } = self.contender;
        let taken = gpu_count.taken(*gpus).times(granted);
        pools.take(&self.key.namespace, accelerator, taken);
        let count = own.0.saturating_add(granted.0);
        self.added = self.added.saturating_add(count);
        count
    }

    fn may_take(&self, pools: &GpuPools) -> bool {
        let one = self.room().min(1);
        let (own, granted) = (self.contender).affordable(self.key, one, self.added, pools);
        own.max(granted) > Replicas::ZERO
    }

    /// `unmet` are the replicas that its role still lacks, `fed` what prefill lets through.
    fn change(&self, unmet: u32, fed: Option<f64>, pools: &GpuPools) -> CountChange {
        let candidate = &self.contender.candidate;
        let added = Replicas(self.added);
        let lacking = Replicas(unmet.min(self.room()));
        let why = if lacking > Replicas::ZERO {
            self.shortfall(lacking, pools)
        } else if added > Replicas::ZERO {
            let gpus = self.contender.gpus.at_least_one().times(added);
            Reason::Granted { gpus, added }
        } else if (candidate.ordered()).max(candidate.late).max(candidate.gated) > Replicas::ZERO {
            Reason::CountedOn { standing: candidate.standing }
        } else if let Some(reached) = fed {
            Reason::FedByPrefill { reached }
        } else if let Some(max) = candidate.bounds.max.filter(|max| candidate.count >= *max) {
            Reason::NeedAtMaximum { max }
        } else {
            Reason::ServedByOthers
        };
        CountChange { from: candidate.count, to: candidate.grown(self.added), why }
    }

    fn shortfall(&self, lacking: Replicas, pools: &GpuPools) -> Reason {
        let gpus = self.contender.gpus.at_least_one();
        let added = Replicas(self.added);
        let wanted = Replicas(self.added.saturating_add(lacking.0));
        let all = self.pools(pools);
        if !self.contender.gpu_count.is_counted() {
            let gpu_count = &self.contender.gpu_count;
            return Reason::GpusNotCounted(NotCounted::of(gpu_count, &all, added, wanted));
        }
        let pools: Vec<GpuPool> = (all.iter())
            .filter(|pool| pool.left == Budget::Unknown)
            .map(PoolFigures::pool)
            .collect();
        if added == Replicas::ZERO && !pools.is_empty() {
            return Reason::BudgetUnknown { added, wanted, pools };
        }
        let asked = gpus.times(lacking);
        let binds = |pool: &PoolFigures| pool.left.grant(asked) < asked;
        Reason::ShareLimited {
            gpus: gpus.times(added),
            added,
            wanted,
            by: all.into_iter().filter(binds).collect(),
        }
    }
}
