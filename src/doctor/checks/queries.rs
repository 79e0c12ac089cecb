//! What scalers ask Prometheus, by their text and by its answer.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::clocks::is_ours;
use super::prometheus::counted;
use super::scalers::scalers;
use super::variants::may_be_handled;
use crate::api::scaled_object::Trigger;
use crate::cluster::project::scaler::matched;
use crate::doctor::facts::{Facts, LiveKind, Reading};
use crate::doctor::finding::{Finding, FindingCode};
use crate::doctor::object::{LiveObject, text};
use crate::doctor::probe::PrometheusProbe;
use crate::policy::series::DESIRED;

/// Labels of a count that may have the namespace of its variant.
const NAMESPACES: [&str; 2] = ["exported_namespace", "namespace"];
/// Names of metrics that are shares of at most 1.
const SHARES: [&str; 4] = [
    "cache_usage_perc",
    "token_usage",
    "saturation",
    "utilization",
];

checks! {
    Scalers "queries bring one count" texts: Kind(ScaledObject);
    Scalers "shares can ask for replicas" shares: Kind(ScaledObject) Kind(HorizontalPodAutoscaler);
    Scalers "scalers select the instance of their controller" instances:
        Cluster Controllers Kind(ScaledObject) Kind(HorizontalPodAutoscaler);
    Scalers "Prometheus answers the queries of scalers" answers:
        Cluster Kind(ScaledObject) Kind(HorizontalPodAutoscaler) Kind(VariantAutoscaling) Triggers;
}

/// The triggers of a ScaledObject that ask Prometheus.
fn triggers(object: &LiveObject) -> Vec<Trigger> {
    let triggers = object.list("/spec/triggers").iter();
    let read = triggers.filter_map(|value| serde_json::from_value::<Trigger>(value.clone()).ok());
    read.filter(|trigger| trigger.kind == "prometheus" && trigger.metadata.contains_key("query"))
        .collect()
}

/// The queries of our counts, each with its scaler.
pub(in crate::doctor) fn count_queries(facts: &Facts) -> Vec<(&LiveObject, String)> {
    let mut found = Vec::new();
    for object in facts.all(LiveKind::ScaledObject) {
        let queries = triggers(object).into_iter();
        let queries = queries.filter_map(|mut trigger| trigger.metadata.remove("query"));
        let ours = queries.filter(|query| query.contains(DESIRED));
        found.extend(ours.map(|query| (object, query)));
    }
    if has_foreign_adapter(facts) {
        let autoscalers = facts.all(LiveKind::HorizontalPodAutoscaler).iter();
        for object in autoscalers.filter(|object| !is_scaling(object)) {
            let metrics = object.list("/spec/metrics").iter();
            let queries = metrics.filter_map(adapted);
            found.extend(queries.map(|query| (object, query)));
        }
    }
    found
}

/// Whether a HorizontalPodAutoscaler reports that it has its metrics. It does not show which query brought them.
fn is_scaling(object: &LiveObject) -> bool {
    let mut conditions = object.list("/status/conditions").iter();
    conditions.any(|one| text(one, "/type") == "ScalingActive" && text(one, "/status") == "True")
}

/// Whether external metrics come from Prometheus, as far as is known: the controller itself serves both labels.
fn has_foreign_adapter(facts: &Facts) -> bool {
    match facts.objects.get(&LiveKind::APIService) {
        Some(Reading::Known(services)) => !services.iter().any(is_ours),
        Some(Reading::Absent) => true,
        Some(Reading::Failed(_) | Reading::NotAsked) | None => false,
    }
}

/// The query by which an adapter answers a metric of our counts, by the rule of the samples. To a selector without a
/// namespace the adapter adds one, under a label that only its own rule knows.
fn adapted(metric: &Value) -> Option<String> {
    if text(metric, "/external/metric/name") != DESIRED {
        return None;
    }
    let selector = metric.pointer("/external/metric/selector")?.clone();
    let selector: LabelSelector = serde_json::from_value(selector).ok()?;
    let labels = selector.match_labels.iter().flatten();
    let mut matchers: Vec<String> = labels
        .map(|(label, value)| format!("{label}=\"{value}\""))
        .collect();
    for one in selector.match_expressions.iter().flatten() {
        let (label, values) = (&one.key, one.values.as_deref().unwrap_or_default());
        let values = values.join("|");
        matchers.push(match one.operator.as_str() {
            "In" => format!("{label}=~\"{values}\""),
            "NotIn" => format!("{label}!~\"{values}\""),
            "Exists" => format!("{label}!=\"\""),
            _ => format!("{label}=\"\""),
        });
    }
    let matchers = matchers.join(",");
    let has_namespace = |label: &str| matched(&matchers, label).is_some();
    NAMESPACES
        .into_iter()
        .any(has_namespace)
        .then(|| format!("max by (variant_name, exported_namespace) ({DESIRED}{{{matchers}}})"))
}

