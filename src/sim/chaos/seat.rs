//! One process as the judge sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::check::Violation;
use super::check::attempts::Attempts;
use super::check::holdings::Holdings;
use super::check::kept::{Kept, Places, outgrown};
use super::check::mirrors::Versions;
use super::check::patience::Patience;
use super::check::plans::Plans;
use super::check::series::Shown;
use super::check::settings::Generations;
use super::check::tree::Tree;
use super::ills::Ills;
use super::lens::Heard;
use super::watches::Watches;
use crate::kit::RoleReport;
use crate::policy::key::VariantKey;
use crate::policy::moment::Moment;
use crate::policy::rival::Standing;
use crate::policy::units::Replicas;
use crate::sim::apiserver::Insider;
use crate::sim::workloads::object::Object;
use crate::sim::world::controller::Door;

/// After a server went back in time, until every list is new.
const RELISTED: Duration = Duration::from_mins(12);
/// How soon what the API server stores is known.
const KNOWN: Duration = Duration::from_secs(15);
/// How soon a variant that is resolved has series, and one that is gone has none.
const SHOWN: Duration = Duration::from_secs(3);
/// How late a status is after its gauge at most: the longest pause between two attempts, and one.
const STORED: Duration = Duration::from_secs(80);

/// How soon something is watched again once nothing is in the way: a watch that has fallen silent is given
/// up when its agreed length of 290 s has passed, and a request that nobody answers after half a minute.
const WATCHED_AGAIN: Duration = Duration::from_mins(6);
/// How soon a write that failed is tried again: the longest pause, and requests that nobody answers.
const TRIED_AGAIN: Duration = Duration::from_secs(110);

/// How long something may be kept of a variant that is gone.
const KEPT: Duration = Duration::from_mins(1);
/// Seconds between two looks at what is kept.
const KEPT_EVERY: u64 = 30;

const VARIANTS: &str = "variantautoscalings.llmd.ai";
const DEPLOYMENTS: &str = "deployments.apps";
const PODS: &str = "pods.";
/// What decisions rest on: where one of these is not watched, the process knows nothing new.
const FOLLOWED: [&str; 5] = [
    "variantautoscalings",
    "deployments",
    "pods",
    "namespaces",
    "replicasets",
];
/// What the judge knows of the cluster.
const WATCHED: [&str; 3] = [VARIANTS, DEPLOYMENTS, PODS];

/// One process.
pub(super) struct Seat {
    pub(super) door: Arc<Door>,
    pub(super) heard: Heard,
    watches: Watches,
    ills: Ills,
    pub(super) attempts: Attempts,
    pub(super) since: Duration,
    pub(super) paused: bool,
    pub(super) leaving: bool,
    pub(super) ever_led: bool,
    pub(super) plans: Plans,
    generations: Generations,
    tree: Tree,
    versions: Versions,
    kept: Kept,
    holdings: Holdings,
    /// The version of the cluster at the last look.
    version: Option<u64>,
    /// The revisions of mirrors and surroundings at which they were last found equal.
    agreed: Option<[u64; 4]>,
    patience: Patience,
    report: Vec<RoleReport>,
    /// Since when nothing disturbs it.
    calm: Option<Duration>,
    /// Since when its roles live and it is told of changes.
    awake: Option<Duration>,
    /// Since when its roles live and its way is free.
    free: Option<Duration>,
    /// Since when it leads.
    leads: Option<Duration>,
    counted: BTreeMap<String, f64>,
}

/// A variant as the API server stores it.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) bounds: (Option<u32>, Option<u32>),
    pub(super) desired: Option<u32>,
    pub(super) allows_zero: bool,
}

/// What a process hears, and what keeps it from hearing.
pub(super) struct Hears {
    /// From Prometheus.
    pub(super) heard: Heard,
    /// From watches.
    pub(super) watches: Watches,
    /// What is wrong with its ways.
    pub(super) ills: Ills,
}

/// What the API server holds.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// The version of the last look.
    version: u64,
    /// Grows with every look that finds something changed.
    number: u64,
    pub(super) variants: BTreeMap<VariantKey, Stored>,
    deployments: BTreeSet<String>,
    pods: BTreeSet<String>,
}

impl Surroundings {
    /// The surroundings as they are now; a look at everything only where something has changed.
    pub(super) fn follow(known: Option<Arc<Self>>, insider: &Insider) -> Arc<Self> {
        let number = known.as_ref().map_or(0, |known| known.number + 1);
        match known {
            Some(known) if !insider.changed_since(known.version, &WATCHED) => known,
            _ => Arc::new(Self::look(insider, number)),
        }
    }

