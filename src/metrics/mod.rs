//! The series that the controller exposes.
//!
//! *Pipeline* series carry decisions and are shown only while this process may write; *process* series
//! describe the process itself and are always shown, after those of the operating system.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};

use prometheus::process_collector::ProcessCollector;
use prometheus::proto::MetricFamily;
use prometheus::{Registry, TextEncoder};

pub use self::families::{ConfigSeries, EngineSeries, Family, ProcessSeries};
use self::families::{Registrar, RoleSeries, VariantSeries};
use self::planned::PlannedSeries;
use crate::hooks::{ControllerHooks, NoHooks};
use crate::policy::key::{ModelKey, ObjectKey, VariantKey};
use crate::policy::params::{ANALYZER_NAME, DynamicSettings, SLO, SaturationMethod};
use crate::policy::plan::{Action, Decision, Plan, PlanStage, Reason, VariantFigures};
use crate::policy::pod_autoscaler::decide::{AutoscalerAlgorithm, AutoscalerOutcome};
use crate::policy::pod_autoscaler::record::AutoscalerRecord;
use crate::policy::reason::WakeObstacle;
use crate::policy::record::GaugeValues;
use crate::policy::units::Replicas;
use crate::settings::Generation;
use crate::version;

mod facts;
mod families;
mod planned;

/// Content type of the exposition.
pub const TEXT_FORMAT: &str = prometheus::TEXT_FORMAT;

/// Most findings that are shown.
const MOST_FINDINGS: usize = 1000;

/// States of a replica's metrics, as label values.
const FRESHNESS: [&str; 4] = ["fresh", "stale", "missing", "unavailable"];

/// Every series of the controller.
#[derive(Debug)]
pub struct Metrics {
    pipeline: Registry,
    process_wide: Registry,
    /// What the operating system reports about the process.
    system: Registry,
    /// Held for writing while a variant changes its label set, so that no scrape sees none or two.
    exposition: RwLock<()>,
    variants: VariantSeries,
    planned: PlannedSeries,
    roles: RoleSeries,
    /// Held while a total is compared and raised, so that two scrapes do not both add the difference.
    raising: Mutex<()>,
    families: Vec<Family>,
    /// What a simulation changes.
    pub(crate) hooks: Arc<dyn ControllerHooks>,
    /// Collection and planning.
    pub engine: EngineSeries,
    /// Settings.
    pub config: ConfigSeries,
    /// Actors, mirrors, writes.
    pub process: ProcessSeries,
}

/// Labels of one variant's series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariantLabels {
    /// The variant.
    pub key: VariantKey,
    /// `accelerator_type`.
    pub accelerator: String,
}

/// A condition that is not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnhealthyCondition {
    /// Type of the condition.
    pub condition: &'static str,
    /// Its reason.
    pub reason: &'static str,
}

impl VariantLabels {
    fn values(&self) -> [&str; 3] {
        [&self.key.name, &self.key.namespace, &self.accelerator]
    }
}

impl Metrics {
    /// Registers every series. `controller_instance` becomes a constant label of all of them.
    ///
    /// # Errors
    /// When the label value is not acceptable to the registry.
    pub fn new(controller_instance: Option<&str>) -> Result<Self, prometheus::Error> {
        let labels = controller_instance
            .map(|instance| [("controller_instance".to_owned(), instance.to_owned())].into());
        let pipeline = Registry::new_custom(None, labels.clone())?;
        let process_wide = Registry::new_custom(None, labels.clone())?;
        let system = Registry::new_custom(None, labels)?;
        system.register(Box::new(ProcessCollector::for_self()))?;
        let noted = RefCell::default();
        let registrar = |registry| Registrar { registry, families: &noted };
        let variants = VariantSeries::new(&registrar(&pipeline))?;
        let planned = PlannedSeries::new(&registrar(&pipeline))?;
        let registrar = registrar(&process_wide);
        let engine = EngineSeries::new(&registrar)?;
        let config = ConfigSeries::new(&registrar)?;
        let process = ProcessSeries::new(&registrar)?;
        let labels = [version::VERSION, version::COMMIT];
        process.build.with_label_values(&labels).set(1);
        Ok(Self {
            variants,
            planned,
            roles: RoleSeries::new(&registrar)?,
            raising: Mutex::default(),
            engine,
            config,
            process,
            families: noted.into_inner(),
            hooks: Arc::new(NoHooks),
            exposition: RwLock::new(()),
            pipeline,
            process_wide,
            system,
        })
    }

