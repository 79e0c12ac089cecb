//! What scalers ask Prometheus, by their text and by its answer.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::clocks::is_ours;
use super::prometheus::counted;
use super::scalers::scalers;
use super::variants::may_be_handled;
use crate::api::scaled_object::Trigger;
use crate::cluster::project::keda::{is_count, matched, selects};
use crate::cluster::project::promql::{
    NAME, QueryNode, is_changing, is_late, matchers, mean, parse,
};
use crate::cluster::project::scaler::KEDA_MAXIMUM;
use crate::doctor::facts::{Facts, LiveKind, Reading};
use crate::doctor::finding::{Finding, FindingCode};
use crate::doctor::object::{LiveObject, ObjectName, condition, text};
use crate::doctor::probe::PrometheusProbe;
use crate::doctor::report::CheckOutcome;
use crate::policy::series::DESIRED;

/// Labels of a count that may have the namespace of its variant.
const NAMESPACES: [&str; 2] = ["exported_namespace", "namespace"];
/// Aggregations that make one series of a group.
const AGGREGATIONS: [&str; 6] = ["sum", "count", "max", "min", "avg", "quantile"];
/// Names of metrics that are shares of at most 1.
const SHARES: [&str; 4] = ["cache_usage_perc", "token_usage", "saturation", "utilization"];
/// What makes no more than a share of a share.
const SHARE_KEEPING: &str = "max min avg quantile topk bottomk max_over_time min_over_time avg_over_time \
    last_over_time quantile_over_time round floor ceil abs clamp_max scalar vector sort sort_desc label_replace \
    label_join";

checks! {
    Scalers "queries bring one count" texts: Kind(ScaledObject);
    Scalers "shares can ask for replicas" shares: Kind(ScaledObject) Kind(HorizontalPodAutoscaler);
    Scalers "scalers select the instance of their controller" instances:
        Cluster Installed Kind(ScaledObject) Kind(HorizontalPodAutoscaler);
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

/// The queries of our counts that a ScaledObject asks.
pub(super) fn asked(object: &LiveObject) -> impl Iterator<Item = String> {
    let queries = triggers(object).into_iter();
    let queries = queries.filter_map(|mut trigger| trigger.metadata.remove("query"));
    queries.filter(|query| query.contains(DESIRED))
}

/// The queries of our counts, each with its scaler.
pub(in crate::doctor) fn count_queries(facts: &Facts) -> Vec<(&LiveObject, String)> {
    let mut found = Vec::new();
    for object in facts.all(LiveKind::ScaledObject) {
        found.extend(asked(object).map(|query| (object, query)));
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
    condition(&object.0, "ScalingActive").is_some_and(|one| text(one, "/status") == "True")
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
    let mut matchers: Vec<String> =
        labels.map(|(label, value)| format!("{label}=\"{value}\"")).collect();
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
    let query = format!("max by (variant_name, exported_namespace) ({DESIRED}{{{matchers}}})");
    let mut labels = NAMESPACES.into_iter();
    let has_namespace = labels.any(|label| matched(&query, label).is_some());
    has_namespace.then_some(query)
}

/// The count in a part of a query.
#[derive(Debug, Clone, Copy)]
struct TracedCount<'a> {
    selector: &'a str,
    /// Whether the part has one series of it, for labels that the selector wants.
    is_single: bool,
}

/// Follows the count of a query from its selector outwards, and collects the faults on its way.
fn trace<'a>(
    node: &QueryNode<'a>,
    reach: (f64, f64),
    faults: &mut BTreeSet<FindingCode>,
) -> Option<TracedCount<'a>> {
    match node {
        QueryNode::Number(_) | QueryNode::Quoted => None,
        &QueryNode::Series(selector) => {
            let is_single = false;
            is_count(selector).then_some(TracedCount { selector, is_single })
        }
        QueryNode::Range(of, _) => trace(of, reach, faults),
        QueryNode::Late(of) => {
            let count = trace(of, reach, faults)?;
            faults.insert(FindingCode::SlowScaleUp);
            Some(count)
        }
        QueryNode::Call { name, .. } if name.starts_with("absent") => None,
        QueryNode::Call { name, kept, inner } => {
            called(name, kept.as_deref(), inner, reach, faults)
        }
        QueryNode::Binary { sign, is_bool, sides } => joined(sign, *is_bool, sides, reach, faults),
    }
}

