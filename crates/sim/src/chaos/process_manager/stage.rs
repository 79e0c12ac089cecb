//! What every process is started with, also during a rollout, what is planted in it, and how far its wall clock is from
//! the true one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use allocations::Owner;
use tokio::sync::watch;

use super::{MAIN, Process, ProcessSetting, Running};
use crate::chaos::active_faults::ActiveFaults;
use crate::chaos::check::ends;
use crate::chaos::check::settings::data_of;
use crate::chaos::dice::Dice;
use crate::chaos::planted::PlantedSupervision;
use crate::chaos::pod_pages_proxy::{PageReads, PodPagesProxy};
use crate::chaos::process_state::ProcessState;
use crate::chaos::trace::claims;
use crate::chaos::workload::Probe;
use crate::world::controller::{ControllerView, ProcessConfig, cast, environment};
use crate::world::objects::SYSTEM;
use wva::app::Controller;
use wva::roles::Role;
use wva::settings::Sources;
use wva::settings::schema;
use wva::settings::sources::MainConfigMap;
use wva_supervise::{ExitReason, Generator, SeedTree};

impl ProcessSetting {
    pub(super) fn note(&self, place: usize, text: &str) {
        self.trace.note(&format!("c{place}"), "process", text);
    }

    pub(super) fn cannot_begin(&self, place: usize, error: &str) {
        let what = format!("cannot begin: {error}");
        self.note(place, &what);
        self.judge.wrong("T1", place, Some(what));
    }

    /// T1: a process has ended unasked.
    pub(super) fn exited(
        &self,
        place: usize,
        door: &ControllerView,
        why: &Result<ExitReason, String>,
    ) {
        let what = ends::unasked(why, door.actors.harmed(&Role::Root));
        self.judge.wrong("T1", place, what);
    }

    pub(super) fn pages(&self, ills: &ActiveFaults) -> PodPagesProxy {
        PodPagesProxy {
            inner: self.routers.clone(),
            ills: ills.clone(),
            clock: self.clock.clone(),
            reads: PageReads::default(),
            mutation: self.plot.mutation,
        }
    }

    /// A process that differs from all others by what it allocates, with its defect.
    pub(super) fn owned(
        &self,
        casting: ProcessConfig,
    ) -> Result<(Controller, ControllerView), String> {
        let owner = Owner::new();
        let scope = owner.enter();
        let made = cast(casting);
        drop(scope);
        let (controller, mut door) = made?;
        door.owner = owner;
        door.actors.plant(Arc::new(PlantedSupervision { owner, mutation: self.plot.mutation }));
        Ok((controller, door))
    }

    pub(super) fn run(
        &self,
        place: usize,
        controller: Controller,
        door: Arc<ControllerView>,
        life: ProcessState,
    ) -> Running {
        let (stop, mut stopped) = watch::channel(false);
        let owner = door.owner;
        Running {
            life,
            followers: [
                tokio::spawn(self.judge.clone().follow(place, Arc::clone(&door))),
                tokio::spawn(claims(self.trace.clone(), place, Arc::clone(&door))),
            ],
            door,
            stop,
            task: tokio::spawn(owner.does(controller.run(async move {
                // An error means that the place is gone, which is as good a reason.
                drop(stopped.wait_for(|stop| *stop).await);
            }))),
        }
    }

    pub(super) fn aim(&self, door: &ControllerView, life: &ProcessState) {
        match &self.plot.probe {
            Some(Probe::Role(role, moment)) => door.actors.kill_at(role, *moment),
            Some(Probe::Write(number, how)) => life.end_at_write(number.saturating_sub(1), *how),
            None => {}
        }
    }

    pub(super) fn sources(&self, member: &Process) -> (Sources, Sources) {
        let mut environment = environment(&member.pod, Duration::from_secs(10));
        // It would win against the ConfigMap.
        environment.remove("GLOBAL_OPT_INTERVAL");
        for (name, value) in [
            ("LEADER_ELECTION_LEASE_DURATION", "20s"),
            ("LEADER_ELECTION_RENEW_DEADLINE", "15s"),
            ("LEADER_ELECTION_RETRY_PERIOD", "4s"),
        ] {
            environment.insert(name.to_owned(), value.to_owned());
        }
        if let Some(instance) = self.plot.instance {
            environment.insert("CONTROLLER_INSTANCE".to_owned(), instance.to_owned());
        }
        if self.plot.chooses_pods {
            let name = schema::POD_DELETION_COST_ENABLED.name;
            environment.insert(name.to_owned(), "true".to_owned());
        }
        environment.extend(member.extra.clone());
        let fixed = Sources { environment, ..Sources::default() };
        let stored = self.insider.get("configmaps.", SYSTEM, MAIN);
        let main =
            stored.map_or(MainConfigMap::Absent, |map| MainConfigMap::Present(data_of(&map)));
        let sources = Sources { main, ..fixed.clone() };
        (fixed, sources)
    }
}

