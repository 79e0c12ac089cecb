//! What several manifests show together: disputes, models of one name, triggers of targets.

use serde_json::{Value, json};

use super::manifests::{VARIANT, lines, samples, written};
use crate::doctor::{FindingCode, examine};

/// Variants of a folder dispute a target. Costs, and scalers of one target, are compared within one file.
#[test]
fn disputes_of_a_folder_are_found() {
    let hpa = std::fs::read_to_string(samples("config/samples/scalers/hpa.yaml")).unwrap();
    let second = hpa.replacen("name: llama-8b", "name: second", 1);
    let variant = VARIANT.replace("name: a", "name: llama-8b");
    let variant = variant.replace("minReplicas: 2\n  maxReplicas: 4", "maxReplicas: 10");
    let variant = variant.replace("namespace: ns", "namespace: llm-d");
    let hpa = hpa.replace("metadata:\n", "metadata:\n  namespace: llm-d\n");
    let second = second.replace("metadata:\n", "metadata:\n  namespace: llm-d\n");
    let other = variant.replacen("llama-8b", "b", 1);
    let elsewhere = other.replace("llama-8b", "b");
    let targets = ["llama-8b", "b"].map(|name| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: llm-d}}\n\
             spec: {{template: {{spec: {{containers: [{{name: c, image: i}}]}}}}}}\n"
        )
    });
    let [target, rival] = &targets;
    for (first, last, expected) in wva_base::cases! {
        (vec![&variant], vec![&elsewhere.replace("3.0", "4")], &[][..]),
        (vec![&variant], vec![&variant], &[]),
        (vec![&variant], vec![&other.replace("3.0", "4")], &[FindingCode::TargetContested]),
        (vec![&variant], vec![&elsewhere], &[]),
        (vec![&variant, &elsewhere, target, rival], vec![], &[FindingCode::CostsEqual]),
        // One may prefill for the other.
        (vec![&variant, &elsewhere], vec![], &[]),
        (vec![&variant, &elsewhere, target], vec![], &[]),
        (vec![&variant, &hpa], vec![&second], &[]),
        (vec![&variant], vec![&hpa, &second], &[FindingCode::SeveralScalers]),
        // The second file holds one of the objects again.
        (vec![&variant, &elsewhere], vec![&elsewhere.replace("3.0", "4"), target, rival], &[FindingCode::CostsEqual]),
        (vec![&variant, &hpa, &second], vec![&hpa], &[FindingCode::SeveralScalers]),
    } {
        let [one, other] = [&first, &last].map(|texts| {
            let texts: Vec<&str> = texts.iter().map(|text| text.as_str()).collect();
            texts.join("---\n")
        });
        let facts = written(&[("a.yaml", one.as_str()), ("b.yaml", other.as_str())]);
        assert_eq!(
            super::codes(&facts),
            expected,
            "{first:?} {last:?}: {}",
            examine(&facts).to_text()
        );
    }
}

/// Codes and files of what is found in a folder.
fn found(texts: &[(&str, &str)]) -> Vec<(FindingCode, String)> {
    let diagnosis = examine(&written(texts));
    let found = diagnosis.findings().map(|one| {
        let file = one.object.file.as_deref().unwrap_or_default();
        (one.code, file.rsplit('/').next().unwrap().to_owned())
    });
    found.collect()
}

#[test]
fn a_finding_names_the_file_with_the_fault() {
    let broken = VARIANT.replace("3.0", "ten");
    let sound = found(&[("a.yaml", VARIANT), ("b.yaml", VARIANT)]);
    assert_eq!(sound, Vec::<(FindingCode, String)>::new());
    for (first, last, file) in
        [(broken.as_str(), VARIANT, "a.yaml"), (VARIANT, broken.as_str(), "b.yaml")]
    {
        assert_eq!(
            found(&[("a.yaml", first), ("b.yaml", last)]),
            [(FindingCode::VariantMalformed, file.to_owned())]
        );
    }
}

