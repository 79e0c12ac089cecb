//! From a manifest to a policy that can be acted on: all that is wrong at once, each with its path.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::amounts::TargetValue;
use super::forecast::Forecast;
use super::object::{
    API_VERSION, AutoscalerMetadata, KIND, MetricSourceSpec, PodAutoscalerObject, SkippedFields,
};
use super::schedule::{EffectiveBounds, ReplicaBounds, Schedules};
use super::source::{MetricSource, SourceKind, is_path_segment};
use super::tuning::{LONGEST_WINDOW, Tuning, WithoutEffect};
use crate::bounds::ZeroPolicy;
use crate::units::Replicas;
use wva_base::text::bounded;

/// Violations of one object that are named. Lists have no limit, and a message has.
const MOST_NAMED: usize = 200;

/// Letters of one violation: it may quote a field of any length.
const MOST_LETTERS: usize = 500;

/// Letters of the name of an object with a generated one, which has four more of the 253 that Kubernetes permits.
const LONGEST_NAME: usize = 249;

/// Length of the long window where none is stated.
const STABLE_WINDOW: Duration = Duration::from_mins(3);

/// Length of the short window where none is stated.
const PANIC_WINDOW: Duration = Duration::from_mins(1);

/// Most metric sources of one object, each of which is read of every pod.
pub(super) const MOST_SOURCES: usize = 32;

wva_base::named! {
    /// Which check a specification fails: the reason of the condition `ValidSpec`, in the order of the checks.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum SpecProblem {
        /// The target has no name or no kind.
        MissingScaleTargetRef,
        /// A bound is impossible.
        InvalidBounds,
        /// The strategy is unknown, or does not go with a role or a name.
        InvalidScalingStrategy,
        /// A window or a schedule is impossible.
        InvalidSpec,
        /// A metric source is impossible.
        MetricsConfigError,
    }
}

/// One field that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecViolation {
    /// Which check it fails.
    pub problem: SpecProblem,
    /// Path of the field.
    pub path: String,
    /// What is wrong, and what to write instead.
    pub why: String,
}

wva_base::display_of! { SpecViolation: Self { path, why, .. } => "{path}: {why}"; }

/// All that is wrong with one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations {
    object: String,
    found: Vec<SpecViolation>,
    faults: Vec<WithoutEffect>,
}

impl Violations {
    pub(super) fn add(&mut self, problem: SpecProblem, path: &str, why: impl Into<String>) {
        if self.found.len() < MOST_NAMED {
            self.found.push(SpecViolation {
                problem,
                path: path.to_owned(),
                why: bounded(&why.into(), MOST_LETTERS),
            });
        }
    }

    /// Puts fields that were not read before what was found in the rest, without what is due to their absence.
    fn lead_with(&mut self, skipped: &SkippedFields) {
        let rest = std::mem::take(&mut self.found);
        for field in &skipped.unreadable {
            self.add(SpecProblem::InvalidSpec, &field.path, &*field.why);
        }
        let rest = rest.into_iter().filter(|one| !skipped.explains(&one.path));
        self.found.extend(rest);
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &SpecViolation> {
        self.found.iter()
    }

    /// Annotations and fields that do nothing, which are no reason to refuse the object.
    pub fn faults(&self) -> &[WithoutEffect] {
        &self.faults
    }

    /// The reason of the condition: that of the first check that fails.
    pub fn problem(&self) -> Option<SpecProblem> {
        self.found.iter().map(|violation| violation.problem).min()
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.found.iter().map(ToString::to_string);
        let faults = self.faults.iter().map(ToString::to_string);
        for (number, text) in found.chain(faults).enumerate() {
            let line = if number == 0 { "" } else { "\n" };
            write!(formatter, "{line}PodAutoscaler {}: {text}", self.object)?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}

wva_base::named! {
    /// How replicas are decided.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ScalingStrategy {
        /// By a HorizontalPodAutoscaler that is generated.
        Hpa = "HPA",
        /// By demand over two windows, with panic.
        Kpa = "KPA",
        /// By demand over the long window, and the short one for growth.
        Apa = "APA",
    }
}

/// Lengths of the two windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowLengths {
    /// The long one.
    pub stable: Duration,
    /// The short one, not longer.
    pub panic: Duration,
}

/// The object that is scaled, in the namespace of the autoscaler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaledObject {
    /// Group and version.
    pub api_version: Arc<str>,
    /// Kind.
    pub kind: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// The role inside a StormService.
    pub role: Option<Arc<str>>,
}

/// A specification that holds together.
#[derive(Debug, Clone, PartialEq)]
pub struct AutoscalerPolicy {
    /// Names, labels and annotations of the object.
    pub metadata: AutoscalerMetadata,
    /// What is scaled.
    pub target: ScaledObject,
    /// How.
    pub strategy: ScalingStrategy,
    /// Bounds while no schedule is active.
    pub base: ReplicaBounds,
    /// Bounds at certain times.
    pub schedules: Option<Schedules>,
    /// What is measured; at least one.
    pub sources: Vec<MetricSource>,
    /// Lengths of the windows.
    pub windows: WindowLengths,
    /// How demand is forecast.
    pub forecast: Option<Forecast>,
    /// What annotations tune.
    pub tuning: Tuning,
    /// Annotations and fields that do nothing.
    pub faults: Vec<WithoutEffect>,
}

