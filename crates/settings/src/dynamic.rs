//! Settings that may change while the process runs, from their texts.

use std::time::Duration;

use super::lints::ineffective_settings;
use super::problem::{Diagnostics, FallbackApplied, InvalidValue, Problem, SettingError};
use super::saturation::BandUse;
use super::sources::Sources;
use super::statics::StaticSettings;
use super::values::{Resolved, SettingValues};
use super::{queueing_model, saturation, scale_to_zero, schema, service_class};
use wva_policy::params::{CacheSettings, DynamicSettings, TransitionLimits};
use wva_policy::reuse::Reuse;
use wva_policy::signal::FreshnessBands;

/// Types the live values and reads the policy ConfigMaps. An entry that is refused keeps its
/// content of `previous`.
pub(super) fn build(
    values: &SettingValues,
    statics: &StaticSettings,
    sources: &Sources,
    previous: Option<&DynamicSettings>,
    diagnostics: &mut Diagnostics,
) -> DynamicSettings {
    let freshness = freshness(values, previous.map(|before| before.freshness), diagnostics);
    let queueing_model = queueing_model::read(
        &sources.queueing_model,
        previous.map(|settings| &settings.queueing_model),
        diagnostics,
    );
    let band = if statics.proactive_model || queueing_model.selected() {
        BandUse::Everywhere
    } else {
        BandUse::Tokens
    };
    let settings = DynamicSettings {
        interval: values.duration(&schema::GLOBAL_OPT_INTERVAL),
        freshness,
        cache: cache(values),
        transition_limits: TransitionLimits {
            pending: values.duration(&schema::PENDING_TIME_LIMIT),
            unapplied: values.duration(&schema::UNAPPLIED_TIME_LIMIT),
            silent: values.duration(&schema::SILENT_TIME_LIMIT),
        },
        start_time: values.duration(&schema::REPLICA_START_TIME),
        limited_mode: statics.limited_mode,
        proactive_model: statics.proactive_model,
        node_selector: statics.node_selector.clone(),
        scale_from_zero_concurrency: usize::try_from(
            values.count(&schema::SCALE_FROM_ZERO_CONCURRENCY),
        )
        .unwrap_or(usize::MAX),
        saturation: saturation::read(
            &sources.saturation,
            band,
            previous.map(|settings| &settings.saturation),
            diagnostics,
        ),
        scale_to_zero: scale_to_zero::read(
            &sources.scale_to_zero,
            statics.scale_to_zero_by_default,
            previous.map(|settings| &settings.scale_to_zero),
            diagnostics,
        ),
        queueing_model,
        service_classes: service_class::read(
            sources.service_classes.as_ref(),
            previous.map(|settings| &settings.service_classes),
            diagnostics,
        ),
    };
    diagnostics.notices.extend(ineffective_settings(&settings));
    settings
}

/// Metrics are never collected more often.
const SHORTEST_FETCH: Duration = Duration::from_secs(1);

fn cache(values: &SettingValues) -> CacheSettings {
    let fetch_interval = values.duration(&schema::CACHE_FETCH_INTERVAL);
    let max_samples = values.count(&schema::CACHE_MAX_SIZE);
    CacheSettings {
        reuse: Reuse::within(values.duration(&schema::CACHE_TTL)),
        cleanup_interval: values.duration(&schema::CACHE_CLEANUP_INTERVAL),
        fetch_interval: (!fetch_interval.is_zero()).then_some(fetch_interval.max(SHORTEST_FETCH)),
        max_samples: (max_samples > 0).then_some(max_samples),
    }
}

/// The ages that samples are judged by. Out of order they would leave a band empty: they are refused
/// together, and those in force before stay.
fn freshness(
    values: &SettingValues,
    previous: Option<FreshnessBands>,
    diagnostics: &mut Diagnostics,
) -> FreshnessBands {
    let ordered = [
        &schema::CACHE_FRESH_THRESHOLD,
        &schema::CACHE_STALE_THRESHOLD,
        &schema::CACHE_UNAVAILABLE_THRESHOLD,
    ];
    let [fresh, stale, unavailable] = ordered.map(|spec| values.duration(spec));
    let mut is_ordered = true;
    for (lower, upper) in ordered.iter().zip(ordered.iter().skip(1)) {
        if values.duration(lower) <= values.duration(upper) {
            continue;
        }
        is_ordered = false;
        let Resolved { value, origin } = values.get(lower);
        let limit = values.get(upper).value;
        let error = SettingError {
            key: lower.name,
            value: value.to_string(),
            origin,
            refusal: InvalidValue::new(
                format!("it is above {}, which is {limit}", upper.name),
                format!("write at most {limit}, or raise {}", upper.name),
            ),
        };
        let instead = match previous {
            Some(_) => FallbackApplied::Previous,
            None => FallbackApplied::Below,
        };
        diagnostics.problems.push(Problem::Setting { error, instead });
    }
    if is_ordered {
        FreshnessBands { fresh, stale, unavailable }
    } else {
        previous.unwrap_or_default()
    }
}
