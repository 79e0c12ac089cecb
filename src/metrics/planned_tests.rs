//! What a plan says besides the counts: nothing, then exact values, then nothing again.

use super::{Metrics, Visibility};
use crate::policy::document::{Situation, SnapshotDocument};
use crate::policy::key::VariantKey;
use crate::policy::learned::Learned;
use crate::policy::plan::Plan;
use crate::policy::{learn, plan};
use crate::settings::bundle::read_bundle;

const TOKENS: &str = "saturation: {default: {analyzerName: saturation, enableLimiter: true}}";

/// Plans one document after the other; the last plan.
fn planned(documents: &[impl AsRef<str>], settings: &str) -> Plan {
    let settings = read_bundle(settings).unwrap();
    let mut learned = Learned::default();
    let mut made = None;
    for text in documents {
        let Situation { snapshot, now, .. } = SnapshotDocument::parse(text.as_ref())
            .and_then(|document| document.situation(&settings.freshness))
            .unwrap();
        learned = learn(&snapshot, &learned, &settings, now);
        made = Some(plan(&snapshot, &learned, &settings, 1, now));
    }
    made.unwrap()
}

/// Variant `v` with two replicas that hold too much, on nodes with these GPUs.
fn fleet(inventory: &str) -> String {
    let pod = "signals: {kvUsage: 0.875, queueLength: 0, kvCapacity: 16000, inputTokens: 100, outputTokens: 50}";
    format!(
        "version: 1\ninventory: {inventory}\nvariants:\n- namespace: ns\n  name: v\n  model: m\n  \
         accelerator: H100\n  cost: 2.5\n  gpus: {{nvidia.com/gpu: 1}}\n  target: {{current: 2}}\n  pods:\n  \
         - {{name: a, {pod}}}\n  - {{name: b, {pod}}}\n"
    )
}

fn pipeline(metrics: &Metrics) -> Vec<String> {
    let hidden = metrics.exposition(Visibility::Hidden).unwrap();
    let shown = metrics.exposition(Visibility::Shown).unwrap();
    let is_of_pipeline =
        |line: &&str| line.starts_with("wva_") && !hidden.lines().any(|other| other == *line);
    shown.lines().filter(is_of_pipeline).map(str::to_owned).collect()
}

