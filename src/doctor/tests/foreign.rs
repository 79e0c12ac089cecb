//! Files as other tools write and read them: merge keys, patches, templates, and what is no manifest.

use super::manifests::{VARIANT, lines, written};
use crate::doctor::examine;
use crate::doctor::look::files;
use crate::scratch::Folder;

#[test]
fn a_merge_key_takes_in_the_fields_of_other_mappings() {
    let model = |fields: &str| lines(&VARIANT.replace("  modelID: m\n", fields));
    let required = "WVA080 spec.modelID is required".to_owned();
    let minimum = "WVA080 spec.minReplicas is -1, and has to be at least 0".to_owned();
    for (fields, expected) in wva_base::cases! {
        ("", vec![required.clone()]),
        ("  <<: &common {modelID: m}\n", vec![]),
        ("  <<: [{modelID: m}, {modelID: \"\"}]\n", vec![]),
        // What stands in the mapping itself wins.
        ("  <<: {modelID: m, minReplicas: -1}\n", vec![]),
        ("  <<: {<<: {modelID: m}}\n", vec![]),
        ("  <<: m\n", vec!["WVA080 spec.<< is no field of this kind".to_owned(), required]),
    } {
        assert_eq!(model(fields), expected, "{fields}");
    }
    let merged = VARIANT.replace("minReplicas: 2\n", "<<: {minReplicas: -1}\n");
    assert_eq!(lines(&merged), [minimum]);
}

#[test]
fn a_variant_of_a_namespace_that_is_excluded_is_found() {
    let namespace = |name: &str, value: &str| {
        format!(
            "---\napiVersion: v1\nkind: Namespace\n\
             metadata: {{name: {name}, annotations: {{wva.llmd.ai/exclude: '{value}'}}}}\n"
        )
    };
    let watching = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: wva, namespace: system}\n\
        spec: {template: {spec: {containers: [{name: manager, image: wva, env: [\
        {name: POD_NAMESPACE, value: system}, {name: WATCH_NAMESPACE, value: ns}, \
        {name: PROMETHEUS_BASE_URL, value: 'https://p:9090'}]}]}}}\n";
    let cause = "it is annotated wva.llmd.ai/exclude=true, and VariantAutoscaling ns/a is in it";
    for (name, value, more, expected) in wva_base::cases! {
        ("ns", "true", "", vec![format!("WVA083 {cause}")]),
        ("ns", "false", "", vec![]),
        ("other", "true", "", vec![]),
        // It is the one that the controller watches.
        ("ns", "true", watching, vec![]),
    } {
        let text = format!("{VARIANT}{}{more}", namespace(name, value));
        assert_eq!(lines(&text), expected, "{name} {value}");
    }
}

#[test]
fn a_config_map_of_settings_in_a_namespace_that_is_not_read_is_found() {
    let found = |home: &str, name: &str, namespace: &str| {
        lines(&format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: wva{home}}}\n\
             spec: {{template: {{spec: {{containers: [{{name: manager, image: wva, env: [\
             {{name: POD_NAMESPACE, value: system}}, {{name: CONFIG_MAP_NAME, value: main}}, \
             {{name: PROMETHEUS_BASE_URL, value: 'https://p:9090'}}]}}]}}}}}}\n---\n\
             apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata: {{}}\n"
        ))
    };
    let unread = |purpose: &str| {
        let why = "which the controller reads in namespace system alone";
        vec![format!("WVA026 it is the {purpose} ConfigMap, {why}")]
    };
    let home = ", namespace: system";
    for (home, name, namespace, expected) in wva_base::cases! {
        (home, "main", "system", vec![]),
        (home, "main", "llm-d", unread("main")),
        (home, "serviceclass", "llm-d", unread("service-classes")),
        // A namespace may have its own, and that of the controller may not be known.
        (home, "wva-saturation-scaling-config", "llm-d", vec![]),
        ("", "main", "llm-d", vec![]),
    } {
        assert_eq!(found(home, name, namespace), expected, "{name} {namespace}");
    }
}

