//! What GPUs replicas take, and how many growth keeps within.

use std::collections::BTreeMap;

use crate::world::Scenario;
use wva::policy::key::VariantKey;
use wva::policy::params::{DynamicSettings, LimiterScope, Quota};
use wva::policy::plan::Plan;

#[derive(Debug, Default)]
pub(super) struct Fleet {
    pub(super) gpus: BTreeMap<VariantKey, (String, u32)>,
    nodes: BTreeMap<String, u32>,
}

impl Fleet {
    pub(super) fn of(scenario: &Scenario) -> Self {
        let mut types: BTreeMap<&str, &str> = BTreeMap::new();
        let mut gpus = BTreeMap::new();
        for variant in scenario.variants() {
            types.insert(variant.product, variant.accelerator);
            let key = VariantKey::new(scenario.namespace, variant.name);
            let of_type = (variant.accelerator.to_owned(), variant.replica_gpus());
            gpus.insert(key, of_type);
        }
        let mut nodes = BTreeMap::new();
        for group in &scenario.nodes {
            if let Some(of_type) = types.get(&*group.product) {
                *nodes.entry((*of_type).to_owned()).or_default() += group.count * group.gpus;
            }
        }
        Self { gpus, nodes }
    }

    /// GPUs that growth keeps within under these settings, by type: the least quota, and where none is
    /// stated what nodes offer at most.
    pub(super) fn budget(&self, settings: &DynamicSettings) -> BTreeMap<&str, u32> {
        if !settings.saturation.limiter_enabled() {
            return BTreeMap::new();
        }
        let limiters = settings.saturation.limiters().unwrap_or_default();
        if limiters.is_empty() {
            let all = self.nodes.iter();
            return all.map(|(of_type, count)| (&**of_type, *count)).collect();
        }
        let mut budget: BTreeMap<&str, u32> = BTreeMap::new();
        for of_type in self.nodes.keys() {
            let quotas = limiters.iter().filter_map(|limiter| match &limiter.scope {
                LimiterScope::Cluster(quotas) => match quotas.get(of_type) {
                    Some(Quota::AtMost(most)) => Some(*most),
                    Some(Quota::Unlimited) | None => None,
                },
                LimiterScope::Namespaces(_) => None,
            });
            if let Some(least) = quotas.min() {
                budget.insert(of_type, least);
            }
        }
        budget
    }

    /// Whether one more replica of a variant keeps within its budget, besides what a plan gives to all.
    pub(super) fn has_room(
        &self,
        settings: &DynamicSettings,
        plan: &Plan,
        key: &VariantKey,
    ) -> bool {
        let Some((of_type, one)) = self.gpus.get(key) else {
            return true;
        };
        let Some(limit) = self.budget(settings).get(&**of_type).copied() else {
            return true;
        };
        let used = plan.decisions.values().filter_map(|decision| {
            let (_, gpus) = self.gpus.get(&decision.key).filter(|(of, _)| of == of_type)?;
            Some(decision.target.max(decision.current)?.0 * gpus)
        });
        used.sum::<u32>() + one <= limit
    }
}