/// A query without spaces, in small letters.
fn packed(query: &str) -> String {
    let letters = query.chars().filter(|letter| !letter.is_whitespace());
    letters.collect::<String>().to_lowercase()
}

/// The functions around a place of a query.
fn around(packed: &str, place: usize) -> impl Iterator<Item = &str> {
    let mut closed = 0_usize;
    let before = packed.get(..place).unwrap_or_default();
    let signs = before.rmatch_indices(['(', ')']);
    let opened = signs.filter_map(move |(at, sign)| {
        let is_around = sign == "(" && closed == 0;
        closed = match sign {
            ")" => closed + 1,
            _ => closed.saturating_sub(1),
        };
        is_around.then_some(at)
    });
    opened.filter_map(move |at| Some(function(before.get(..at)?)))
}

/// The name at the end of a text; of `sum by (a)` that of the aggregation.
fn function(text: &str) -> &str {
    let name = text.strip_suffix(')').and_then(|text| {
        let (text, _) = text.rsplit_once('(')?;
        text.strip_suffix("by")
            .or_else(|| text.strip_suffix("without"))
    });
    let name = name.unwrap_or(text);
    let end = name.rfind(|letter: char| !letter.is_alphanumeric() && letter != '_');
    name.get(end.map_or(0, |end| end + 1)..).unwrap_or_default()
}

/// Whether a query adds counts up, over series or over time. Words before the function have no space.
fn adds_up(packed: &str) -> bool {
    let mut places = packed.match_indices(DESIRED);
    places.any(|(place, _)| {
        around(packed, place).any(|name| {
            let name = name.trim_end_matches("_over_time");
            name.ends_with("sum") || name.ends_with("count")
        })
    })
}

/// What arithmetic makes of a count.
enum Arithmetic {
    /// It adds another series.
    Sum,
    /// It has a number for its other side.
    Number,
}

/// The number that a text is; none for a name.
fn number(word: Option<&str>) -> Option<f64> {
    word?.parse().ok()
}

fn is_outside_of_words(letter: char) -> bool {
    !letter.is_alphanumeric() && !"_.:".contains(letter)
}

fn last_word(text: &str) -> &str {
    text.rsplit(is_outside_of_words).next().unwrap_or_default()
}

/// A query without quoted texts, selectors, ranges, and signs of exponents: all of them may have signs of arithmetic.
fn bare(packed: &str) -> String {
    let mut bare = String::new();
    let (mut depth, mut is_escaped) = (0_usize, false);
    let mut quote: Option<char> = None;
    for letter in packed.chars() {
        if let Some(end) = quote {
            quote = quote.filter(|_| letter != end || is_escaped);
            is_escaped = letter == '\\' && end != '`' && !is_escaped;
            continue;
        }
        let is_exponent =
            "+-".contains(letter) && number(last_word(&bare).strip_suffix('e')).is_some();
        match letter {
            '"' | '\'' | '`' => quote = Some(letter),
            '{' | '[' => depth += 1,
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                bare.push(letter);
            }
            _ if depth == 0 && !is_exponent => bare.push(letter),
            _ => {}
        }
    }
    bare
}

/// The arithmetic of a query that changes its count. A product with another series may be a join, a difference a guard.
fn arithmetic(packed: &str) -> Option<Arithmetic> {
    let bare = bare(packed);
    let mut signs = bare.match_indices(['+', '-', '*', '/', '%', '^']);
    signs.find_map(|(at, sign)| {
        let (text, rest) = (bare.get(..at)?, bare.get(at + 1..)?);
        let word = last_word(text);
        let is_unary = match word {
            "" => !text.ends_with([')', '}', ']']),
            _ => word.ends_with("bool") || word.ends_with("offset"),
        };
        if is_unary {
            return None;
        }
        // The number behind may have a sign of its own.
        let mut ends = rest.char_indices().skip(1);
        let end = ends.find(|(_, letter)| is_outside_of_words(*letter));
        let after = rest.get(..end.map_or(rest.len(), |(at, _)| at));
        let neutral = if "+-".contains(sign) { 0.0 } else { 1.0 };
        let is_neutral = |number: f64| (number - neutral).abs() < f64::EPSILON;
        match (sign, number(Some(word)), number(after)) {
            (_, Some(_), Some(_)) => None,
            (_, _, Some(side)) | ("+" | "*", Some(side), _) if is_neutral(side) => None,
            (_, None, None) => (sign == "+").then_some(Arithmetic::Sum),
            _ => Some(Arithmetic::Number),
        }
    })
}

