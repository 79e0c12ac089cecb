//! Growth of many models out of shared pools of GPUs.
//!
//! A model claims the GPUs that it needs: for each role the largest claim of any voter. Priority
//! weighs claims against each other and decides who is served first; it never makes a claim larger.
//! The largest weighted claim is served down to the mean of all, again and again, so that scarcity
//! levels the claims instead of serving one model and starving the rest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::candidate::{Candidate, outstanding, sized};
use crate::policy::capacity::ServingRole;
use crate::policy::change::Change;
use crate::policy::combine::Mandate;
use crate::policy::key::{ModelKey, VariantKey};
use crate::policy::limit::{Budget, PoolFigures, Pools};
use crate::policy::snapshot::Accelerator;
use crate::policy::units::{Gpus, Replicas};
use crate::policy::whole;

/// Share of a claim that is a rounding error and not a need.
const TOLERANCE: f64 = 1e-9;

/// A variant that competes for GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contender {
    /// What it may gain, and at what cost.
    pub candidate: Candidate,
    /// Its accelerator.
    pub accelerator: Accelerator,
    /// GPUs of one replica; none counts as one.
    pub gpus: Gpus,
    /// Replicas beyond those that stand whose GPUs it has already.
    pub reserved: Replicas,
}

/// A model that competes for GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Contest {
    /// Its weight, positive.
    pub priority: f64,
    /// Its variants.
    pub contenders: BTreeMap<VariantKey, Contender>,
    /// What its roles need; only growth competes.
    pub mandates: BTreeMap<ServingRole, Mandate>,
}

/// Why a share changed or kept a count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhyShared {
    /// It got GPUs for all that it was to add.
    Granted {
        /// How many.
        gpus: Gpus,
        /// Replicas added.
        added: Replicas,
    },
    /// It got GPUs for a part of that, or for none.
    Limited {
        /// GPUs.
        gpus: Gpus,
        /// Replicas added.
        added: Replicas,
        /// Replicas that were to be added.
        wanted: Replicas,
        /// The pools that could not grant the rest.
        by: Vec<PoolFigures>,
    },
    /// Nobody knows what its pools hold.
    BudgetUnknown {
        /// Replicas that were to be added.
        wanted: Replicas,
        /// The pools that nobody knows.
        by: Vec<PoolFigures>,
    },
    /// Its role counts on replicas that it has on order.
    Ordered {
        /// Replicas that it will have then.
        standing: Replicas,
    },
    /// At its maximum, or what its role needs went to others.
    NotServed,
}

impl fmt::Display for WhyShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted { gpus, added } => {
                write!(f, "allocated {gpus} GPUs for +{added} replicas")
            }
            Self::Limited {
                gpus,
                added,
                wanted,
                by,
            } => {
                let unmet = wanted.saturating_sub(*added);
                write!(
                    f,
                    "limited: allocated {gpus} GPUs for +{added} replicas of +{wanted} wanted, +{unmet} \
                     unmet"
                )?;
                by.iter()
                    .try_for_each(|pool| write!(f, "; limited by {pool}"))
            }
            Self::BudgetUnknown { wanted, by } => {
                write!(f, "BudgetUnknown: +0 of +{wanted} replicas")?;
                by.iter()
                    .try_for_each(|pool| write!(f, "; {} is not known", pool.pool()))
            }
            Self::Ordered { standing } => write!(
                f,
                "its {standing} replicas, published or its minimum, are counted on"
            ),
            Self::NotServed => f.write_str("its role is served by others, or it is at its maximum"),
        }
    }
}