impl AutoscalerPolicy {
    /// Whether load alone may lead to zero at any time.
    pub fn may_sleep(&self) -> bool {
        let schedules = self.schedules.as_ref();
        let allows_zero =
            self.base.min == Replicas::ZERO || schedules.is_some_and(Schedules::allow_zero);
        self.tuning.zero == ZeroPolicy::Enabled && allows_zero
    }

    /// Bounds at a time.
    pub fn bounds(&self, now: Timestamp) -> EffectiveBounds {
        let mut effective = match &self.schedules {
            Some(schedules) => schedules.resolve(self.base, now),
            None => self.base.into(),
        };
        if self.strategy == ScalingStrategy::Hpa {
            // The API server accepts a minimum of zero only with a feature gate.
            let min = &mut effective.bounds.min;
            *min = Replicas::ONE.max(*min);
        }
        effective
    }
}

impl PodAutoscalerObject {
    /// Checks a manifest. Annotations are no reason to refuse it.
    pub fn check(&self) -> Result<AutoscalerPolicy, Violations> {
        let AutoscalerMetadata { namespace, name, .. } = &self.metadata;
        let (tuning, mut faults) = Tuning::read(&self.metadata.annotations);
        self.add_unread(&mut faults);
        let mut violations =
            Violations { object: format!("{namespace}/{name}"), found: Vec::new(), faults };
        let found = &mut violations;
        self.check_identity(found);
        let target = self.check_target(found);
        let base = self.check_bounds(found);
        let strategy = self.check_strategy(found);
        let windows = self.check_windows(found);
        let forecast = self.spec.predictive.as_ref();
        let forecast = forecast.map(|spec| Forecast::read(spec, found));
        let schedules = &self.spec.schedules;
        let schedules = schedules.as_ref().map(|all| Schedules::read(all, base, found));
        let sources = check_sources(&self.spec.metrics_sources, strategy, found);
        violations.lead_with(&self.skipped);
        let Some(strategy) = strategy.filter(|_| violations.found.is_empty()) else {
            return Err(violations);
        };
        Ok(AutoscalerPolicy {
            metadata: self.metadata.clone(),
            target,
            strategy,
            base,
            schedules,
            sources,
            windows,
            forecast,
            tuning,
            faults: violations.faults,
        })
    }

    fn check_identity(&self, found: &mut Violations) {
        let fields = [("apiVersion", &self.api_version, API_VERSION), ("kind", &self.kind, KIND)];
        for (path, field, expected) in fields {
            if let Some(other) = field.as_deref().filter(|field| *field != expected) {
                let why = format!("{other:?} is not read; write {expected}");
                found.add(SpecProblem::InvalidSpec, path, why);
            }
        }
    }

    fn check_target(&self, found: &mut Violations) -> ScaledObject {
        let target = &self.spec.scale_target_ref;
        for (field, value) in [("name", &target.name), ("kind", &target.kind)] {
            if value.is_empty() {
                let path = format!("spec.scaleTargetRef.{field}");
                found.add(SpecProblem::MissingScaleTargetRef, &path, "must be set");
            }
        }
        let own = &self.metadata.namespace;
        let namespace = target.namespace.as_ref().filter(|one| !one.is_empty());
        if let Some(other) = namespace.filter(|other| *other != own) {
            let why = format!("{other:?} is another namespace; only targets in {own:?} are scaled");
            found.add(SpecProblem::InvalidSpec, "spec.scaleTargetRef.namespace", why);
        }
        let selector = self.spec.sub_target_selector.as_ref();
        let role = selector.map(|selector| Arc::clone(&selector.role_name));
        let names_role = role.as_ref().is_some_and(|role| !role.is_empty());
        if names_role && !target.kind.is_empty() && !target.has_roles() {
            let (path, why) = target.has_no_roles();
            found.add(SpecProblem::InvalidSpec, path, why);
        }
        ScaledObject {
            api_version: Arc::clone(&target.api_version),
            kind: Arc::clone(&target.kind),
            name: Arc::clone(&target.name),
            role,
        }
    }

    fn check_bounds(&self, found: &mut Violations) -> ReplicaBounds {
        let min = self.spec.min_replicas;
        let max = self.spec.max_replicas.unwrap_or(0);
        let mut add = |path, why| found.add(SpecProblem::InvalidBounds, path, why);
        if let Some(min) = min.filter(|min| *min < 0) {
            let why = format!("{min} must not be negative; write at least 0");
            add("spec.minReplicas", why);
        }
        if self.spec.max_replicas.is_none() {
            add("spec.maxReplicas", "must be set; write at least 1".to_owned());
        } else if max <= 0 {
            let why = format!("{max} must be positive; write at least 1");
            add("spec.maxReplicas", why);
        }
        if let Some(min) = min.filter(|min| max > 0 && *min > max) {
            let why = format!("{min} is greater than maxReplicas {max}; lower it");
            add("spec.minReplicas", why);
            let why = format!("{max} is less than minReplicas {min}; raise it");
            add("spec.maxReplicas", why);
        }
        self.spec.base_bounds()
    }

