//! Deployments of the controller, their settings, rights and leases.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cluster::lease::lease_name;
use crate::doctor::facts::{ControllerFacts, FactSource, Facts, LiveKind};
use crate::doctor::finding::{Finding, FindingCode};
use crate::doctor::object::{LiveObject, ObjectName};
use crate::doctor::probe::PrometheusProbe;
use crate::doctor::report::SettingsNote;
use crate::settings::purpose::Purpose;
use wva_base::text::counted;

/// Keys that only entries of saturation ConfigMaps have.
const SATURATION_KEYS: [&str; 5] = [
    "kvCacheThreshold",
    "queueLengthThreshold",
    "kvSpareTrigger",
    "scaleUpThreshold",
    "analyzerName",
];

/// The name of the Deployment of an installation by the chart under its own name.
const INSTALLED_NAME: &str = "workload-variant-autoscaler-controller-manager";

checks! {
    Controller "a controller is installed and ready" readiness: Cluster Controllers Kind(VariantAutoscaling);
    Controller "controllers handle different objects" overlap: Cluster Installed;
    Controller "settings are accepted" settings: Settings Kind(ConfigMap);
    Controller "every ConfigMap of settings is read" config_maps: Installed Kind(ConfigMap);
    Controller "rights are granted" rights: Cluster Installed Rights;
    Controller "a replica leads" lease: Cluster Installed Kind(Lease);
}

fn readiness(facts: &Facts) -> Vec<Finding> {
    let controllers = facts.controllers();
    let variants = counted(facts.every_variant().count(), "variant");
    if controllers.is_empty() {
        let cause = format!(
            "no Deployment with the label control-plane=controller-manager is this controller, for {variants}"
        );
        let namespace = facts.searched.as_deref().unwrap_or_default();
        let object = ObjectName::new("Deployment", namespace, INSTALLED_NAME);
        return vec![FindingCode::ControllerMissing.at(object, cause)];
    }
    let unready = controllers.iter().filter_map(|one| {
        if one.wanted == 0 {
            return Some(FindingCode::ControllerOff.at(one.title(), "spec.replicas is 0"));
        }
        let cause = format!("0 of {} replicas are ready", one.wanted);
        (one.ready == 0).then(|| FindingCode::ControllerNotReady.at(one.title(), cause))
    });
    unready.collect()
}

/// Whether two restrictions, each absent where all is taken, leave something in common.
fn meet(one: Option<&str>, other: Option<&str>) -> bool {
    one.is_none() || other.is_none() || one == other
}

fn overlap(facts: &Facts) -> Vec<Finding> {
    let running: Vec<&ControllerFacts> =
        facts.controllers().iter().filter(|one| one.wanted > 0 && one.settings.is_ok()).collect();
    let mut found = Vec::new();
    for (place, one) in running.iter().enumerate() {
        for other in running.iter().skip(place + 1) {
            if meet(one.instance(), other.instance()) && meet(one.watched(), other.watched()) {
                let cause = format!(
                    "{} and {} have neither different instances nor different namespaces",
                    one.key, other.key
                );
                found.push(FindingCode::ControllersOverlap.at(one.title(), cause));
            }
        }
    }
    found
}

fn settings(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    for one in facts.controllers() {
        // What is missing may be in a Secret, and it did start.
        let has_started = one.has_secrets && one.ready > 0;
        if let Err(errors) = &one.settings
            && !has_started
        {
            found.push(FindingCode::SettingsRefused.at(one.title(), errors.join("; ")));
        }
        found.extend(one.problems.iter().map(|(map, cause)| {
            let object = map.clone().unwrap_or_else(|| one.title());
            FindingCode::SettingIgnored.at(object, cause)
        }));
    }
    let alone = facts.settings_faults.iter();
    found.extend(alone.map(|(map, cause)| FindingCode::SettingIgnored.at(map.clone(), cause)));
    found
}

/// What settings are accepted with. Several files may hold one ConfigMap, so that one note may be of each.
pub(super) fn notes(facts: &Facts) -> Vec<SettingsNote> {
    let of_controllers = facts.controllers().iter().flat_map(|one| {
        let notes = one.notes.iter();
        notes.map(move |(map, text)| (map.clone().unwrap_or_else(|| one.title()), text))
    });
    let alone = facts.settings_notes.iter();
    let alone = alone.map(|(map, text)| (map.clone(), text));
    let notes = of_controllers
        .chain(alone)
        .map(|(object, text)| SettingsNote { object, text: text.clone() });
    let notes: BTreeSet<SettingsNote> = notes.collect();
    notes.into_iter().collect()
}