/// Serves the growth of all models. Every contender of a model that grows is in the answer.
pub fn share(
    contests: &BTreeMap<ModelKey, Contest>,
    pools: &mut Pools,
) -> BTreeMap<VariantKey, Change<WhyShared>> {
    let mut works: Vec<Work<'_>> = contests.values().filter_map(Work::of).collect();
    let mut active: BTreeSet<(u64, Reverse<usize>)> = works
        .iter()
        .enumerate()
        .map(|(index, work)| (work.value().to_bits(), Reverse(index)))
        .filter(|(bits, _)| f64::from_bits(*bits) > 0.0)
        .collect();
    while let Some((bits, Reverse(index))) = active.last().copied() {
        let largest = f64::from_bits(bits);
        let count = f64::from(u32::try_from(active.len()).unwrap_or(u32::MAX));
        let mean = active
            .iter()
            .map(|(bits, _)| f64::from_bits(*bits))
            .sum::<f64>()
            / count;
        let goal = match active.len() {
            1 => 0.0,
            _ if largest <= mean => mean - largest / count,
            _ => mean,
        };
        active.remove(&(bits, Reverse(index)));
        let Some(work) = works.get_mut(index) else {
            continue;
        };
        let granted = work.serve((largest - goal) / largest, pools);
        let left = work.value();
        if granted > Gpus::ZERO && left > 0.0 && left <= mean {
            active.insert((left.to_bits(), Reverse(index)));
        }
    }
    works
        .iter()
        .flat_map(|work| &work.needs)
        .flat_map(|need| need.changes(pools))
        .collect()
}

/// A model on its way through the rounds.
#[derive(Debug)]
struct Work<'a> {
    priority: f64,
    needs: Vec<Need<'a>>,
}

/// What one role of a model still needs.
#[derive(Debug)]
struct Need<'a> {
    /// What each voter claimed at first, and still claims.
    claimed: Vec<f64>,
    left: Vec<f64>,
    /// The least cost for its capacity first.
    takers: Vec<Taker<'a>>,
}

/// One variant of a role.
#[derive(Debug)]
struct Taker<'a> {
    key: &'a VariantKey,
    contender: &'a Contender,
    gains: Vec<f64>,
    added: u32,
}

impl<'a> Work<'a> {
    fn of(contest: &'a Contest) -> Option<Self> {
        let needs: Vec<Need<'a>> = contest
            .mandates
            .iter()
            .filter_map(|(role, mandate)| Need::of(contest, *role, mandate))
            .collect();
        (!needs.is_empty()).then_some(Self {
            priority: contest.priority,
            needs,
        })
    }

    /// The weighted claim in GPUs.
    fn value(&self) -> f64 {
        self.priority * self.needs.iter().map(Need::gpus).sum::<f64>()
    }

    /// Serves a share of what every role still needs; what one role cannot take goes to no other.
    fn serve(&mut self, share: f64, pools: &mut Pools) -> Gpus {
        self.needs
            .iter_mut()
            .fold(Gpus::ZERO, |sum, need| sum.plus(need.serve(share, pools)))
    }
}

impl<'a> Need<'a> {
    fn of(contest: &'a Contest, role: ServingRole, mandate: &Mandate) -> Option<Self> {
        let Mandate::Grow { claims, .. } = mandate else {
            return None;
        };
        let candidates =
            (contest.contenders.iter()).map(|(key, contender)| (key, &contender.candidate));
        let claims = outstanding(candidates, role, claims);
        let mut takers: Vec<(f64, Taker<'a>)> = contest
            .contenders
            .iter()
            .filter_map(|(key, contender)| {
                let one = BTreeMap::from([(key.clone(), contender.candidate.clone())]);
                let gains = sized(&one, role, &claims).pop()?.gains;
                let replicas = claims
                    .iter()
                    .zip(&gains)
                    .filter(|(_, gain)| **gain > 0.0)
                    .map(|(claim, gain)| claim.amount / gain)
                    .fold(0.0, f64::max);
                let taker = Taker {
                    key,
                    contender,
                    gains,
                    added: 0,
                };
                Some((replicas * contender.candidate.cost.millionths(), taker))
            })
            .collect();
        takers.sort_by(|one, other| one.0.total_cmp(&other.0));
        let claimed: Vec<f64> = claims.iter().map(|claim| claim.amount).collect();
        Some(Self {
            left: claimed.clone(),
            claimed,
            takers: takers.into_iter().map(|(_, taker)| taker).collect(),
        })
    }

    /// GPUs that the role still needs: the largest claim, each in replicas of the first variant that
    /// can serve it.
    fn gpus(&self) -> f64 {
        (self.left.iter().zip(&self.claimed))
            .enumerate()
            .filter(|(_, (left, claimed))| **left > *claimed * TOLERANCE)
            .filter_map(|(index, (left, _))| {
                self.takers.iter().find_map(|taker| {
                    let gain = taker.gains.get(index).filter(|gain| **gain > 0.0)?;
                    Some(left / gain * taker.contender.gpus.at_least_one().to_f64())
                })
            })
            .fold(0.0, f64::max)
    }

    fn serve(&mut self, share: f64, pools: &mut Pools) -> Gpus {
        let goals: Vec<f64> = self.left.iter().map(|left| left * (1.0 - share)).collect();
        let mut granted = Gpus::ZERO;
        for taker in &mut self.takers {
            let wanted = wanted(&self.left, &goals, &self.claimed, &taker.gains);
            let count = taker.take(wanted, pools);
            for (left, gain) in self.left.iter_mut().zip(&taker.gains) {
                *left = (*left - gain * f64::from(count)).max(0.0);
            }
            granted = granted.plus(taker.contender.gpus.at_least_one().times(Replicas(count)));
        }
        granted
    }

    fn changes(&self, pools: &Pools) -> Vec<(VariantKey, Change<WhyShared>)> {
        let goals = vec![0.0; self.left.len()];
        self.takers
            .iter()
            .map(|taker| {
                let unmet = wanted(&self.left, &goals, &self.claimed, &taker.gains);
                (taker.key.clone(), taker.change(unmet, pools))
            })
            .collect()
    }
}

/// Replicas that bring every claim to its goal.
fn wanted(left: &[f64], goals: &[f64], claimed: &[f64], gains: &[f64]) -> u32 {
    (left.iter().zip(goals).zip(claimed))
        .zip(gains)
        .filter(|(((left, goal), claimed), gain)| {
            **gain > 0.0 && **left - **goal > **claimed * TOLERANCE
        })
        .map(|(((left, goal), _), gain)| whole::ceil((left - goal) / gain))
        .max()
        .unwrap_or(0)
}

impl Taker<'_> {
    fn room(&self) -> u32 {
        let room = self.contender.candidate.room_above();
        room.saturating_sub(self.added)
    }

