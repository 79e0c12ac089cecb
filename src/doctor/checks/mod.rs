//! The checks: pure functions from facts to findings.

/// The checks of a module, a row each: group, title, function, and what it cannot do without.
macro_rules! checks {
    (@need Kind($kind:ident)) => { super::Need::Kind(super::LiveKind::$kind) };
    (@need Series($probe:ident)) => { super::Need::Series(super::PrometheusProbe::$probe) };
    (@need $need:ident) => { super::Need::$need };
    ($($group:ident $title:literal $run:ident: $($need:ident $(($of:ident))?)+;)*) => {
        pub(super) const CHECKS: &[super::Check] = &[$(super::Check {
            group: super::FindingGroup::$group,
            title: $title,
            needs: &[$(checks!(@need $need $(($of))?)),+],
            run: $run,
        },)*];
    };
}

mod annotations;
mod arguments;
mod autoscalers;
mod behavior;
mod clocks;
mod cluster;
mod controller;
mod devices;
mod disputes;
mod engines;
mod outage;
mod prometheus;
mod queries;
mod scalers;
mod storm_services;
mod targets;
mod variants;

use std::collections::BTreeSet;

pub(crate) use self::autoscalers::{autoscaler_code, unreadable_fields, unserved};
pub(super) use self::cluster::webhooks_of;
pub(super) use self::controller::likely_purpose;
pub(crate) use self::disputes::named_variant;
pub(super) use self::disputes::of_others;
pub(super) use self::engines::spelling_code;
pub(super) use self::prometheus::prometheus_code;
pub(super) use self::queries::count_queries;
pub(super) use self::scalers::{declared, obstacle_code, scaled_target};
pub(crate) use self::scalers::{is_scaled_directly, read_scaler};
pub(super) use self::targets::{claimed, live_kind};
pub(super) use self::variants::{equal_costs, unnamed_tiers};
use super::facts::{FactSource, Facts, LiveKind, Reading};
use super::finding::{Finding, FindingGroup};
use super::object::ObjectName;
use super::probe::PrometheusProbe;
use super::report::{CheckOutcome, Diagnosis};

/// What a check cannot do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// A cluster, where what is not there is missing.
    Cluster,
    /// Manifests: in a cluster, conditions show the same.
    Manifests,
    /// The version of Kubernetes.
    Version,
    Kind(LiveKind),
    /// Something that follows counts: KEDA, or an adapter.
    ScalerKind,
    /// Deployments of the controller, or that there is none.
    Controllers,
    /// A Deployment of the controller.
    Installed,
    /// Settings of a controller, or thresholds in manifests.
    Settings,
    /// Rights of its accounts.
    Rights,
    /// Rights of the accounts of scalers.
    ScalerRights,
    /// Whether Prometheus answers.
    Prometheus,
    /// An answer of Prometheus.
    Series(PrometheusProbe),
    /// The answers to the queries of scalers.
    Triggers,
}

/// One line of the report.
#[derive(Debug, Clone, Copy)]
struct Check {
    group: FindingGroup,
    /// What is so, where there are no findings.
    title: &'static str,
    needs: &'static [Need],
    run: fn(&Facts) -> Vec<Finding>,
}

impl Check {
    /// What it finds, but for objects of other variants than the one to look at.
    fn outcome(&self, facts: &Facts, others: &BTreeSet<ObjectName>) -> CheckOutcome {
        let mut unseen = Vec::new();
        for need in self.needs {
            match need.of(facts) {
                Sight::Clear => {}
                Sight::Excluded => return CheckOutcome::Skipped,
                Sight::Failed(why) => unseen.push(why),
            }
        }
        if !unseen.is_empty() {
            unseen.dedup();
            return CheckOutcome::Unseen(unseen);
        }
        let mut found = (self.run)(facts);
        if facts.source == FactSource::Files {
            for object in found.iter_mut().map(|finding| &mut finding.object) {
                object.file = object.file.take().or_else(|| facts.file_of(object));
            }
        }
        found.retain(|finding| !others.contains(&finding.object));
        found.sort();
        found.dedup();
        match found.as_slice() {
            [] => CheckOutcome::Fine,
            [..] => CheckOutcome::Found(found),
        }
    }
}

