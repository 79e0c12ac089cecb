//! Everything that actors share: facts that outlive their writers, and the series.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use serde::Serialize;

use crate::actors::board::Board;
use crate::actors::config::ReportedFindings;
use crate::actors::mirrors::{self, Mirrors, SyncStatus, TargetLookup};
use crate::actors::optimizer::PlanProposal;
use crate::actors::records::Records;
use crate::actors::relist_request::RelistRequest;
use crate::actors::requests::Requests;
use crate::claim::ClaimReader;
use crate::cluster::event::Regarding;
use crate::cluster::mirror::SyncState;
use crate::cluster::permit::WritePermit;
use crate::cluster::project::pool::PoolObject;
use crate::env::Clock;
#[cfg(feature = "sim")]
use crate::env::Mutation;
use crate::env::Mutations;
use crate::kit::{ActorRegistry, Cell, RoleTotals, WatchedKind};
use crate::metrics::Metrics;
use crate::policy::actuation::Scalers;
use crate::policy::document::SnapshotDocument;
use crate::policy::key::VariantKey;
use crate::policy::learned::Learned;
use crate::policy::ownership::{Holding, Ownership, OwnershipConflicts};
use crate::policy::readiness::{ReadinessReason, ReadinessState};
use crate::policy::router_queue::DirectQueues;
use crate::policy::schedule::TickSchedule;
use crate::policy::snapshot::{
    ClusterSnapshot, CycleId, GpuInventory, MetricsSnapshot, SignalName, VariantView,
};
use crate::policy::units::Replicas;
use crate::policy::variant::{self, Pods, Refreshed, VariantState};
use crate::settings::generation::Generation;
use crate::settings::problem::Diagnostics;
use crate::signals::Evaluations;
use wva_base::moment::{Moment, WallTime};

/// Kinds without which nothing can be decided; the others make a difference only when they are there.
const REQUIRED: [WatchedKind; 8] = [
    WatchedKind::VariantAutoscaling,
    WatchedKind::Deployment,
    WatchedKind::ConfigMap,
    WatchedKind::SystemConfigMap,
    WatchedKind::Namespace,
    WatchedKind::Pod,
    WatchedKind::ReplicaSet,
    // Before it is read, the API server is nobody to us, and the door would turn it away.
    WatchedKind::AuthenticationConfigMap,
];

/// Settings in force, with the beat that they set.
#[derive(Debug, Clone)]
pub struct InForce {
    /// The settings.
    pub generation: Generation,
    /// The beat of collector and optimizer.
    pub schedule: TickSchedule,
}

impl InForce {
    /// Whether somebody must know what nodes offer and pods hold.
    pub fn needs_nodes(&self) -> bool {
        self.generation.dynamic.wants_nodes()
    }
}

/// Facts, shared. Clones are handles on the same ones.
#[derive(Debug, Clone)]
pub struct SharedState {
    /// The time.
    pub clock: Clock,
    /// Objects of the cluster.
    pub mirrors: Mirrors,
    /// The wish to have the variants read anew.
    pub relists: RelistRequest,
    /// One view per variant.
    pub board: Board,
    /// What is published per variant.
    pub records: Records,
    /// Settings.
    pub settings: Cell<InForce>,
    /// The last collection.
    pub metrics: Cell<MetricsSnapshot>,
    /// When the answers behind it were evaluated.
    pub evaluations: Arc<Mutex<Evaluations>>,
    /// What routers said themselves of the requests that they hold.
    pub direct: Cell<DirectQueues>,
    /// What was learned from all of them.
    pub learned: Cell<Learned>,
    /// The right to write.
    pub claim: ClaimReader,
    /// How those who ask the API server fare.
    pub requests: Requests,
    /// Our name as an owner of fields.
    pub manager: Arc<str>,
    /// What is known of other controllers.
    pub ownership_conflicts: Arc<RwLock<OwnershipConflicts>>,
    /// The last plan that was published, and the term that it is of.
    pub plan: Cell<Option<PlanProposal>>,
    /// The series.
    pub series: Arc<Metrics>,
    /// What was said about settings last.
    told: Arc<Mutex<ReportedFindings>>,
    /// Number of the last planning cycle.
    pub cycles: Arc<AtomicU64>,
    /// The defect of this process, if one is planted.
    pub mutations: Mutations,
    /// Variants whose actor keeps failing, with the reason.
    pub quarantined: Arc<RwLock<BTreeMap<VariantKey, Arc<str>>>>,
}