/// What a ConfigMap is for, by its name or content, whether it is read or not.
pub(in crate::doctor) fn likely_purpose(object: &LiveObject) -> Option<Purpose> {
    let ends = [
        ("saturation-scaling-config", Purpose::Saturation),
        ("model-scale-to-zero-config", Purpose::ScaleToZero),
        ("queueing-model-config", Purpose::QueueingModel),
        ("service-classes-config", Purpose::ServiceClasses),
    ];
    let named = ends.iter().find(|(end, _)| object.name().ends_with(end));
    let texts = || {
        let data = object.0.pointer("/data").and_then(Value::as_object);
        data.into_iter().flat_map(|data| data.values()).filter_map(Value::as_str)
    };
    let key = |line: &str| {
        let (name, _) = line.split_once(':')?;
        let name = name.trim_matches(|one: char| !one.is_ascii_alphabetic());
        SATURATION_KEYS.iter().copied().find(|key| *key == name)
    };
    // A threshold may be another program's.
    let holds_key = || {
        let keys: BTreeSet<&str> = texts().flat_map(str::lines).filter_map(key).collect();
        keys.contains("analyzerName") || keys.len() > 1
    };
    match named {
        Some((_, purpose)) => Some(*purpose),
        None => holds_key().then_some(Purpose::Saturation),
    }
}

/// Whether manifests hold thresholds, which are judged without their controller, too.
pub(super) fn has_thresholds(facts: &Facts) -> bool {
    let mut maps = facts.all(LiveKind::ConfigMap).iter();
    facts.source == FactSource::Files
        && maps.any(|map| likely_purpose(map) == Some(Purpose::Saturation))
}

fn config_maps(facts: &Facts) -> Vec<Finding> {
    let names = facts.generations().map(|one| &one.statics.config_maps);
    let names: Vec<_> = names.collect();
    let Some(first) = names.first() else {
        return Vec::new();
    };
    let unread = facts.all(LiveKind::ConfigMap).iter().filter_map(|object| {
        if names.iter().any(|one| one.purpose(object.name()).is_some()) {
            return misplaced(facts, object);
        }
        let purpose = likely_purpose(object)?;
        let wanted = first.current(purpose);
        let cause = format!("it looks like the {purpose}, and the controller reads {wanted}");
        Some(FindingCode::ConfigMapUnread.at(object.title(), cause).with(wanted))
    });
    unread.collect()
}

/// A ConfigMap of manifests whose name no controller reads in its namespace.
fn misplaced(facts: &Facts, object: &LiveObject) -> Option<Finding> {
    let mut cause = None;
    for one in facts.controllers() {
        let statics = &one.generation()?.statics;
        let Some(purpose) = statics.config_maps.purpose(object.name()) else {
            continue;
        };
        let home = statics.scope.system_namespace.as_str();
        let places = [object.namespace(), &*one.key.namespace];
        if purpose.may_be_local() || places.contains(&"") || object.namespace() == home {
            return None;
        }
        cause = Some(format!(
            "it is the {purpose}, which the controller reads in namespace {home} alone"
        ));
    }
    // In a cluster it may be another program's.
    let cause = cause.filter(|_| facts.source == FactSource::Files)?;
    Some(FindingCode::ConfigMapUnread.at(object.title(), cause))
}

fn rights(facts: &Facts) -> Vec<Finding> {
    let rights = facts.rights.known().map_or(&[][..], Vec::as_slice);
    let missing = rights.iter().filter(|right| !right.is_granted);
    let found = missing.map(|right| {
        let account = right.account.rsplit(':').next().unwrap_or_default();
        let cause = format!("its service account {account} may not {}", right.right);
        FindingCode::RightMissing.at(right.object.clone(), cause).with(account)
    });
    found.collect()
}

pub(super) fn lease(facts: &Facts) -> Vec<Finding> {
    // A lease has expired only where both clocks say so.
    let clock = facts.series(PrometheusProbe::Clock).first();
    let now = clock.map_or(facts.now, |clock| facts.now.min(clock.value - facts.took));
    let found = facts.controllers().iter().filter_map(|one| {
        let statics = &one.generation()?.statics;
        let election = &statics.leader_election;
        if !election.enabled || one.ready == 0 {
            return None;
        }
        let name = lease_name(&election.id, one.instance());
        let namespace = &statics.scope.system_namespace;
        let cause = match facts.find(LiveKind::Lease, namespace, &name) {
            None => "it does not exist".to_owned(),
            Some(lease) => unheld(lease, now)?,
        };
        let object = ObjectName::new("Lease", namespace.as_str(), name);
        Some(FindingCode::LeaseUnheld.at(object, cause))
    });
    found.collect()
}

/// Why a lease is in no hands, if it is.
fn unheld(lease: &LiveObject, now: f64) -> Option<String> {
    if lease.text("/spec/holderIdentity").is_empty() {
        return Some("it has no holder".to_owned());
    }
    let renewed = super::clocks::seconds(lease.text("/spec/renewTime"))?;
    let length = lease.number("/spec/leaseDurationSeconds").unwrap_or(15);
    let age = now - renewed;
    let length_s = std::time::Duration::from_secs(length.unsigned_abs()).as_secs_f64();
    let limit = length_s + super::clocks::TOLERATED_SKEW;
    (age > limit).then(|| format!("its holder renewed it {age:.0} s ago, and it lasts {length} s"))
}