#[test]
fn a_metric_that_a_merge_key_brings_is_read() {
    let found = |metric: &str| {
        let external = "{type: External, external: {target: {type: AverageValue, averageValue: '1'}, \
                        metric: {name: wva_desired_replicas, \
                        selector: {matchLabels: {variant_name: a, exported_namespace: ns}}}}}";
        lines(&format!(
            "apiVersion: v1\nkind: List\nx-common: &external {external}\nitems:\n\
             - apiVersion: llmd.ai/v1alpha1\n  kind: VariantAutoscaling\n  metadata: {{name: a, namespace: ns}}\n  \
             spec: {{scaleTargetRef: {{name: a}}, modelID: m}}\n\
             - apiVersion: autoscaling/v2\n  kind: HorizontalPodAutoscaler\n  metadata: {{name: a, namespace: ns}}\n  \
             spec:\n    scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: a}}\n    maxReplicas: 5\n    \
             metrics: [{metric}]\n"
        ))
    };
    let other = found("{type: External}");
    assert!(other.len() == 1 && other[0].starts_with("WVA122"), "{other:?}");
    assert_eq!(found("{<<: *external}"), Vec::<String>::new());
}

#[test]
fn a_patch_of_a_kustomization_is_judged_by_what_it_states() {
    let variant =
        "apiVersion: llmd.ai/v1alpha1\nkind: VariantAutoscaling\nmetadata: {name: a}\nspec: ";
    let scaler = "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: a}\n\
                  spec: {maxReplicaCount: 30}\n";
    let found = |patch: &str, kustomization: &str| {
        let texts = [("cost.yaml", patch), ("kustomization.yaml", kustomization)];
        let diagnosis = examine(&written(&texts));
        let causes = diagnosis.findings().map(|one| one.cause.clone());
        causes.collect::<Vec<_>>()
    };
    let cost = format!("{variant}{{variantCost: '30'}}\n{scaler}");
    let [by_path, by_name] = [
        "patches: [{path: cost.yaml}, {patch: '- op: remove'}]",
        "patchesStrategicMerge: [./cost.yaml]",
    ];
    let alone = found(&cost, "resources: [cost.yaml]");
    assert_eq!(
        alone,
        [
            "spec.modelID is required",
            "spec.scaleTargetRef is required",
            "spec: missing field `scaleTargetRef`",
        ]
    );
    for kustomization in [by_path, by_name] {
        assert_eq!(found(&cost, kustomization), Vec::<String>::new());
        let broken = cost.replace("'30'", "thirty");
        let fault = "spec.variantCost is \"thirty\", and has to be a decimal number like \"10.0\"";
        assert_eq!(found(&broken, kustomization), [fault]);
    }
}

/// The kustomization of a file that is named alone stands near it.
#[test]
fn a_patch_that_is_named_alone_is_one_as_well() {
    let folder = Folder::new();
    let patch = VARIANT.replace("  modelID: m\n", "");
    let file = folder.write("cost.yaml", patch);
    let found = || {
        let facts = files::read(&file, None).unwrap();
        examine(&facts).findings().count()
    };
    assert_eq!(found(), 1);
    folder.write("kustomization.yml", "patches: [{path: cost.yaml}]");
    assert_eq!(found(), 0);
}

/// A kustomization has one of three names, and stands above its patches.
#[test]
fn a_patch_below_its_kustomization_is_one_as_well() {
    for name in ["kustomization.yaml", "kustomization.yml", "Kustomization"] {
        let folder = Folder::new();
        std::fs::create_dir_all(folder.join("gold/patches")).unwrap();
        let patch = VARIANT.replace("  modelID: m\n", "");
        folder.write("gold/patches/cost.yaml", patch);
        let found = |path: &str| {
            let facts = files::read(&folder.join(path), None).unwrap();
            examine(&facts).findings().count()
        };
        let all = || ["", "gold", "gold/patches"].map(found);
        assert_eq!(all(), [1, 1, 1], "{name}");
        let kustomization =
            folder.write(&format!("gold/{name}"), "patches: [{path: patches/cost.yaml}]");
        assert_eq!(all(), [0, 0, 1], "{name}");
        std::fs::remove_file(kustomization).unwrap();
        folder.write(&format!("gold/patches/{name}"), "patches: [{path: cost.yaml}]");
        assert_eq!(all(), [0, 0, 0], "{name}");
    }
}