    /// Returns the same series with hooks.
    #[must_use]
    pub fn with_hooks(mut self, hooks: &Arc<dyn ControllerHooks>) -> Self {
        self.hooks = Arc::clone(hooks);
        self
    }

    /// Every family that can be exposed, but for those of the process (`process_*`).
    pub fn families(&self) -> &[Family] {
        &self.families
    }

    fn exclusively(&self) -> RwLockWriteGuard<'_, ()> {
        self.exposition.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a variant's values under `labels`, and removes what it showed under `previous` if that
    /// is another label set; no scrape sees both or neither.
    pub fn expose(
        &self,
        labels: &VariantLabels,
        previous: Option<&VariantLabels>,
        values: GaugeValues,
    ) {
        let _exclusive = self.exclusively();
        if let Some(previous) = previous.filter(|previous| *previous != labels) {
            if self.hooks.keeps_labels() {
                drop(self.variants.desired.remove_label_values(&previous.values()));
            } else {
                self.remove(previous);
            }
        }
        let label_values = labels.values();
        self.variants.desired.with_label_values(&label_values).set(values.desired.to_f64());
        self.variants
            .current
            .with_label_values(&label_values)
            .set(self.hooks.current_replicas(values.current));
        let ratio = self.variants.ratio.with_label_values(&label_values);
        ratio.set(self.hooks.ratio(values.ratio, values.desired, values.current));
    }

    /// Shows what a role did since the process started: messages sent and handled, restarts.
    pub fn show_role(&self, role: &str, totals: [u64; 3]) {
        let _exclusive = self.raising.lock().unwrap_or_else(PoisonError::into_inner);
        self.roles.show(role, totals);
    }

    /// Shows whether the last cycle decided on usable metrics.
    pub fn expose_metrics_up(&self, key: &VariantKey, up: bool) {
        self.variants.up.with_label_values(&[&*key.name, &*key.namespace]).set(i64::from(up));
    }

    /// Shows how many ready replicas of a variant report how freshly.
    pub fn expose_freshness(&self, key: &VariantKey, figures: &VariantFigures) {
        let unavailable = figures.outdated;
        let fresh = figures.reporting.saturating_sub(figures.stale);
        let missing = figures.ready.saturating_sub(figures.reporting + unavailable);
        let counts = [fresh, figures.stale, missing, unavailable];
        for (status, count) in FRESHNESS.into_iter().zip(counts) {
            self.variants
                .freshness
                .with_label_values(&[&*key.name, &*key.namespace, status])
                .set(i64::from(count));
        }
    }

    /// Shows whether something kept the last cycle from what it wanted for a variant.
    pub fn expose_limits(&self, decision: &Decision) {
        let labels = [&*decision.key.name, &*decision.key.namespace];
        let at_maximum = decision.steps.iter().any(|step| {
            matches!(
                step.why,
                Reason::AtMaximum { .. }
                    | Reason::CutToMaximum { .. }
                    | Reason::CutToCeiling { .. }
                    | Reason::NeedAtMaximum { .. }
            )
        });
        let mut limits = decision.steps.iter();
        let limited = limits.any(|step| {
            (step.stage == PlanStage::Limit && step.to < step.from)
                || matches!(
                    step.why,
                    Reason::ShareLimited { .. }
                        | Reason::GpusNotCounted(_)
                        | Reason::MinimumAboveGpus { .. }
                        | Reason::HeldForStart { .. }
                        | Reason::WakeRefused {
                            obstacle: WakeObstacle::NoGpus
                                | WakeObstacle::GpusNotCounted
                                | WakeObstacle::NoGpusForPair,
                            ..
                        }
                )
        });
        for (gauge, holds) in
            [(&self.variants.at_maximum, at_maximum), (&self.variants.limited, limited)]
        {
            gauge.with_label_values(&labels).set(i64::from(holds));
        }
    }

