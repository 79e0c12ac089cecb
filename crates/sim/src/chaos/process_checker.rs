//! One process as the judge sees it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::active_faults::ActiveFaults;
use super::check::ends::{Ending, Hangs, hung};
use super::check::hearing::Ready;
use super::check::kept::{Holdings, Kept, of_gone, outgrown, places, texts};
use super::check::known::{Content, SeenVersions};
use super::check::pace::{Pace, Spared};
use super::check::plans::Plans;
use super::check::series::{Attempts, ExposedSeries};
use super::check::settings::{Followed, Generations, Spans};
use super::check::tree::{Clocks, RoleIncarnation, Tree, turns, unplanned};
use super::check::{Eventually, InvariantViolation};
use super::pod_pages_proxy::PageReads;
use super::prometheus_proxy::PodObservations;
use super::stream::Watches;
use super::surroundings::Surroundings;
use crate::apiserver::Insider;
use crate::world::controller::ControllerView;
use wva::cluster::ObjectKey;
use wva::policy::key::VariantKey;
use wva::policy::snapshot::CycleId;
use wva::policy::units::Replicas;
use wva::roles::Role;
use wva::settings::Sources;
use wva_base::moment::Moment;
use wva_supervise::RoleReport;

mod knows;
mod shows;

/// After a server went back in time, until every list is new.
pub(super) const RELISTED: Duration = Duration::from_mins(12);
/// How soon what the API server stores is known.
const KNOWN: Duration = Duration::from_secs(15);
/// How soon a variant that is resolved has series, and one that is gone has none.
const SHOWN: Duration = Duration::from_secs(3);
/// How soon a count is shown that was decided: a raise waits for two seconds at most to be stored.
const DECIDED: Duration = Duration::from_secs(5);
/// How late a status is after its gauge at most: the longest pause between two attempts, and one.
const STORED: Duration = Duration::from_secs(80);

/// How soon something is watched again once nothing is in the way: a watch that has fallen silent is given
/// up when its agreed length of 290 s has passed, and a request without an answer after half a minute.
const WATCHED_AGAIN: Duration = Duration::from_mins(6);
/// How soon a write that failed is tried again: the longest pause, and requests without an answer.
const TRIED_AGAIN: Duration = Duration::from_secs(110);

const KEPT: Duration = Duration::from_mins(1);
pub(super) const LOOK_EVERY: u64 = 10;
pub(super) const KEPT_EVERY: u64 = 30;

/// What decisions rest on: where one of these is not watched, the process knows nothing new.
const FOLLOWED: [&str; 7] = [
    "variantautoscalings",
    "deployments",
    "pods",
    "namespaces",
    "replicasets",
    "horizontalpodautoscalers",
    "configmaps",
];

pub(super) struct ProcessChecker {
    pub(super) door: Arc<ControllerView>,
    pub(super) observed: PodObservations,
    pub(super) watches: Watches,
    pub(super) reads: PageReads,
    ills: ActiveFaults,
    pub(super) fixed: Sources,
    pub(super) attempts: Attempts,
    pub(super) paused: bool,
    pub(super) leaving: bool,
    pub(super) ever_led: bool,
    pub(super) plans: Plans,
    generations: Generations,
    followed: Followed,
    pub(super) spans: Spans,
    pub(super) pace: Pace,
    pub(super) spared: Spared,
    tree: Tree,
    hangs: Hangs,
    pub(super) ending: Option<Ending>,
    versions: SeenVersions,
    kept: Kept,
    pub(super) holdings: Holdings,
    /// The replicas of each variant that existed and were to stay at the last look.
    pub(super) stood: BTreeMap<VariantKey, Replicas>,
    pub(super) ready: Ready,
    version: Option<u64>,
    revision: Option<u64>,
    pub(super) patience: Eventually,
    clocks: Clocks,
    learned: Option<Duration>,
    report: Vec<RoleReport<Role>>,
    pub(super) news: Vec<String>,
    calm: Option<Duration>,
    /// Since when its roles live and its watches are live.
    awake: Option<Duration>,
    /// Since when its roles live and its way is free.
    free: Option<Duration>,
    /// Since when its roles live.
    whole: Option<Duration>,
    pub(super) leads: Option<Duration>,
    /// By which cycle each variant counted last, and in which term.
    cycles: BTreeMap<VariantKey, (u64, CycleId)>,
    counted: BTreeMap<String, f64>,
}

#[derive(Clone, Copy)]
pub(super) struct Cluster<'a> {
    pub(super) around: &'a Surroundings,
    pub(super) content: &'a Content,
    pub(super) insider: &'a Insider,
}