impl SharedState {
    /// Nothing is known yet but the settings.
    pub fn new(
        clock: Clock,
        mirrors: Mirrors,
        generation: Generation,
        series: Arc<Metrics>,
    ) -> Self {
        let schedule = TickSchedule::starting(clock.now(), generation.dynamic.interval);
        Self {
            mirrors,
            relists: RelistRequest::default(),
            board: Board::default(),
            records: Records::default(),
            settings: Cell::new(InForce {
                generation,
                schedule,
            }),
            metrics: Cell::new(MetricsSnapshot::never()),
            evaluations: Arc::default(),
            direct: Cell::new(DirectQueues::new()),
            learned: Cell::new(Learned::default()),
            claim: ClaimReader::new(),
            plan: Cell::new(None),
            series,
            told: Arc::default(),
            cycles: Arc::default(),
            mutations: Mutations::default(),
            quarantined: Arc::default(),
            requests: Requests::default(),
            manager: Arc::from(""),
            ownership_conflicts: Arc::default(),
            clock,
        }
    }

    /// The same, under the name that statuses are written with.
    #[must_use]
    pub fn named(self, manager: Arc<str>) -> Self {
        Self { manager, ..self }
    }

    /// The same, after a start that has logged these findings.
    #[must_use]
    pub fn with_reported_findings(self, diagnostics: &Diagnostics) -> Self {
        *self.told() = ReportedFindings::at_start(diagnostics);
        self
    }

    /// The right to write, for requests that take no longer than this together.
    pub fn permit(&self, now: Moment, timeout: Duration) -> Option<WritePermit> {
        #[cfg(feature = "sim")]
        if self.mutations.has(Mutation::PermitUnasked) {
            let until = tokio::time::Instant::now() + Duration::from_hours(1);
            return Some(WritePermit::for_test(self.records.term(), until));
        }
        self.claim.permit(now, timeout)
    }

    /// How this controller stands towards others that claim a variant.
    pub fn standing(&self, key: &VariantKey) -> Ownership {
        let Some(record) = self.mirrors.managed(key) else {
            return Ownership::Alone;
        };
        let ownership_conflicts = self
            .ownership_conflicts
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        ownership_conflicts.standing(&self.manager, key, &record.owners)
    }

    /// What other controllers hold of our variants, by manager.
    pub fn held_by_others(&self) -> BTreeMap<Arc<str>, BTreeMap<VariantKey, WallTime>> {
        let mut held: BTreeMap<Arc<str>, BTreeMap<VariantKey, WallTime>> = BTreeMap::new();
        for key in self.board.snapshot().into_keys() {
            let record = self.mirrors.managed(&key);
            let owners = record.iter().flat_map(|record| record.owners.iter());
            for owner in owners {
                if owner.holds == Holding::Status && owner.manager != self.manager {
                    let objects = held.entry(Arc::clone(&owner.manager)).or_default();
                    objects.insert(key.clone(), owner.written);
                }
            }
        }
        held
    }