    /// Takes as many replicas as are wanted, and as room and pools allow; those that it has GPUs for
    /// first.
    fn take(&mut self, wanted: u32, pools: &mut Pools) -> u32 {
        let Contender {
            accelerator,
            gpus,
            reserved,
            ..
        } = self.contender;
        let per_replica = gpus.at_least_one();
        let asked = Replicas(wanted.min(self.room()));
        let own = asked.min(reserved.saturating_sub(Replicas(self.added)));
        let more = asked.saturating_sub(own);
        let namespace = &self.key.namespace;
        let free = pools.budget(namespace, accelerator);
        let granted = free.grant(per_replica.times(more)).replicas(per_replica);
        pools.take(namespace, accelerator, per_replica.times(granted));
        let count = own.0.saturating_add(granted.0);
        self.added = self.added.saturating_add(count);
        count
    }

    /// `unmet` are the replicas that its role still lacks.
    fn change(&self, unmet: u32, pools: &Pools) -> Change<WhyShared> {
        let candidate = &self.contender.candidate;
        let added = Replicas(self.added);
        let lacking = Replicas(unmet.min(self.room()));
        let why = if lacking > Replicas::ZERO {
            self.shortfall(lacking, pools)
        } else if added > Replicas::ZERO {
            let gpus = self.contender.gpus.at_least_one().times(added);
            WhyShared::Granted { gpus, added }
        } else if candidate.ordered() > Replicas::ZERO {
            WhyShared::Ordered {
                standing: candidate.standing,
            }
        } else {
            WhyShared::NotServed
        };
        Change {
            from: candidate.count,
            to: candidate.grown(self.added),
            why,
        }
    }

    fn shortfall(&self, lacking: Replicas, pools: &Pools) -> WhyShared {
        let gpus = self.contender.gpus.at_least_one();
        let added = Replicas(self.added);
        let wanted = Replicas(self.added.saturating_add(lacking.0));
        let all = pools.figures(&self.key.namespace, &self.contender.accelerator);
        let unknown: Vec<PoolFigures> = (all.iter())
            .filter(|pool| pool.left == Budget::Unknown)
            .cloned()
            .collect();
        if added == Replicas::ZERO && !unknown.is_empty() {
            return WhyShared::BudgetUnknown {
                wanted,
                by: unknown,
            };
        }
        let asked = gpus.times(lacking);
        let binds = |pool: &PoolFigures| pool.left.grant(asked) < asked;
        WhyShared::Limited {
            gpus: gpus.times(added),
            added,
            wanted,
            by: all.into_iter().filter(binds).collect(),
        }
    }
}
