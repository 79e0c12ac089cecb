//! Queries of scalers, by their texts.

use serde_json::json;

use super::answers::share;
use super::causes::edit;
use super::codes;
use super::healthy::{QUERY, facts};
use super::manifests::{VARIANT, lines, written};
use crate::doctor::examine;
use crate::doctor::facts::{Facts, LiveKind, QueryAnswers, Reading};
use crate::doctor::finding::FindingCode;

fn asking(query: &str) -> Facts {
    let mut facts = facts();
    let place = "/spec/triggers/0/metadata/query";
    edit(&mut facts, LiveKind::ScaledObject, "b", place, json!(query));
    facts
}

fn found(query: &str) -> Vec<FindingCode> {
    codes(&asking(query))
}

/// What could not be looked at.
fn unread(facts: &Facts) -> Vec<String> {
    let diagnosis = examine(facts);
    let unseen = diagnosis.unseen().flat_map(|(_, why)| why.to_vec());
    unseen.collect()
}

/// Judges a query, in which `Q` is the selector of the count.
fn judge(form: &str, expected: &[FindingCode]) {
    let selector = QUERY.rsplit_once('(').unwrap().1.trim_end_matches(')');
    let facts = asking(&form.replace('Q', selector));
    assert_eq!(codes(&facts), expected, "{form}");
    assert_eq!(unread(&facts), Vec::<String>::new(), "{form}");
}

#[test]
fn queries_are_judged_however_they_are_written() {
    for (form, expected) in wva_base::cases! {
        ("max(Q)", &[][..]),
        ("max by (variant_name) (Q) and on() count(up) > 0", &[]),
        ("max(max_over_time(Q[1m]))", &[]),
        ("max(max_over_time(Q[10m]))", &[]),
        ("max(min_over_time(Q[1m]))", &[]),
        ("max(min_over_time(Q[10m]))", &[FindingCode::SlowScaleUp]),
        ("max(first_over_time(Q[10m]))", &[FindingCode::SlowScaleUp]),
        ("max(quantile_over_time(0, Q[10m]))", &[FindingCode::SlowScaleUp]),
        ("max(quantile_over_time(0.5, Q[10m]))", &[FindingCode::SlowScaleUp]),
        ("max(quantile_over_time(0.5, Q[2m]))", &[]),
        ("max(quantile_over_time(0.9, Q[10m]))", &[]),
        ("avg_over_time(max(Q)[10m:15s])", &[FindingCode::SlowScaleUp]),
        ("max(Q) * 1 + 0", &[]),
        ("max(Q) * on(variant_name) group_left max by (variant_name) (up)", &[]),
        ("max(Q) or vector(1)", &[FindingCode::QueryInventsZero]),
        ("max(Q) + max(Q)", &[FindingCode::QueryAddsUp]),
        ("2 * max(Q)", &[FindingCode::WrongTarget]),
        ("max(Q) + 1", &[FindingCode::WrongTarget]),
        ("max(Q) - 1", &[FindingCode::WrongTarget]),
        ("max(Q) - 0", &[]),
        ("max(Q) / 2", &[FindingCode::WrongTarget]),
        ("max(Q / 1)", &[]),
        ("max(Q) ^ 1", &[]),
        ("1 ^ max(Q)", &[FindingCode::WrongTarget]),
        ("max(Q) % 1", &[FindingCode::WrongTarget]),
        ("max(Q) atan2 1", &[FindingCode::WrongTarget]),
        ("1 / max(Q)", &[FindingCode::WrongTarget]),
        ("max(Q) * -1", &[FindingCode::WrongTarget]),
        ("max(Q) > bool -1", &[FindingCode::WrongTarget]),
        ("max(Q) * on() (count(up) > bool 0)", &[]),
        ("(max(Q)) * (2)", &[FindingCode::WrongTarget]),
        ("max(Q) / scalar(vector(2))", &[FindingCode::WrongTarget]),
        ("-max(Q)", &[FindingCode::WrongTarget]),
        ("max(Q) * 5 * 60", &[FindingCode::WrongTarget]),
        ("max(Q) < 5 * 60", &[]),
        ("max(Q) * 1e+3", &[FindingCode::WrongTarget]),
        ("max(Q) < 1e+3", &[]),
        ("label_replace(max(Q) + 1, \"a\", \"$1\", \"b\", \"(.+)\")", &[FindingCode::WrongTarget]),
        ("label_replace(max(Q), \"a\", '2*\\'+2', `b\\`, \"(.+)\")", &[]),
        ("max(sum by (variant_name) (Q))", &[FindingCode::QueryAddsUp]),
        ("(sum(Q))", &[FindingCode::QueryAddsUp]),
        ("ceil(sum(Q) by (variant_name))", &[FindingCode::QueryAddsUp]),
        ("scalar(count without (pod) (Q))", &[FindingCode::QueryAddsUp]),
        ("1*sum(Q)", &[FindingCode::QueryAddsUp]),
        ("max_over_time(sum(Q)[5m:])", &[FindingCode::QueryAddsUp]),
        ("sum(max by (variant_name, exported_namespace) (Q))", &[]),
        ("sum(max by (pod) (Q))", &[FindingCode::QueryAddsUp]),
        ("sum(max without (pod) (Q))", &[FindingCode::QueryAddsUp]),
        ("SUM(Q)", &[FindingCode::QueryAddsUp]),
        ("max(Q) # count + 1, that of sum(Q)", &[]),
        ("max( # don't\nsum(Q))", &[FindingCode::QueryAddsUp]),
        ("max(Q @ end() offset 1m) and on() (up or vector(1))", &[]),
        ("max(Q @ +1700000000 offset -1m)", &[FindingCode::WrongTarget]),
        ("max(Q @ 1.7e+09)", &[FindingCode::WrongTarget]),
        ("sum(Q offset +1m)", &[FindingCode::QueryAddsUp]),
        ("max(Q) or max(up)", &[]),
        ("max(Q) or (vector(0))", &[FindingCode::QueryInventsZero]),
        ("max(Q) or vector(0.0)", &[FindingCode::QueryInventsZero]),
        ("max(Q) or absent(up)*0", &[FindingCode::QueryInventsZero]),
        ("max(Q) or on(variant_name) vector(0)", &[FindingCode::QueryInventsZero]),
        ("max(Q) or absent(Q) * 0", &[FindingCode::QueryInventsZero]),
        ("max(Q) or label_replace(vector(0), 'a', 'b', '', '')", &[FindingCode::QueryInventsZero]),
        ("max(Q) or (up > bool 9)", &[FindingCode::QueryInventsZero]),
        ("max(Q) or on() (0 * up)", &[FindingCode::QueryInventsZero]),
    } {
        judge(form, expected);
    }
}

