//! How long a new replica takes to be ready, learned of each variant from the pods that started.
//!
//! A start on a node where the variant has run before finds its image and often its weights there
//! (cached); any other one is cold. What is expected of the next start is the median of the latest
//! ones of both kinds, until the first one a seed from the configuration.
//!
//! Starts of a variant are stalled while more of its replicas are late than became ready of those that are
//! as young: its GPUs are sold out, admission holds it back, or its image is broken.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::key::{MAX_VARIANTS, VariantKey};
use super::snapshot::{ClusterSnapshot, PodView, Readiness, VariantView};
use super::units::Replicas;
use crate::params::DynamicSettings;
use wva_base::moment::{Moment, WallTime};

const KEPT_STARTS: usize = 10;
/// Nodes that are remembered of each variant, the latest ones.
const KEPT_NODES: usize = 64;
/// Pods on their way up that are remembered of each variant, and as many that have been ready.
const KEPT_PODS: usize = 1_000;
/// How much longer than the slowest start a replica may take before it no longer counts as starting.
const PATIENCE: u32 = 2;

/// Age from which a pod that is seen for the first time, and is not ready, may have been ready before:
/// its container or its node may just be away. The time of a start whose begin was not seen is worth less
/// than a start of days in the memory is harm.
const UNSEEN: Duration = Duration::from_mins(10);

/// Time after which a pod without a node is late at the earliest: a node that is started for it takes minutes.
const UNSCHEDULED: Duration = Duration::from_mins(5);

/// Time for which starts count as stalled once no replica is late any more. A type of GPU that is sold out
/// seldom comes back within minutes, and each further try costs minutes of overload.
const STALLED_FOR: Duration = Duration::from_mins(30);

/// Time for which a pod may wait behind a scheduling gate. A quota with room admits within seconds, and one
/// without is given back no sooner than Kueue evicts what does not become ready, by default after as long.
pub(crate) const GATED_FOR: Duration = Duration::from_mins(5);

/// Whether a further replica of a variant can be expected to become ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StartProspect {
    #[default]
    Open,
    /// Its last starts are stalled: other variants of the role grow first.
    Stalled,
}

/// A live pod of a variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartingPod {
    pub name: Arc<str>,
    pub node: Option<Arc<str>>,
    pub created: WallTime,
    /// When it became ready; `None` while it is not.
    pub ready: Option<WallTime>,
    /// Whether a scheduling gate forbids the scheduler to place it: its start has not begun.
    pub is_gated: bool,
    pub origin: PodOrigin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodOrigin {
    Own,
    /// Lent from a pool of warm pods: it woke up, which says nothing about a start.
    Lent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StartKind {
    /// A node where the variant had not run, or its node is not known.
    Cold,
    /// A node where it had.
    Cached,
}

/// Where an expectation comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartSource {
    /// The configuration.
    Seed,
    /// Starts of the variant.
    Measured,
}

/// What is expected of the next start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartEstimate {
    /// Time from creation to readiness.
    pub typical: Duration,
    /// The longest of the remembered starts.
    pub slowest: Duration,
    /// Median of the cold starts.
    pub cold: Option<Duration>,
    /// Median of the cached starts.
    pub cached: Option<Duration>,
    /// Starts behind it.
    pub starts: usize,
    pub source: StartSource,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StartTimes {
    variants: BTreeMap<VariantKey, VariantStarts>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct VariantStarts {
    /// The latest starts of each kind, oldest first.
    starts: BTreeMap<StartKind, VecDeque<Duration>>,
    /// Nodes where it has been ready, the one seen last at the end.
    nodes: VecDeque<Arc<str>>,
    /// Pods that were seen not ready, and never ready. Others may have been ready before.
    starting: BTreeSet<Arc<str>>,
    /// Pods that were seen ready, or may have been before anybody looked. One that is ready again has
    /// had its container or its node back, which took much less than its whole age.
    #[serde(default)]
    served: BTreeSet<Arc<str>>,
    /// When pods among those on their way up were last seen behind a gate: there their start begins.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    gated: BTreeMap<Arc<str>, WallTime>,
    /// When its starts were last seen stalled.
    #[serde(default)]
    stalled: Option<WallTime>,
}

/// The time of a start of each variant as long as none was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartSeeds {
    /// That of every variant that states none.
    pub usual: Duration,
    /// Those that objects state.
    pub stated: BTreeMap<VariantKey, Duration>,
}

impl StartSeeds {
    pub(crate) fn of(snapshot: &ClusterSnapshot, settings: &DynamicSettings) -> Self {
        let stated = snapshot.variants.iter().filter_map(|(key, view)| {
            let seconds = view.policy.replica_start_seconds?;
            Some((key.clone(), Duration::from_secs(seconds.into())))
        });
        Self { usual: settings.start_time, stated: stated.collect() }
    }