/// The count that a function or an aggregation makes.
fn called<'a>(
    name: &str,
    kept: Option<&[&str]>,
    inner: &[QueryNode<'a>],
    reach: (f64, f64),
    faults: &mut BTreeSet<FindingCode>,
) -> Option<TracedCount<'a>> {
    let count = inner.iter().find_map(|one| trace(one, reach, faults))?;
    match name {
        "sum" if count.is_single => {}
        "sum" | "sum_over_time" | "count" | "count_over_time" | "count_values" => {
            faults.insert(FindingCode::QueryAddsUp);
        }
        _ if is_late(name, inner) => {
            faults.insert(FindingCode::SlowScaleUp);
        }
        _ if is_changing(name, inner, reach) => {
            faults.insert(FindingCode::WrongTarget);
        }
        _ => {}
    }
    let is_wanted = |label: &&str| matched(count.selector, label).is_some();
    let is_one_group = kept.is_some_and(|kept| kept.iter().all(is_wanted));
    let most = inner.first().and_then(QueryNode::number);
    let is_first =
        matches!(name, "topk" | "bottomk" | "limitk") && most.is_some_and(|most| most < 2.0);
    let is_grouped = (is_first || AGGREGATIONS.contains(&name)) && is_one_group;
    Some(TracedCount { is_single: count.is_single || is_grouped, ..count })
}

/// The count of two sides, at least one of which has it.
fn joined<'a>(
    sign: &str,
    is_bool: bool,
    [left, right]: &[QueryNode<'a>; 2],
    reach: (f64, f64),
    faults: &mut BTreeSet<FindingCode>,
) -> Option<TracedCount<'a>> {
    if let (Some(name), QueryNode::Call { kept, inner, .. }) = (mean(sign, left, right), left) {
        return called(name, kept.as_deref(), inner, reach, faults);
    }
    let count = trace(left, reach, faults);
    // The right side of these is a condition.
    if matches!(sign, "and" | "unless") {
        return count;
    }
    let mut others = BTreeSet::new();
    let other = trace(right, reach, &mut others);
    if count.is_some() {
        // The left side has the newest count.
        others.remove(&FindingCode::SlowScaleUp);
    }
    faults.extend(others);
    let is_both = count.is_some() && other.is_some();
    let (one, side) = match count {
        Some(count) => (count, right),
        None => (other?, left),
    };
    faults.extend(match sign {
        "or" => side.is_made_up().then_some(FindingCode::QueryInventsZero),
        "+" if is_both => Some(FindingCode::QueryAddsUp),
        "+" | "-" | "*" | "/" | "%" | "^" | "atan2" if !is_both => {
            calculated(sign, side, count.is_none())
        }
        _ => is_bool.then_some(FindingCode::WrongTarget),
    });
    let is_single = one.is_single && other.is_none_or(|other| other.is_single);
    Some(TracedCount { is_single, ..one })
}

/// What is wrong with arithmetic between a count and a side without one. A product with another series may be a join, a
/// difference a guard.
fn calculated(sign: &str, side: &QueryNode<'_>, is_left: bool) -> Option<FindingCode> {
    let Some(number) = side.number() else {
        return (sign == "+").then_some(FindingCode::QueryAddsUp);
    };
    let neutral = if "+-".contains(sign) { 0.0 } else { 1.0 };
    let is_neutral = (number - neutral).abs() < f64::EPSILON;
    let keeping = if is_left { "+*" } else { "+-*/^" };
    let is_kept = is_neutral && keeping.contains(sign);
    (!is_kept).then_some(FindingCode::WrongTarget)
}

/// The lowest and the highest count that a scaler can apply.
fn reach(object: &LiveObject) -> (f64, f64) {
    let stated = |field: &str| object.0.get("spec")?.get(field)?.as_f64();
    let mut lowest = ["idleReplicaCount", "minReplicaCount", "minReplicas"].into_iter();
    let mut highest = ["maxReplicaCount", "maxReplicas"].into_iter();
    let highest = highest.find_map(stated);
    (lowest.find_map(stated).unwrap_or(0.0), highest.unwrap_or_else(|| f64::from(KEDA_MAXIMUM)))
}

/// What is wrong with the text of a query. A number in place of the count is a second series where its labels differ.
fn faults(object: &LiveObject, query: &str) -> BTreeSet<FindingCode> {
    let mut faults = BTreeSet::new();
    if let Ok(node) = parse(query) {
        trace(&node, reach(object), &mut faults);
    }
    faults
}

pub(super) fn texts(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    for (object, query) in count_queries(facts) {
        let mut faults = faults(object, &query);
        // What is late may be right, and is no cause of a failure.
        faults.remove(&FindingCode::SlowScaleUp);
        found.extend(faults.into_iter().map(|fault| {
            let remedy = match fault {
                FindingCode::QueryAddsUp => "take max by (variant_name, exported_namespace)",
                FindingCode::WrongTarget => "leave out what changes the count",
                _ => "without the fallback a lost series is an error, at which it keeps its scale",
            };
            fault.at(object.title(), format!("it asks {query}; {remedy}"))
        }));
    }
    found
}