#[test]
fn means_and_functions_of_counts_are_judged() {
    for (form, expected) in wva_base::cases! {
        ("sum(Q) / count(Q)", &[][..]),
        ("sum by (pod) (Q) / on(pod) count by (pod) (Q)", &[]),
        ("sum(sum(Q) / count(Q))", &[]),
        ("sum(Q) / count(up)", &[FindingCode::QueryAddsUp]),
        ("sum by (pod) (Q) / count(Q)", &[FindingCode::QueryAddsUp]),
        ("sum(Q) * count(Q)", &[FindingCode::QueryAddsUp]),
        ("max(sum_over_time(Q[1m]) / count_over_time(Q[1m]))", &[]),
        ("max(sum_over_time(Q[10m]) / count_over_time(Q[10m]))", &[FindingCode::SlowScaleUp]),
        ("sum(max by (\"variant_name\", 'exported_namespace') (Q))", &[]),
        ("sum(max by (\"pod\") (Q))", &[FindingCode::QueryAddsUp]),
        ("sum(topk(1, Q))", &[]),
        ("sum(topk(2, Q))", &[FindingCode::QueryAddsUp]),
        ("sum(topk by (pod) (1, Q))", &[FindingCode::QueryAddsUp]),
        ("clamp_max(max(Q), 3)", &[FindingCode::WrongTarget]),
        ("clamp_max(max(Q), Inf)", &[]),
        ("clamp_min(max(Q), 0)", &[]),
        // Its scaler goes from 1 to 8.
        ("clamp_min(max(Q), 1)", &[]),
        ("clamp_max(max(Q), 8)", &[]),
        ("clamp_max(max(Q), 7)", &[FindingCode::WrongTarget]),
        ("clamp(max(Q), 0, 100)", &[]),
        ("clamp_min(max(Q), 2)", &[FindingCode::WrongTarget]),
        ("clamp(max(Q), 0, 4)", &[FindingCode::WrongTarget]),
        ("round(max(Q))", &[]),
        ("round(max(Q), 0.01)", &[]),
        ("round(max(Q), 5)", &[FindingCode::WrongTarget]),
        ("timestamp(max(Q))", &[FindingCode::WrongTarget]),
        ("histogram_quantile(0.9, Q)", &[FindingCode::WrongTarget]),
        ("max(holt_winters(Q[1m], 0.5, 0.5))", &[FindingCode::WrongTarget]),
        ("max(double_exponential_smoothing(Q[1m], 0.5, 0.5))", &[FindingCode::WrongTarget]),
        ("max(ts_of_last_over_time(Q[1m]))", &[FindingCode::WrongTarget]),
        ("max(mad_over_time(Q[1m]))", &[FindingCode::WrongTarget]),
        ("sgn(max(Q))", &[FindingCode::WrongTarget]),
        ("max(rate(Q[1m]))", &[FindingCode::WrongTarget]),
        ("max(Q offset 2m)", &[]),
        ("max(Q offset 10m)", &[FindingCode::SlowScaleUp]),
        ("max(Q offset -10m)", &[]),
        ("max(Q @ 1700000000)", &[FindingCode::WrongTarget]),
        ("(max(Q)) @ -1", &[FindingCode::WrongTarget]),
        ("max(Q @ start())", &[]),
        ("max(Q) and on() max(up @ 1700000000)", &[]),
        ("max(max_over_time(Q[1m] offset 10m))", &[FindingCode::SlowScaleUp]),
        ("max(Q offset 10m) or max(Q)", &[FindingCode::SlowScaleUp]),
        ("max(Q) or max(Q offset 10m)", &[]),
        ("max(Q) and on() max(up offset 10m) > 0", &[]),
        ("max(Q) and on() (changes(Q[1m]) > 0)", &[]),
    } {
        judge(form, expected);
    }
}