    fn look(insider: &Insider, number: u64) -> Self {
        let version = insider.version();
        let names = |resource: &str| -> BTreeSet<String> {
            let all = insider.list(resource).into_iter().map(Object);
            all.map(|one| format!("{}/{}", one.namespace(), one.name()))
                .collect()
        };
        let variants = insider.list(VARIANTS);
        let variants = variants.into_iter().map(Object).map(|one| {
            let count = |pointer: &str| {
                let value = one.at(pointer).as_u64()?;
                u32::try_from(value).ok()
            };
            let bounds = (count("/spec/minReplicas"), count("/spec/maxReplicas"));
            let stored = Stored {
                bounds,
                desired: count("/status/desiredOptimizedAlloc/numReplicas"),
                allows_zero: bounds.0 == Some(0) || bounds.1 == Some(0),
            };
            (VariantKey::new(one.namespace(), one.name()), stored)
        });
        Self {
            version,
            number,
            variants: variants.collect(),
            deployments: names(DEPLOYMENTS),
            pods: names(PODS),
        }
    }
}

impl Seat {
    pub(super) fn new(door: Arc<Door>, hears: Hears, since: Duration) -> Self {
        let Hears {
            heard,
            watches,
            ills,
        } = hears;
        Self {
            door,
            heard,
            watches,
            ills,
            attempts: Attempts::default(),
            since,
            paused: false,
            leaving: false,
            ever_led: false,
            plans: Plans::default(),
            generations: Generations::default(),
            tree: Tree::default(),
            versions: Versions::default(),
            kept: Kept::default(),
            holdings: Holdings::default(),
            version: None,
            agreed: None,
            patience: Patience::default(),
            report: Vec::new(),
            calm: None,
            awake: None,
            free: None,
            leads: None,
            counted: BTreeMap::new(),
        }
    }

    /// T5: the most bytes that were held since the last look.
    pub(super) fn held(&mut self, bytes: usize, around: &Surroundings) -> Option<Violation> {
        let objects = around.variants.len() + around.pods.len();
        self.holdings.judge(bytes, objects)
    }

    /// Looks at everything.
    pub(super) fn second(
        &mut self,
        place: usize,
        now: Moment,
        is_free: bool,
        page: Option<&Shown>,
        around: &Surroundings,
    ) -> Vec<Violation> {
        if self.paused || self.leaving {
            (self.calm, self.awake, self.free) = (None, None, None);
            return Vec::new();
        }
        self.report = self.door.census.report();
        self.look_around(is_free, now.monotonic);
        let version = self.version.replace(around.version);
        let changes = around.version - version.unwrap_or(around.version).min(around.version);
        let variants = u64::try_from(around.variants.len()).unwrap_or(u64::MAX);
        let tree = &mut self.tree;
        let mut found = tree.judge(&self.report, changes, variants, now.monotonic);
        let generation = &self.door.facts.settings.load().generation;
        found.extend(self.generations.judge(generation));
        found.extend(self.deaf(now));
        found.extend(self.mirrors(now, around));
        self.kept.note(around.number, around.variants.keys());
        if let Some(page) = page {
            found.extend(self.page(now, page, around));
            if now.monotonic.as_secs().is_multiple_of(KEPT_EVERY) {
                found.extend(self.keeps(now, page, around));
            }
        }
        for violation in &mut found {
            violation.text = format!("c{place}: {}", violation.text);
        }
        found
    }

    fn look_around(&mut self, is_free: bool, now: Duration) {
        let is_whole = self.tree.is_whole(&self.report) && !self.door.census.hangs();
        let is_told = self.watches.hear(&FOLLOWED);
        let since = |holds: bool, before: Option<Duration>| holds.then(|| before.unwrap_or(now));
        self.calm = since(is_free && is_whole && is_told, self.calm);
        self.awake = since(is_whole && is_told, self.awake);
        self.free = since(is_free && is_whole, self.free);
        let leads = self.door.facts.claim.may_write(self.door.facts.clock.now());
        self.leads = since(leads, self.leads);
    }

    /// What has lasted in calm, while it leads without a break.
    pub(super) fn lasting_lead(
        &mut self,
        group: &str,
        present: Vec<String>,
        now: Moment,
        limit: Duration,
    ) -> Vec<String> {
        let since = self.calm.max(self.leads);
        let times = (now.monotonic, since.filter(|_| self.calm.is_some()));
        self.patience.lasting(group, present, times, limit)
    }