    fn of_variant(&self, variant: &VariantKey) -> Duration {
        *self.stated.get(variant).unwrap_or(&self.usual)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct StartOutlook<'a> {
    pub starts: &'a StartTimes,
    pub seeds: &'a StartSeeds,
    pub pending: Duration,
    pub now: Moment,
}

/// What is known of the starts of one variant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VariantOutlook<'a> {
    known: Option<&'a VariantStarts>,
    pub(crate) estimate: StartEstimate,
    pub(crate) prospect: StartProspect,
    pending: Duration,
    now: Moment,
}

impl<'a> StartOutlook<'a> {
    pub(crate) fn of(&self, variant: &VariantKey) -> VariantOutlook<'a> {
        let known = self.starts.variants.get(variant);
        let is_stalled = known.and_then(|variant| variant.stalled);
        VariantOutlook {
            known,
            estimate: StartEstimate::of(known, self.seeds.of_variant(variant)),
            prospect: match is_stalled {
                Some(at) if self.now.wall.since(at) < STALLED_FOR => StartProspect::Stalled,
                Some(_) | None => StartProspect::Open,
            },
            pending: self.pending,
            now: self.now,
        }
    }

    /// Replicas of a variant that have waited behind a gate for longer than their limit, where its starts are
    /// stalled: they are no capacity to come.
    pub(crate) fn gated_too_long(&self, view: &VariantView) -> Replicas {
        let is_late = |pod: &&PodView| {
            pod.readiness == Readiness::Gated && self.now.wall.since(pod.created) >= GATED_FOR
        };
        let late = view.pods.iter().filter(is_late).count();
        if late == 0 || self.of(&view.key).prospect == StartProspect::Open {
            return Replicas::ZERO;
        }
        Replicas::from_len(late)
    }
}

impl VariantOutlook<'_> {
    pub(crate) fn late(&self, view: &VariantView) -> Replicas {
        let is_late = |pod: &&PodView| {
            let limit = self.estimate.late_after(pod.node.is_some(), self.pending);
            pod.readiness == Readiness::NotReady && self.age(pod) >= limit
        };
        Replicas::from_len(view.pods.iter().filter(is_late).count())
    }

    /// Time since the start of a pod began: its creation, or the end of its gates.
    pub(crate) fn age(&self, pod: &PodView) -> Duration {
        let gated = self.known.and_then(|known| known.gated.get(&pod.name));
        self.now.wall.since(*gated.unwrap_or(&pod.created))
    }
}

impl StartTimes {
    /// Learns from one look at the pods. `pods` names every variant that there is; what it does not
    /// name is forgotten, and a variant whose pods could not be listed (`None`) stays as it is. `seeds`
    /// are the times of a start where none was seen, `pending` the configured limit of a replica on its way.
    #[must_use]
    pub fn learn(
        &self,
        pods: &BTreeMap<VariantKey, Option<Vec<StartingPod>>>,
        (seeds, pending): (&StartSeeds, Duration),
        now: WallTime,
    ) -> Self {
        let variants = pods
            .iter()
            .filter_map(|(key, listed)| {
                let known = self.variants.get(key);
                let next = match listed {
                    Some(pods) => {
                        let estimate = self.expect(key, seeds.of_variant(key));
                        let is_first = known.is_none();
                        let known = known.cloned().unwrap_or_default();
                        known.learn(pods, is_first, now).judge(pods, &estimate, pending, now)
                    }
                    None => known?.clone(),
                };
                (next != VariantStarts::default()).then(|| (key.clone(), next))
            })
            .take(MAX_VARIANTS)
            .collect();
        Self { variants }
    }

    /// What is expected of the next start of a variant; `seed` where none was seen.
    pub fn expect(&self, variant: &VariantKey, seed: Duration) -> StartEstimate {
        StartEstimate::of(self.variants.get(variant), seed)
    }
}

impl StartEstimate {
    fn of(known: Option<&VariantStarts>, seed: Duration) -> Self {
        let of = |kind| known.and_then(|variant| variant.starts.get(&kind));
        let all: Vec<Duration> = [StartKind::Cold, StartKind::Cached]
            .into_iter()
            .filter_map(of)
            .flatten()
            .copied()
            .collect();
        Self {
            typical: median(all.iter()).unwrap_or(seed),
            slowest: all.iter().max().copied().unwrap_or(seed),
            cold: of(StartKind::Cold).and_then(|starts| median(starts.iter())),
            cached: of(StartKind::Cached).and_then(|starts| median(starts.iter())),
            starts: all.len(),
            source: if all.is_empty() { StartSource::Seed } else { StartSource::Measured },
        }
    }

    /// Time until a replica of this age is ready; `None`, not known, for one that takes longer than any
    /// before it.
    pub(crate) fn remaining(&self, age: Duration) -> Option<Duration> {
        [self.typical, self.slowest]
            .into_iter()
            .find(|whole| *whole > age)
            .map(|whole| whole.saturating_sub(age))
    }

    /// Time after which a pod is late: the limit of a replica on its way once it has a node, before that no
    /// more than twice the slowest start.
    fn late_after(&self, has_node: bool, configured: Duration) -> Duration {
        let limit = self.pending_limit(configured);
        if has_node {
            limit
        } else {
            limit.min((self.slowest.saturating_mul(PATIENCE)).max(UNSCHEDULED))
        }
    }