#[test]
fn templates_and_foreign_files_are_named_and_have_no_finding() {
    let named = |name: &str| VARIANT.replace("name: a, ", &format!("name: {name}, "));
    let service = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: '{{ .b }}'}\n";
    let template = "it is a template; render it first: helm template";
    let ours = format!("{VARIANT}---\n{}", named("'{{ .Release.Name }}'"));
    let broken = named("A_b");
    let scaler = |target: &str| {
        format!(
            "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {{name: a, namespace: ns}}\n\
             spec: {{scaleTargetRef: {{name: {target}}}, maxReplicaCount: 4, triggers: [{{type: loki, \
             metadata: {{query: '{{a=\"b\"}} | line_format \"{{{{.status}}}}\"'}}}}]}}\n"
        )
    };
    let [logs, unrendered] = ["a", "'{{ .Values.name }}'"].map(scaler);
    for (text, findings, read, why) in wva_base::cases! {
        (VARIANT, 0, 1, None),
        (broken.as_str(), 1, 1, None),
        ("apiVersion: [", 1, 0, None),
        (service, 0, 1, None),
        (ours.as_str(), 0, 1, Some(template)),
        (unrendered.as_str(), 0, 0, Some(template)),
        (logs.as_str(), 0, 1, None),
        ("kind: A\n{{- if .Values.a }}\nb: 1\n{{- end }}\n", 0, 0, Some(template)),
        ("Resources: !Sub x\n", 0, 0, Some("it is no manifest: ")),
        ("{ // comment\n  \"a\": 1, }\n", 0, 0, Some("it is no manifest: ")),
        ("{ // comment\n  \"apiVersion\": 1, }\n", 0, 0, Some("it is no manifest: ")),
        ("{ // comment\n  \"apiVersion\": \"v1\", }\n", 1, 0, None),
    } {
        let facts = written(&[("it.yaml", text)]);
        let mut diagnosis = examine(&facts);
        diagnosis.objects_read = Some(facts.objects_read);
        let found = diagnosis.findings().count();
        assert_eq!((found, facts.objects_read), (findings, read), "{text}");
        let [report, json] = [diagnosis.to_text(), diagnosis.to_json()["notRead"].to_string()];
        let is_named = |text: &str| why.is_some_and(|why| text.contains(why));
        assert_eq!(is_named(&report), why.is_some(), "{report}");
        assert_eq!(is_named(&json), json != "[]", "{json}");
        assert_eq!(report.contains("not read\n--------\n"), why.is_some(), "{report}");
    }
}

/// Repositories of models hold large vocabularies, and exports in other encodings.
#[test]
fn a_file_without_text_is_found_where_it_states_a_version() {
    let wide = |text: &str| {
        let units = text.encode_utf16();
        units.flat_map(u16::to_le_bytes).collect::<Vec<u8>>()
    };
    let large = |text: &str| [text, &" ".repeat(9 << 20)].concat().into_bytes();
    for (bytes, is_found) in wva_base::cases! {
        (wide("{\"a\": 1}"), false),
        (wide(VARIANT), true),
        (b"name: caf\xe9\n".to_vec(), false),
        ([VARIANT.as_bytes(), b"# caf\xe9\n"].concat(), true),
        (large("{\"vocab\": {\"apiVersion\": 82214}}"), false),
        (large(VARIANT), true),
    } {
        let folder = Folder::new();
        folder.write("it.yaml", &bytes);
        let facts = files::read(&folder, None).unwrap();
        let counted = (examine(&facts).findings().count(), facts.not_read.len());
        let expected = (usize::from(is_found), usize::from(!is_found));
        let start = String::from_utf8_lossy(&bytes[..9]);
        assert_eq!(counted, expected, "{start}");
    }
}

#[test]
fn what_no_cluster_takes_as_it_is_meant_is_found() {
    let hpa = |version: &str| {
        format!(
            "apiVersion: {version}\nkind: HorizontalPodAutoscaler\nmetadata: {{name: a}}\n\
             spec: {{maxReplicas: 2, scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: a}}}}\n"
        )
    };
    let named = |metadata: &str| VARIANT.replace("{name: a, namespace: ns}", metadata);
    let labelled =
        |label: &str| named(&format!("{{name: a, labels: {{wva.llmd.ai/{label}: blue}}}}"));
    for (fine, broken, expected) in wva_base::cases! {
        (named("{generateName: a-}"), named("{namespace: ns}"), "metadata.name is required"),
        (labelled("controller-instance"), labelled("controller-instanc"),
         "label \"wva.llmd.ai/controller-instanc\" has no effect; write wva.llmd.ai/controller-instance"),
        (labelled("shard"), labelled("controler-instance"),
         "label \"wva.llmd.ai/controler-instance\" has no effect; write wva.llmd.ai/controller-instance"),
        (hpa("autoscaling/v1"), hpa("autoscaling/v2beta2"),
         "apiVersion \"autoscaling/v2beta2\" is not known; write autoscaling/v2"),
    } {
        assert_eq!(lines(&fine), Vec::<String>::new(), "{expected}");
        assert_eq!(lines(&broken), [format!("WVA080 {expected}")]);
    }
}