/// What is found where the main ConfigMap of a controller has these data, each in a file of its own.
fn of_settings(maps: &[(&str, &str)]) -> Vec<(FindingCode, String)> {
    let variables = [("POD_NAMESPACE", "system"), ("CONFIG_MAP_NAME", "main")];
    let variables = variables.map(|(name, value)| json!({ "name": name, "value": value }));
    let container = json!({ "name": "manager", "image": "wva", "env": variables });
    let controller = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "wva", "namespace": "system" },
        "spec": { "template": { "spec": { "containers": [container] } } },
    });
    let controller = controller.to_string();
    let map = |data: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: main, namespace: system}}\ndata: {{{data}}}\n"
        )
    };
    let maps: Vec<(&str, String)> = maps.iter().map(|(file, data)| (*file, map(data))).collect();
    let mut texts = vec![("controller.yaml", controller.as_str())];
    texts.extend(maps.iter().map(|(file, text)| (*file, text.as_str())));
    found(&texts)
}

const ADDRESS: &str = "PROMETHEUS_BASE_URL: 'https://p:9090'";

#[test]
fn a_fault_of_the_main_config_map_is_found_in_its_file() {
    let fault = |data: &str| {
        let data = format!("{ADDRESS}{data}");
        of_settings(&[("map.yaml", data.as_str())])
    };
    assert_eq!(fault(""), Vec::<(FindingCode, String)>::new());
    for data in [", FOO: x", ", GLOBAL_OPT_INTERVAL: abc"] {
        let expected = (FindingCode::SettingIgnored, "map.yaml".to_owned());
        assert_eq!(fault(data), [expected], "{data}");
    }
}

#[test]
fn a_mark_of_the_byte_order_is_no_key() {
    let broken = VARIANT.replace("3.0", "ten");
    for (text, findings) in [(VARIANT, 0), (broken.as_str(), 1)] {
        let found = lines(&format!("\u{feff}{text}"));
        assert_eq!(found.len(), findings, "{found:?}");
    }
}

#[test]
fn what_an_api_server_does_not_take_as_written_is_found() {
    let name = "\"A_b\" is not an object name: at most 253 ";
    let namespace = "\"UPPER\" is not a namespace: at most 63 ";
    let again = format!("  maxReplicas: 4\n---\n{VARIANT}");
    let again = again.as_str();
    let twice = "the file holds it twice, and the last one is applied; remove one";
    let kind =
        "kind \"VariantAutoScaling\" is not known in llmd.ai/v1alpha1; write VariantAutoscaling";
    for (place, from, to, expected) in wva_base::cases! {
        ("key", "modelID: m\n", "modelID: m\n  modelID: n\n", "\"modelID\" stands twice; write it once"),
        ("value", "maxReplicas: 4\n", "maxReplicas: 4\n  maxReplicas: 0\n", "\"maxReplicas\" stands twice; write it once"),
        ("kind", "VariantAutoscaling", "VariantAutoScaling", kind),
        ("name", "name: a, name", "name: A_b, name", name),
        ("namespace", "namespace: ns", "namespace: UPPER", namespace),
        ("twice", "  maxReplicas: 4\n", again, twice),
    } {
        let found = lines(&VARIANT.replace(from, to));
        assert_eq!(found.len(), 1, "{place}: {found:?}");
        assert!(
            found[0].starts_with("WVA080") && found[0].contains(expected),
            "{place}: {found:?}"
        );
    }
}

#[test]
fn a_key_that_stands_twice_in_an_item_of_a_list_hides_no_other_item() {
    let list = |first: &str, second: &str| {
        let item = |name: &str, cost: u8, more: &str| {
            let target = format!("scaleTargetRef: {{name: {name}}}");
            format!(
                "- apiVersion: llmd.ai/v1alpha1\n  kind: VariantAutoscaling\n  \
                 metadata: {{name: {name}, namespace: ns}}\n  \
                 spec: {{{target}, modelID: m, variantCost: '{cost}', {more}}}\n"
            )
        };
        let text = format!(
            "apiVersion: v1\nkind: List\nitems:\n{}{}",
            item("a", 3, first),
            item("b", 4, second)
        );
        lines(&text)
    };
    let (fine, refused, twice) =
        ("maxReplicas: 4", "maxReplicas: 0", "maxReplicas: 4, maxReplicas: 0");
    assert_eq!(list(fine, fine), Vec::<String>::new());
    let least = "WVA080 spec.maxReplicas is 0, and has to be at least 1";
    assert_eq!(list(fine, refused), [least]);
    let found = list(fine, twice);
    let repeated = "WVA080 items[1].spec: \"maxReplicas\" stands twice; write it once";
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(repeated), "{found:?}");
    let mut both = list(refused, twice);
    both.sort();
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both[0].starts_with(repeated) && both[1] == least, "{both:?}");
}

