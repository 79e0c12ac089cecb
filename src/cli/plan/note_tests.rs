//! Notes below a plan.

use serde::Deserialize;
use serde_json::Value;

use super::tests::{block, how};
use super::{Format, answer};

#[test]
fn a_list_without_saturation_is_noted() {
    let snapshot = block("`fleet.yaml`:");
    let table = |settings: &str| answer(snapshot, settings, &how(Format::Table, false)).unwrap();
    let listed = |names: &str| format!("saturation: {{default: {{analyzers: [{names}]}}}}");
    assert!(!table(&listed("{name: saturation}, {name: throughput}")).contains("note"));
    for (names, note) in [
        ("{name: throughput}", "nothing vetoes a scale-down on the pressure in KV caches"),
        ("{name: saturation, enabled: false}", "every count stays as it is; enable one"),
    ] {
        let said = table(&listed(names));
        assert!(said.contains("\nnote: ") && said.contains(note), "{said}");
    }
}

#[test]
fn ineffective_settings_are_noted() {
    let snapshot = block("`fleet.yaml`:");
    let limited = |exclude: &str| {
        format!(
            "saturation: {{default: {{enableLimiter: true, limiters: [{{name: q, type: quota, scope: \
             namespace, namespaceQuotas: {{serving: {{H100: 9, L4: 9}}}}, exclude: [{exclude}]}}]}}}}"
        )
    };
    let note = "settings.yaml: global saturation ConfigMap, entry \"default\": limiters[0]: \
                namespace \"serving\" stands in exclude and in namespaceQuotas; it is not limited, \
                remove it from one of them";
    let table = |settings: &str| shown(snapshot, settings);
    assert!(!table(&limited("")).contains("note"));
    let said = table(&limited("serving"));
    assert!(said.ends_with(&format!("\nnote: {note}\n")), "{said}");
    let json = |settings: &str| -> Value {
        let text = answer(snapshot, settings, &how(Format::Json, false)).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    assert!(json(&limited("")).get("notes").is_none());
    assert_eq!(json(&limited("serving"))["notes"], serde_json::json!([note]));
}

#[test]
fn what_shares_no_budget_is_noted() {
    let snapshot = block("`fleet.yaml`:");
    let table = |settings: &str| shown(snapshot, settings);
    let rescaled =
        |more: &str| format!("{{saturation: {{default: {{enableRescale: true{more}}}}}}}");
    let by_tokens = ", enableLimiter: true, analyzerName: saturation";
    assert!(!table(&rescaled(by_tokens)).contains("note"));
    let note = "settings.yaml: global saturation ConfigMap, entry \"default\": enableRescale: nothing \
                limits growth, so no budget is shared; write enableLimiter: true in the global entry \
                `default`, or remove it";
    let said = table(&rescaled(""));
    assert!(said.ends_with(&format!("\nnote: {note}\n")), "{said}");
    let quota = "limiters: [{name: q, type: quota, scope: cluster, quotas: {H100: 6}}]";
    let listed = |more: &str| format!("{{saturation: {{default: {{{quota}{more}}}}}}}");
    assert!(!table(&listed(", enableLimiter: true")).contains("note"));
    let note = "limiters: nothing limits growth, so they do not act; write enableLimiter: true with \
                them, or remove them";
    let said = table(&listed(""));
    assert!(said.ends_with(&format!("{note}\n")), "{said}");
    let by_percentages = table(&rescaled(", enableLimiter: true"));
    let note = "enableRescale: every model is planned by percentages, which say no size to share by; \
                write analyzerName: saturation in `default`, or remove it";
    assert!(by_percentages.ends_with(&format!("{note}\n")), "{by_percentages}");
    let note = "enableRescale: EXPERIMENTAL_PROACTIVE_MODEL selects hybrid mode, which shares no \
                budget; write false there, or remove it";
    for more in [", enableLimiter: true", by_tokens] {
        let said = rescaled(more).replacen('{', "{EXPERIMENTAL_PROACTIVE_MODEL: true, ", 1);
        let said = table(&said);
        assert!(said.ends_with(&format!("{note}\n")), "{said}");
    }
}

#[test]
fn a_target_in_seconds_is_noted() {
    let snapshot = block("`fleet.yaml`:");
    let table = |settings: &str| shown(snapshot, settings);
    let targets = |slo: &str| {
        format!(
            "{{queueingModel: {{default: {{}}}}, serviceClasses: {{a: {{name: A, priority: 1, data: \
             [{{model: meta-llama/Llama-3.1-8B, slo-tpot: {slo}, slo-ttft: 500}}]}}}}}}"
        )
    };
    assert!(!table(&targets("24")).contains("note"));
    let said = table(&targets("0.024"));
    let note = "class \"A\", model \"meta-llama/Llama-3.1-8B\": slo-tpot of 0.024 ms is shorter than any engine takes for \
                one token; targets are in milliseconds, write 24 for 0.024 s";
    assert!(said.ends_with(&format!("{note}\n")), "{said}");
    let said = table(
        "queueingModel: {default: {}, m: {model_id: meta-llama/Llama-3.1-8B, namespace: serving, \
         targetTTFT: 0.5, targetITL: 24}}",
    );
    let note = "targetTTFT of 0.5 ms is shorter than any engine takes for one token; targets are in \
                milliseconds, write 500 for 0.5 s";
    assert!(said.ends_with(&format!("{note}\n")), "{said}");
}

fn shown(snapshot: &str, settings: &str) -> String {
    answer(snapshot, settings, &how(Format::Table, false)).unwrap()
}

fn notes(snapshot: &str, settings: &str) -> Vec<String> {
    let text = answer(snapshot, settings, &how(Format::Json, false)).unwrap();
    let mut json: Value = serde_json::from_str(&text).unwrap();
    let notes = json["notes"].take();
    Option::deserialize(notes).unwrap().unwrap_or_default()
}

#[test]
fn unused_entries_are_noted() {
    let snapshot = block("`fleet.yaml`:");
    let served = "model_id: meta-llama/Llama-3.1-8B, namespace: serving";
    let class =
        |rows: &str| format!("serviceClasses: {{a: {{name: A, priority: 1, data: [{rows}]}}}}");
    let rows = "{model: meta-llama/Llama-3.1-8B, slo-tpot: 24, slo-ttft: 500}";
    let asked = "queueingModel: {default: {}";
    for (silent, noted, note) in [
        (
            format!("{asked}, m: {{{served}, sloMultiplier: 2}}}}"),
            format!("queueingModel: {{m: {{{served}, sloMultiplier: 2}}}}"),
            "global queueing-model ConfigMap, entry \"m\": the queueing model is not asked, so this \
             does not act; write a global entry `default`, or remove it",
        ),
        (
            format!("{{{asked}}}, {}}}", class(rows)),
            class(rows),
            "global service-classes ConfigMap, entry \"a\": the queueing model is not asked, so no \
             latency target acts; write an entry `default` of the global queueing-model ConfigMap, \
             or remove it",
        ),
        (
            format!("{{{asked}}}, {}}}", class(rows)),
            format!("{{{asked}}}, {}}}", class("")),
            "global service-classes ConfigMap, entry \"a\": class \"A\" names no model, so it has no \
             target; list models under data, or remove it",
        ),
        (
            format!("{{{asked}}}, {}}}", class(rows)),
            format!("{{{asked}}}, {}}}", class(&rows.replace("8B", "9B"))),
            "global service-classes ConfigMap, entry \"a\": class \"A\": no variant serves model \
             \"meta-llama/Llama-3.1-9B\"; correct its name, or remove the row",
        ),
        (
            format!("saturation: {{m: {{{served}, priority: 2}}}}"),
            format!("saturation: {{m: {{{}, priority: 2}}}}", served.replace("serving", "other")),
            "global saturation ConfigMap, entry \"m\": model \"meta-llama/Llama-3.1-8B\" is served in \
             namespace serving alone; correct the namespace, or remove the entry",
        ),
        (
            "namespaces: {serving: {scaleToZero: {default: {retention_period: 3m}}}}".into(),
            "namespaces: {servin: {scaleToZero: {default: {retention_period: 3m}}}}".into(),
            "scale-to-zero ConfigMap of namespace servin, entry \"default\": no variant is in this \
             namespace; correct its name, or remove it",
        ),
        (
            "namespaces: {serving: {scaleToZero: {m: {model_id: meta-llama/Llama-3.1-8B}}}}".into(),
            "namespaces: {serving: {scaleToZero: {m: {model_id: llama}}}}".into(),
            "scale-to-zero ConfigMap of namespace serving, entry \"m\": no variant serves model \
             \"llama\"; correct its name, or remove the entry",
        ),
    ] {
        assert_eq!(notes(snapshot, &silent), Vec::<String>::new(), "{silent}");
        assert_eq!(notes(snapshot, &noted), [format!("settings.yaml: {note}")], "{noted}");
    }
}

#[test]
fn a_threshold_that_nothing_reads_is_noted() {
    let snapshot = block("`fleet.yaml`:");
    let entry = |fields: &str| format!("saturation: {{default: {{{fields}}}}}");
    let read = entry("analyzerName: saturation, scaleUpThreshold: 0.9");
    assert_eq!(notes(snapshot, &read), Vec::<String>::new());
    for (fields, note) in wva_base::cases! {
        ("scaleUpThreshold: 0.9",
         "scaleUpThreshold: percentages do not read it, and they decide the models of this entry; write analyzerName: \
         slo or saturation, or remove it"),
        ("analyzerName: saturation, kvSpareTrigger: 0.2",
         "kvSpareTrigger: only percentages read it, and analyzers decide the models of this entry; remove it"),
        ("analyzerName: slo, analyzers: [{name: slo}], scaleDownBoundary: 0.5",
         "scaleDownBoundary: no item of analyzers takes it from here; state it in an item, or remove it"),
        ("burstReserve: strict",
         "burstReserve: only slo reads it, which has no part in the models of this entry; remove it"),
    } {
        let note = format!("settings.yaml: global saturation ConfigMap, entry \"default\": {note}");
        assert_eq!(notes(snapshot, &entry(fields)), [note], "{fields}");
    }
}

#[test]
fn an_undefined_class_is_noted() {
    let snapshot = block("`fleet.yaml`:");
    let asked = "queueingModel: {default: {}";
    let labelled = snapshot.replace("cost: 40", "cost: 40\n  serviceClass: gold");
    assert_eq!(notes(&labelled, ""), Vec::<String>::new());
    let note = "fleet.yaml: serviceClass \"gold\" is not defined, so it has no targets; define it in \
                serviceClasses of the settings";
    let slo = "saturation: {default: {analyzerName: slo}}".to_owned();
    for settings in [format!("{asked}}}"), slo] {
        assert_eq!(notes(&labelled, &settings), [note], "{settings}");
    }
    let defined = "serviceClasses: {p.yaml: {name: Premium, priority: 1, data: [{model: m, slo-tpot: 24, slo-ttft: 500}]}}";
    let settings = format!("{asked}}}\n{defined}");
    let note = format!("{note}, or write one of Premium");
    assert!(notes(&labelled, &settings).contains(&note));
}

#[test]
fn a_use_below_what_already_runs_is_noted() {
    let fleet = |used: &str| {
        format!(
            "version: 1\nvariants:\n- {{namespace: a, name: v, model: m, accelerator: H100, target: {{current: 3}}}}\n\
             inventory: {{types: {{H100: {{total: 4{used}}}}}}}\n"
        )
    };
    let limited = "saturation: {default: {enableLimiter: true}}";
    let below = fleet(", used: 2");
    for (snapshot, settings) in
        [(&fleet(""), limited), (&fleet(", used: 3"), limited), (&below, "")]
    {
        assert_eq!(notes(snapshot, settings), Vec::<String>::new(), "{snapshot}");
    }
    let note = "fleet.yaml: inventory.types.H100.used: 2 is less than the 3 GPUs that ready replicas hold, so that \
                counts may exceed H100; write at least 3, or leave it out, which counts them";
    assert_eq!(notes(&below, limited), [note]);
}

#[test]
fn no_fault_hides_another_one() {
    let fleet = |version: &str, usage: &str, max: u32| {
        format!(
            "version: {version}\nvariants:\n\
             - {{namespace: a, name: v, model: m, target: {{current: 1}}, pods: [{{name: p, signals: {{kvUsage: {usage}}}}}]}}\n\
             - {{namespace: a, name: w, model: m, target: {{current: 1}}, bounds: {{min: 5, max: {max}}}}}\n"
        )
    };
    let refused = |snapshot: &str, settings: &str| {
        answer(snapshot, settings, &how(Format::Table, false)).err()
    };
    assert_eq!(refused(&fleet("1", "0.5", 5), ""), None);
    let errors = refused(&fleet("1", "50", 2), "").unwrap();
    assert_eq!(
        errors,
        [
            "fleet.yaml: variants[0].pods[0].signals.kvUsage: 50 is not a share between 0 and 1; write 0.5 for 50 %",
            "fleet.yaml: variants[1].bounds: max 2 is below the minimum of 5 (minReplicas); raise max, write min, or \
             let the model go to zero",
        ]
    );
    let errors = refused(&fleet("one", "0.5", 5), "GLOBAL_OPT_INTERVAL: soon").unwrap();
    let files: Vec<&str> = errors.iter().filter_map(|error| error.split(": ").next()).collect();
    assert_eq!(files, ["settings.yaml", "fleet.yaml"]);
}

#[test]
fn a_quota_that_concerns_no_variant_is_noted() {
    let snapshot = block("`fleet.yaml`:");
    let limited = |limiter: &str| {
        format!(
            "saturation: {{default: {{analyzerName: saturation, enableLimiter: true, \
             limiters: [{{name: q, type: quota, {limiter}}}]}}}}"
        )
    };
    for limiter in [
        "scope: cluster, quotas: {H100: 3, NVIDIA-L4: 2}",
        "scope: namespace, namespaceQuotas: {serving: {H100: 3}, default: {L4: -1}}",
    ] {
        assert_eq!(notes(snapshot, &limited(limiter)), Vec::<String>::new());
    }
    for (limiter, note) in wva_base::cases! {
        ("scope: cluster, quotas: {H10: 3, L4: 2}", "quotas: no variant has accelerator \"H10\""),
        ("scope: namespace, namespaceQuotas: {zz: {H100: 3}}", "namespaceQuotas: no variant is in namespace \"zz\""),
        ("scope: namespace, namespaceQuotas: {serving: {H10: 3}}",
         "namespaceQuotas.serving: no variant has accelerator \"H10\""),
        ("scope: cluster, quotas: {H100: 3}, exclude: [yy]", "exclude: no variant is in namespace \"yy\""),
    } {
        let note = format!(
            "settings.yaml: global saturation ConfigMap, entry \"default\": limiters[0].{note}; correct its name, or \
             remove it"
        );
        assert_eq!(notes(snapshot, &limited(limiter)), [note]);
    }
}

#[test]
fn percentages_that_a_list_of_analyzers_replaces_are_noted() {
    let snapshot = block("`fleet.yaml`:");
    let entry = |fields: &str| format!("saturation: {{default: {{{fields}}}}}");
    let list = "analyzers: [{name: saturation}]";
    for fields in [list, "analyzerName: percentage"] {
        assert_eq!(notes(snapshot, &entry(fields)), Vec::<String>::new());
    }
    let note = "settings.yaml: global saturation ConfigMap, entry \"default\": analyzerName: the list in analyzers \
                decides, and percentages do not; remove one of both";
    let both = entry(&format!("analyzerName: percentage, {list}"));
    assert_eq!(notes(snapshot, &both), [note]);
}