const SKEWED: u64 = 50;
/// By how many milliseconds a clock is ahead or behind at most: by more than a lease lasts, which is 20 s. A process
/// that judges one by the date in it takes what is held, or leaves what is free. How old samples are is measured by the
/// clock of Prometheus; limits for what others date, like the creation of a pod, are minutes.
const FURTHEST: u64 = 30_000;

/// By how many milliseconds the wall clock at each place is ahead, behind where that is negative: in half of the
/// seeds by none, in the others each by its own.
pub(in crate::chaos) fn skews(seed: &SeedTree, places: usize) -> Vec<i64> {
    let mut dice = Dice::new(seed.child("skew"));
    let is_skewed = dice.chance(SKEWED);
    let mut skew = || {
        let drawn = i64::try_from(dice.below(2 * FURTHEST + 1)).unwrap_or_default();
        drawn.saturating_sub_unsigned(FURTHEST)
    };
    let skews = (0..places).map(|_| if is_skewed { skew() } else { 0 });
    skews.collect()
}

pub(super) fn skew_words(ahead: i64) -> String {
    let way = match ahead {
        0 => return String::new(),
        1.. => "ahead",
        _ => "behind",
    };
    let by = ahead.unsigned_abs();
    format!(", its clock {}.{:03} s {way}", by / 1000, by % 1000)
}

type Settings = &'static [(&'static str, &'static str)];

const BEATS: [Settings; 2] = [&[("GLOBAL_OPT_INTERVAL", "7s")], &[("GLOBAL_OPT_INTERVAL", "50s")]];

/// What else may differ between two versions.
const OTHERS: [Settings; 7] = [
    // Samples are soon too old, or for long not.
    &[
        ("PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD", "25s"),
        ("PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD", "50s"),
        ("PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD", "75s"),
    ],
    &[
        ("PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD", "90s"),
        ("PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD", "3m"),
        ("PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD", "8m"),
    ],
    &[("PROMETHEUS_METRICS_CACHE_TTL", "0s"), ("PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL", "9s")],
    &[
        ("WVA_PENDING_TIME_LIMIT", "2m"),
        ("WVA_UNAPPLIED_TIME_LIMIT", "2m"),
        ("WVA_SILENT_TIME_LIMIT", "2m"),
    ],
    // What the analyzers look ahead by, and what limits them.
    &[("WVA_REPLICA_START_TIME", "5m")],
    &[("WVA_LIMITED_MODE", "true")],
    &[("SCALE_FROM_ZERO_ENGINE_MAX_CONCURRENCY", "2")],
];

/// Settings of another version of the controller, as they are during a rollout.
pub(super) fn version(generator: Generator) -> BTreeMap<String, String> {
    let mut dice = Dice::new(generator);
    let (of_beats, of_others) = match dice.below(3) {
        0 => (true, false),
        1 => (false, true),
        _ => (true, true),
    };
    let beat = dice.pick(&BEATS).filter(|_| of_beats);
    let other = dice.pick(&OTHERS).filter(|_| of_others);
    let all = beat.into_iter().chain(other).copied().flatten();
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use wva::settings::start;

    #[test]
    fn in_half_of_the_seeds_each_clock_is_off_by_its_own() {
        let all: Vec<Vec<i64>> = (1..=200).map(|seed| skews(&SeedTree::new(seed), 3)).collect();
        let (right, wrong): (Vec<_>, Vec<_>) = all.iter().partition(|skews| **skews == [0, 0, 0]);
        assert!((70..130).contains(&right.len()), "{}", right.len());
        for skews in &wrong {
            assert!(skews.iter().all(|skew| skew.abs() <= 30_000), "{skews:?}");
            assert!(skews[0] != skews[1] && skews[1] != skews[2], "{skews:?}");
        }
        // Further than a lease is free by its date.
        let far = |skews: &&&Vec<i64>| skews[0].abs_diff(skews[1]) > 20_000;
        assert!(wrong.iter().filter(far).count() > 20);
        assert_eq!(all[6], skews(&SeedTree::new(7), 3));
    }

    #[test]
    fn every_version_is_drawn_and_its_settings_are_in_force() {
        let started = |extra: &BTreeMap<String, String>| {
            let mut environment = environment("pod", Duration::from_secs(10));
            environment.extend(extra.clone());
            let sources = Sources { environment, ..Sources::default() };
            start(&sources).unwrap()
        };
        let usual = started(&BTreeMap::new()).generation;
        let mut drawn = BTreeSet::new();
        for seed in 0..300 {
            let draw = || version(SeedTree::new(seed).child("rollout"));
            let extra = draw();
            assert_eq!(extra, draw());
            let started = started(&extra);
            assert_eq!(started.diagnostics.problems, [], "{extra:?}");
            assert_ne!(started.generation.dynamic, usual.dynamic, "{extra:?}");
            drawn.insert(extra);
        }
        let (beats, others) = (BEATS.len(), OTHERS.len());
        assert_eq!(drawn.len(), beats + others + beats * others, "{drawn:?}");
    }
}