#[test]
fn a_second_variant_of_a_target_names_the_first() {
    let second = |target: &str| {
        let second = VARIANT.replace("3.0", "4").replace("name: a, ", "name: b, ");
        let second = second.replace("{name: a}", target);
        lines(&format!("{VARIANT}---\n{second}"))
    };
    assert_eq!(second("{name: b}"), Vec::<String>::new());
    let cause = "VariantAutoscaling ns/a names Deployment ns/a too; keep one of both";
    assert_eq!(second("{name: a}"), [format!("WVA086 {cause}")]);
}

/// Two files with one ConfigMap may be a patch and what it patches.
#[test]
fn no_file_of_a_config_map_hides_a_fault_of_another() {
    let sound = format!("{ADDRESS}, GLOBAL_OPT_INTERVAL: 30s, METRICS_SECURE: 'true'");
    let pair = |first: &str, last: &str| of_settings(&[("a.yaml", first), ("b.yaml", last)]);
    assert_eq!(pair(&sound, &sound), Vec::<(FindingCode, String)>::new());
    assert_eq!(pair(&sound, "LOG_LEVEL: info"), Vec::<(FindingCode, String)>::new());
    for (from, to) in [("30s", "abc"), ("'true'", "maybe")] {
        let broken = sound.replace(from, to);
        for (first, last, file) in [(&broken, &sound, "a.yaml"), (&sound, &broken, "b.yaml")] {
            let found = pair(first, last);
            let files: Vec<&str> = found.iter().map(|(_, file)| file.as_str()).collect();
            let is_refused = to == "maybe" && file == "b.yaml";
            let expected = if is_refused { "controller.yaml" } else { file };
            assert_eq!(files, [expected], "{found:?}");
        }
    }
}

/// A Deployment of a container with arguments, and a variant of it.
fn engine(name: &str, cost: u8, arguments: &[&str]) -> String {
    engines(name, cost, &[arguments])
}

/// A Deployment of containers by their arguments, and a variant of it.
fn engines(name: &str, cost: u8, containers: &[&[&str]]) -> String {
    let containers = containers.iter().enumerate();
    let containers = containers.map(|(index, arguments)| {
        json!({ "name": format!("c{index}"), "image": "i", "args": arguments })
    });
    let containers: Vec<Value> = containers.collect();
    let target = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "namespace": "ns" },
        "spec": { "template": { "spec": { "containers": containers } } },
    });
    let variant = VARIANT.replace("name: a", &format!("name: {name}"));
    let variant = variant.replace("3.0", &cost.to_string());
    format!("{target}\n---\n{variant}---\n")
}