#[test]
fn a_plan_is_shown_until_another_one_says_otherwise_or_its_variants_go() {
    let metrics = Metrics::new(None).unwrap();
    let nothing = Vec::<String>::new();
    assert_eq!(pipeline(&metrics), nothing);

    let text = fleet("{types: {H100: {total: 2, used: 2}}}");
    metrics.expose_plan(&planned(&[&text], TOKENS), |_| false);
    // The GPUs are there without any request.
    let fleet_alone =
        [r#"wva_available_gpus{accelerator_type="H100"} 0"#, "wva_gpu_discovery_up 1"];
    assert_eq!(pipeline(&metrics), fleet_alone);

    metrics.expose_plan(&planned(&[&text], TOKENS), |_| true);
    let expected = [
        r#"wva_analyzer_demand{analyzer="saturation",model="m",namespace="ns",role="both"} 28000"#,
        r#"wva_available_gpus{accelerator_type="H100"} 0"#,
        r#"wva_decisions_limited_total{limiter_name="nodes",namespace="ns",variant_name="v"} 1"#,
        "wva_gpu_discovery_up 1",
        r#"wva_kv_cache_tokens_capacity{model_name="m",namespace="ns",variant_name="v"} 32000"#,
        r#"wva_kv_cache_tokens_used{model_name="m",namespace="ns",variant_name="v"} 28000"#,
        r#"wva_model_replicas{model="m",namespace="ns"} 2"#,
        r#"wva_required_capacity{model_name="m",namespace="ns",unit="continuous",variant_name="v"} 7341.176470588238"#,
        r#"wva_saturation_utilization{accelerator_type="H100",model_name="m",namespace="ns",variant_name="v"} 1.09375"#,
        r#"wva_spare_capacity{model_name="m",namespace="ns",unit="continuous",variant_name="v"} 0"#,
        r#"wva_variant_cost{model_name="m",namespace="ns",variant_name="v"} 2.5"#,
    ];
    assert_eq!(pipeline(&metrics), expected);

    metrics.expose_plan(&planned(&[&fleet("{types: {}}")], ""), |_| true);
    let expected = [
        expected[2],
        expected[6],
        r#"wva_required_capacity{model_name="m",namespace="ns",unit="binary",variant_name="v"} 1"#,
        r#"wva_saturation_utilization{accelerator_type="H100",model_name="m",namespace="ns",variant_name="v"} 0.875"#,
        r#"wva_spare_capacity{model_name="m",namespace="ns",unit="binary",variant_name="v"} 0"#,
        expected[10],
    ];
    assert_eq!(pipeline(&metrics), expected);

    metrics.planned.withdraw(&VariantKey::new("ns", "other"));
    assert_eq!(pipeline(&metrics), expected);
    metrics.planned.withdraw(&VariantKey::new("ns", "v"));
    assert_eq!(pipeline(&metrics), nothing);
}

#[test]
fn the_latency_objectives_of_an_analyzer_are_shown_in_seconds() {
    let metrics = Metrics::new(None).unwrap();
    let nodes = fleet("{types: {}}");
    let targets = "{model_id: m, namespace: ns, targetTTFT: 500, targetITL: 24}";
    let queueing = format!("queueingModel: {{default: {{}}, one: {targets}}}");
    let line = |latency: &str, seconds: &str| {
        format!(
            r#"wva_model_latency_objective_seconds{{latency="{latency}",model="m",namespace="ns"}} {seconds}"#
        )
    };
    for (settings, shown) in [
        (TOKENS, None),
        ("saturation: {default: {analyzerName: slo}}", Some(["0.05", "2"])),
        (&*queueing, Some(["0.024", "0.5"])),
        ("", None),
    ] {
        metrics.expose_plan(&planned(&[&nodes], settings), |_| true);
        let lines = pipeline(&metrics).into_iter();
        let found = lines.filter(|line| line.contains("_latency_objective_"));
        let expected = shown.map(|[next, first]| {
            [line("inter_token_latency", next), line("time_to_first_token", first)]
        });
        let expected: Vec<_> = expected.into_iter().flatten().collect();
        assert_eq!(found.collect::<Vec<_>>(), expected, "{settings}");
    }
}

#[test]
fn unknown_gpus_are_not_zero() {
    let metrics = Metrics::new(None).unwrap();
    let unknown = fleet("{unknown: the nodes cannot be listed}");
    metrics.expose_plan(&planned(&[&unknown], TOKENS), |_| true);
    let lines = pipeline(&metrics);
    let about = |name: &str| lines.iter().filter(|line| line.starts_with(name)).count();
    assert_eq!(about("wva_gpu_discovery_up 0"), 1, "{lines:?}");
    assert_eq!(about("wva_available_gpus"), 0, "{lines:?}");
}

#[test]
fn a_measured_start_is_shown() {
    let metrics = Metrics::new(None).unwrap();
    let document = |uptime: u32, ready: u32, second: &str| {
        format!(
            "version: 1\ntime: {{uptime: {uptime}s}}\nvariants:\n- namespace: ns\n  name: v\n  model: m\n  \
             target: {{current: 2, ready: {ready}}}\n  pods:\n  \
             - {{name: a, signals: {{kvUsage: 0.6, queueLength: 0}}}}\n  - {{name: b, {second}}}\n"
        )
    };
    let starting = document(10_000, 1, "ready: false, age: 1s");
    let serving = document(
        11_000,
        2,
        "age: 1000s, readyFor: 520s, node: n, signals: {kvUsage: 0.6, queueLength: 0}",
    );
    let starts = || {
        let lines = pipeline(&metrics).into_iter();
        let of_starts = |line: &String| line.starts_with("wva_replica_start");
        lines.filter(of_starts).collect::<Vec<_>>()
    };
    metrics.expose_plan(&planned(&[&starting], ""), |_| true);
    assert_eq!(starts(), Vec::<String>::new());
    metrics.expose_plan(&planned(&[&starting, &serving], ""), |_| true);
    let expected = [
        r#"wva_replica_start_seconds{namespace="ns",start="cold",variant_name="v"} 480"#,
        r#"wva_replica_start_seconds_estimate{namespace="ns",source="measured",variant_name="v"} 480"#,
    ];
    assert_eq!(starts(), expected);
}

#[test]
fn what_keeps_a_model_from_zero_is_shown_while_it_lasts() {
    let metrics = Metrics::new(None).unwrap();
    let settings = "{WVA_SCALE_TO_ZERO: true, saturation: {default: {analyzerName: saturation}}}";
    let document = |floor: u32, router: &str| {
        format!(
            "version: 1\nvariants:\n- {{namespace: ns, name: v, model: m, bounds: {{min: {floor}}}, target: {{current: 1}}, \
             pods: [{{name: a, signals: {{kvUsage: 0, queueLength: 0, running: 0, kvCapacity: 16000, inputTokens: 100, outputTokens: 50}}}}]}}\n\
             models: [{{namespace: ns, model: m{router}}}]\n"
        )
    };
    let blocked = |document: &str| {
        metrics.expose_plan(&planned(&[document], settings), |_| true);
        let lines = pipeline(&metrics).into_iter();
        let of_block = |line: &String| line.starts_with("wva_model_scaling_blocked");
        lines.filter(of_block).collect::<Vec<_>>()
    };
    let reason = |reason: &str| {
        format!(r#"wva_model_scaling_blocked{{model="m",namespace="ns",reason="{reason}"}} 1"#)
    };
    let known = ", router: {queueRequests: 0}";
    assert_eq!(blocked(&document(1, known)), [reason("variant-floor")]);
    assert_eq!(blocked(&document(0, "")), [reason("no-wake-signal")]);
    // Its retention period ends by itself.
    assert_eq!(blocked(&document(0, known)), Vec::<String>::new());
}

/// Percentages decide each part of a request by itself, and so they are shown.
#[test]
fn percentages_are_shown_by_role() {
    let pod = |kv: &str| format!("signals: {{kvUsage: {kv}, queueLength: 0}}");
    let half = |name: &str, role: &str, kv: &str| {
        let pod = pod(kv);
        format!(
            "- namespace: ns\n  name: {name}\n  model: m\n  role: {role}\n  target: {{current: 2}}\n  \
             pods:\n  - {{name: {name}0, {pod}}}\n  - {{name: {name}1, {pod}}}\n"
        )
    };
    let shown = |role: &str| -> Vec<String> {
        let (idle, busy) = (half("idle", role, "0.1"), half("busy", "decode", "0.78"));
        let metrics = Metrics::new(None).unwrap();
        let text = format!("version: 1\nvariants:\n{idle}{busy}");
        metrics.expose_plan(&planned(&[&text], ""), |_| true);
        let of_capacity = |line: &String| line.contains("_capacity{");
        let lines = pipeline(&metrics).into_iter().filter(of_capacity);
        lines
            .map(|line| line.replace(r#"model_name="m",namespace="ns",unit="binary","#, ""))
            .collect()
    };
    assert_eq!(
        shown("decode"),
        [
            r#"wva_required_capacity{variant_name="busy"} 0"#,
            r#"wva_required_capacity{variant_name="idle"} 0"#,
            r#"wva_spare_capacity{variant_name="busy"} 1"#,
            r#"wva_spare_capacity{variant_name="idle"} 1"#,
        ],
        "all of one role"
    );
    assert_eq!(
        shown("prefill"),
        [
            r#"wva_required_capacity{variant_name="busy"} 1"#,
            r#"wva_required_capacity{variant_name="idle"} 0"#,
            r#"wva_spare_capacity{variant_name="busy"} 0"#,
            r#"wva_spare_capacity{variant_name="idle"} 1"#,
        ]
    );
}
