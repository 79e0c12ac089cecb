//! Reads and writes the lease object of leader election.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};

use super::client::{RequestError, within};
use super::fingerprint::fingerprint;
use crate::policy::lease::{LeaseMove, LeaseProposal, LeaseRecord, LeaseRules, ProposalKind};
use wva_base::moment::WallTime;

/// The lease of this controller.
#[derive(Debug, Clone)]
pub struct LeaseApi {
    api: Api<Lease>,
    name: String,
    timeout: Duration,
}

/// Why a request about the lease did not succeed. After a write, it may have been applied all the same.
#[derive(Debug, thiserror::Error)]
#[error("lease {lease}: {error}")]
pub struct LeaseError {
    lease: String,
    error: RequestError,
}

impl LeaseError {
    /// Whether a right is missing; the text names which.
    pub fn is_forbidden(&self) -> bool {
        self.error.is_denied()
    }
}

impl LeaseApi {
    /// A lease by name. `timeout` bounds every request and lies well below the retry period.
    pub fn new(client: kube::Client, namespace: &str, name: &str, timeout: Duration) -> Self {
        Self { api: Api::namespaced(client, namespace), name: name.to_owned(), timeout }
    }

    /// The record, if the object exists.
    pub async fn read(&self) -> Result<Option<LeaseRecord>, LeaseError> {
        let lease = self.within(self.api.get_opt(&self.name)).await?;
        Ok(lease.map(record))
    }

    /// Carries a move out.
    ///
    /// # Errors
    /// When the API server refuses (another instance was faster), fails or does not answer in time.
    pub async fn carry_out(
        &self,
        rules: &LeaseRules,
        lease_move: &LeaseMove,
        now: WallTime,
    ) -> Result<(), LeaseError> {
        match lease_move {
            LeaseMove::Wait { .. } => {}
            LeaseMove::Create(proposal) => {
                let lease = self.lease(&rules.identity, rules.duration, *proposal, None, now);
                self.within(self.api.create(&PostParams::default(), &lease)).await?;
            }
            LeaseMove::Replace { version, proposal } => {
                let lease =
                    self.lease(&rules.identity, rules.duration, *proposal, Some(version), now);
                self.within(self.api.replace(&self.name, &PostParams::default(), &lease)).await?;
            }
        }
        Ok(())
    }

    /// Gives the record up, if it is still ours, so that another process need not wait.
    pub async fn release(&self, rules: &LeaseRules, now: WallTime) -> Result<(), LeaseError> {
        let Some(record) = self.read().await? else {
            return Ok(());
        };
        if record.holder != rules.identity {
            return Ok(());
        }
        let proposal = LeaseProposal {
            kind: ProposalKind::Renew { acquired: record.acquired },
            transitions: record.transitions,
        };
        let second = Duration::from_secs(1);
        let lease = self.lease("", second, proposal, Some(&record.version), now);
        self.within(self.api.replace(&self.name, &PostParams::default(), &lease)).await?;
        Ok(())
    }

    fn lease(
        &self,
        holder: &str,
        duration: Duration,
        proposal: LeaseProposal,
        version: Option<&Arc<str>>,
        now: WallTime,
    ) -> Lease {
        // No instance compares these with its own clock: they are for people, and let a writer without an answer
        // recognize its record.
        let acquired = match proposal.kind {
            ProposalKind::Acquire => Some(now),
            ProposalKind::Renew { acquired } => acquired,
        };
        Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                resource_version: version.map(ToString::to_string),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: i32::try_from(whole_seconds(duration)).ok(),
                lease_transitions: i32::try_from(proposal.transitions).ok(),
                acquire_time: acquired.and_then(micro_time),
                renew_time: micro_time(now),
                ..LeaseSpec::default()
            }),
        }
    }

    async fn within<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>> + Send,
    ) -> Result<T, LeaseError> {
        let answer = within(self.timeout, request).await;
        answer.map_err(|error| LeaseError { lease: self.name.clone(), error })
    }
}

/// Name of the lease of one instance: instances share none, and so each has its leader.
///
/// The value of a label may hold what no name of an object may; that becomes small letters and dashes,
/// and a fingerprint distinguishes it from an instance that is really called so.
pub fn lease_name(id: &str, instance: Option<&str>) -> String {
    let Some(instance) = instance else {
        return id.to_owned();
    };
    let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let letters = instance.chars().map(|letter| {
        let letter = letter.to_ascii_lowercase();
        if fits(letter) { letter } else { '-' }
    });
    let name: String = letters.collect();
    if name == instance {
        format!("{id}-{name}")
    } else {
        format!("{id}-{name}-{:016x}", fingerprint(&[instance]))
    }
}

/// The duration as a lease can state it. Rounded up: who goes by it must not take over while a claim
/// lasts.
fn whole_seconds(duration: Duration) -> u64 {
    let fraction = u64::from(duration.subsec_nanos() > 0);
    duration.as_secs().saturating_add(fraction).max(1)
}

fn micro_time(at: WallTime) -> Option<MicroTime> {
    jiff::Timestamp::from_millisecond(at.0).ok().map(MicroTime)
}

fn record(lease: Lease) -> LeaseRecord {
    let spec = lease.spec.unwrap_or_default();
    let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    LeaseRecord {
        holder: Arc::from(spec.holder_identity.unwrap_or_default()),
        duration: Duration::from_secs(seconds.unwrap_or(0)),
        transitions: spec
            .lease_transitions
            .and_then(|count| u32::try_from(count).ok())
            .unwrap_or(0),
        acquired: spec.acquire_time.map(|time| WallTime(time.0.as_millisecond())),
        renewed: spec.renew_time.map(|time| WallTime(time.0.as_millisecond())),
        version: Arc::from(lease.metadata.resource_version.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::{lease_name, whole_seconds};

    #[test]
    fn a_lease_never_says_less_than_its_duration() {
        for (millis, seconds) in
            [(0, 1), (100, 1), (1_000, 1), (4_900, 5), (5_000, 5), (60_001, 61)]
        {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds, "{millis} ms");
        }
    }

    #[test]
    fn every_instance_has_a_lease_of_its_own() {
        assert_eq!(lease_name("72dd1cf1.llm-d.ai", None), "72dd1cf1.llm-d.ai");
        assert_eq!(lease_name("a.b", Some("blue")), "a.b-blue");
        assert_eq!(lease_name("a.b", Some("team-a-1")), "a.b-team-a-1");
        let alike = ["team-a-1", "Team_A.1", "team.a.1"];
        let names = alike.map(|instance| lease_name("a.b", Some(instance)));
        let different: BTreeSet<&String> = names.iter().collect();
        assert_eq!(different.len(), alike.len(), "{names:?}");
        for name in &names {
            let fits = |letter: char| letter.is_ascii_alphanumeric() || ".-".contains(letter);
            assert!(name.starts_with("a.b-team-a-1") && name.chars().all(fits), "{name}");
        }
    }
}