    /// Shows what a plan says besides the counts, in place of the one before. No scrape sees a part of
    /// it. `is_live` names the variants that still exist.
    pub fn expose_plan(&self, plan: &Plan, is_live: impl Fn(&VariantKey) -> bool) {
        let _exclusive = self.exclusively();
        self.planned.show(plan, is_live);
    }

    /// Shows findings, each by its code and the object that it is about, in place of those before. No scrape sees a
    /// part of them.
    pub fn expose_findings<'a>(&self, found: impl Iterator<Item = (String, &'a ObjectKey)>) {
        let _exclusive = self.exclusively();
        let gauge = &self.variants.findings;
        gauge.reset();
        for (code, object) in found.take(MOST_FINDINGS) {
            let labels = [&*code, &*object.namespace, &*object.name];
            gauge.with_label_values(&labels).set(1);
        }
    }

    /// Shows the conditions of a variant that are not as they should be, each with its reason, in place
    /// of those `before`.
    pub fn expose_troubles(
        &self,
        key: &VariantKey,
        troubles: &[UnhealthyCondition],
        before: &[UnhealthyCondition],
    ) {
        for gone in before.iter().filter(|trouble| !troubles.contains(trouble)) {
            let values = [&*key.name, &*key.namespace, gone.condition, gone.reason];
            drop(self.variants.trouble.remove_label_values(&values));
        }
        for UnhealthyCondition { condition, reason } in troubles {
            self.variants
                .trouble
                .with_label_values(&[&*key.name, &*key.namespace, condition, reason])
                .set(1);
        }
    }

    /// Shows what a `PodAutoscaler` wants, in place of what it wanted `before`. One whose generated object decides shows
    /// nothing.
    pub fn show_autoscaler(&self, record: &AutoscalerRecord, before: Option<&AutoscalerRecord>) {
        let _exclusive = self.exclusively();
        if let Some(before) = before {
            self.remove_autoscaler(before);
        }
        if let Some((labels, desired)) = autoscaler_values(record) {
            let labels = labels.each_ref().map(|label| &**label);
            let gauge = self.variants.autoscaler.with_label_values(&labels);
            gauge.set(desired.to_f64());
        }
    }

    /// Removes every series of a `PodAutoscaler`.
    pub fn forget_autoscaler(&self, record: &AutoscalerRecord) {
        let _exclusive = self.exclusively();
        self.remove_autoscaler(record);
    }

    fn remove_autoscaler(&self, record: &AutoscalerRecord) {
        if let Some((labels, _)) = autoscaler_values(record) {
            let labels = labels.each_ref().map(|label| &**label);
            drop(self.variants.autoscaler.remove_label_values(&labels));
        }
    }

    /// Counts one change of the desired count.
    pub fn count_scaling(&self, labels: &VariantLabels, action: Action, reason: PlanStage) {
        let direction = match action {
            Action::ScaleUp => "up",
            Action::ScaleDown => "down",
            Action::NoChange => return,
        };
        self.variants.scaling.with_label_values(&scaling_values(labels, direction, reason)).inc();
    }

    /// Removes every series of a variant.
    pub fn withdraw(&self, labels: &VariantLabels) {
        let _exclusive = self.exclusively();
        self.remove(labels);
        self.planned.withdraw(&labels.key);
        // An absent series is what was asked for, so the answer does not matter.
        for gauge in [&self.variants.up, &self.variants.at_maximum, &self.variants.limited] {
            let values = [&*labels.key.name, &*labels.key.namespace];
            drop(gauge.remove_label_values(&values));
        }
        for status in FRESHNESS {
            let values = [&*labels.key.name, &*labels.key.namespace, status];
            drop(self.variants.freshness.remove_label_values(&values));
        }
    }

    fn remove(&self, labels: &VariantLabels) {
        for family in [&self.variants.desired, &self.variants.current, &self.variants.ratio] {
            // Removing what is not there is an error to the library and success to us.
            drop(family.remove_label_values(&labels.values()));
        }
        for direction in ["up", "down"] {
            for stage in PlanStage::ALL {
                let values = scaling_values(labels, direction, stage);
                drop(self.variants.scaling.remove_label_values(&values));
            }
        }
    }

    /// Shows the settings in force.
    pub fn show_settings(&self, generation: &Generation) {
        let dynamic = &generation.dynamic;
        let default = dynamic.saturation.resolve(&ModelKey::new("", ""));
        self.config.interval.set(dynamic.interval.as_secs_f64());
        self.config.kv_spare.set(default.kv_spare_trigger);
        self.config.queue_spare.set(default.queue_spare_trigger);
        let to_zero = dynamic.may_go_to_zero(&ModelKey::new("", ""));
        self.config.info.reset();
        self.config.optimizer.reset();
        let optimizer = [optimizer_name(dynamic)];
        self.config.optimizer.with_label_values(&optimizer).set(1);
        let word = |holds: bool| if holds { "true" } else { "false" };
        let labels = [analyzer_name(dynamic), word(dynamic.limits_growth()), word(to_zero)];
        self.config.info.with_label_values(&labels).set(1);
    }

    /// The exposition text. Pipeline series are left out unless this process may write now.
    pub fn exposition(&self, pipeline: Visibility) -> Result<String, prometheus::Error> {
        let mut families = self.system.gather();
        families.extend(self.own(pipeline));
        TextEncoder::new().encode_to_string(&families)
    }

    /// What the exposition shows besides what the operating system says, which takes longer to ask than
    /// all the rest.
    pub fn own(&self, pipeline: Visibility) -> Vec<MetricFamily> {
        let mut families = self.process_wide.gather();
        families.extend(self.pipeline(pipeline));
        families
    }

    /// What the exposition shows of variants and models alone.
    pub fn pipeline(&self, pipeline: Visibility) -> Vec<MetricFamily> {
        if pipeline == Visibility::Hidden {
            return Vec::new();
        }
        let _shared = self.exposition.read().unwrap_or_else(PoisonError::into_inner);
        self.pipeline.gather()
    }
}