/// The queries whose texts are not judged. Of what Prometheus refuses there is a finding.
pub(super) fn unread(facts: &Facts, others: &BTreeSet<ObjectName>) -> CheckOutcome {
    let answers = facts.triggers.known();
    let queries = count_queries(facts).into_iter();
    let queries = queries.filter(|(object, _)| !others.contains(&object.title()));
    let why = queries.filter_map(|(object, query)| {
        let why = parse(&query).err()?;
        let answer = answers.and_then(|answers| answers.get(&query));
        let is_refused = matches!(answer, Some(Err(_)));
        (!is_refused).then(|| format!("the query of {}: {why}", object.title()))
    });
    let why: Vec<String> = why.collect();
    if why.is_empty() { CheckOutcome::Skipped } else { CheckOutcome::Unseen(why) }
}

/// Whether a scaler selects the series of one controller.
pub(super) fn selects_instance(object: &LiveObject) -> bool {
    let spec = object.0.get("spec").map(ToString::to_string);
    spec.is_some_and(|spec| spec.contains("controller_instance"))
}

/// The range of a query before which no growth is seen.
pub(super) fn slow_query(object: &LiveObject) -> Option<String> {
    let is_slow = |query: &String| faults(object, query).contains(&FindingCode::SlowScaleUp);
    let query = asked(object).find(is_slow)?;
    Some(format!(
        "it asks {query}; take the last or the highest count: the lowest, the mean and one with offset come late"
    ))
}

fn quantity(text: &str) -> Option<f64> {
    match text.strip_suffix('m') {
        Some(thousandths) => Some(thousandths.parse::<f64>().ok()? / 1_000.0),
        None => text.parse().ok(),
    }
}

/// Whether a part of a query is at most 1 because a metric of it is a share.
fn is_share(node: &QueryNode<'_>) -> bool {
    match node {
        QueryNode::Number(_) | QueryNode::Quoted => false,
        QueryNode::Series(selector) => {
            let mut matchers = matchers(selector).into_iter().flatten();
            matchers.any(|(label, sign, value)| {
                let value = value.to_lowercase();
                label == NAME
                    && sign.starts_with('=')
                    && SHARES.iter().any(|share| value.ends_with(share))
            })
        }
        QueryNode::Range(of, _) | QueryNode::Late(of) => is_share(of),
        QueryNode::Call { name, inner, .. } => {
            SHARE_KEEPING.split(' ').any(|one| one == name) && inner.iter().any(is_share)
        }
        QueryNode::Binary { sign, sides, .. } => {
            let [left, right] = &**sides;
            if let (Some(_), QueryNode::Call { inner, .. }) = (mean(sign, left, right), left) {
                return inner.iter().any(is_share);
            }
            let number = right.number();
            let is_small = number.is_some_and(|number| number <= 1.0);
            is_share(left)
                && match *sign {
                    "or" => is_small || is_share(right),
                    "*" => is_small,
                    "/" => number.is_some_and(|number| number >= 1.0),
                    "+" | "-" | "%" | "^" | "atan2" => false,
                    _ => true,
                }
        }
    }
}

/// Whether a target divides what is at most 1 by the replicas, for an answer of at most a few.
fn is_hopeless(metric: &str, kind: &str, target: &str) -> bool {
    let is_below_one = quantity(target).is_some_and(|target| target > 0.0 && target <= 1.0);
    let is_divided = kind == "AverageValue" && is_below_one;
    is_divided && parse(metric).is_ok_and(|node| is_share(&node))
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
            let is_made =
                is_made.map(|owner| text(owner, "/kind")).any(|kind| kind == "ScaledObject");
            if !is_made && is_hopeless(name, text(metric, "/external/target/type"), target) {
                found.push(hopeless(object, name, target));
            }
        }
    }
    found
}

fn instances(facts: &Facts) -> Vec<Finding> {
    let instances: BTreeSet<&str> =
        facts.controllers().iter().filter_map(|one| one.instance()).collect();
    if instances.len() < 2 {
        return Vec::new();
    }
    let all = scalers(facts);
    let reads = |object: &LiveObject| object.0.to_string().contains(DESIRED);
    let found = all.iter().filter(|one| {
        one.kept.scaler.made_for.is_none() && reads(one.object) && !selects_instance(one.object)
    });
    let found = found.map(|one| {
        let names: Vec<&str> = instances.iter().copied().collect();
        let cause =
            format!("controllers {} publish, and it selects none of them", names.join(" and "));
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
    let (label, other) =
        if series.label(exported).is_empty() { (plain, exported) } else { (exported, plain) };
    (selects(query, other) && !selects(query, label)).then_some(label)
}

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
                _ if faults(object, &query).contains(&FindingCode::QueryInventsZero) => {}
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
