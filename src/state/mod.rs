//! What outlives the actors: cells with one writer each, and the functions that read several of them.
//!
//! [`SharedState::new`] makes both halves of every cell. The wiring gives each role the writers of that role, which
//! cannot be cloned; every life of the role shares them. Everybody may have the [`Readers`].

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::kinds::{WatchCondition, WatchedKind};
use crate::cluster::permit::WritePermit;
use crate::cluster::scale::Scales;
use crate::hooks::ControllerHooks;
use crate::metrics::Metrics;
use crate::policy::filter::WatchScope;
use crate::policy::key::VariantKey;
use crate::policy::learned::Learned;
use crate::policy::metrics_gap::MetricsGaps;
use crate::policy::ownership::OwnershipConflicts;
use crate::policy::plan::Plan;
use crate::policy::pod_autoscaler::samples::SampleTable;
use crate::policy::router_queue::DirectQueues;
use crate::policy::schedule::TickSchedule;
use crate::policy::snapshot::MetricsSnapshot;
use crate::settings::FeatureSwitch;
use crate::settings::address::BindAddress;
use crate::settings::generation::Generation;
use crate::settings::problem::Diagnostics;
use crate::version;
use wva_base::moment::Moment;
use wva_supervise::{Clock, Reader, Writer};

pub(crate) mod autoscalers;
pub(crate) mod board;
pub(crate) mod changes;
pub mod claim;
pub mod events;
pub(crate) mod findings;
pub mod mirrors;
pub mod permission_reporter;
mod readiness;
pub(crate) mod recorder;
pub(crate) mod records;
pub(crate) mod relist;
pub(crate) mod requests;
mod views;

use board::{AutoscalerBoard, AutoscalerBoardWriter, Board, BoardWriter};
use changes::ObjectChanges;
use claim::{Claim, ClaimReader};
use findings::ReportedFindings;
use mirrors::{MirrorWriters, Mirrors};
use recorder::DecisionRecorder;
use records::{RecordTable, Records};
use relist::{RelistRequester, RelistResponders};
use requests::{Asker, RequestReporter, Requests};

/// Settings in force, with the beat that they set.
#[derive(Debug, Clone)]
pub struct InForce {
    /// The settings.
    pub generation: Generation,
    /// The beat of collector and optimizer.
    pub schedule: TickSchedule,
}

impl InForce {
    /// Whether growth is limited to what nodes offer and pods leave.
    pub fn needs_nodes(&self) -> bool {
        self.generation.dynamic.wants_nodes()
    }

    /// Whether a kind is to be watched now.
    pub fn needs(&self, kind: WatchedKind) -> bool {
        match kind.spec().condition {
            WatchCondition::GpuLimits => self.needs_nodes(),
            WatchCondition::AnyLimits => self.generation.dynamic.limits_growth(),
            _ => true,
        }
    }
}

/// A plan on its way to the emitter.
#[derive(Debug, Clone)]
pub struct PlanProposal {
    /// The term of the claim under which it was made.
    pub term: u64,
    /// The plan.
    pub plan: Arc<Plan>,
    /// Why it had no metrics of some variants.
    pub gaps: Arc<MetricsGaps>,
}

/// Variants whose actor keeps failing, with the reason.
pub type QuarantinedVariants = BTreeMap<VariantKey, Arc<str>>;

/// Both halves of all cells.
#[derive(Debug)]
pub struct SharedState {
    /// For everybody.
    pub readers: Readers,
    /// For one role each.
    pub writers: Writers,
}

/// What can be read. Clones are handles on the same cells.
#[derive(Debug, Clone)]
pub struct Readers {
    /// The time.
    pub clock: Clock,
    /// Our name as an owner of fields.
    pub manager: Arc<str>,
    /// The series.
    pub series: Arc<Metrics>,
    /// What a simulation changes, as the series have it.
    pub hooks: Arc<dyn ControllerHooks>,
    /// Settings.
    pub settings: Reader<InForce>,
    /// Objects of the cluster.
    pub mirrors: Mirrors,
    /// What follows single objects; watchers wake it.
    pub changes: ObjectChanges,
    /// One view per variant.
    pub board: Board,
    /// One record per `PodAutoscaler`.
    pub autoscalers: AutoscalerBoard,
    /// What pods and services were read to report, for PodAutoscalers.
    pub pod_samples: Reader<SampleTable>,
    /// What metrics APIs report, for PodAutoscalers.
    pub api_samples: Reader<SampleTable>,
    /// The last collection.
    pub metrics: Reader<MetricsSnapshot>,
    /// The requests that routers hold, by their own account.
    pub direct: Reader<DirectQueues>,
    /// What was learned from all of them.
    pub learned: Reader<Learned>,
    /// What is known of other controllers.
    pub ownership_conflicts: Reader<OwnershipConflicts>,
    /// The last plan that was published, and the term that it is of.
    pub plan: Reader<Option<PlanProposal>>,
    /// What is published per variant.
    pub records: Records,
    /// The right to write.
    pub claim: ClaimReader,
    /// Variants whose actor keeps failing.
    pub quarantined: Reader<QuarantinedVariants>,
    /// The last findings about settings.
    pub findings: Reader<ReportedFindings>,
    /// The outcomes of requests to the API server.
    pub requests: Requests,
    /// The record of decisions.
    pub recorder: DecisionRecorder,
}