impl ProcessChecker {
    /// What it learns comes by `watches` and `observed`, where `ills` let it; `fixed` are its flags, environment
    /// and file.
    pub(super) fn new(
        door: Arc<ControllerView>,
        (observed, watches, reads): (PodObservations, Watches, PageReads),
        ills: ActiveFaults,
        fixed: Sources,
    ) -> Self {
        Self {
            door,
            observed,
            watches,
            reads,
            ills,
            fixed,
            attempts: Attempts::default(),
            paused: false,
            leaving: false,
            ever_led: false,
            plans: Plans::default(),
            generations: Generations::default(),
            followed: Followed::default(),
            spans: Spans::default(),
            pace: Pace::default(),
            spared: Spared::default(),
            tree: Tree::default(),
            hangs: Hangs::default(),
            ending: None,
            versions: SeenVersions::default(),
            kept: Kept::default(),
            holdings: Holdings::default(),
            stood: BTreeMap::new(),
            ready: Ready::default(),
            version: None,
            revision: None,
            patience: Eventually::default(),
            clocks: Clocks::default(),
            learned: None,
            report: Vec::new(),
            news: Vec::new(),
            calm: None,
            awake: None,
            free: None,
            whole: None,
            leads: None,
            cycles: BTreeMap::new(),
            counted: BTreeMap::new(),
        }
    }

    pub(super) fn calm(&self) -> Option<Duration> {
        self.calm.filter(|_| !self.paused && !self.leaving)
    }

