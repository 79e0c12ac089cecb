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
        let found = lasting.into_iter().map(text);
        found
            .map(|text| InvariantViolation::new("M1", text))
            .collect()
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
            let ghosts: Vec<String> = known.difference(stored).cloned().collect();
            let group = format!("ghosts/{kind}");
            for ghost in self.patience.lasting(&group, ghosts, calm, KNOWN) {
                let text = format!("{ghost} is gone, and still among the {kind} that are known");
                found.push(InvariantViolation::new("M2", text));
            }
            let missing: Vec<String> = stored.difference(&known).cloned().collect();
            let group = format!("missing/{kind}");
            for missing in self.patience.lasting(&group, missing, calm, KNOWN) {
                let text = format!("{missing} is not among the {kind} that are known");
                found.push(InvariantViolation::new("M1", text));
            }
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
        for target in self.patience.lasting("misread", misread, calm, relists) {
            let text = format!("the scale of {target} is known otherwise than it is stored");
            found.push(InvariantViolation::new("M1", text));
        }
        for object in self.patience.lasting("unlike", odd, calm, KNOWN * 2) {
            let text = format!("{object} is known otherwise than it is stored");
            found.push(InvariantViolation::new("M1", text));
        }
        for keys in self.patience.lasting("behind", behind, calm, KNOWN * 2) {
            let text = format!("settings are not those that are stored: {keys}");
            found.push(InvariantViolation::new("C5", text));
        }
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
                let spec = read.spec_replicas.unwrap_or_default();
                stored != Some((spec, read.status_replicas))
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