    /// M1: what decisions rest on is watched, if nothing is in the way.
    fn deaf(&mut self, now: Moment) -> Vec<Violation> {
        let watches = &self.watches;
        let deaf = FOLLOWED.iter().filter(|kind| !watches.hear(&[kind]));
        let deaf: Vec<String> = deaf.map(|kind| (*kind).to_owned()).collect();
        let times = (now.monotonic, self.free);
        let lasting = self.patience.lasting("deaf", deaf, times, WATCHED_AGAIN);
        let text = |kind: String| {
            let limit = WATCHED_AGAIN.as_secs();
            format!("{kind} have not been watched for {limit} s, though nothing is in the way")
        };
        let found = lasting.into_iter().map(text);
        found.map(|text| Violation::new("M1", text)).collect()
    }

    /// E6: who leads goes on trying to store what it shows, whatever is in the way.
    fn untried(&mut self, now: Moment, unstored: &[String]) -> Vec<Violation> {
        let since = self.awake.max(self.leads);
        let is_undisturbed = self.awake.is_some() && self.leads.is_some();
        let times = (now.monotonic, since.filter(|_| is_undisturbed));
        let unstored = unstored.iter().cloned();
        let mut lasting = self
            .patience
            .lasting("untried", unstored, times, TRIED_AGAIN);
        let attempts = &self.attempts;
        lasting.retain(|key| attempts.none_within(key, TRIED_AGAIN, now.monotonic));
        let text = |key: String| {
            let limit = TRIED_AGAIN.as_secs();
            format!("{key} is not stored as it is shown, and nobody has tried to for {limit} s")
        };
        let found = lasting.into_iter().map(text);
        found.map(|text| Violation::new("E6", text)).collect()
    }

    /// Whether a server went back in time for it within this time.
    pub(super) fn is_misled(&self, within: Duration, now: Duration) -> bool {
        let younger = self.ills.younger(now);
        younger.is_some_and(|at| now.saturating_sub(at) < within)
    }

    /// How long ago Prometheus hid from it that something is in use.
    pub(super) fn misled_for(&self, now: Duration) -> Option<Duration> {
        let misled = self.ills.misled(now)?;
        Some(now.saturating_sub(misled))
    }

    fn mirrors(&mut self, now: Moment, around: &Surroundings) -> Vec<Violation> {
        let door = Arc::clone(&self.door);
        let mirrors = &door.facts.mirrors;
        let revisions = [
            mirrors.variants.revision(),
            mirrors.deployments.revision(),
            mirrors.pods.revision(),
            around.number,
        ];
        if self.agreed == Some(revisions) {
            return Vec::new();
        }
        let records = mirrors.variants.all();
        let known = records.iter().map(|(_, record)| {
            let version = record.resource_version.parse().unwrap_or(0);
            let object = &record.object;
            (object.key.clone(), Arc::clone(&object.uid), version)
        });
        let excused = self.is_misled(RELISTED, now.monotonic);
        let mut found = self.versions.judge(known, excused);
        let stored: BTreeSet<String> = around.variants.keys().map(ToString::to_string).collect();
        let here = |keys: Vec<String>| keys.into_iter().collect::<BTreeSet<String>>();
        let kinds = [
            ("variants", here(names(&mirrors.variants)), &stored),
            (
                "deployments",
                here(names(&mirrors.deployments)),
                &around.deployments,
            ),
            ("pods", here(names(&mirrors.pods)), &around.pods),
        ];
        let agree = kinds.iter().all(|(_, known, stored)| known == *stored);
        self.agreed = agree.then_some(revisions);
        let calm = (now.monotonic, self.calm);
        for (kind, known, stored) in kinds {
            let ghosts: Vec<String> = known.difference(stored).cloned().collect();
            let group = format!("ghosts/{kind}");
            for ghost in self.patience.lasting(&group, ghosts, calm, KNOWN) {
                let text = format!("{ghost} is gone, and still among the {kind} that are known");
                found.push(Violation::new("M2", text));
            }
            let missing: Vec<String> = stored.difference(&known).cloned().collect();
            let group = format!("missing/{kind}");
            for missing in self.patience.lasting(&group, missing, calm, KNOWN) {
                let text = format!("{missing} is not among the {kind} that are known");
                found.push(Violation::new("M1", text));
            }
        }
        found
    }

    /// T5: what is kept is of what exists.
    fn keeps(&mut self, now: Moment, page: &Shown, around: &Surroundings) -> Vec<Violation> {
        let learned = serde_json::to_value(&*self.door.facts.learned.load()).unwrap_or_default();
        let places = Places {
            facts: &self.door.facts,
            roles: &self.report,
            page: &page.named,
        };
        let exists = |name: &str| {
            let parts = name.split_once('/');
            parts.is_some_and(|(namespace, name)| {
                let key = VariantKey::new(namespace, name);
                around.variants.contains_key(&key)
            })
        };
        // What cannot be learned cannot be unlearned.
        let collected = self.door.facts.learned.load().collected;
        let learns = collected.is_some_and(|at| now.monotonic.saturating_sub(at) < KEPT / 2);
        let taught = if learns { &learned } else { &Value::Null };
        let gone = self.kept.of_gone(&places, taught, exists);
        let calm = (now.monotonic, self.calm);
        let lasting = self.patience.lasting("kept", gone, calm, KEPT);
        let found = lasting.into_iter().map(|text| Violation::new("T5", text));
        let (variants, pods) = (around.variants.len(), around.pods.len());
        found.chain(outgrown(&learned, variants, pods)).collect()
    }

