//! Writes published counts to the scale subresources of targets that no HPA and no ScaledObject scales, where
//! `actuation: direct` says so.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::actors::rounds::RoundWork;
use crate::cluster::autoscaler::{AutoscalerWriteError, ScaleWrite};
use crate::cluster::permit::WriteApi;
use crate::cluster::scale::kind_without_watcher;
use crate::policy::direct_step::DirectStep;
use crate::policy::key::{TargetKey, TargetKind, VariantKey};
use crate::policy::object::SpecReading;
use crate::policy::pod_autoscaler::storm_service::ReplicaField;
use crate::policy::record::PublishedRecord;
use crate::policy::units::Replicas;
use crate::state::Readers;
use wva_base::moment::Moment;
use wva_supervise::DirtySet;

/// The same count is written to a target again after this time: its mirror may be behind, and something else that
/// writes it, too, is not fought at the pace of rounds.
const AGAIN: Duration = Duration::from_secs(5);

const ROUND: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_mins(1);

/// What its rounds write.
#[derive(Debug, Clone)]
pub(crate) struct DirectScales {
    shared: Readers,
    api: WriteApi,
    /// The reader of targets whose kinds have no watcher.
    named: DirtySet<TargetKey>,
    /// What was begun last of each, and when.
    begun: BTreeMap<VariantKey, (Replicas, Moment)>,
    is_idle: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirectScale {
    target: TargetKey,
    step: DirectStep,
}

impl DirectScales {
    pub(crate) fn new(shared: Readers, api: WriteApi, named: DirtySet<TargetKey>) -> Self {
        Self { shared, api, named, begun: BTreeMap::new(), is_idle: true }
    }

    /// What is due now, whether it was begun or not.
    fn due(&self, record: &PublishedRecord, now: Moment) -> Option<DirectScale> {
        let key = &record.key;
        let view = self.shared.board.get(key)?;
        let target = view.target.resolved()?.key.clone();
        let found = self.shared.mirrors.sight(&target);
        let stated = found.found()?.spec_replicas.unwrap_or(Replicas(1));
        let stored = self.shared.mirrors.stored(key);
        let step = DirectStep::due(record, &view, stated, stored, now.wall)?;
        Some(DirectScale { target, step })
    }

    fn is_begun(&self, key: &VariantKey, to: Replicas) -> bool {
        self.begun.get(key).is_some_and(|(begun, _)| *begun == to)
    }

    /// The version that the variant names its target in.
    fn api_version(&self, key: &VariantKey, target: &TargetKey) -> Option<String> {
        let record = self.shared.mirrors.managed(key)?;
        let SpecReading::Read(spec) = &record.object.spec else {
            return None;
        };
        let version = match &target.kind {
            TargetKind::Deployment | TargetKind::StatefulSet => "apps/v1",
            TargetKind::LeaderWorkerSet | TargetKind::Other(_) => {
                let written = spec.target.api_version.as_deref();
                let written = written.filter(|version| !version.is_empty());
                written.unwrap_or("leaderworkerset.x-k8s.io/v1")
            }
        };
        Some(version.to_owned())
    }
}

impl RoundWork for DirectScales {
    type Object = VariantKey;
    type Change = DirectScale;

    const ABOUT: &str = "count of a scale target";
    const REQUESTS: u32 = ScaleWrite::REQUESTS;
    const PAUSE: Duration = Duration::from_millis(250);

    /// A count waits for its status to be stored, and a target may be scaled by hand. Where nothing is scaled directly
    /// there is nothing to look at before the next decision.
    fn until_next(&self) -> Duration {
        if self.is_idle { IDLE } else { ROUND }
    }

    fn differences(&mut self, now: Moment) -> Vec<(VariantKey, DirectScale)> {
        let records = &self.shared.records;
        if records.term() != self.shared.claim.term() || !self.shared.claim.may_write(now) {
            return Vec::new();
        }
        let direct = records.scaled_directly();
        self.is_idle = direct.is_empty();
        self.begun.retain(|_, (_, at)| now.since(*at) < AGAIN);
        let due = direct.iter().filter_map(|record| {
            let scale = self.due(record, now)?;
            let is_begun = self.is_begun(&record.key, scale.step.to);
            (!is_begun).then(|| (record.key.clone(), scale))
        });
        due.collect()
    }

    fn begin(&mut self, due: &[(VariantKey, DirectScale)], now: Moment) {
        for (key, scale) in due {
            self.begun.insert(key.clone(), (scale.step.to, now));
        }
    }

    async fn write(
        &self,
        key: &VariantKey,
        scale: DirectScale,
    ) -> Result<(), AutoscalerWriteError> {
        let (now, term) = (self.shared.clock.now(), self.shared.records.term());
        // A round may take a while: what is not due any more is left to a later one.
        let record = self.shared.records.get(key);
        if record.and_then(|record| self.due(&record, now)) != Some(scale.clone()) {
            return Err(AutoscalerWriteError::Outdated);
        }
        let DirectScale { target, step } = scale;
        let permit = self.shared.permit(now, self.api.timeout * ScaleWrite::REQUESTS);
        let permit = permit.filter(|permit| permit.term() == term);
        let permit = permit.ok_or(AutoscalerWriteError::Expired)?;
        let api_version = self.api_version(key, &target);
        let api_version = api_version.ok_or(AutoscalerWriteError::Gone)?;
        let write = ScaleWrite {
            target: &target,
            api_version: &api_version,
            field: &ReplicaField::Scale,
            from: step.from,
            to: step.to,
        };
        let written = self.api.scale(permit, &write).await;
        if kind_without_watcher(&target).is_some() {
            self.named.insert(target.clone());
        }
        if written? {
            tracing::info!(variant = %key, %target, from = %step.from, to = %step.to, "target scaled");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
