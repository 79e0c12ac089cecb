//! Queries of scalers, by their texts.

use serde_json::json;

use super::answers::share;
use super::causes::edit;
use super::codes;
use super::healthy::{QUERY, facts};
use super::manifests::{VARIANT, lines};
use crate::doctor::facts::LiveKind;
use crate::doctor::finding::FindingCode;

fn found(query: &str) -> Vec<FindingCode> {
    let mut facts = facts();
    let place = "/spec/triggers/0/metadata/query";
    edit(&mut facts, LiveKind::ScaledObject, "b", place, json!(query));
    codes(&facts)
}

#[test]
fn queries_are_judged_however_they_are_written() {
    let selector = QUERY.rsplit_once('(').unwrap().1.trim_end_matches(')');
    for (form, expected) in wva_base::cases! {
        ("max(Q)", &[][..]),
        ("max by (variant_name) (Q) and on() count(up) > 0", &[]),
        ("max(max_over_time(Q[1m]))", &[]),
        ("max(max_over_time(Q[10m]))", &[]),
        ("max(min_over_time(Q[1m]))", &[]),
        ("max(min_over_time(Q[10m]))", &[FindingCode::SlowScaleUp]),
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
        ("max(Q @ +1700000000 offset -1m)", &[]),
        ("max(Q @ 1.7e+09)", &[]),
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
        assert_eq!(found(&form.replace('Q', selector)), expected, "{form}");
    }
}

#[test]
fn a_share_is_one_metric() {
    for (text, expected) in wva_base::cases! {
        ("max(vllm:kv_cache_usage_perc)*count(up)", &[][..]),
        ("max(up)*max(vllm:kv_cache_usage_perc)", &[]),
        ("max(rate(saturation_events_total[1m]))", &[]),
        ("sum(vllm:kv_cache_usage_perc)", &[]),
        ("vllm:kv_cache_usage_perc", &[FindingCode::SaturationCannotAsk]),
        ("avg by (pod) (sglang:token_usage{a=\"b\"})", &[FindingCode::SaturationCannotAsk]),
    } {
        let mut facts = facts();
        share(&mut facts, text, "1");
        assert_eq!(codes(&facts), expected, "{text}");
    }
}

#[test]
fn a_pattern_of_one_name_is_that_name() {
    for text in [QUERY.replace('"', "`"), QUERY.replace("=\"b", "=~\"b")] {
        assert_eq!(found(&text), &[], "{text}");
    }
    assert_eq!(
        found(&QUERY.replace("=\"b", "=~\"b|")),
        [FindingCode::CountNotRead]
    );
}

#[test]
fn a_query_reads_one_of_two_variants_of_a_name() {
    let other = VARIANT.replace("namespace: ns", "namespace: other");
    let homeless = VARIANT.replace(", namespace: ns", "");
    let scaler = |selector: &str| {
        format!(
            "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {{name: s, namespace: ns}}\n\
             spec:\n  scaleTargetRef: {{name: a}}\n  maxReplicaCount: 4\n  triggers:\n  - type: prometheus\n    \
             metadata: {{serverAddress: x, threshold: '1', ignoreNullValues: 'false', \
             query: 'max(wva_desired_replicas{{variant_name=\"a\"{selector}}})'}}\n"
        )
    };
    let cause =
        "WVA122 it reads the count of VariantAutoscaling other/a, too; select exported_namespace";
    for (rival, selector, expected) in wva_base::cases! {
        (VARIANT, "", &[][..]),
        (homeless.as_str(), "", &[]),
        (other.as_str(), ",exported_namespace=\"ns\"", &[]),
        (other.as_str(), ",controller_instance=\"one\"", &[]),
        (other.as_str(), "", &[cause]),
    } {
        let texts = [VARIANT, &scaler(selector)].join("---\n");
        let texts = match rival {
            VARIANT => texts,
            rival => [texts.as_str(), rival].join("---\n"),
        };
        assert_eq!(lines(&texts), expected, "{rival} {selector}");
    }
}
