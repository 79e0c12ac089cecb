//! Whether this process is ready, and the series that are read off something else.

use super::Readers;
use super::mirrors::SyncStatus;
use crate::cluster::kinds::WatchedKind;
use crate::cluster::mirror::SyncState;
use crate::policy::readiness::{ReadinessReason, ReadinessState};
use crate::roles::Role;
use std::collections::BTreeMap;
use wva_base::moment::Moment;
use wva_supervise::{ActorRegistry, RoleTotals};

impl Readers {
    /// Every kind that is watched in this scope and with these settings.
    fn contacts(&self) -> Vec<SyncStatus> {
        let settings = self.settings.load();
        let is_needed = |contact: &SyncStatus| settings.needs(contact.kind);
        self.mirrors.contacts().filter(is_needed).collect()
    }

    /// Brings the series up to date that are read off something else at each scrape.
    pub fn refresh_process_series(&self, actors: &ActorRegistry<Role>, now: Moment) {
        let ages = &self.series.process.mirror_age;
        for contact in self.mirrors.contacts() {
            let kind = [contact.kind.as_str()];
            match contact.last {
                Some(last) => {
                    let age = now.since(last).as_secs_f64();
                    ages.with_label_values(&kind).set(age);
                }
                // There is none to remove but for a kind that is no longer needed.
                None => drop(ages.remove_label_values(&kind)),
            }
        }
        for (role, totals) in actors.totals() {
            let RoleTotals { sent, handled, restarts } = totals;
            self.series.show_role(role, [sent, handled, restarts]);
        }
        let number = self.settings.load().generation.number;
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        self.series.config.generation.set(number);
    }

    fn config_reason(&self) -> ReadinessReason {
        let number = self.settings.load().generation.number;
        let mut detail = format!("generation {number} in force");
        let findings = self.findings.load();
        let waiting = findings.waiting_for_restart();
        if !waiting.is_empty() {
            detail.push_str("; edited, and read at the next start: ");
            detail.push_str(&waiting.join(", "));
        }
        let refusals = findings.refusals();
        let state = if refusals.is_some() { ReadinessState::Degraded } else { ReadinessState::Ok };
        if let Some(refusals) = refusals {
            detail.push_str("; refused: ");
            detail.push_str(&refusals);
        }
        ReadinessReason { name: "config".to_owned(), state, detail }
    }

    /// Whether this process is ready, and what it is blind to.
    pub fn readiness(&self) -> Vec<ReadinessReason> {
        let now = self.clock.now();
        let mut reasons = vec![self.config_reason()];
        reasons.extend(self.contacts().into_iter().map(|contact| {
            let kind = contact.kind;
            let mut reason = mirror_reason(contact, now);
            if kind == WatchedKind::VariantAutoscaling {
                let is_served = self.mirrors.variants.sync() != SyncState::KindAbsent;
                if !is_served && !self.mirrors.all_records().is_empty() {
                    // Annotated scalers are variants without that kind.
                    reason.state = ReadinessState::Ok;
                }
                let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
                for one in self.mirrors.left_out() {
                    *reasons.entry(one.admission.to_string()).or_default() += 1;
                }
                let texts = reasons.iter().map(|(why, count)| format!("; {count} {why}"));
                reason.detail.extend(texts);
            }
            reason
        }));
        reasons.push(self.prometheus_reason(now));
        let leading = self.claim.may_write(now);
        reasons.push(ReadinessReason {
            name: "leadership".to_owned(),
            state: ReadinessState::Ok,
            detail: if leading { "leading" } else { "following" }.to_owned(),
        });
        reasons.extend(self.requests.reasons());
        reasons
    }

    fn prometheus_reason(&self, now: Moment) -> ReadinessReason {
        let metrics = self.metrics.load();
        let (state, detail) = match (metrics.collected, metrics.failures.first_key_value()) {
            (_, Some((signal, why))) => {
                (ReadinessState::Degraded, format!("{}: {why}", signal.as_str()))
            }
            (Some(at), None) => {
                (ReadinessState::Ok, format!("read {} s ago", now.since(at).as_secs()))
            }
            (None, None) => (ReadinessState::Degraded, "not read yet".to_owned()),
        };
        ReadinessReason { name: "prometheus".to_owned(), state, detail }
    }
}

fn mirror_reason(contact: SyncStatus, now: Moment) -> ReadinessReason {
    let SyncStatus { kind, sync, last, trouble } = contact;
    let age = last.map(|last| now.since(last));
    let required = kind.spec().is_required;
    let state = match sync {
        SyncState::Complete if trouble.is_none() => ReadinessState::Ok,
        SyncState::Never if required => ReadinessState::NotReady,
        _ => ReadinessState::Degraded,
    };
    let detail = match (sync, age) {
        (SyncState::KindAbsent, _) if required => {
            "not served by the API server; looked for until it is: wva crds | kubectl apply --server-side -f -".to_owned()
        }
        (SyncState::KindAbsent, _) => {
            "not served by the API server; looked for until it is".to_owned()
        }
        (SyncState::Complete, Some(age)) => format!("last answer {} s ago", age.as_secs()),
        (SyncState::Never, Some(age)) => {
            format!("not complete yet, last answer {} s ago", age.as_secs())
        }
        (_, None) => "no answer yet; is the kind allowed by the ClusterRole?".to_owned(),
    };
    ReadinessReason {
        name: format!("mirror/{}", kind.as_str()),
        state,
        detail: match trouble {
            Some(why) => format!("{detail}; {why}"),
            None => detail,
        },
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
    use serde_json::json;

    use super::*;
    use crate::actors::variants::tests::shared;
    use crate::state::mirrors::tests::list;
    use wva_supervise::Epoch;

    #[test]
    fn without_the_definition_annotated_scalers_suffice() {
        let shared = shared();
        let mirrors = &shared.writers.mirrors;
        let kind = WatchedKind::VariantAutoscaling;
        let epoch = Epoch::for_test(Role::Watcher(kind), 1);
        mirrors.variants.kind_absent(&epoch).unwrap();
        let state = || {
            let mut reasons = shared.readiness().into_iter();
            let reason = reasons.find(|one| one.name == "mirror/VariantAutoscaling");
            reason.unwrap().state
        };
        assert_eq!(state(), ReadinessState::Degraded);

        let scaler = json!({
            "metadata": {"namespace": "ns", "name": "v", "annotations": {
                "llm-d.ai/managed": "true", "llm-d.ai/model-id": "m",
            }},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "v"}, "maxReplicas": 9},
        });
        let mirror = &mirrors.horizontal_pod_autoscalers;
        list::<HorizontalPodAutoscaler>(mirror, [scaler]);
        assert_eq!(state(), ReadinessState::Ok);
    }
}