    pub(super) fn stand<'a>(
        &mut self,
        variants: impl Iterator<Item = &'a VariantKey>,
        now: Duration,
    ) {
        let views = self.door.shared.board.snapshot();
        let staying =
            |key: &VariantKey| Some(views.get(key)?.target.resolved()?.current_excluding_surge());
        let stood = variants.filter_map(|key| Some((key.clone(), staying(key)?)));
        self.stood = stood.collect();
        self.ready.note(&views, now);
    }

    pub(super) fn ending(&self, holder: Option<String>) -> Ending {
        let actors = &self.door.actors;
        let is_whole = self.tree.is_whole(&actors.report()) && actors.hanging().is_empty();
        let is_harmed = actors.is_any_armed()
            || self.ills.awaits_write()
            || self.ills.awaits_writes()
            || !self.ills.api().is_empty();
        Ending {
            calm: self.calm().filter(|_| is_whole && !is_harmed),
            held: holder.filter(|_| self.door.leads()),
        }
    }

    pub(super) fn second(
        &mut self,
        place: usize,
        now: Moment,
        is_free: bool,
        page: Option<&ExposedSeries>,
        cluster: Cluster<'_>,
    ) -> Vec<InvariantViolation> {
        if self.paused || self.leaving {
            (self.calm, self.awake, self.free, self.whole) = (None, None, None, None);
            return Vec::new();
        }
        let around = cluster.around;
        let report = self.door.actors.report();
        self.news.extend(turns(&self.report, &report));
        let hung = hung((&self.report, &report), &self.hangs);
        self.report = report;
        self.look_around(is_free, now.monotonic);
        let version = self.version.replace(around.version);
        let changes = around.version - version.unwrap_or(around.version).min(around.version);
        let variants = u64::try_from(around.objects).unwrap_or(u64::MAX);
        let tree = &mut self.tree;
        let mut found = tree.judge(&self.report, changes, variants, now.monotonic);
        found.extend(unplanned(&self.news));
        found.extend(hung);
        let generation = &self.door.shared.settings.load().generation;
        found.extend(self.generations.judge(generation));
        self.spans.note(&generation.dynamic, now.monotonic);
        found.extend(self.forgetful());
        found.extend(self.clocks(now.monotonic));
        found.extend(self.deaf(now));
        found.extend(self.versions(now.monotonic));
        if now.monotonic.as_secs().is_multiple_of(LOOK_EVERY) {
            found.extend(self.ignorant(now, cluster));
        }
        self.kept.note(around.number, around.variants.keys());
        if let Some(page) = page {
            found.extend(self.page(now, page, around));
            if now.monotonic.as_secs().is_multiple_of(KEPT_EVERY) {
                found.extend(self.keeps(now, page, around));
                found.extend(self.keeps_autoscalers(now, page, around));
            }
        }
        for violation in &mut found {
            violation.text = format!("c{place}: {}", violation.text);
        }
        found
    }

    /// T6: what a process has learned outlives the roles that learned it.
    fn forgetful(&mut self) -> Option<InvariantViolation> {
        let learned = self.door.shared.learned.load().collected;
        let before = std::mem::replace(&mut self.learned, learned);
        (learned < before).then(|| InvariantViolation::new("T6", "what was learned is forgotten"))
    }

    /// T6: since when a variant waits outlives its role, but not its object, which a server that goes back in time
    /// lets come and go.
    fn clocks(&mut self, now: Duration) -> Option<InvariantViolation> {
        let views = self.door.shared.board.snapshot();
        let lives = self.report.iter().filter_map(|one| match &one.role {
            Role::Variant(key) => {
                let object = ObjectKey::new(Arc::clone(&key.namespace), Arc::clone(&key.name));
                let record = self.door.shared.mirrors.variants.get(&object);
                let life = RoleIncarnation {
                    uid: record.map(|record| Arc::clone(&record.object.uid)),
                    number: one.incarnation,
                    restarts: one.restarts,
                };
                Some((key, life))
            }
            _ => None,
        });
        let lives: BTreeMap<&VariantKey, RoleIncarnation> = lives.collect();
        let is_misled = self.is_misled(RELISTED, now);
        self.clocks.judge(views, |key| lives.get(key).cloned(), is_misled)
    }

    fn look_around(&mut self, is_free: bool, now: Duration) {
        let mut hanging = self.note_hangs();
        // Its one handler serves for ever.
        hanging.retain(|role| *role != Role::Http);
        let is_whole = self.tree.is_whole(&self.report) && hanging.is_empty();
        let is_followed = self.watches.live(&FOLLOWED);
        let since = |holds: bool, before: Option<Duration>| holds.then(|| before.unwrap_or(now));
        self.calm = since(is_free && is_whole && is_followed, self.calm);
        self.awake = since(is_whole && is_followed, self.awake);
        self.free = since(is_free && is_whole, self.free);
        self.whole = since(is_whole, self.whole);
        self.leads = since(self.door.leads(), self.leads);
    }

    pub(super) fn note_hangs(&mut self) -> Vec<Role> {
        let actors = &self.door.actors;
        let hanging = actors.hanging();
        if !hanging.is_empty() {
            self.hangs.note(&actors.report(), &hanging);
        }
        hanging
    }

    /// Now, and since when nothing disturbs it while it leads.
    pub(super) fn led(&self, now: Moment) -> (Duration, Option<Duration>) {
        let since = self.calm.map(|calm| Some(calm).max(self.leads));
        (now.monotonic, since.flatten())
    }

    /// The same for what is done once in an interval: since that is what it is.
    pub(super) fn beats(&self, now: Moment) -> (Duration, Option<Duration>) {
        let (now, led) = self.led(now);
        (now, led.map(|since| since.max(self.spans.beat_since)))
    }

    /// The same for what a process does within itself while its roles live, whatever is wrong around it.
    fn within(&self, now: Moment) -> (Duration, Option<Duration>) {
        let both = self.whole.zip(self.leads);
        (now.monotonic, both.map(|(whole, leads)| whole.max(leads)))
    }

    /// E6: who leads goes on trying to store what it shows, whatever is in the way.
    fn untried(&mut self, now: Moment, unstored: &[String]) -> Vec<InvariantViolation> {
        let both = self.awake.zip(self.leads);
        let times = (now.monotonic, both.map(|(awake, leads)| awake.max(leads)));
        let lasting = self.patience.lasting("untried", unstored.to_vec(), times, TRIED_AGAIN);
        let untried =
            lasting.iter().filter(|key| self.attempts.none_within(key, TRIED_AGAIN, now.monotonic));
        let limit = TRIED_AGAIN.as_secs();
        let text = |key| {
            format!("{key} is not stored as it is shown, and no write was tried for {limit} s")
        };
        untried.map(|key| InvariantViolation::new("E6", text(key))).collect()
    }

    pub(super) fn is_misled(&self, within: Duration, now: Duration) -> bool {
        let younger = self.ills.younger(now);
        younger.is_some_and(|at| now.saturating_sub(at) < within)
    }

    pub(super) fn misled_for(&self, now: Duration) -> Option<Duration> {
        let misled = self.ills.misled(now)?;
        Some(now.saturating_sub(misled))
    }

    /// T5: what is kept is of what exists.
    fn keeps(
        &mut self,
        now: Moment,
        page: &ExposedSeries,
        around: &Surroundings,
    ) -> Vec<InvariantViolation> {
        let learned = serde_json::to_value(&*self.door.shared.learned.load()).unwrap_or_default();
        let exists = |name: &str| {
            let parts = name.split_once('/');
            parts.is_some_and(|(namespace, name)| {
                let key = VariantKey::new(namespace, name);
                around.variants.contains_key(&key)
            })
        };
        // What cannot be learned cannot be unlearned.
        let collected = self.door.shared.learned.load().collected;
        let learns = collected.is_some_and(|at| now.monotonic.saturating_sub(at) < KEPT / 2);
        let taught = if learns { &learned } else { &Value::Null };
        let places = places(&self.door.shared, &self.report, &page.named, taught);
        let gone = self.kept.of_gone(places, exists);
        let times = (now.monotonic, self.calm);
        let mut found = self.patience.judge(("T5", "kept"), gone, times, KEPT);
        found.extend(outgrown(&learned, around.objects, around.pods));
        found
    }

    /// A5: a process that knows of their end keeps nothing of PodAutoscalers that are gone.
    fn keeps_autoscalers(
        &mut self,
        now: Moment,
        page: &ExposedSeries,
        around: &Surroundings,
    ) -> Vec<InvariantViolation> {
        let gone = if self.watches.live(&["podautoscalers"]) {
            let roles = self.report.iter().filter_map(|one| match &one.role {
                Role::PodAutoscaler(key) => Some(key),
                _ => None,
            });
            let kept = vec![
                ("its role", texts(roles)),
                ("its record", texts(self.door.shared.autoscalers.snapshot().keys())),
                ("its series", texts(&page.autoscalers)),
            ];
            let exist = texts(&around.autoscalers);
            of_gone(kept, |name| exist.contains(name))
        } else {
            Vec::new()
        };
        let times = (now.monotonic, self.calm);
        self.patience.judge(("A5", "autoscalers"), gone, times, KEPT)
    }
}