    fn page(&mut self, now: Moment, page: &Shown, around: &Surroundings) -> Vec<Violation> {
        let mut found = page.broken.clone();
        for (number, count) in &page.counted {
            if *count > self.counted.get(number).copied().unwrap_or(0.0) {
                let text = format!("{number} was counted by the controller itself");
                found.push(Violation::new("D", text));
            }
        }
        self.counted.clone_from(&page.counted);
        let leads = self.door.facts.claim.may_write(now);
        if !leads {
            if !page.desired.is_empty() {
                let text = "decisions are shown without a claim";
                found.push(Violation::new("E5", text));
            }
            return found;
        }
        // Controllers without an instance manage what is labelled with any.
        let is_there = |key: &VariantKey| around.variants.contains_key(key);
        let gone = page.desired.keys().filter(|key| !is_there(key));
        let gone = gone.map(ToString::to_string).collect();
        for key in self.lasting_lead("gone", gone, now, SHOWN) {
            let text = format!("{key} is gone and still shown");
            found.push(Violation::new("E4", text));
        }
        let absent = self.absent(page, around);
        for key in self.lasting_lead("absent", absent, now, SHOWN) {
            let text = format!("{key} is resolved and not shown");
            found.push(Violation::new("E2", text));
        }
        found.extend(self.counts(now, page, around));
        found.extend(self.idle(now));
        found
    }

    /// Who leads decides at every tick.
    fn idle(&mut self, now: Moment) -> Option<Violation> {
        let interval = self.door.facts.settings.load().generation.dynamic.interval;
        let last = self.plans.last_at().unwrap_or_default();
        let is_idle = now.monotonic.saturating_sub(last) > interval * 2;
        let idle = is_idle.then(|| "plans".to_owned());
        let lasting = self.lasting_lead(
            "idle",
            idle.into_iter().collect(),
            now,
            interval * 2 + KNOWN,
        );
        let since = now.monotonic.saturating_sub(last).as_secs();
        let text = format!("leads, and has published no plan for {since} s");
        (!lasting.is_empty()).then(|| Violation::new("L1", text))
    }

    /// Variants that should be shown and are not.
    fn absent(&self, page: &Shown, around: &Surroundings) -> Vec<String> {
        let facts = &self.door.facts;
        let views = facts.board.snapshot();
        let resolved = views.iter().filter(|(key, view)| {
            view.target.resolved().is_some()
                && around.variants.contains_key(*key)
                && !page.desired.contains_key(*key)
                && !matches!(facts.standing(key), Standing::Behind { .. })
        });
        resolved.map(|(key, _)| key.to_string()).collect()
    }

    /// What is shown, against what is stored.
    fn counts(&mut self, now: Moment, page: &Shown, around: &Surroundings) -> Vec<Violation> {
        let mut found = Vec::new();
        let interval = self.door.facts.settings.load().generation.dynamic.interval;
        let (mut outside, mut unstored) = (Vec::new(), Vec::new());
        for (key, desired) in &page.desired {
            let Some(stored) = around.variants.get(key) else {
                continue;
            };
            let desired = Replicas(crate::sim::number::rounded(*desired));
            let above = stored.bounds.1.is_some_and(|max| desired.0 > max);
            let crossed = stored
                .bounds
                .1
                .is_some_and(|max| stored.bounds.0 > Some(max));
            let below = !crossed && stored.bounds.0.is_some_and(|min| desired.0 < min);
            if above || below {
                outside.push(key.to_string());
            }
            if stored.desired != Some(desired.0) {
                unstored.push(key.to_string());
            }
        }
        for key in self.lasting_lead("outside", outside, now, interval * 3 + KNOWN) {
            let text = format!("{key} is shown outside its bounds");
            found.push(Violation::new("D2", text));
        }
        found.extend(self.untried(now, &unstored));
        for key in self.lasting_lead("unstored", unstored, now, STORED) {
            let text = format!("{key} is shown with another count than is stored");
            found.push(Violation::new("E6", text));
        }
        found
    }
}

fn names<V>(mirror: &crate::cluster::mirror::Mirror<V>) -> Vec<String> {
    let all = mirror.all();
    all.iter().map(|(key, _)| key.to_string()).collect()
}