    /// Joins what the mirrors hold about a variant; `None` if this controller does not manage it.
    pub fn refresh(
        &self,
        key: &VariantKey,
        state: &mut VariantState,
        now: Moment,
    ) -> Option<Refreshed> {
        let record = self.mirrors.managed(key)?;
        let target = self.mirrors.target_of(&record);
        let sighting = target
            .as_ref()
            .map_or(TargetLookup::Missing, |target| self.mirrors.sight(target));
        let pods = sighting
            .found()
            .and_then(|target| self.mirrors.pods(target));
        let claimants = target
            .as_ref()
            .map_or_else(Vec::new, |target| self.mirrors.claimants(target));
        let scalers = target
            .as_ref()
            .map_or(Scalers::Unknown, |target| self.mirrors.scalers(target));
        let shared = variant::VariantObjects {
            object: &record.object,
            target: sighting.lookup(),
            pods: pods.as_ref().map_or(Pods::Unsynced, Pods::Found),
            claimants: &claimants,
            published: self.decided(key),
            scalers: &scalers,
        };
        Some(state.refresh(&shared, now))
    }

    /// The object of a variant, as an event refers to it.
    pub fn regarding(&self, key: &VariantKey) -> Option<Regarding> {
        let record = self
            .mirrors
            .variants
            .get(&mirrors::variant_object_key(key))?;
        Some(Regarding {
            api_version: Arc::from("llmd.ai/v1alpha1"),
            kind: Arc::from("VariantAutoscaling"),
            namespace: Arc::clone(&key.namespace),
            name: Arc::clone(&key.name),
            uid: Arc::clone(&record.object.uid),
        })
    }

    /// The input of a planning cycle: the board, with the counts that were published last. The
    /// status of an object may lag behind its gauge, and a step must be neither taken twice nor
    /// taken back for that. What a view holds of an earlier term, or of an object that was created again
    /// under its name, counts for nothing.
    pub fn snapshot(&self, cycle: CycleId) -> ClusterSnapshot {
        let mut variants = self.board.snapshot();
        for (key, view) in &mut variants {
            let published = self.decided(key).or_else(|| self.mirrors.stored(key));
            if published != view.desired && view.target.resolved().is_some() {
                *view = Arc::new(VariantView {
                    desired: published,
                    // How long the count before it waited says nothing about this one.
                    unapplied_since: None,
                    ..(**view).clone()
                });
            }
        }
        ClusterSnapshot {
            cycle,
            variants,
            metrics: self.metrics.load(),
            direct: self.direct.load(),
            gpus: self.gpus(),
        }
    }

    /// The count that a cycle of this term decided last.
    fn decided(&self, key: &VariantKey) -> Option<Replicas> {
        let is_of_this_term = self.records.term() == self.claim.term();
        is_of_this_term.then(|| self.records.decided(key)).flatten()
    }

    /// GPUs of the cluster; `None` where no setting asks for them.
    fn gpus(&self) -> Option<Arc<GpuInventory>> {
        let is_asked_for = self.settings.load().needs_nodes();
        is_asked_for.then(|| Arc::new(self.mirrors.inventory(self.clock.now())))
    }

    /// Every kind that is watched in this scope and with these settings.
    fn contacts(&self) -> Vec<SyncStatus> {
        let needs_nodes = self.settings.load().needs_nodes();
        let is_needed = |contact: &SyncStatus| match contact.kind {
            WatchedKind::Node | WatchedKind::HoldingPod => needs_nodes,
            _ => true,
        };
        self.mirrors.contacts().filter(is_needed).collect()
    }

    /// Why a variant's own actor keeps failing, if it does.
    pub fn quarantine_of(&self, key: &VariantKey) -> Option<Arc<str>> {
        self.quarantined
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(key)
            .cloned()
    }

    /// Notes that a variant's actor keeps failing, or that it runs again.
    pub fn set_quarantine(&self, key: &VariantKey, why: Option<&str>) {
        let mut quarantined = self
            .quarantined
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        match why {
            Some(why) => quarantined.insert(key.clone(), Arc::from(why)),
            None => quarantined.remove(key),
        };
    }

    /// Forgets who keeps failing.
    pub fn clear_quarantine(&self) {
        self.quarantined
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Brings the series up to date that are read off something else at each scrape.
    pub fn refresh_process_series(&self, actors: &ActorRegistry, now: Moment) {
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
            let RoleTotals {
                sent,
                handled,
                restarts,
            } = totals;
            let process = &self.series.process;
            process.show_role(role, [sent, handled, restarts]);
        }
        let number = self.settings.load().generation.number;
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        self.series.config.generation.set(number);
    }