/// Whether pipeline series are part of an exposition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// This process may write.
    Shown,
    /// It may not: another one speaks for the variants.
    Hidden,
}

/// Labels and value of the series of a `PodAutoscaler`, if it has one.
fn autoscaler_values(record: &AutoscalerRecord) -> Option<([String; 4], Replicas)> {
    let decision = record.decision()?;
    let is_shown = decision.algorithm != AutoscalerAlgorithm::Hpa
        && decision.outcome == AutoscalerOutcome::Decided;
    let labels = || {
        [
            record.key.namespace.to_string(),
            record.key.name.to_string(),
            decision.algorithm.as_str().to_owned(),
            decision.reason(),
        ]
    };
    is_shown.then(|| (labels(), decision.desired))
}

fn scaling_values<'a>(
    labels: &'a VariantLabels,
    direction: &'a str,
    reason: PlanStage,
) -> [&'a str; 5] {
    [&labels.key.name, &labels.key.namespace, direction, reason.as_str(), &labels.accelerator]
}

/// How a model is decided on of which no entry says anything.
fn analyzer_name(settings: &DynamicSettings) -> &'static str {
    let policy = settings.saturation.policy(&ModelKey::new("", ""));
    if settings.proactive_model {
        "hybrid"
    } else if settings.queueing_model.selected() {
        ANALYZER_NAME
    } else {
        match policy.analysis {
            SaturationMethod::Tokens => "saturation",
            SaturationMethod::Slo => SLO,
            SaturationMethod::Percentage => "saturation-percentage",
        }
    }
}

/// How scarce or plentiful GPUs are given out.
fn optimizer_name(settings: &DynamicSettings) -> &'static str {
    if settings.limits_growth() { "greedy-by-score" } else { "cost-aware" }
}

#[cfg(test)]
mod planned_tests;
#[cfg(test)]
mod tests;
