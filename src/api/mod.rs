//! The shapes of the Kubernetes objects that have no types of their own elsewhere: the custom
//! resources, their conditions, and the few fields of foreign resources that we read.

pub mod condition;
pub mod gpu;
pub mod inference_pool;
pub mod leader_worker_set;
pub mod pod;
pub mod pod_autoscaler;
pub mod scaled_object;
pub mod service_monitor;
pub mod text;
pub mod variant_autoscaling;

/// Label of a `VariantAutoscaling` that names its accelerator.
pub const ACCELERATOR_LABEL: &str = "inference.optimization/acceleratorName";
/// Label of a `VariantAutoscaling` that names the controller in charge of it.
pub const INSTANCE_LABEL: &str = "wva.llmd.ai/controller-instance";
/// Annotation of a namespace that takes it out of the controller's hands when it is `"true"`.
pub const EXCLUDE_ANNOTATION: &str = "wva.llmd.ai/exclude";
/// Label of a namespace that lets its own ConfigMaps act before it holds any `VariantAutoscaling`.
pub const CONFIG_ENABLED_LABEL: &str = "wva.llmd.ai/config-enabled";