/// What can be written, by role.
#[derive(Debug)]
#[expect(missing_docs, reason = "each is the role of that name")]
pub struct Writers {
    pub config: Arc<ConfigWriters>,
    pub leadership: Arc<LeadershipWriters>,
    pub emitter: Arc<EmitterWriters>,
    pub status_writer: Arc<RequestReporter>,
    pub autoscaler_writer: Arc<RequestReporter>,
    pub pod_marker: Arc<RequestReporter>,
    pub target_scaler: Arc<RequestReporter>,
    pub event_recorder: Arc<RequestReporter>,
    pub pod_scraper: Arc<Writer<SampleTable>>,
    pub metrics_reader: Arc<MetricsReaderWriters>,
    pub pod_autoscalers: Arc<AutoscalerBoardWriter>,
    pub collector: Arc<CollectorWriters>,
    pub router_scraper: Arc<Writer<DirectQueues>>,
    pub variants: Arc<VariantsWriters>,
    /// Of the watchers, each for the kind of its name.
    pub mirrors: MirrorWriters,
    /// Of the watchers of kinds that may be variants.
    pub relists: RelistResponders,
    pub scale_reader: Arc<ScaleReaderWriters>,
}

/// What config writes.
#[derive(Debug)]
pub struct ConfigWriters {
    /// Settings.
    pub settings: Writer<InForce>,
    /// The last findings about them.
    pub findings: Writer<ReportedFindings>,
}

/// What leadership writes.
#[derive(Debug)]
pub struct LeadershipWriters {
    /// The right to write.
    pub claim: Writer<Claim>,
    /// Requests a new list of the objects that are variants.
    pub relists: RelistRequester,
    /// The outcome of requests for the lease.
    pub requests: RequestReporter,
}

/// What the emitter writes.
#[derive(Debug)]
pub struct EmitterWriters {
    /// What is published per variant.
    pub records: Writer<RecordTable>,
    /// The last plan that was published.
    pub plan: Writer<Option<PlanProposal>>,
}

/// What the collector writes.
#[derive(Debug)]
pub struct CollectorWriters {
    /// The last collection.
    pub metrics: Writer<MetricsSnapshot>,
    /// What was learned.
    pub learned: Writer<Learned>,
    /// What is known of other controllers.
    pub ownership_conflicts: Writer<OwnershipConflicts>,
}

/// What the reader of metrics APIs writes.
#[derive(Debug)]
pub struct MetricsReaderWriters {
    /// What they report.
    pub samples: Writer<SampleTable>,
    /// The outcomes of its requests.
    pub requests: RequestReporter,
}

/// What the registry of variants writes, and the actors of variants through it.
#[derive(Debug)]
pub struct VariantsWriters {
    /// One view per variant.
    pub board: BoardWriter,
    /// Variants whose actor keeps failing.
    pub quarantined: Writer<QuarantinedVariants>,
}

/// What the reader of scale subresources writes.
#[derive(Debug)]
pub struct ScaleReaderWriters {
    /// The last readings.
    pub scales: Writer<Scales>,
    /// The outcome of its requests.
    pub requests: RequestReporter,
}

