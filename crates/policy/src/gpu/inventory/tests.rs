//! Devices of a driver together with GPUs of a device plugin.

use super::*;

const DEVICES: &str = "deviceclass.resource.kubernetes.io/gpu.nvidia.com";
const H100: &str = "NVIDIA H100 80GB HBM3";

fn counts(counts: &[(&str, u32)]) -> BTreeMap<Arc<str>, u32> {
    let counts = counts.iter();
    let counts = counts.filter(|(_, count)| *count > 0);
    counts.map(|(name, count)| (Arc::from(*name), *count)).collect()
}

/// A node whose device plugin lists as many.
fn node(plugin: Option<u32>) -> NodeView {
    NodeView {
        labels: BTreeMap::new(),
        allocatable: plugin.map(|count| ("nvidia.com/gpu".into(), count)).into_iter().collect(),
        uncounted: BTreeSet::new(),
        scheduling: Scheduling::Open,
    }
}

fn pod(held: &[(&str, u32)]) -> GpuPod {
    GpuPod {
        named: None,
        node: Some("n".into()),
        phase: PodPhase::Active,
        containers: vec![counts(held)],
        init_containers: Vec::new(),
    }
}

/// Limit, use, and whether what there is of H100 is known.
fn h100(
    nodes: Vec<(&str, NodeView)>,
    pods: &[GpuPod],
) -> (Option<Gpus>, Option<Gpus>, Option<bool>) {
    let nodes = nodes.into_iter();
    let nodes = nodes.map(|(name, node)| (name.into(), node)).collect();
    let physical = physical(Some(&nodes), Some(pods), &LabelSelector::default());
    let Physical::Known { limits, used, unlisted } = physical else {
        panic!("it is not known");
    };
    let limit = limits.get("H100").copied();
    let known = limit.map(|_| !unlisted.contains("H100"));
    (limit, used.get("H100").copied(), known)
}

fn offering(plugin: Option<u32>, devices: &[Option<u32>]) -> NodeView {
    let mut node = node(plugin);
    for count in devices {
        node.offer(&DEVICES.into(), *count, Some(H100));
    }
    node
}

#[test]
fn a_node_offers_what_its_plugin_or_its_driver_lists_and_no_gpu_twice() {
    for (plugin, devices, requested, claimed, expected) in wva_base::cases! {
        // Nothing names a product before the driver does.
        (Some(8), &[][..], 3, 0, (None, None, None)),
        (None, &[Some(8)], 0, 3, (Some(8), Some(3), Some(true))),
        (None, &[Some(0)], 0, 0, (Some(0), Some(0), Some(true))),
        (None, &[Some(4), Some(4)], 0, 9, (Some(8), Some(8), Some(true))),
        // Requests that devices met.
        (None, &[Some(8)], 3, 5, (Some(8), Some(5), Some(true))),
        // One whose claim is not seen yet.
        (None, &[Some(8)], 3, 2, (Some(8), Some(3), Some(true))),
        // A plugin that has gone leaves a zero.
        (Some(0), &[Some(8)], 3, 5, (Some(8), Some(5), Some(true))),
        (Some(8), &[Some(8)], 3, 2, (Some(8), Some(5), Some(true))),
        (Some(4), &[Some(8)], 0, 0, (Some(8), Some(0), Some(true))),
        (None, &[None], 0, 3, (Some(0), Some(0), Some(false))),
        (None, &[Some(8), None], 0, 3, (Some(8), Some(3), Some(false))),
    } {
        let node = offering(plugin, devices);
        let pods = [pod(&[("nvidia.com/gpu", requested)]), pod(&[(DEVICES, claimed)])];
        let (limit, used, known) = h100(vec![("n", node)], &pods);
        let seen = (limit.map(|gpus| gpus.0), used.map(|gpus| gpus.0), known);
        assert_eq!(seen, expected, "{plugin:?} {devices:?} {requested} {claimed}");
    }
}

#[test]
fn a_node_that_is_not_counted_leaves_its_type_unknown_unless_it_is_closed() {
    let whole = offering(None, &[Some(8)]);
    let mut partial = offering(None, &[None]);
    let known = |partial: &NodeView| {
        let nodes = vec![("n", whole.clone()), ("o", partial.clone())];
        h100(nodes, &[]).2
    };
    assert_eq!(known(&partial), Some(false));
    partial.scheduling = Scheduling::Closed;
    assert_eq!(known(&partial), Some(true));
}

#[test]
fn a_label_names_the_product_and_its_devices_only_where_none_does() {
    let product = |labels: &[(&str, &str)], resource: &str| {
        let mut node = node(None);
        let labels = labels.iter();
        node.labels = labels.map(|(key, value)| ((*key).into(), (*value).into())).collect();
        node.offer(&resource.into(), Some(1), Some(H100));
        node.labels.get("nvidia.com/gpu.product").cloned()
    };
    let of_devices = Some("NVIDIA-H100-80GB-HBM3".into());
    assert_eq!(product(&[], DEVICES), of_devices);
    let labelled = [("nvidia.com/gpu.product", "NVIDIA-H200")];
    assert_eq!(product(&labelled, DEVICES), Some("NVIDIA-H200".into()));
    let gke = [("cloud.google.com/gke-accelerator", "nvidia-h100-80gb")];
    assert_eq!(product(&gke, DEVICES), None);
    assert_eq!(product(&[], "example.com/other"), None);
}
