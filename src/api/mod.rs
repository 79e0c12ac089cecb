//! The shapes of the Kubernetes objects that have no types of their own elsewhere: the custom
//! resources, their conditions, and the few fields of foreign resources that we read.

pub mod condition;
pub(crate) mod gpu;
pub(crate) mod inference_pool;
pub(crate) mod leader_worker_set;
pub(crate) mod pod;
pub mod pod_autoscaler;
pub mod resource_claim;
pub mod resource_claim_template;
pub mod resource_slice;
pub(crate) mod scaled_object;
pub mod service_monitor;
pub mod text;
pub mod variant_autoscaling;

pub use self::gpu::{HoldingPod, OfferingNode};
pub use self::inference_pool::InferencePool;
pub use self::leader_worker_set::LeaderWorkerSet;
pub use self::pod::SlimPod;
pub use self::scaled_object::ScaledObject;

/// Label of a `VariantAutoscaling` that names its accelerator.
pub const ACCELERATOR_LABEL: &str = "inference.optimization/acceleratorName";
/// Label of a `VariantAutoscaling` that names the controller in charge of it.
pub const INSTANCE_LABEL: &str = "wva.llmd.ai/controller-instance";
/// Annotation of a namespace that takes it out of the controller's hands when it is `"true"`.
pub const EXCLUDE_ANNOTATION: &str = "wva.llmd.ai/exclude";
/// Label of a namespace that lets its own ConfigMaps act before it holds any `VariantAutoscaling`.
pub const CONFIG_ENABLED_LABEL: &str = "wva.llmd.ai/config-enabled";
/// Annotation of a HorizontalPodAutoscaler or `ScaledObject` that makes it a variant when it is `"true"`.
pub const MANAGED_ANNOTATION: &str = "llm-d.ai/managed";
/// Annotation of an annotated scaler: the model that its target serves.
pub const MODEL_ANNOTATION: &str = "llm-d.ai/model-id";
/// Annotation of an annotated scaler: the cost of one replica.
pub const COST_ANNOTATION: &str = "llm-d.ai/variant-cost";
/// Annotation of an annotated scaler: the tier of its policy.
pub const TIER_ANNOTATION: &str = "llm-d.ai/scaling-policy";
/// Annotation of an annotated scaler: tokens of an answer as long as none was measured.
pub const OUTPUT_ANNOTATION: &str = "llm-d.ai/default-output-tokens";
/// Annotation of an annotated scaler: seconds that a replica takes to be ready, until its first start was measured.
pub const START_ANNOTATION: &str = "llm-d.ai/replica-start-seconds";
/// Annotation that the controller writes on an annotated scaler: the count that it decided last.
pub const COUNT_ANNOTATION: &str = "llm-d.ai/desired-replicas";
/// Annotation of a pod: among ready pods of a `ReplicaSet` those of the lowest number go first; 0 where there is none.
pub const DELETION_COST_ANNOTATION: &str = "controller.kubernetes.io/pod-deletion-cost";
/// Annotation that the controller writes with that cost: its name as an owner of fields.
pub const CHOSEN_BY_ANNOTATION: &str = "llm-d.ai/pod-deletion-cost-by";