#[test]
fn models_of_one_name_are_compared_by_what_is_loaded() {
    let served = "--served-model-name=m";
    for (one, other, differ) in wva_base::cases! {
        (&["serve", "org/m"][..], &["serve", "other/z", served][..], true),
        (&["--model-path", "org/m"], &["--model-path=other/z", served], true),
        (&["--model", "org/m"], &["--model=other/z", served], true),
        (&["--model", "meta-llama/Llama-3.1-8B-Instruct", served],
         &["--model", "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8", served], false),
        (&["serve", "RedHatAI/Llama-3.1-8B-FP8-dynamic"], &["serve", "b/Llama-3.1-8B-quantized.w4a16"], false),
        (&["serve", "Qwen/Qwen3-32B-GPTQ-Int4"], &["serve", "Qwen/Qwen3-32B-GPTQ-Int8"], false),
        (&["serve", "nvidia/Llama-3.1-8B-NVFP4"], &["serve", "b/Llama-3.1-8B-quantized.w8a8"], false),
        (&["serve", "a/Qwen3-32B-FP8-block"], &["serve", "a/Qwen3-32B-FP8-dynamic"], false),
        (&["serve", "a/Llama-3.1-8B-AWQ-INT4"], &["serve", "b/Meta-Llama-3.1-8B-quantized.w8a8"], false),
        (&["serve", "a/Llama-3.1-8B-bnb-4bit"], &["serve", "b/Llama-3.1-8B-MXFP4"], false),
        (&["serve", "a/Meta-Llama-3.1-8B-FP8"], &["serve", "amd/Llama-3.1-8B-FP8-KV"], false),
        (&["serve", "Intel/Qwen3-8B-int4-AutoRound"], &["serve", "b/Qwen3-8B-unsloth-bnb-4bit"], false),
        (&["serve", "a/DeepSeek-R1-FP4"], &["serve", "b/DeepSeek-R1-AWQ"], false),
        (&["serve", "a/DeepSeek-R1-FP4"], &["serve", "b/DeepSeek-V3-AWQ"], true),
        // The size of a model is none of its form.
        (&["serve", "a/Qwen3-32B-Int4"], &["serve", "a/Qwen3-8B-Int8"], true),
        (&["serve", "a/Llama-2-7B-Chat-GGUF"], &["serve", "b/Llama-2-7b-chat-hf"], false),
        (&["--model=/mnt/models", served], &["--model=org/z", served], false),
        (&["serve", "$(MODEL)", served], &["serve", "org/z", served], false),
    } {
        // What is served is as modelID says in all of them.
        let [one, other] = [one, other].map(|arguments| [arguments, &[served]].concat());
        let text = [engine("a", 3, &one), engine("b", 4, &other)].concat();
        let found = lines(&text);
        let expected = usize::from(differ);
        assert_eq!(found.len(), expected, "{one:?} {other:?} {found:?}");
        assert!(found.iter().all(|line| line.starts_with("WVA088")), "{found:?}");
    }
}

#[test]
fn a_model_is_compared_with_the_name_that_its_target_states() {
    let differs = |code: &str, name: &str| {
        vec![format!("{code} modelID is \"m\", and the arguments of Deployment ns/a say {name:?}")]
    };
    for (arguments, expected) in wva_base::cases! {
        (&["--model=org/z", "--served-model-name=m"][..], vec![]),
        (&["--model=org/z", "--served-model-name=zzz"], differs("WVA063", "zzz")),
        (&["--model", "org/m", "--served-model-name", "n", "m"], differs("WVA063", "n")),
        (&["vllm serve org/z --served-model-name 'M'"], differs("WVA064", "M")),
        (&["--model=org/M"], differs("WVA064", "org/M")),
        (&["--model-path", "org/z"], differs("WVA063", "org/z")),
        (&["--model=org/z", "--served-model-name=$(NAME)"], vec![]),
        (&["--model=/mnt/models"], vec![]),
        (&["serve", "app"], vec![]),
        (&["vllm serve org/z --served-model-name m; sleep 1"], vec![]),
        (&["vllm serve org/z; sleep 1"], vec![]),
        (&["vllm serve \\\n org/z \\\n --served-model-name \\\n m"], vec![]),
        (&["vllm serve \\\n org/z \\\n --served-model-name \\\n zzz"], differs("WVA063", "zzz")),
        (&["serve", "org/m"], differs("WVA064", "org/m")),
        (&["serve", "org/m", "--config", "/etc/vllm.yaml"], vec![]),
        (&["serve", "org/m", "--config=/etc/vllm.yaml", "--served-model-name=zzz"], differs("WVA063", "zzz")),
        // A variable may hold further options, the name among them.
        (&["vllm serve org/z --port 8000"], differs("WVA063", "org/z")),
        (&["vllm serve org/z --port 8000 $OPTIONS"], vec![]),
        (&["serve", "org/z", "$(OPTIONS)"], vec![]),
        (&["exec vllm serve org/z \"$@\"", "--"], vec![]),
        (&["vllm serve org/z ${OPTIONS[@]}"], vec![]),
        (&["vllm serve org/z --served-model-name zzz $OPTIONS"], differs("WVA063", "zzz")),
        (&["--model=org/z", "--served-model-name={{ .Values.name }}"], vec![]),
        (&["vllm serve org/z --served-model-name m>/tmp/log"], vec![]),
        (&["vllm serve org/z --served-model-name m\n# --served-model-name zzz"], vec![]),
        (&["vllm serve org/z --served-model-name zzz # m"], differs("WVA063", "zzz")),
        // Which of two values is in force is not known.
        (&["vllm serve org/y --port 1 &\nvllm serve org/z --port 2"], vec![]),
        (&["vllm serve org/z & vllm bench serve --model org/z"], differs("WVA063", "org/z")),
        (&[], vec![]),
    } {
        let found = lines(&engine("a", 3, arguments));
        assert_eq!(found, expected, "{arguments:?}");
    }
}