/// What is found of a ScaledObject with these fields that follows the count of the variant.
fn found(fields: &str) -> Vec<String> {
    found_with(fields, "useCachedMetrics: false")
}

/// The same with another field of its trigger.
fn found_with(fields: &str, field: &str) -> Vec<String> {
    let query = "max(wva_desired_replicas{variant_name=\"a\",exported_namespace=\"ns\"})";
    lines(&format!(
        "{VARIANT}---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {{name: s, namespace: ns}}\n\
         spec:\n  scaleTargetRef: {{name: a}}\n  maxReplicaCount: 4\n  {fields}\n  triggers:\n  - type: prometheus\n    \
         {field}\n    metadata: {{serverAddress: x, threshold: '1', ignoreNullValues: 'false', \
         query: '{query}'}}\n"
    ))
}

#[test]
fn an_idle_count_that_keda_refuses_is_found_where_a_count_is_followed() {
    for (idle, min, refused) in [
        (0, Some(0), None),
        (0, Some(1), None),
        (1, Some(0), Some(1)),
        (1, Some(1), Some(1)),
        (0, None, Some(0)),
    ] {
        let min = min.map_or_else(String::new, |min| format!("\n  minReplicaCount: {min}"));
        let expected = refused.map(|below| {
            format!(
                "WVA080 spec.idleReplicaCount is {idle}; write less than {below}, which KEDA takes for the minimum"
            )
        });
        let expected: Vec<String> = expected.into_iter().collect();
        assert_eq!(found(&format!("idleReplicaCount: {idle}{min}")), expected, "{min}");
    }
    let other = "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: s, namespace: ns}\n\
                 spec: {scaleTargetRef: {name: a}, maxReplicaCount: 4, minReplicaCount: 1, idleReplicaCount: 1}\n";
    assert_eq!(lines(other), Vec::<String>::new());
}

#[test]
fn a_target_at_zero_that_is_seldom_looked_at_is_found() {
    let cause =
        "spec.pollingInterval is 300, for which the first replica waits; KEDA's default is 30";
    for (fields, expected) in wva_base::cases! {
        ("pollingInterval: 60", vec![]),
        ("pollingInterval: 300", vec![format!("WVA130 {cause}")]),
        ("pollingInterval: 300\n  minReplicaCount: 1", vec![]),
    } {
        assert_eq!(found(fields), expected, "{fields}");
    }
    let cached = "spec.pollingInterval is 300, and by useCachedMetrics KEDA answers with a count of that age";
    for (interval, expected) in [(60, vec![]), (300, vec![format!("WVA130 {cached}")])] {
        let fields = format!("pollingInterval: {interval}\n  minReplicaCount: 1");
        assert_eq!(found_with(&fields, "useCachedMetrics: true"), expected);
    }
}

#[test]
fn growth_is_judged_by_the_policy_that_acts() {
    let slow = |added: &str, seconds: u32| {
        vec![format!(
            "WVA130 behavior.scaleUp.policies add {added} in {seconds} s; 100 pods in 15 s do not hold a count back"
        )]
    };
    let fast = "{type: Pods, value: 100, periodSeconds: 15}";
    let hour = "{type: Pods, value: 4, periodSeconds: 3600}";
    let share = |value: u32, seconds: u32| {
        format!("{{type: Percent, value: {value}, periodSeconds: {seconds}}}")
    };
    for (select, policies, expected) in wva_base::cases! {
        ("Max", format!("{fast}, {hour}"), vec![]),
        ("Max", hour.to_owned(), slow("4 pods", 3600)),
        ("Min", format!("{fast}, {hour}"), slow("4 pods", 3600)),
        ("Min", fast.to_owned(), vec![]),
        ("Max", share(10, 1800), slow("10 % of 4 replicas", 1800)),
        // One pod at least.
        ("Max", share(10, 60), vec![]),
        ("Max", share(10, 61), slow("10 % of 4 replicas", 61)),
        ("Max", share(50, 120), vec![]),
        ("Max", format!("{}, {fast}", share(10, 1800)), vec![]),
        ("Min", format!("{fast}, {}", share(10, 1800)), slow("10 % of 4 replicas", 1800)),
    } {
        let rules = format!("{{selectPolicy: {select}, policies: [{policies}]}}");
        let behavior = format!("behavior: {{scaleUp: {rules}}}");
        let fields = format!("advanced: {{horizontalPodAutoscalerConfig: {{{behavior}}}}}");
        assert_eq!(found(&fields), expected, "{fields}");
    }
}