    /// Time for which a replica may be on its way: the configured limit, or twice the slowest start
    /// where that is longer.
    pub(crate) fn pending_limit(&self, configured: Duration) -> Duration {
        match self.source {
            StartSource::Seed => configured,
            StartSource::Measured => configured.max(self.slowest.saturating_mul(PATIENCE)),
        }
    }
}

impl VariantStarts {
    fn learn(mut self, pods: &[StartingPod], is_first: bool, now: WallTime) -> Self {
        let mut pods: Vec<&StartingPod> = pods.iter().collect();
        pods.sort_by(|one, other| (one.ready, &one.name).cmp(&(other.ready, &other.name)));
        let gated = (pods.iter()).filter(|pod| pod.is_gated);
        self.gated.extend(gated.map(|pod| (Arc::clone(&pod.name), now)));
        let is_unseen = |pod: &StartingPod| {
            !self.starting.contains(&pod.name) && now.since(self.begun(pod)) > UNSEEN
        };
        let (served, starting): (Vec<_>, Vec<_>) = pods.iter().partition(|pod| {
            pod.ready.is_some() || self.served.contains(&pod.name) || is_unseen(pod)
        });
        let served = std::mem::replace(&mut self.served, names(&served));
        let started = std::mem::replace(&mut self.starting, names(&starting));
        // What no look found before and is ready now started in less than the time between two of them.
        let is_new = |pod: &StartingPod| {
            let is_complete = !is_first && served.len() < KEPT_PODS && started.len() < KEPT_PODS;
            is_complete && !served.contains(&pod.name) && now.since(pod.created) <= UNSEEN
        };
        for pod in pods {
            let Some(ready) = pod.ready else { continue };
            let is_cached = (pod.node.as_ref()).is_some_and(|node| self.nodes.contains(node));
            let begun = self.begun(pod);
            if pod.origin == PodOrigin::Own && (started.contains(&pod.name) || is_new(pod)) {
                self.stalled = None;
                let kind = if is_cached { StartKind::Cached } else { StartKind::Cold };
                push(self.starts.entry(kind).or_default(), ready.since(begun), KEPT_STARTS);
            }
            if let Some(node) = &pod.node
                && !is_cached
            {
                push(&mut self.nodes, Arc::clone(node), KEPT_NODES);
            }
        }
        let starting = &self.starting;
        self.gated.retain(|name, _| starting.contains(name));
        self
    }

    fn begun(&self, pod: &StartingPod) -> WallTime {
        *self.gated.get(&pod.name).unwrap_or(&pod.created)
    }

    /// Compares the pods that are late with those that became ready and are as young. One without a node never
    /// had a start; of one with a node it is known that it never served. Behind a gate none is to become ready while
    /// none did for as long as it may wait there.
    fn judge(
        mut self,
        pods: &[StartingPod],
        estimate: &StartEstimate,
        pending: Duration,
        now: WallTime,
    ) -> Self {
        let late = (pods.iter()).filter(|pod| {
            let limit = estimate.late_after(pod.node.is_some(), pending);
            let is_new = pod.node.is_none() || !self.served.contains(&pod.name);
            pod.ready.is_none() && !pod.is_gated && is_new && now.since(self.begun(pod)) >= limit
        });
        let created: Vec<_> = late.map(|pod| pod.created).collect();
        let landed_since = |first: WallTime| {
            let landed = (pods.iter()).filter(|pod| pod.ready.is_some() && pod.created >= first);
            landed.count()
        };
        // Those that were admitted of one batch say nothing of the rest.
        let is_recent = |ready: WallTime| now.since(ready) < GATED_FOR;
        let is_gated = pods.iter().any(|pod| pod.is_gated && now.since(pod.created) >= GATED_FOR)
            && !pods.iter().any(|pod| pod.ready.is_some_and(is_recent));
        match created.iter().min() {
            Some(first) if created.len() > landed_since(*first) => self.stalled = Some(now),
            _ if is_gated => self.stalled = Some(now),
            _ => self.stalled = self.stalled.filter(|at| now.since(*at) < STALLED_FOR),
        }
        self
    }
}

fn names(pods: &[&StartingPod]) -> BTreeSet<Arc<str>> {
    let names = pods.iter().map(|pod| Arc::clone(&pod.name));
    names.take(KEPT_PODS).collect()
}

fn push<T>(kept: &mut VecDeque<T>, one: T, most: usize) {
    while kept.len() >= most {
        kept.pop_front();
    }
    kept.push_back(one);
}

/// The median; of an even number the longer of the two in the middle.
fn median<'a>(times: impl Iterator<Item = &'a Duration>) -> Option<Duration> {
    let mut times: Vec<Duration> = times.copied().collect();
    times.sort();
    times.get(times.len() / 2).copied()
}

#[cfg(test)]
#[path = "startup_tests.rs"]
mod tests;