#[test]
fn numbers_are_read_as_prometheus_reads_them() {
    for (form, expected) in wva_base::cases! {
        ("max(min_over_time(Q[1w]))", &[FindingCode::SlowScaleUp][..]),
        ("max(min_over_time(Q[121]))", &[FindingCode::SlowScaleUp]),
        ("max(min_over_time(Q[1m60s]))", &[]),
        ("max(Q) * 0x01", &[]),
        ("max(Q) * 0x_1F", &[FindingCode::WrongTarget]),
        ("max(Q) < 0x1E+2", &[]),
        ("max(Q) * 1_0", &[FindingCode::WrongTarget]),
        ("max(Q) * 1s", &[]),
        ("max(Q) / 1m30s", &[FindingCode::WrongTarget]),
        ("max(Q) * iNf", &[FindingCode::WrongTarget]),
        ("max(Q) < +Inf", &[]),
        ("max(Q) + NaN", &[FindingCode::WrongTarget]),
        ("max(Q) * information", &[]),
    } {
        judge(form, expected);
    }
}

#[test]
fn a_query_that_is_not_read_is_named() {
    let long = |count: usize| QUERY.replacen("max", "sum", 1) + &" and up".repeat(count);
    let large = "the query of ScaledObject ns/b: it has more than 128 operands";
    let unknown = "the query of ScaledObject ns/b: its syntax is not known";
    for (query, expected, why) in wva_base::cases! {
        (long(126), &[FindingCode::QueryAddsUp][..], None),
        (long(127), &[], Some(large)),
        (format!("{QUERY} ? 1"), &[], Some(unknown)),
        (format!("{QUERY} * 0x1G"), &[], Some(unknown)),
    } {
        let mut facts = asking(&query);
        assert_eq!(codes(&facts), expected, "{query}");
        let named: Vec<&str> = why.into_iter().collect();
        assert_eq!(unread(&facts), named, "{query}");
        // Prometheus has read it, and says more.
        let refused = QueryAnswers::from([(query, Err("parse error".to_owned()))]);
        facts.triggers = Reading::Known(refused);
        assert_eq!(unread(&facts), Vec::<String>::new());
    }
}

