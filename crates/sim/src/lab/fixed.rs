//! The smallest fleet of a scenario that never changes and keeps the objectives, found by playing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::accounting::{Scored, share};
use super::fluid::{FluidDemand, GOAL, primaries};
use super::loads::ModelLoad;
use super::seats::{lengths, unattended};
use crate::load::Arrivals;
use crate::threads::paused;
use crate::world::{LoadSource, Scenario, ScenarioModel};
use wva_base::moment::WallTime;
use wva_supervise::SeedTree;

/// Requests that end until then do not count: the fleet starts with the load.
const WARM: Duration = Duration::from_mins(10);
const PLAYED: Duration = Duration::from_hours(1);

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FixedFleet {
    /// Replicas by variant; those that are left out have their minimum.
    pub(crate) replicas: BTreeMap<&'static str, u32>,
    pub(crate) cost_per_hour: f64,
}

impl FixedFleet {
    /// Searches on this thread: for each model replicas of the variant that does its requests for the least money,
    /// from what a fluid model says. `None` where a model stays below the objective at its maximum, or after `stop`.
    pub(crate) fn search(
        scenario: &Scenario,
        seed: u64,
        date: WallTime,
        stop: &AtomicBool,
    ) -> Option<Self> {
        let mut counts = Vec::new();
        for model in &scenario.models {
            let variant = *primaries(model, lengths(model)).first()?;
            let bounds = (variant.bounds.0.max(1), variant.bounds.1);
            let count = guess(model, seed).unwrap_or(1).min(bounds.1).max(bounds.0);
            // Whether one replica less is known to be too few.
            counts.push((variant.name, count, count <= bounds.0, bounds));
        }
        loop {
            let fleet = Self::of(scenario, counts.iter().map(|(name, count, ..)| (*name, *count)));
            let kept = fleet.play(scenario, seed, date)?;
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let mut is_changed = false;
            for ((_, count, is_least, (least, most)), kept) in counts.iter_mut().zip(kept) {
                if kept < GOAL {
                    (*count, *is_least, is_changed) = (*count + 1, true, true);
                    if count > most {
                        return None;
                    }
                } else if !*is_least {
                    *count -= 1;
                    (*is_least, is_changed) = (count <= least, true);
                }
            }
            if !is_changed {
                return Some(fleet);
            }
        }
    }

    fn of<'a>(scenario: &'a Scenario, counts: impl Iterator<Item = (&'a str, u32)>) -> Self {
        let counts: BTreeMap<&str, u32> = counts.collect();
        let all = scenario.variants().map(|variant| {
            let count = counts.get(variant.name).copied();
            (variant, count.unwrap_or(variant.bounds.0))
        });
        let costs = all.clone().map(|(variant, count)| variant.cost * f64::from(count));
        Self {
            cost_per_hour: costs.sum(),
            replicas: all.map(|(variant, count)| (variant.name, count)).collect(),
        }
    }

    fn play(&self, scenario: &Scenario, seed: u64, date: WallTime) -> Option<Vec<f64>> {
        let mut scenario = scenario.clone();
        scenario.troubles.clear();
        for variant in scenario.models.iter_mut().flat_map(|one| &mut one.variants) {
            let count = self.replicas.get(variant.name).copied().unwrap_or(0);
            variant.replicas = count;
            variant.bounds = (count, count.max(1));
        }
        paused().ok()?.block_on(shares(&scenario, seed, date)).ok()
    }
}

async fn shares(scenario: &Scenario, seed: u64, date: WallTime) -> Result<Vec<f64>, String> {
    let (world, _server) = unattended(scenario, seed, date).await?;
    tokio::time::sleep(WARM).await;
    let before = world.frame();
    tokio::time::sleep(PLAYED.saturating_sub(WARM)).await;
    let after = world.frame();
    world.end().await;
    let models = before.models.iter().zip(&after.models);
    let shares = models.map(|(before, after)| {
        let ended = after.ended.0.saturating_sub(before.ended.0);
        let good = after.ended.1.saturating_sub(before.ended.1);
        share(good, ended)
    });
    Ok(shares.collect())
}

fn guess(model: &ScenarioModel, seed: u64) -> Option<u32> {
    let LoadSource::Generated(demand) = &model.load else {
        return None;
    };
    let arrivals = Arrivals::new(demand.clone(), &SeedTree::new(seed), model.name).ok()?;
    let load = ModelLoad {
        arrivals: arrivals.take_while(|arrival| arrival.at < PLAYED).collect(),
        class_of: Vec::new().into(),
        classes: Vec::new(),
    };
    let scored = Scored { from: WARM, until: PLAYED };
    Some(FluidDemand::new(model, &load, scored)?.least_static())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::RateProfile;
    use crate::world::scenario;

    #[test]
    fn the_smallest_fixed_fleet_keeps_the_objective_and_one_less_does_not() {
        let mut scenario = scenario("quiet").unwrap().with_shipped_settings();
        if let LoadSource::Generated(demand) = &mut scenario.models[0].load {
            demand.shape =
                RateProfile::Step { before: 16.0, after: 0.2, at: Duration::from_mins(16) };
        }
        let none = AtomicBool::new(false);
        let found = FixedFleet::search(&scenario, 1, WallTime(0), &none).unwrap();
        let (name, count) = ("qwen3-8b-fp8", found.replicas["qwen3-8b-fp8"]);
        assert_eq!(found.replicas["qwen3-8b-bf16"], 1, "its minimum");
        let less = FixedFleet::of(&scenario, [(name, count - 1)].into_iter());
        assert!(less.cost_per_hour < found.cost_per_hour);
        let kept = less.play(&scenario, 1, WallTime(0)).unwrap();
        assert!(kept[0] < GOAL, "{kept:?} with {less:?}");
        let stopped = AtomicBool::new(true);
        assert_eq!(FixedFleet::search(&scenario, 1, WallTime(0), &stopped), None);
    }
}