#[test]
fn a_model_id_of_a_template_is_not_compared() {
    let text = engine("a", 3, &["--served-model-name=zzz"]);
    for (model, expected) in [("other", 1), ("'{{ .Values.modelID }}'", 0), ("'${MODEL}'", 0)] {
        let text = text.replace("modelID: m", &format!("modelID: {model}"));
        let found = lines(&text);
        let differs = found.iter().filter(|line| line.starts_with("WVA063"));
        assert_eq!(differs.count(), expected, "{model} {found:?}");
    }
}

#[test]
fn a_model_is_one_of_those_that_the_containers_of_its_target_serve() {
    let guard = &["--served-model-name=guard"][..];
    let says = |names: &str| {
        vec![format!("WVA063 modelID is \"m\", and the arguments of Deployment ns/a say {names:?}")]
    };
    for (engine, expected) in wva_base::cases! {
        (&["--served-model-name=m"][..], vec![]),
        (&["--served-model-name=zzz"], says("guard, zzz")),
        (&["--model=/mnt/models"], vec![]),
        (&["serve", "org/z", "--config", "/etc/vllm.yaml"], vec![]),
        (&["serve", "--config=/etc/vllm.yaml"], vec![]),
        (&["--config=/etc/proxy.yaml"], says("guard")),
    } {
        for containers in [[engine, guard], [guard, engine]] {
            let found = lines(&engines("a", 3, &containers));
            assert_eq!(found, expected, "{containers:?}");
        }
    }
}