/// Whether the facts of a need are there.
enum Sight {
    Clear,
    Excluded,
    Failed(String),
}

impl Need {
    fn of(self, facts: &Facts) -> Sight {
        match self {
            Self::Cluster if facts.source == FactSource::Files => Sight::Excluded,
            Self::Manifests if facts.source == FactSource::Cluster => Sight::Excluded,
            Self::Version => sight(&facts.version, "the version"),
            Self::Kind(kind) => match facts.objects.get(&kind) {
                Some(reading) => sight(reading, kind.resource()),
                None => Sight::Excluded,
            },
            Self::ScalerKind if !cluster::scaler_kind(facts).is_empty() => Sight::Excluded,
            Self::Cluster | Self::Manifests | Self::ScalerKind => Sight::Clear,
            Self::Installed if has_none(facts) => Sight::Excluded,
            Self::Settings if has_none(facts) && !controller::has_thresholds(facts) => {
                Sight::Excluded
            }
            Self::Controllers | Self::Installed | Self::Settings => {
                sight(&facts.controllers, "the controller")
            }
            Self::Rights => sight(&facts.rights, "rights"),
            Self::ScalerRights => sight(&facts.scaler_rights, "rights of scalers"),
            Self::Prometheus => sight(&facts.prometheus, "Prometheus"),
            Self::Series(probe) => match facts.series.get(&probe) {
                Some(reading) => sight(reading, "Prometheus"),
                None => Sight::Excluded,
            },
            Self::Triggers => sight(&facts.triggers, "Prometheus"),
        }
    }
}

/// Whether it is known that there is no controller.
fn has_none(facts: &Facts) -> bool {
    facts.controllers.known().is_some_and(Vec::is_empty)
}

fn sight<T>(reading: &Reading<T>, what: &str) -> Sight {
    match reading {
        Reading::Known(_) | Reading::Absent => Sight::Clear,
        Reading::NotAsked => Sight::Excluded,
        Reading::Failed(why) => Sight::Failed(format!("{what}: {why}")),
    }
}

/// Judges the facts by every check.
pub fn examine(facts: &Facts) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    let others = of_others(facts);
    let all = [
        cluster::CHECKS,
        controller::CHECKS,
        prometheus::CHECKS,
        clocks::CHECKS,
        engines::CHECKS,
        variants::CHECKS,
        targets::CHECKS,
        devices::CHECKS,
        scalers::CHECKS,
        queries::CHECKS,
        autoscalers::CHECKS,
    ];
    for check in all.into_iter().flatten() {
        diagnosis.add(check.group, check.title, check.outcome(facts, &others));
    }
    let read = "queries of scalers can be read";
    diagnosis.add(FindingGroup::Scalers, read, queries::unread(facts, &others));
    let named = "what the command line names is there";
    diagnosis.add(FindingGroup::Variants, named, named_variants(facts));
    diagnosis.outages = outage::outages(facts);
    diagnosis.outages.retain(|one| !others.contains(&one.object));
    diagnosis.notes = controller::notes(facts);
    diagnosis.not_read.clone_from(&facts.not_read);
    diagnosis
}

/// Whether there is a variant to look at, where the command line names one: without any, nothing is looked at.
fn named_variants(facts: &Facts) -> CheckOutcome {
    let kind = LiveKind::VariantAutoscaling;
    let is_read = matches!(facts.objects.get(&kind), Some(Reading::Known(_)));
    if !facts.is_narrowed || !is_read {
        return CheckOutcome::Skipped;
    }
    let has_autoscalers = facts.variant.is_none() && !facts.all(LiveKind::PodAutoscaler).is_empty();
    if has_autoscalers || facts.variants().next().is_some() {
        return CheckOutcome::Fine;
    }
    let is_nowhere = facts.objects.get(&LiveKind::Namespace) == Some(&Reading::Absent);
    let why = match facts.source {
        FactSource::Cluster if is_nowhere => {
            "the namespace does not exist; kubectl get namespaces lists them"
        }
        FactSource::Cluster => {
            "there is no variant of that name or namespace; wva status -A lists them"
        }
        FactSource::Files => "the manifests have no variant of that name",
    };
    CheckOutcome::Unseen(vec![why.to_owned()])
}