#[test]
fn a_share_is_one_metric() {
    for (text, expected) in wva_base::cases! {
        ("max(vllm:kv_cache_usage_perc)*count(up)", &[][..]),
        ("max(up)*max(vllm:kv_cache_usage_perc)", &[]),
        ("max(rate(saturation_events_total[1m]))", &[]),
        ("sum(vllm:kv_cache_usage_perc)", &[]),
        ("sum(vllm:kv_cache_usage_perc) / count(up)", &[]),
        ("avg(vllm:kv_cache_usage_perc) * 100", &[]),
        ("avg(vllm:kv_cache_usage_perc) or vector(4)", &[]),
        ("avg(up) or avg(vllm:kv_cache_usage_perc)", &[]),
        ("clamp_min(avg(vllm:kv_cache_usage_perc), 3)", &[]),
        ("avg(avg_over_time(vllm:kv_cache_usage_perc[1m]))", &[FindingCode::SaturationCannotAsk]),
        ("quantile(0.9, vllm:kv_cache_usage_perc)", &[FindingCode::SaturationCannotAsk]),
        ("max(max_over_time(vllm:kv_cache_usage_perc[1m]))", &[FindingCode::SaturationCannotAsk]),
        ("avg(vllm:kv_cache_usage_perc) or vector(0)", &[FindingCode::SaturationCannotAsk]),
        ("round(avg(vllm:kv_cache_usage_perc), 0.01)", &[FindingCode::SaturationCannotAsk]),
        ("avg(vllm:kv_cache_usage_perc) > 0", &[FindingCode::SaturationCannotAsk]),
        ("max({__name__=\"vllm:kv_cache_usage_perc\"})", &[FindingCode::SaturationCannotAsk]),
        ("sum(vllm:kv_cache_usage_perc) / count(vllm:kv_cache_usage_perc)", &[FindingCode::SaturationCannotAsk]),
        ("vllm:kv_cache_usage_perc", &[FindingCode::SaturationCannotAsk]),
        ("max(vllm:kv_cache_usage_perc offset 10m)", &[FindingCode::SaturationCannotAsk]),
        ("avg by (pod) (sglang:token_usage{a=\"b\"})", &[FindingCode::SaturationCannotAsk]),
    } {
        let mut facts = facts();
        share(&mut facts, text, "1");
        assert_eq!(codes(&facts), expected, "{text}");
    }
}

#[test]
fn only_the_selector_of_the_count_is_compared() {
    let wanting = |matcher: &str| QUERY.replace("variant_name=\"b\"", matcher);
    for (text, expected) in wva_base::cases! {
        (QUERY.replace('"', "`"), &[][..]),
        (format!("# variant_name=\"other\"\n{QUERY}"), &[]),
        (format!("{QUERY} and on() up{{variant_name=\"other\",namespace=\"other\"}}"), &[]),
        (wanting("\"variant_name\"=\"b\""), &[]),
        (wanting("variant_name=~\"b\""), &[]),
        (wanting("variant_name=~\"^b$\""), &[]),
        (wanting("variant_name=~\"(b)\""), &[]),
        // It may be the variant.
        (wanting("variant_name=~\"b|\""), &[]),
        (QUERY.replace("wva_desired", "team:wva_desired"), &[]),
        (QUERY.replace("wva_desired", "my_wva_desired"), &[FindingCode::CountNotRead]),
        (QUERY.replace("replicas", "replicas_total"), &[FindingCode::CountNotRead]),
        (wanting("variant_name=~\"(c)\""), &[FindingCode::CountNotRead]),
        (wanting("\"variant_name\"=\"c\""), &[FindingCode::CountNotRead]),
        (format!("# variant_name=\"b\"\n{}", wanting("job=\"x\"")), &[FindingCode::CountNotRead]),
    } {
        assert_eq!(found(&text), expected, "{text}");
    }
}

/// A ScaledObject that reads the count of a variant.
fn scaler(target: &str, selector: &str) -> String {
    format!(
        "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {{name: s, namespace: ns}}\n\
         spec:\n  scaleTargetRef: {{name: {target}}}\n  maxReplicaCount: 4\n  triggers:\n  - type: prometheus\n    \
         metadata: {{serverAddress: x, threshold: '1', ignoreNullValues: 'false', \
         query: 'max(wva_desired_replicas{{variant_name=\"a\"{selector}}})'}}\n"
    )
}

#[test]
fn a_query_reads_one_of_two_variants_of_a_name() {
    let other = VARIANT.replace("namespace: ns", "namespace: other");
    let homeless = VARIANT.replace(", namespace: ns", "");
    let cause =
        "WVA122 it reads the count of VariantAutoscaling other/a, too; select exported_namespace";
    for (rival, selector, expected) in wva_base::cases! {
        (VARIANT, "", &[][..]),
        (homeless.as_str(), "", &[]),
        (other.as_str(), ",exported_namespace=\"ns\"", &[]),
        (other.as_str(), ",exported_namespace=~\"n.*\"", &[]),
        (other.as_str(), ",controller_instance=\"one\"", &[]),
        (other.as_str(), "", &[cause]),
    } {
        let texts = [VARIANT, &scaler("a", selector)].join("---\n");
        let texts = match rival {
            VARIANT => texts,
            rival => [texts.as_str(), rival].join("---\n"),
        };
        assert_eq!(lines(&texts), expected, "{rival} {selector}");
    }
}