/// Whether a query has a number for what is not there. With other labels than the count that is a second series.
fn invents_count(packed: &str) -> bool {
    let mut fallbacks = packed.match_indices("or");
    fallbacks.any(|(at, or)| {
        let rest = packed.get(at + or.len()..).unwrap_or_default();
        let mut matching = ["on(", "ignoring("].iter();
        let matching = matching.find_map(|word| rest.strip_prefix(word)?.split_once(')'));
        let rest = matching.map_or(rest, |(_, rest)| rest);
        let rest = rest.trim_start_matches('(');
        let number = rest.strip_prefix("vector(");
        let number = number.and_then(|rest| rest.split_once(')')?.0.parse::<f64>().ok());
        let is_absent = rest.starts_with("absent") && (rest.contains("*0") || rest.contains("-1"));
        number.is_some() || is_absent || rest.starts_with("0*absent")
    })
}

/// What is wrong with the texts of queries.
pub(super) fn texts(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    for (object, query) in count_queries(facts) {
        let packed = packed(&query);
        let arithmetic = arithmetic(&packed).filter(|_| !invents_count(&packed));
        if adds_up(&packed) || matches!(arithmetic, Some(Arithmetic::Sum)) {
            let cause = format!("it asks {query}; take max by (variant_name, exported_namespace)");
            found.push(FindingCode::QueryAddsUp.at(object.title(), cause));
        }
        if matches!(arithmetic, Some(Arithmetic::Number)) {
            let cause = format!("it asks {query}; leave the number out, which changes the count");
            found.push(FindingCode::WrongTarget.at(object.title(), cause));
        }
        if invents_count(&packed) {
            let cause = format!(
                "it asks {query}; without the fallback a lost series is an error, at which it keeps its scale"
            );
            found.push(FindingCode::QueryInventsZero.at(object.title(), cause));
        }
    }
    found
}

fn quantity(text: &str) -> Option<f64> {
    match text.strip_suffix('m') {
        Some(thousandths) => Some(thousandths.parse::<f64>().ok()? / 1_000.0),
        None => text.parse().ok(),
    }
}

/// Whether a query is a share: a metric of one, or its highest, lowest or mean value, and nothing behind.
fn is_share(metric: &str) -> bool {
    let packed = packed(metric);
    let inner = ["max", "min", "avg"].iter().find_map(|name| {
        let rest = packed.strip_prefix(name)?;
        let by = (rest.strip_prefix("by")).or_else(|| rest.strip_prefix("without"));
        let rest = by.map_or(Some(rest), |rest| Some(rest.split_once(')')?.1))?;
        let (inner, rest) = rest.strip_prefix('(')?.rsplit_once(')')?;
        rest.is_empty().then_some(inner)
    });
    let selector = inner.unwrap_or(&packed);
    let (name, labels) = selector.split_once('{').unwrap_or((selector, "}"));
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_:".contains(letter);
    let is_plain = name.chars().all(is_name) && labels.find('}') == Some(labels.len() - 1);
    is_plain && SHARES.iter().any(|share| name.ends_with(share))
}

/// Whether a target divides what is at most 1 by the replicas, for an answer of at most a few.
fn is_hopeless(metric: &str, kind: &str, target: &str) -> bool {
    let is_below_one = quantity(target).is_some_and(|target| target > 0.0 && target <= 1.0);
    kind == "AverageValue" && is_below_one && is_share(metric)
}

fn hopeless(object: &LiveObject, metric: &str, target: &str) -> Finding {
    let cause = format!(
        "it reads {metric} with AverageValue {target}: one number of at most 1, divided by {target}, whatever the load"
    );
    FindingCode::SaturationCannotAsk.at(object.title(), cause)
}

