//! Prometheus: whether it answers, and whether it has the counts.

use std::collections::BTreeSet;

use super::clocks::is_ours;
use super::controller::lease;
use super::scalers::scalers;
use super::variants::is_handled;
use crate::doctor::facts::{Facts, LiveKind, Reading, SeriesFact};
use crate::doctor::finding::{Finding, FindingCode};
use crate::doctor::object::{LiveObject, ObjectName};
use crate::doctor::probe::PrometheusProbe;
use wva_base::text;

/// The longest interval of a scrape with which a rate over a minute has two samples.
const LONGEST_INTERVAL: f64 = 30.0;
/// Samples come that much later than their interval.
const JITTER: f64 = 10.0;

checks! {
    Prometheus "Prometheus answers" answers: Prometheus;
    Prometheus "Prometheus has targets" targets: Series(Targets);
    Prometheus "counts of the controller are scraped" counts:
        Kind(VariantAutoscaling) Kind(HorizontalPodAutoscaler) Kind(ScaledObject) Kind(APIService) Controllers
        Series(Targets) Series(Counts);
    Prometheus "engines are scraped often enough" intervals: Series(Ages);
    Prometheus "engines are scraped once" doubles: Series(Doubles);
}

/// The server, named by its address.
pub(super) fn server(facts: &Facts) -> ObjectName {
    ObjectName::new("Prometheus", "", address(facts))
}

/// The address that was asked, else where the settings say that it is.
fn address(facts: &Facts) -> String {
    if let Some(asked) = &facts.prometheus_address {
        return asked.clone();
    }
    let first = facts.generations().next();
    first.map_or_else(String::new, |one| one.statics.prometheus.base_url.to_string())
}

pub(in crate::doctor) fn prometheus_code(error: &str) -> FindingCode {
    if error.contains("does not answer with TLS") {
        FindingCode::PrometheusPlain
    } else {
        FindingCode::PrometheusUnusable
    }
}

fn answers(facts: &Facts) -> Vec<Finding> {
    let Some(Err(why)) = facts.prometheus.known() else {
        return Vec::new();
    };
    let address = address(facts);
    if prometheus_code(why) == FindingCode::PrometheusPlain {
        let plain = address.replacen("https://", "http://", 1);
        let mut object = server(facts);
        if let Some(one) = facts.controllers().first() {
            // That of the release, for the remedy.
            object.namespace = one.key.namespace.to_string();
        }
        return vec![FindingCode::PrometheusPlain.at(object, why).with(plain)];
    }
    vec![FindingCode::PrometheusUnusable.at(server(facts), why)]
}

fn targets(facts: &Facts) -> Vec<Finding> {
    if facts.series(PrometheusProbe::Targets).is_empty() {
        let cause = format!("{} answers, and has no series `up`", address(facts));
        return vec![FindingCode::PrometheusEmpty.at(server(facts), cause)];
    }
    Vec::new()
}

/// The variant that a series of the controller is about.
pub(super) fn counted(series: &SeriesFact) -> (&str, &str) {
    let namespace = match series.label("exported_namespace") {
        "" => series.label("namespace"),
        exported => exported,
    };
    (namespace, series.label("variant_name"))
}

/// Whether a scaler reads the counts from Prometheus, and not from the controller.
fn is_read(facts: &Facts) -> bool {
    let is_served = facts.all(LiveKind::APIService).iter().any(is_ours);
    scalers(facts).iter().any(|one| {
        let is_of_keda = one.object.kind() == LiveKind::ScaledObject.as_str();
        one.published().is_some() && (is_of_keda || !is_served)
    })
}

/// Whether the decided count of a variant is read from Prometheus, which has none.
pub(super) fn lacks_count(facts: &Facts, variant: &LiveObject) -> bool {
    let answer = facts.series.get(&PrometheusProbe::Counts);
    let key = (variant.namespace(), variant.name());
    variant.has("/status/desiredOptimizedAlloc/numReplicas")
        && is_read(facts)
        && answer
            .and_then(Reading::known)
            .is_some_and(|series| series.iter().all(|one| counted(one) != key))
}

fn counts(facts: &Facts) -> Vec<Finding> {
    let is_empty = facts.series(PrometheusProbe::Targets).is_empty();
    let is_led = facts.all(LiveKind::Lease).is_empty() || lease(facts).is_empty();
    let is_deciding = is_led && facts.controllers().iter().any(|one| one.ready > 0);
    // Each of these is a finding of its own.
    if is_empty || !is_deciding {
        return Vec::new();
    }
    let series = facts.series(PrometheusProbe::Counts);
    let known: BTreeSet<(&str, &str)> = series.iter().map(counted).collect();
    let decided = facts.variants().filter(|object| {
        object.has("/status/desiredOptimizedAlloc/numReplicas") && is_handled(facts, object)
    });
    let missing: Vec<_> =
        decided.filter(|object| !known.contains(&(object.namespace(), object.name()))).collect();
    if series.is_empty() {
        let Some(one) = missing.first().filter(|_| is_read(facts)) else {
            return Vec::new();
        };
        let cause = format!(
            "{} with a decided count, like {}/{}, and Prometheus has no series wva_desired_replicas",
            text::counted(missing.len(), "variant"),
            one.namespace(),
            one.name()
        );
        return vec![FindingCode::OwnSeriesMissing.at(server(facts), cause)];
    }
    let found = missing.iter().map(|object| {
        let cause =
            "its count is decided, and no series wva_desired_replicas has its name and namespace";
        FindingCode::VariantSeriesMissing.at(object.title(), cause)
    });
    found.collect()
}

fn by_namespace(
    series: &[SeriesFact],
    code: FindingCode,
    is_wrong: impl Fn(&SeriesFact) -> bool,
    cause: impl Fn(&SeriesFact, usize) -> String,
) -> Vec<Finding> {
    let wrong: Vec<&SeriesFact> = series.iter().filter(|one| is_wrong(one)).collect();
    let namespaces: BTreeSet<&str> = wrong.iter().map(|one| one.label("namespace")).collect();
    let found = namespaces.into_iter().filter_map(|namespace| {
        let own = || wrong.iter().filter(|one| one.label("namespace") == namespace);
        let first = own().next()?;
        let object = ObjectName::new("Namespace", namespace, namespace);
        Some(code.at(object, cause(first, own().count())))
    });
    found.collect()
}

fn intervals(facts: &Facts) -> Vec<Finding> {
    by_namespace(
        facts.series(PrometheusProbe::Ages),
        FindingCode::SlowScrape,
        |one| one.value > LONGEST_INTERVAL + JITTER,
        |one, pods| {
            format!(
                "{}, like {}: samples up to {:.0} s old; scrape at least every {LONGEST_INTERVAL:.0} s",
                text::counted(pods, "pod"),
                one.pod(),
                one.value
            )
        },
    )
}

fn doubles(facts: &Facts) -> Vec<Finding> {
    by_namespace(
        facts.series(PrometheusProbe::Doubles),
        FindingCode::DoubleScrape,
        |one| one.value > 1.0 && !one.pod().is_empty(),
        |one, series| {
            format!(
                "{series} series, like {} of {}: there {:.0} times",
                one.label("__name__"),
                one.pod(),
                one.value
            )
        },
    )
}
