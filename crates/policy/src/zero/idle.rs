//! To zero, per model: all of its variants, or none.

use std::collections::BTreeMap;
use std::time::Duration;

use super::load::{ModelActivity, ModelLoad};
use super::wake_log::Kept;
use crate::bounds::ZeroPolicy;
use crate::change::CountChange;
use crate::key::VariantKey;
use crate::reason::{Reason, ZeroBlock};
use crate::units::Replicas;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ZeroRule {
    pub policy: ZeroPolicy,
    pub retention: Duration,
    /// Whether a limit on GPUs could ever start it again.
    pub restart: Restart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restart {
    Possible,
    /// Whatever serves it holds GPUs that are not counted.
    NotCounted,
    /// No limit is known to leave GPUs for one replica of what serves it.
    NoBudget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ZeroMember {
    pub count: Replicas,
    pub min: Replicas,
    pub woken: Option<Kept>,
}

impl ZeroBlock {
    /// Why a model cannot go to zero, the lasting reasons first; `None` if it can, with how long it
    /// has been idle for.
    fn of(
        rule: &ZeroRule,
        members: &BTreeMap<VariantKey, ZeroMember>,
        load: &ModelLoad,
        idle: Option<Duration>,
    ) -> Option<Self> {
        if rule.policy == ZeroPolicy::Disabled {
            return Some(Self::PolicyForbidsZero);
        }
        let floor = members.iter().find(|(_, member)| member.min > Replicas::ZERO);
        if let Some((variant, member)) = floor {
            return Some(Self::VariantFloor { variant: variant.clone(), min: member.min });
        }
        let woken = (members.iter()).find_map(|(key, member)| Some((key, member.woken?)));
        if let Some((variant, Kept { ago, hold })) = woken {
            return Some(Self::Woken { variant: variant.clone(), ago, hold });
        }
        match rule.restart {
            Restart::Possible => {}
            Restart::NotCounted => return Some(Self::GpusNotCounted),
            Restart::NoBudget => return Some(Self::GpuBudget),
        }
        match (load.activity(), load.queued, idle) {
            (ModelActivity::Busy, _, _) => Some(Self::Busy),
            (_, None, _) => Some(Self::NoWakeSignal),
            (ModelActivity::Unknown, Some(_), _) | (ModelActivity::Idle, Some(_), None) => {
                Some(Self::LoadUnknown)
            }
            (ModelActivity::Idle, Some(_), Some(idle)) => {
                let retention = rule.retention;
                (idle < retention).then_some(Self::Retained { idle, retention })
            }
        }
    }
}

/// Sends every variant of an idle model to zero. `idle` is how long it has been idle; `None` is not
/// known. Names the obstacle on every variant where there is one.
pub(crate) fn to_zero(
    rule: &ZeroRule,
    members: &BTreeMap<VariantKey, ZeroMember>,
    load: &ModelLoad,
    idle: Option<Duration>,
) -> BTreeMap<VariantKey, CountChange> {
    let block = ZeroBlock::of(rule, members, load, idle);
    members
        .iter()
        .map(|(key, member)| {
            let (to, why) = match &block {
                Some(block) => (member.count, Reason::ZeroBlocked { block: block.clone() }),
                None => (
                    Replicas::ZERO,
                    Reason::NoRequests {
                        idle: idle.unwrap_or_default(),
                        retention: rule.retention,
                    },
                ),
            };
            let from = member.count;
            (key.clone(), CountChange { from, to, why })
        })
        .collect()
}