impl Writers {
    fn new(in_force: InForce, requests: &Requests, diagnostics: &Diagnostics) -> Self {
        let (requester, relists) = relist::halves();
        Self {
            config: Arc::new(ConfigWriters {
                settings: Writer::new(in_force),
                findings: Writer::new(ReportedFindings::at_start(diagnostics)),
            }),
            leadership: Arc::new(LeadershipWriters {
                claim: Writer::new(Claim::NONE),
                relists: requester,
                requests: requests.reporter(Asker::Lease),
            }),
            emitter: Arc::new(EmitterWriters {
                records: Writer::new(RecordTable::default()),
                plan: Writer::new(None),
            }),
            status_writer: Arc::new(requests.reporter(Asker::Status)),
            autoscaler_writer: Arc::new(requests.reporter(Asker::Autoscalers)),
            pod_marker: Arc::new(requests.reporter(Asker::Pods)),
            target_scaler: Arc::new(requests.reporter(Asker::Targets)),
            event_recorder: Arc::new(requests.reporter(Asker::Events)),
            pod_scraper: Arc::new(Writer::new(SampleTable::new())),
            metrics_reader: Arc::new(MetricsReaderWriters {
                samples: Writer::new(SampleTable::new()),
                requests: requests.reporter(Asker::MetricsApis),
            }),
            pod_autoscalers: Arc::default(),
            collector: Arc::new(CollectorWriters {
                metrics: Writer::new(MetricsSnapshot::never()),
                learned: Writer::new(Learned::default()),
                ownership_conflicts: Writer::new(OwnershipConflicts::default()),
            }),
            router_scraper: Arc::new(Writer::new(DirectQueues::new())),
            variants: Arc::new(VariantsWriters {
                board: BoardWriter::default(),
                quarantined: Writer::new(QuarantinedVariants::new()),
            }),
            mirrors: MirrorWriters::default(),
            relists,
            scale_reader: Arc::new(ScaleReaderWriters {
                scales: Writer::new(Scales::new()),
                requests: requests.reporter(Asker::Scale),
            }),
        }
    }
}

impl SharedState {
    /// Knows nothing but the settings. `manager` is the name that statuses are written with, `diagnostics` what the
    /// start has logged.
    pub fn new(
        clock: Clock,
        scope: WatchScope,
        generation: Generation,
        series: Arc<Metrics>,
        manager: Arc<str>,
        diagnostics: &Diagnostics,
    ) -> Self {
        let statics = &generation.statics;
        let external_metrics =
            FeatureSwitch::from(statics.serving.external_metrics != BindAddress::Off);
        let autoscalers = statics.pod_autoscalers;
        let annotated = statics.annotated_scalers;
        let pool_group = statics.scope.pool_group;
        let unrecorded = series.engine.unrecorded.clone();
        let mut record = statics.record.clone();
        let is_served = series.hooks.serves_history();
        if statics.serving.metrics == BindAddress::Off && !is_served {
            // Nothing serves what would be in memory.
            record.history_bytes = 0;
        }
        let recorder = DecisionRecorder::start(&record, version::shown(), unrecorded);
        let schedule = TickSchedule::starting(clock.now(), generation.dynamic.interval);
        let in_force = InForce { generation, schedule };
        let requests = Requests::default();
        let writers = Writers::new(in_force, &requests, diagnostics);
        let scales = writers.scale_reader.scales.reader();
        let readers = Readers {
            clock,
            manager,
            hooks: Arc::clone(&series.hooks),
            series,
            settings: writers.config.settings.reader(),
            mirrors: Mirrors::new(
                &writers.mirrors,
                scales,
                scope,
                pool_group,
                external_metrics,
                autoscalers,
                annotated,
            ),
            changes: ObjectChanges::default(),
            board: writers.variants.board.reader(),
            autoscalers: writers.pod_autoscalers.reader(),
            pod_samples: writers.pod_scraper.reader(),
            api_samples: writers.metrics_reader.samples.reader(),
            metrics: writers.collector.metrics.reader(),
            direct: writers.router_scraper.reader(),
            learned: writers.collector.learned.reader(),
            ownership_conflicts: writers.collector.ownership_conflicts.reader(),
            plan: writers.emitter.plan.reader(),
            records: Records::of(&writers.emitter.records),
            claim: ClaimReader::of(&writers.leadership.claim),
            quarantined: writers.variants.quarantined.reader(),
            findings: writers.config.findings.reader(),
            requests,
            recorder,
        };
        Self { readers, writers }
    }
}

impl Deref for SharedState {
    type Target = Readers;

    fn deref(&self) -> &Readers {
        &self.readers
    }
}

impl Readers {
    /// The right to write, for requests that take no longer than this together.
    pub fn permit(&self, now: Moment, timeout: Duration) -> Option<WritePermit> {
        self.hooks.ungranted_permit(self.records.term()).or_else(|| self.claim.permit(now, timeout))
    }

    /// The last plan that was published.
    pub fn last_plan(&self) -> Option<Arc<Plan>> {
        let last = self.plan.load();
        last.as_ref().as_ref().map(|last| Arc::clone(&last.plan))
    }
}
