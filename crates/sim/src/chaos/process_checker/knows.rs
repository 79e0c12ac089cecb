//! What a process knows of the cluster, against what is stored.

use std::sync::Arc;
use std::time::Duration;

use super::{Cluster, FOLLOWED, KNOWN, ProcessChecker, RELISTED, WATCHED_AGAIN};
use crate::apiserver::Insider;
use crate::chaos::check::InvariantViolation;
use crate::chaos::check::known::Unlike;
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
        let limit = WATCHED_AGAIN.as_secs();
        let deaf = FOLLOWED.iter().filter(|kind| !self.watches.live(&[kind]));
        let deaf = deaf.map(|kind| {
            format!("{kind} have not been watched for {limit} s, though nothing is in the way")
        });
        self.patience.judge(("M1", "deaf"), deaf, (now.monotonic, self.free), WATCHED_AGAIN)
    }

    /// M1: no object goes back in time.
    pub(super) fn versions(&mut self, now: Duration) -> Vec<InvariantViolation> {
        let excused = self.is_misled(RELISTED, now);
        let variants = &self.door.shared.mirrors.variants;
        let revision = variants.revision();
        if self.revision.replace(revision) == Some(revision) {
            return Vec::new();
        }
        let records = variants.all();
        let known = records.iter().map(|(_, record)| {
            let version = record.resource_version.parse().unwrap_or(0);
            let object = &record.object;
            (object.key.clone(), Arc::clone(&object.uid), version)
        });
        self.versions.judge(known, excused)
    }

    /// M1, M2: what is known of each object is what is stored; C5: settings are those that are stored.
    pub(super) fn ignorant(
        &mut self,
        now: Moment,
        cluster: Cluster<'_>,
    ) -> Vec<InvariantViolation> {
        let shared = &self.door.shared;
        let calm = (now.monotonic, self.calm);
        let is_live = |plural: &str| self.watches.live(&[plural]);
        let Unlike { odd, gone } = cluster.content.unlike(&shared.mirrors, &is_live);
        let settings = shared.settings.load();
        let followed = &mut self.followed;
        let behind = followed.behind(&settings.generation, &self.fixed, cluster.insider);
        let behind = behind.map(|keys| format!("settings are not those that are stored: {keys}"));
        let scales = shared.mirrors.scales.load();
        let count = u32::try_from(scales.len()).unwrap_or(u32::MAX);
        let relists = KNOWN * 2 + READ_EACH.saturating_mul(count);
        let misread = misread(&scales, cluster.insider);
        let odd = odd.into_iter().map(|key| format!("{key} is known otherwise than it is stored"));
        let gone = gone.into_iter().map(|key| format!("{key} is gone, and still known"));
        let patience = &mut self.patience;
        let mut found = patience.judge(("M1", "misread"), misread, calm, relists);
        found.extend(patience.judge(("M1", "unlike"), odd, calm, KNOWN * 2));
        found.extend(patience.judge(("M2", "ghosts"), gone, calm, KNOWN * 2));
        found.extend(patience.judge(("C5", "behind"), behind, calm, KNOWN * 2));
        found
    }
}

fn misread(scales: &Scales, insider: &Insider) -> Vec<String> {
    let is_odd = |target: &TargetKey, reading: &ScaleReading| {
        let stored = insider.get("replicasets.apps", &target.namespace, &target.name);
        let stored = stored.map(Object).map(|object| {
            let count = |pointer| Replicas(object.count(pointer).unwrap_or_default());
            (count("/spec/replicas"), count("/status/replicas"))
        });
        match reading {
            ScaleReading::Found(read) => {
                let spec = read.object.spec_replicas.unwrap_or_default();
                stored != Some((spec, read.object.status_replicas))
            }
            ScaleReading::Missing => stored.is_some(),
            ScaleReading::Unanswered | ScaleReading::Unscalable(_) => false,
        }
    };
    let odd = scales.iter().filter(|(target, reading)| is_odd(target, reading));
    odd.map(|(target, _)| format!("the scale of {target} is known otherwise than it is stored"))
        .collect()
}