fn shares(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    for object in facts.all(LiveKind::ScaledObject) {
        for trigger in triggers(object) {
            let field = |name: &str| trigger.metadata.get(name).map_or("", String::as_str);
            let kind = trigger.metric_type.as_deref().unwrap_or("AverageValue");
            let (query, threshold) = (field("query"), field("threshold"));
            if is_hopeless(query, kind, threshold) {
                found.push(hopeless(object, query, threshold));
            }
        }
    }
    for object in facts.all(LiveKind::HorizontalPodAutoscaler) {
        for metric in object.list("/spec/metrics") {
            let name = text(metric, "/external/metric/name");
            let target = text(metric, "/external/target/averageValue");
            let is_made = object.list("/metadata/ownerReferences").iter();
            let is_made = is_made
                .map(|owner| text(owner, "/kind"))
                .any(|kind| kind == "ScaledObject");
            if !is_made && is_hopeless(name, text(metric, "/external/target/type"), target) {
                found.push(hopeless(object, name, target));
            }
        }
    }
    found
}

fn instances(facts: &Facts) -> Vec<Finding> {
    let instances: BTreeSet<&str> = facts
        .controllers()
        .iter()
        .filter_map(|one| one.instance())
        .collect();
    if instances.len() < 2 {
        return Vec::new();
    }
    let all = scalers(facts);
    let reads = |object: &LiveObject| object.0.to_string().contains(DESIRED);
    let selects = |object: &LiveObject| {
        let spec = object.0.get("spec").map(ToString::to_string);
        spec.is_some_and(|spec| spec.contains("controller_instance"))
    };
    let found = all.iter().filter(|one| {
        one.kept.scaler.made_for.is_none() && reads(one.object) && !selects(one.object)
    });
    let found = found.map(|one| {
        let names: Vec<&str> = instances.iter().copied().collect();
        let cause = format!(
            "controllers {} publish, and it selects none of them",
            names.join(" and ")
        );
        FindingCode::InstanceNotSelected.at(one.object.title(), cause)
    });
    found.collect()
}

/// The variant that a scaler scales, if it has a decided count.
fn decided<'a>(facts: &'a Facts, object: &LiveObject) -> Option<&'a LiveObject> {
    let target = object.text("/spec/scaleTargetRef/name");
    let mut own = facts.every_variant().filter(|variant| {
        variant.namespace() == object.namespace()
            && variant.text("/spec/scaleTargetRef/name") == target
    });
    own.find(|variant| {
        variant.has("/status/desiredOptimizedAlloc/numReplicas") && may_be_handled(facts, variant)
    })
}

/// The label that a query should select a variant's namespace by, where it selects another one.
fn namespace_label(facts: &Facts, variant: &LiveObject, query: &str) -> Option<&'static str> {
    let [exported, plain] = NAMESPACES;
    let key = (variant.namespace(), variant.name());
    let mut counts = facts.series(PrometheusProbe::Counts).iter();
    let series = counts.find(|series| counted(series) == key)?;
    let label = if series.label(exported).is_empty() {
        plain
    } else {
        exported
    };
    let other = if label == plain { exported } else { plain };
    let selects = |label: &str| matched(query, label).is_some();
    (selects(other) && !selects(label)).then_some(label)
}

/// What is wrong with the answers to queries.
pub(super) fn answers(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    // Where no count is scraped at all, that is the finding.
    let has_counts = !facts.series(PrometheusProbe::Counts).is_empty();
    let Some(answers) = facts.triggers.known() else {
        return found;
    };
    for (object, query) in count_queries(facts) {
        match answers.get(&query) {
            Some(Ok(series)) => match series.len() {
                0 => {
                    let variant = decided(facts, object).filter(|_| has_counts);
                    found.extend(variant.map(|variant| {
                        let label = namespace_label(facts, variant, &query);
                        let label = label.map(|label| format!("; the label is {label}"));
                        let cause = format!("it asks {query}{}", label.unwrap_or_default());
                        FindingCode::QueryFindsNothing.at(object.title(), cause)
                    }));
                }
                1 => {}
                // That is a finding of its own.
                _ if invents_count(&packed(&query)) => {}
                several => {
                    let cause = format!("it asks {query}, which has {several} series");
                    found.push(FindingCode::QueryFindsSeveral.at(object.title(), cause));
                }
            },
            Some(Err(why)) => {
                let cause = format!("it asks {query}: {why}");
                found.push(FindingCode::QueryFails.at(object.title(), cause));
            }
            None => {}
        }
    }
    found
}