#[test]
fn a_scaler_is_compared_with_variants_of_other_files() {
    let own = ",exported_namespace=\"ns\"";
    let moved = VARIANT.replace("scaleTargetRef: {name: a}", "scaleTargetRef: {name: b}");
    let namesake = VARIANT.replace("namespace: ns", "namespace: other");
    for (target, selector, more, expected) in wva_base::cases! {
        ("a", own, "", &[][..]),
        ("b", own, "", &[FindingCode::CountNotRead]),
        // One of two alternatives of the variant has that target.
        ("b", own, moved.as_str(), &[]),
        ("a", own, namesake.as_str(), &[]),
        ("a", "", namesake.as_str(), &[FindingCode::CountNotRead]),
    } {
        let scaler = scaler(target, selector);
        let files = [("a.yaml", VARIANT), ("b.yaml", &*scaler), ("c.yaml", more)];
        assert_eq!(codes(&written(&files)), expected, "{target} {selector} {more}");
    }
}

/// A count is read from any namespace. A target is scaled in that of its scaler.
#[test]
fn a_scaler_of_another_namespace_than_its_count_is_found() {
    let scaled_object = |namespace: &str, count: &str| {
        let scaler = scaler("a", &format!(",exported_namespace=\"{count}\""));
        scaler.replace(", namespace: ns", namespace)
    };
    let hpa = |namespace: &str, count: &str| {
        format!(
            "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: s{namespace}}}\n\
             spec:\n  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: a}}\n  maxReplicas: 4\n  \
             metrics:\n  - type: External\n    external:\n      target: {{type: AverageValue, averageValue: '1'}}\n      \
             metric:\n        name: wva_desired_replicas\n        \
             selector: {{matchLabels: {{variant_name: a, exported_namespace: {count}}}}}\n"
        )
    };
    let cause = "it reads the count of VariantAutoscaling ns/a and scales Deployment other/a; \
                 move it to namespace ns, and name Deployment ns/a in its scaleTargetRef";
    let expected = format!("WVA122 {cause}");
    let expected = std::slice::from_ref(&expected);
    let far = ", namespace: other";
    for (namespace, count, found) in wva_base::cases! {
        (far, "ns", expected),
        (far, "third", &[]),
        (", namespace: ns", "ns", &[]),
        // It may be applied there.
        ("", "ns", &[]),
    } {
        for scaler in [scaled_object(namespace, count), hpa(namespace, count)] {
            assert_eq!(lines(&format!("{VARIANT}---\n{scaler}")), found, "{scaler}");
        }
    }
}

#[test]
fn a_target_of_another_group_is_the_fault_of_its_variant() {
    let scaler = scaler("a", ",exported_namespace=\"ns\"");
    let unserved = |version: &str| {
        let why = "has no Deployment that can be scaled; write apps/v1";
        format!("WVA085 spec.scaleTargetRef.apiVersion: {version:?} {why}")
    };
    let differs = "WVA122 it reads the count of VariantAutoscaling ns/a and scales Deployment ns/a \
                   of another apiVersion; name the same one in both";
    for (version, expected) in wva_base::cases! {
        ("apps/v1", None),
        // The group alone names it.
        ("apps/v1beta1", None),
        ("v1", Some(unserved("v1"))),
        ("extensions/v1beta1", Some(unserved("extensions/v1beta1"))),
        ("example.com/v1", Some(differs.to_owned())),
    } {
        let reference = format!("{{kind: Deployment, apiVersion: {version}, name: a}}");
        let variant = VARIANT.replace("{name: a}", &reference);
        let expected: Vec<String> = expected.into_iter().collect();
        assert_eq!(lines(&format!("{variant}---\n{scaler}")), expected, "{version}");
    }
}

/// The dispute is the cause. The scaler follows one of both.
#[test]
fn a_scaler_of_one_of_two_variants_of_a_target_is_no_second_finding() {
    let second = VARIANT.replace("3.0", "4").replace("name: a, ", "name: b, ");
    let found = |count: &str| {
        let scaler = format!(
            "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {{name: s, namespace: ns}}\n\
             spec:\n  scaleTargetRef: {{name: a}}\n  minReplicaCount: 1\n  maxReplicaCount: 4\n  triggers:\n  \
             - type: prometheus\n    metadata: {{serverAddress: x, threshold: '1', ignoreNullValues: 'false', \
             query: 'max(wva_desired_replicas{{variant_name=\"{count}\",exported_namespace=\"ns\"}})'}}\n"
        );
        let lines = lines(&format!("{VARIANT}---\n{second}---\n{scaler}"));
        let codes = lines.iter().filter_map(|line| line.split(' ').next());
        codes.map(str::to_owned).collect::<Vec<_>>()
    };
    for count in ["a", "b"] {
        assert_eq!(found(count), ["WVA086"], "{count}");
    }
    let codes = found("c");
    assert!(codes.contains(&"WVA122".to_owned()), "{codes:?}");
}
