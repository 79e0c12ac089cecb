//! How the accelerator of a variant finds the GPUs of nodes, and what is said where it does not.

use super::{planned, reason, targets};
use wva_policy::plan::Plan;

const LIMITED: &str = "saturation: {default: {analyzerName: saturation, enableLimiter: true}}";

/// A full replica of an accelerator, and nodes by their labels, each with 8 GPUs.
fn plan(accelerator: &str, resource: &str, nodes: &[&str]) -> Plan {
    let nodes: Vec<String> = (nodes.iter().enumerate())
        .map(|(number, labels)| {
            format!("n{number}: {{labels: {{{labels}}}, allocatable: {{{resource}: 8}}}}")
        })
        .collect();
    let text = format!(
        "version: 1
variants:
- namespace: ns
  name: v
  model: m
  target: {{current: 1}}
  accelerator: {accelerator}
  gpus: {{{resource}: 1}}
  pods: [{{name: p, signals: {{kvUsage: 0.9, queueLength: 6, kvCapacity: 12500, inputTokens: 100, outputTokens: 50}}}}]
inventory:
  nodes: {{{}}}
  pods: [{{node: n0, containers: [{{{resource}: 1}}]}}]
",
        nodes.join(", ")
    );
    planned(&text, LIMITED)
}

fn types(plan: &Plan) -> Vec<&str> {
    plan.pools.iter().map(|pool| &*pool.kind).collect()
}

const NVIDIA: &str = "nvidia.com/gpu";
const AMD: &str = "amd.com/gpu";
const GAUDI: &str = "habana.ai/gaudi";
const H100: &str = "nvidia.com/gpu.product: NVIDIA-H100-SXM5-80GB";
const L4: &str = "nvidia.com/gpu.product: NVIDIA-L4";

#[test]
fn an_accelerator_that_no_node_has_is_named_with_those_that_they_have() {
    for (nodes, known) in [(&[H100, L4][..], "H100, L4"), (&[], "none")] {
        let made = plan("B200", NVIDIA, nodes);
        assert_eq!(targets(&made)["v"], 1);
        let said = reason(&made, "v");
        let expected = format!("no node offers GPUs of type B200; known: {known}");
        assert!(said.contains(&expected), "{said}");
        assert!(!said.contains("limit 0"), "{said}");
        assert_eq!(made.pools[0].to_string(), format!("inventory[type=B200]: {expected}"));
    }
    let made = plan("H100", NVIDIA, &[H100, L4]);
    assert_eq!(targets(&made)["v"], 2, "{}", reason(&made, "v"));
}

#[test]
fn nodes_are_read_for_the_labels_that_variants_select_by() {
    let gke = "cloud.google.com/gke-accelerator: nvidia-h100-80gb";
    let t4 = "cloud.google.com/gke-accelerator: nvidia-tesla-t4, nvidia.com/gpu.product: Tesla-T4";
    let l4 = "cloud.google.com/gke-accelerator: nvidia-l4, nvidia.com/gpu.product: NVIDIA-L4";
    let instinct = "amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM";
    for (accelerator, resource, nodes, kind) in wva_base::cases! {
        ("MI250", AMD, &["amd.com/gpu.product-name: MI250"][..], "MI250"),
        ("AMD_Instinct_MI300X_OAM", AMD, &[instinct], "MI300X"),
        ("MI300X", AMD, &[instinct], "MI300X"),
        ("nvidia-h100-80gb", NVIDIA, &[gke], "H100"),
        ("H100", NVIDIA, &[gke, H100], "H100"),
        ("nvidia-h100-80gb", NVIDIA, &[H100, gke], "H100"),
        ("nvidia-l4", NVIDIA, &[l4], "L4"),
        ("nvidia-tesla-t4", NVIDIA, &[t4, L4], "T4"),
        ("Tesla-T4", NVIDIA, &[t4, L4], "T4"),
        ("h100", NVIDIA, &[H100, L4], "H100"),
        ("Gaudi-2", GAUDI, &["intel.com/gpu.product: Gaudi-2"], "Gaudi-2"),
        ("Gaudi-3", GAUDI, &["intel.com/gpu.product: Gaudi-2", "intel.com/gpu.product: Intel-Gaudi-3-128GB"],
         "Gaudi-3"),
    } {
        let made = plan(accelerator, resource, nodes);
        let said = reason(&made, "v");
        assert_eq!(targets(&made)["v"], 2, "{accelerator}: {said}");
        assert_eq!(types(&made), [kind], "{accelerator}");
    }
}