/// A model in its image or environment is not seen. What holds no devices is no engine.
#[test]
fn an_engine_without_arguments_leaves_open_what_is_served() {
    let text = engines("a", 3, &[&[], &["--served-model-name=guard"]]);
    let image = r#""image":"i""#;
    assert!(text.contains(image));
    let gpu = json!({ "limits": { "nvidia.com/gpu": "1" } });
    for (resources, arguments, is_found) in [
        (json!({}), "[]", true),
        (json!({ "limits": { "memory": "1Gi" } }), "[]", true),
        (gpu.clone(), "[]", false),
        (json!({ "claims": [{ "name": "gpu" }] }), "[]", false),
        // A worker of a group, which serves nothing.
        (gpu, r#"["ray","start"]"#, true),
    ] {
        // The first container is the engine.
        let text = text.replacen(image, &format!("{image},\"resources\":{resources}"), 1);
        let text = text.replacen(r#""args":[]"#, &format!("\"args\":{arguments}"), 1);
        let found = lines(&text);
        let expected =
            "WVA063 modelID is \"m\", and the arguments of Deployment ns/a say \"guard\"";
        let expected: &[&str] = if is_found { &[expected] } else { &[] };
        assert_eq!(found, expected, "{resources}");
    }
}

/// A container that one of two targets has more is no other model.
#[test]
fn models_of_one_name_are_compared_by_all_containers() {
    let served = "--served-model-name=m";
    let main = &["--model=org/m", served][..];
    let guard = &["--model=org/guard"][..];
    for (other, differ) in [
        (&[main, guard][..], false),
        (&[guard, main], false),
        (&[guard, &["--model=other/z", served][..]], true),
    ] {
        let found = lines(&[engine("a", 3, main), engines("b", 4, other)].concat());
        let expected = usize::from(differ);
        assert_eq!(found.len(), expected, "{other:?} {found:?}");
        assert!(found.iter().all(|line| line.starts_with("WVA088")), "{found:?}");
    }
}

/// What files hold may be alternatives: one of them that serves the model is enough.
#[test]
fn a_model_is_served_by_one_of_several_targets_of_a_name() {
    let text = engine("a", 3, &["--served-model-name=other"]);
    let target = |name: &str| {
        let argument = format!("--served-model-name={name}");
        let text = engine("a", 3, &[&*argument]);
        text.split_once("---\n").unwrap().0.to_owned()
    };
    for (name, expected) in [("another", 1), ("m", 0)] {
        let target = target(name);
        let both = written(&[("a.yaml", text.as_str()), ("b.yaml", target.as_str())]);
        let diagnosis = examine(&both);
        let found = diagnosis.findings().filter(|one| one.code == FindingCode::ModelNameDiffers);
        assert_eq!(found.count(), expected, "{name}");
    }
}

/// A trigger of KEDA on the target of a VariantAutoscaling, before KEDA has asked it.
#[test]
fn an_external_trigger_of_a_variants_target_is_ours() {
    let scaler = |target: &str, metadata: &str, more: &str| {
        let text = format!(
            "{VARIANT}---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {{name: s, namespace: ns}}\n\
             spec:\n  scaleTargetRef: {{name: {target}}}\n  minReplicaCount: 1\n  maxReplicaCount: 4\n{more}\
             \x20 advanced: {{horizontalPodAutoscalerConfig: {{behavior: {{scaleUp: {{tolerance: '0'}}, \
             scaleDown: {{tolerance: '0'}}}}}}}}\n  triggers: [{{type: external-push, metadata: {{{metadata}}}}}]\n"
        );
        lines(&text)
    };
    let zero = "  fallback: {failureThreshold: 3, replicas: 0}\n";
    for (target, metadata, more, expected) in wva_base::cases! {
        ("a", "scalerAddress: x", "", None),
        ("a", "scalerAddress: x, enableTLS: 'true'", "", None),
        ("a", "scalerAddress: x, variantNam: a", "",
         Some("WVA080 trigger metadata of ScaledObject ns/s: \"variantNam\"")),
        ("a", "scalerAddress: x, warmPool: 'true'", "",
         Some("WVA080 trigger metadata of ScaledObject ns/s: \"warmPool\"")),
        ("a", "scalerAddress: x, variantName: z", "",
         Some("WVA122 its trigger reads the count of \"z\"; set variantName")),
        ("a", "scalerAddress: x", zero, Some("WVA131")),
        ("other", "scalerAddress: x", zero, None),
        ("other", "scalerAddress: x, warmPool: 'true'", "", None),
    } {
        let found = scaler(target, metadata, more);
        let case = format!("{target} {metadata} {more} {found:?}");
        assert_eq!(found.len(), usize::from(expected.is_some()), "{case}");
        assert!(found.iter().zip(expected).all(|(line, start)| line.starts_with(start)), "{case}");
    }
}

/// The scaler is the cause. A second one would not help.
#[test]
fn a_scaler_of_a_count_that_scales_another_target_is_named() {
    let found = |target: &str| {
        let scaler = format!(
            "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {{name: s, namespace: ns}}\n\
             spec:\n  scaleTargetRef: {{name: {target}}}\n  minReplicaCount: 1\n  maxReplicaCount: 4\n  triggers:\n  \
             - type: prometheus\n    metadata: {{serverAddress: x, threshold: '1', ignoreNullValues: 'false', \
             query: 'max(wva_desired_replicas{{variant_name=\"a\",exported_namespace=\"ns\"}})'}}\n"
        );
        lines(&format!("{VARIANT}{scaler}"))
    };
    assert_eq!(found("a"), Vec::<String>::new());
    let cause = "it reads the count of VariantAutoscaling ns/a and scales Deployment ns/other; \
                 name Deployment ns/a in its scaleTargetRef";
    assert_eq!(found("other"), [format!("WVA122 {cause}")]);
}
