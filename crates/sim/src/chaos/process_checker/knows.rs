//! What a process knows of the cluster, against what is stored.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::super::surroundings::Surroundings;
use super::{Cluster, FOLLOWED, KNOWN, ProcessChecker, RELISTED, WATCHED_AGAIN};
use crate::apiserver::Insider;
use crate::chaos::check::InvariantViolation;
use crate::workloads::object::Object;
use wva::cluster::scale::{ScaleReading, Scales};
use wva::policy::key::TargetKey;
use wva::policy::units::Replicas;
use wva_base::moment::Moment;

/// How much longer a round of the reader of scales takes for each target: with some in reserve, twenty are read in
/// a second.
const READ_EACH: Duration = Duration::from_millis(100);

impl ProcessChecker {
    /// M1: what decisions rest on is watched, if nothing is in the way.
    pub(super) fn deaf(&mut self, now: Moment) -> Vec<InvariantViolation> {
        let watches = &self.watches;
        let deaf = FOLLOWED.iter().filter(|kind| !watches.hear(&[kind]));
        let deaf: Vec<String> = deaf.map(|kind| (*kind).to_owned()).collect();
        let times = (now.monotonic, self.free);
        let lasting = self.patience.lasting("deaf", deaf, times, WATCHED_AGAIN);
        let text = |kind: String| {
            let limit = WATCHED_AGAIN.as_secs();
            format!("{kind} have not been watched for {limit} s, though nothing is in the way")
        };
        InvariantViolation::of_each("M1", lasting, text).collect()
    }

    /// M1, M2: no object goes back in time, and names are those that are stored.
    pub(super) fn mirrors(
        &mut self,
        now: Moment,
        around: &Surroundings,
    ) -> Vec<InvariantViolation> {
        let door = Arc::clone(&self.door);
        let mirrors = &door.shared.mirrors;
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
        let here = |keys: Vec<String>| keys.into_iter().collect::<BTreeSet<String>>();
        let kinds = [
            ("variants", here(names(&mirrors.variants)), &around.objects),
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
            let ghosts = known.difference(stored).cloned();
            let group = format!("ghosts/{kind}");
            let ghosts = self.patience.lasting(&group, ghosts, calm, KNOWN);
            let text = |key| format!("{key} is gone, and still among the {kind} that are known");
            found.extend(InvariantViolation::of_each("M2", ghosts, text));
            let missing = stored.difference(&known).cloned();
            let group = format!("missing/{kind}");
            let missing = self.patience.lasting(&group, missing, calm, KNOWN);
            let text = |key| format!("{key} is not among the {kind} that are known");
            found.extend(InvariantViolation::of_each("M1", missing, text));
        }
        found
    }

    /// M1, M2: what is known of each object is what is stored; C5: settings are those that are stored.
    pub(super) fn ignorant(
        &mut self,
        now: Moment,
        cluster: Cluster<'_>,
    ) -> Vec<InvariantViolation> {
        let shared = &self.door.shared;
        let calm = (now.monotonic, self.calm);
        let is_heard = |plural: &str| self.watches.hear(&[plural]);
        let odd = cluster.content.unlike(&shared.mirrors, &is_heard);
        let settings = shared.settings.load();
        let followed = &mut self.followed;
        let behind = followed.behind(&settings.generation, &self.fixed, cluster.insider);
        let scales = shared.mirrors.scales.load();
        let count = u32::try_from(scales.len()).unwrap_or(u32::MAX);
        let relists = KNOWN * 2 + READ_EACH.saturating_mul(count);
        let misread = misread(&scales, cluster.insider);
        let mut found = Vec::new();
        let misread = self.patience.lasting("misread", misread, calm, relists);
        let text = |key| format!("the scale of {key} is known otherwise than it is stored");
        found.extend(InvariantViolation::of_each("M1", misread, text));
        let odd = self.patience.lasting("unlike", odd, calm, KNOWN * 2);
        let text = |key| format!("{key} is known otherwise than it is stored");
        found.extend(InvariantViolation::of_each("M1", odd, text));
        let behind = self.patience.lasting("behind", behind, calm, KNOWN * 2);
        let text = |keys| format!("settings are not those that are stored: {keys}");
        found.extend(InvariantViolation::of_each("C5", behind, text));
        found
    }
}

/// The targets whose scale was read otherwise than it is stored now. Of kinds that are known by their scale runs
/// have but one.
fn misread(scales: &Scales, insider: &Insider) -> Vec<String> {
    let is_odd = |target: &TargetKey, reading: &ScaleReading| {
        let stored = insider.get("replicasets.apps", &target.namespace, &target.name);
        let stored = stored.map(Object).map(|object| {
            let count =
                |pointer: &str| Replicas(u32::try_from(object.number(pointer)).unwrap_or_default());
            (count("/spec/replicas"), count("/status/replicas"))
        });
        match reading {
            ScaleReading::Found(read) => {
                let spec = read.object.spec_replicas.unwrap_or_default();
                stored != Some((spec, read.object.status_replicas))
            }
            ScaleReading::Missing => stored.is_some(),
            ScaleReading::Unheard | ScaleReading::Unscalable(_) => false,
        }
    };
    let odd = scales
        .iter()
        .filter(|(target, reading)| is_odd(target, reading));
    odd.map(|(target, _)| target.to_string()).collect()
}

fn names<V>(mirror: &wva::cluster::mirror::Mirror<V>) -> Vec<String> {
    let all = mirror.all();
    all.iter().map(|(key, _)| key.to_string()).collect()
}