    fn check_strategy(&self, found: &mut Violations) -> Option<ScalingStrategy> {
        let problem = SpecProblem::InvalidScalingStrategy;
        let strategy = match &*self.spec.scaling_strategy {
            "HPA" => Some(ScalingStrategy::Hpa),
            "KPA" => Some(ScalingStrategy::Kpa),
            "APA" => Some(ScalingStrategy::Apa),
            other => {
                let why = format!("{other:?} is no strategy; write HPA, KPA or APA");
                found.add(problem, "spec.scalingStrategy", why);
                None
            }
        };
        let letters = self.metadata.name.len();
        if strategy == Some(ScalingStrategy::Hpa) && letters > LONGEST_NAME {
            let why = format!(
                "{letters} letters leave no room for -hpa, which the generated object adds; write at most {LONGEST_NAME}, or strategy KPA or APA"
            );
            found.add(problem, "metadata.name", why);
        }
        let selector = self.spec.sub_target_selector.as_ref();
        let has_role = selector.is_some_and(|selector| !selector.role_name.is_empty());
        if strategy == Some(ScalingStrategy::Hpa) && has_role {
            let path = "spec.subTargetSelector.roleName";
            let why =
                "subTargetSelector.roleName does not go with HPA; remove it, or write KPA or APA";
            found.add(problem, path, why);
        }
        strategy
    }

    fn check_windows(&self, found: &mut Violations) -> WindowLengths {
        // One that is refused or was not read is compared with none.
        let mut are_known = !self.skipped.explains("spec.observeWindowSeconds");
        let mut read = |field: &str, seconds: Option<i64>, default| {
            let Some(seconds) = seconds else {
                return default;
            };
            let limit = LONGEST_WINDOW.as_secs();
            let length = u64::try_from(seconds).unwrap_or(0);
            let side = match length {
                0 => "greater than 0",
                more if more > limit => "less than or equal to 3600",
                _ => return Duration::from_secs(length),
            };
            let why = format!("{field} {seconds} must be {side}; write 1 to 3600");
            found.add(SpecProblem::InvalidSpec, &format!("spec.{field}"), why);
            are_known = false;
            default
        };
        let stable = self.spec.observe_window_seconds;
        let stable = read("observeWindowSeconds", stable, STABLE_WINDOW);
        let panic = self.spec.panic_window_seconds;
        let panic = read("panicWindowSeconds", panic, PANIC_WINDOW);
        if are_known && panic > stable {
            let why = format!(
                "panicWindowSeconds {} must be less than or equal to observeWindowSeconds {}; write both",
                panic.as_secs(),
                stable.as_secs()
            );
            found.add(SpecProblem::InvalidSpec, "spec.panicWindowSeconds", why);
        }
        WindowLengths { stable, panic }
    }
}

fn check_sources(
    specs: &[MetricSourceSpec],
    strategy: Option<ScalingStrategy>,
    found: &mut Violations,
) -> Vec<MetricSource> {
    let problem = SpecProblem::MetricsConfigError;
    if specs.is_empty() {
        let why = "at least one metricsSource must be set";
        found.add(problem, "spec.metricsSources", why);
    }
    if specs.len() > MOST_SOURCES {
        let count = specs.len();
        let why = format!("{count} sources are more than are read; write at most {MOST_SOURCES}");
        found.add(problem, "spec.metricsSources", why);
    }
    let mut sources = Vec::new();
    for (index, spec) in specs.iter().take(MOST_SOURCES).enumerate() {
        let mut add = |field: &str, why: String| {
            found.add(problem, &format!("spec.metricsSources[{index}].{field}"), why);
        };
        if spec.target_metric.is_empty() {
            add("targetMetric", format!("metricsSource[{index}] targetMetric must be set"));
        }
        let target = TargetValue::parse(&spec.target_value);
        if let Err(why) = &target {
            add("targetValue", format!("{:?} {why}", spec.target_value));
        }
        let kind = SourceKind::read(spec, &mut add);
        let is_hpa = strategy == Some(ScalingStrategy::Hpa);
        let is_named = kind.as_ref().is_some_and(|kind| kind.is_named(is_hpa));
        if is_named && !is_path_segment(&spec.target_metric) {
            let name = &spec.target_metric;
            let why = format!(
                "{name:?} is no name that a metrics API takes; write one without / and %, and neither . nor .."
            );
            add("targetMetric", why);
        }
        if let (Ok(target), Some(kind)) = (target, kind) {
            sources.push(MetricSource { kind, metric: Arc::clone(&spec.target_metric), target });
        }
    }
    sources
}
