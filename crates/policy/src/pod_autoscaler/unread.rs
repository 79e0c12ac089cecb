//! Annotations and fields that nothing reads, or not as they are written, each with the reason.

use std::sync::Arc;

use super::amounts::TargetValue;
use super::check::MOST_SOURCES;
use super::hpa::rounded;
use super::object::{MetricSourceSpec, PodAutoscalerObject, PodAutoscalerSpec};
use super::schedule::MOST_ENTRIES;
use super::source::SourceKind;
use super::tuning::{DOMAIN, MODE_KEY, WithoutEffect, zero_policy};
use crate::bounds::ZeroPolicy;
use wva_base::text::shortened;

const IDENTITY: &str = "apiVersion, kind and name identify the target";
const NO_SERVICE: &str = "the target is no StormService";
const AT_LEAST_ONE: &str = "an HPA needs at least 1";
const NO_WINDOWS: &str = "only KPA and APA have windows";

impl PodAutoscalerObject {
    pub(super) fn add_unread(&self, faults: &mut Vec<WithoutEffect>) {
        for (key, value) in &self.metadata.annotations {
            let Some(why) = self.unread_annotation(key, value) else {
                continue;
            };
            let unread = WithoutEffect::Annotation {
                key: key.to_string(),
                value: shortened(value),
                why: format!("has no effect: {why}; remove it"),
            };
            unread.add_to(faults);
        }
        let unknown = self.skipped.unknown.iter();
        faults.extend(unknown.map(|path| WithoutEffect::Field {
            path: shortened(path),
            why: "PodAutoscalers have none",
        }));
        let fields = self.unread_fields().into_iter().chain(self.unread_bounds());
        faults.extend(fields.map(|(path, why)| WithoutEffect::Field { path, why }));
        faults.extend(self.faults_of_sources());
    }

    fn is_hpa(&self) -> bool {
        &*self.spec.scaling_strategy == "HPA"
    }

    /// Why an annotation does nothing for the strategy, the target or the bounds, if it does nothing.
    fn unread_annotation(&self, key: &str, value: &str) -> Option<&'static str> {
        match (key.strip_prefix(DOMAIN)?, &*self.spec.scaling_strategy) {
            ("scale-up-tolerance" | "scale-down-tolerance", "HPA") => {
                Some("the HPA controller has a tolerance of its own")
            }
            ("panic-threshold", "HPA" | "APA") => Some("only KPA panics"),
            // What is the default changes nothing.
            ("scale-to-zero", _) if zero_policy(value) == Some(ZeroPolicy::Disabled) => None,
            ("scale-to-zero", "HPA") => Some("only KPA and APA go to zero by load"),
            ("scale-to-zero", _)
                if zero_policy(value) == Some(ZeroPolicy::Enabled) && !self.may_state_zero() =>
            {
                Some("neither minReplicas nor that of a schedule is 0")
            }
            (MODE_KEY, _) if !self.spec.scale_target_ref.has_roles() => Some(NO_SERVICE),
            _ => None,
        }
    }

    /// Whether some minimum is zero, or was not read.
    fn may_state_zero(&self) -> bool {
        let schedules = self.spec.schedules.iter().flatten();
        let of_times = schedules.map(|schedule| schedule.min_replicas);
        let mut minima = of_times.chain([self.spec.min_replicas]);
        let mut fields = ["spec.minReplicas", "spec.schedules"].into_iter();
        minima.any(|min| min == Some(0)) || fields.any(|field| self.skipped.explains(field))
    }

    fn unread_fields(&self) -> Vec<(String, &'static str)> {
        let PodAutoscalerSpec {
            scale_target_ref: target,
            sub_target_selector: selector,
            predictive,
            observe_window_seconds: stable,
            panic_window_seconds: panic,
            ..
        } = &self.spec;
        let has_text = |text: &Option<Arc<str>>| text.as_ref().is_some_and(|text| !text.is_empty());
        // One with a role is refused.
        let is_vain = !target.kind.is_empty() && !target.has_roles();
        let is_nameless = selector.as_ref().is_some_and(|one| one.role_name.is_empty());
        let is_hpa = self.is_hpa();
        let fields = [
            ("scaleTargetRef.fieldPath", IDENTITY, has_text(&target.field_path)),
            ("scaleTargetRef.resourceVersion", IDENTITY, has_text(&target.resource_version)),
            ("scaleTargetRef.uid", IDENTITY, has_text(&target.uid)),
            ("subTargetSelector", NO_SERVICE, is_vain && is_nameless),
            ("observeWindowSeconds", NO_WINDOWS, is_hpa && stable.is_some()),
            ("panicWindowSeconds", NO_WINDOWS, is_hpa && panic.is_some()),
            ("predictive", "only KPA and APA forecast", is_hpa && predictive.is_some()),
        ];
        let unread = fields.into_iter().filter(|(.., is_unread)| *is_unread);
        unread.map(|(field, why, _)| (format!("spec.{field}"), why)).collect()
    }

    /// Minima of zero that the generated object cannot have.
    fn unread_bounds(&self) -> impl Iterator<Item = (String, &'static str)> {
        let schedules = self.spec.schedules.iter().flatten().take(MOST_ENTRIES);
        let of_times = schedules.enumerate().map(|(index, schedule)| {
            (format!("spec.schedules[{index}].minReplicas"), schedule.min_replicas)
        });
        let base = ("spec.minReplicas".to_owned(), self.spec.min_replicas);
        let is_hpa = self.is_hpa();
        let minima = [base].into_iter().chain(of_times);
        let zero = minima.filter(move |(_, min)| is_hpa && *min == Some(0));
        zero.map(|(path, _)| (path, AT_LEAST_ONE))
    }

    /// Of each source what nothing reads, and a target value that the generated object does not keep.
    fn faults_of_sources(&self) -> impl Iterator<Item = WithoutEffect> {
        let is_hpa = self.is_hpa();
        let sources = self.spec.metrics_sources.iter().take(MOST_SOURCES);
        sources.enumerate().flat_map(move |(index, source)| {
            let path = move |field: &str| format!("spec.metricsSources[{index}].{field}");
            let fields = source.fields_without_effect(is_hpa);
            let fields =
                fields.map(move |(field, why)| WithoutEffect::Field { path: path(field), why });
            let rounded = rounding(source).filter(|_| is_hpa);
            fields
                .chain(rounded.map(|why| WithoutEffect::Rounded { path: path("targetValue"), why }))
        })
    }
}

fn rounding(source: &MetricSourceSpec) -> Option<String> {
    let written = &source.target_value;
    let kind = SourceKind::read(source, &mut |_: &str, _: String| {})?;
    let (kept, grain) = rounded(&kind, TargetValue::parse(written).ok()?)?;
    let written = shortened(written);
    Some(format!("{written:?} is rounded: the HPA works with {kept}, as it compares {grain}"))
}