    /// What was said about settings last.
    pub fn told(&self) -> MutexGuard<'_, ReportedFindings> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn config_reason(&self) -> ReadinessReason {
        let number = self.settings.load().generation.number;
        let mut detail = format!("generation {number} in force");
        let waiting = self.told().waiting_for_restart();
        if !waiting.is_empty() {
            detail.push_str("; edited, and read at the next start: ");
            detail.push_str(&waiting.join(", "));
        }
        let refusals = self.told().refusals();
        let state = if refusals.is_some() {
            ReadinessState::Degraded
        } else {
            ReadinessState::Ok
        };
        if let Some(refusals) = refusals {
            detail.push_str("; refused: ");
            detail.push_str(&refusals);
        }
        ReadinessReason {
            name: "config".to_owned(),
            state,
            detail,
        }
    }

    /// Whether this process is ready, and what it is blind to.
    pub fn readiness(&self) -> Vec<ReadinessReason> {
        let now = self.clock.now();
        let mut reasons = vec![self.config_reason()];
        reasons.extend(
            self.contacts()
                .into_iter()
                .map(|contact| mirror_reason(contact, now)),
        );
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
            (_, Some((signal, why))) => (
                ReadinessState::Degraded,
                format!("{}: {why}", signal.as_str()),
            ),
            (Some(at), None) => (
                ReadinessState::Ok,
                format!("read {} s ago", now.since(at).as_secs()),
            ),
            (None, None) => (ReadinessState::Degraded, "not read yet".to_owned()),
        };
        ReadinessReason {
            name: "prometheus".to_owned(),
            state,
            detail,
        }
    }

    /// The input of a planning cycle as it would be now, for the debug page; `wva plan` reads it.
    pub fn debug_snapshot(&self) -> SnapshotDocument {
        let snapshot = self.snapshot(CycleId::default());
        let scalers = snapshot
            .variants
            .iter()
            .map(|(key, view)| (key.clone(), view.scalers.clone()))
            .collect();
        let context = DebugContext {
            sources: snapshot.metrics.sources.clone(),
            scalers,
            records: self.records.snapshot(),
            pools: self.mirrors.pools.all().into_values().collect(),
        };
        SnapshotDocument {
            context: serde_json::to_value(context).ok(),
            ..SnapshotDocument::of(&snapshot, &self.learned.load(), self.clock.now())
        }
    }
}

/// What readers of a snapshot want to see beside what decides.
#[derive(Debug, Serialize)]
struct DebugContext {
    sources: BTreeMap<SignalName, BTreeMap<Arc<str>, u64>>,
    scalers: BTreeMap<VariantKey, Scalers>,
    records: BTreeMap<VariantKey, Arc<crate::policy::record::PublishedRecord>>,
    pools: Vec<Arc<PoolObject>>,
}

fn mirror_reason(contact: SyncStatus, now: Moment) -> ReadinessReason {
    let SyncStatus {
        kind,
        sync,
        last,
        trouble,
    } = contact;
    let age = last.map(|last| now.since(last));
    let required = REQUIRED.contains(&kind);
    let state = match sync {
        SyncState::Complete if trouble.is_none() => ReadinessState::Ok,
        SyncState::Never if required => ReadinessState::NotReady,
        _ => ReadinessState::Degraded,
    };
    let detail = match (sync, age) {
        (SyncState::KindAbsent, _) => {
            "not served by the API server; looked for until it is".to_owned()
        }
        (SyncState::Complete, Some(age)) => format!("heard from {} s ago", age.as_secs()),
        (SyncState::Never, Some(age)) => {
            format!("not complete yet, heard from {} s ago", age.as_secs())
        }
        (_, None) => "never heard from; is the kind allowed by the ClusterRole?".to_owned(),
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
