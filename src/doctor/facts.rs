//! What the checks read: plain data. Absent, failed and not asked are three words, none of which is fine.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::checks::declared;
use super::object::{LiveObject, ObjectName};
use super::probe::PrometheusProbe;
use crate::policy::key::ObjectKey;
use crate::settings::FeatureSwitch;
use crate::settings::generation::Generation;

/// The outcome of one look.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Reading<T> {
    /// It was read.
    Known(T),
    /// The server does not have it, like a kind whose definition is missing.
    Absent,
    /// It could not be read, and why.
    Failed(String),
    /// This look does not include it.
    #[default]
    NotAsked,
}

impl<T> Reading<T> {
    /// What was read.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Failed(_) | Self::NotAsked => None,
        }
    }
}

impl<T> From<Result<Option<T>, String>> for Reading<T> {
    fn from(read: Result<Option<T>, String>) -> Self {
        match read {
            Ok(Some(value)) => Self::Known(value),
            Ok(None) => Self::Absent,
            Err(why) => Self::Failed(why),
        }
    }
}

macro_rules! live_kinds {
    ($($kind:ident: $path:literal, $resource:literal, $before:literal;)*) => {
        /// Kinds of object that the checks read.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum LiveKind {
            $($kind,)*
        }

        impl LiveKind {
            pub const ALL: [Self; [$(stringify!($kind)),*].len()] = [$(Self::$kind),*];

            pub const fn as_str(self) -> &'static str {
                // One kind in two groups.
                if matches!(self, Self::AlphaInferencePool) {
                    return Self::InferencePool.as_str();
                }
                match self {
                    $(Self::$kind => stringify!($kind),)*
                }
            }

            /// The path of its group and version.
            pub const fn path(self) -> &'static str {
                match self {
                    $(Self::$kind => $path,)*
                }
            }

            pub const fn resource(self) -> &'static str {
                match self {
                    $(Self::$kind => $resource,)*
                }
            }

            /// Whether it says something before the controller is installed.
            pub const fn is_before(self) -> bool {
                match self {
                    $(Self::$kind => $before,)*
                }
            }
        }
    };
}

live_kinds! {
    VariantAutoscaling: "/apis/llmd.ai/v1alpha1", "variantautoscalings", true;
    PodAutoscaler: "/apis/autoscaling.aibrix.ai/v1alpha1", "podautoscalers", false;
    HorizontalPodAutoscaler: "/apis/autoscaling/v2", "horizontalpodautoscalers", true;
    ScaledObject: "/apis/keda.sh/v1alpha1", "scaledobjects", true;
    Deployment: "/apis/apps/v1", "deployments", true;
    StatefulSet: "/apis/apps/v1", "statefulsets", false;
    LeaderWorkerSet: "/apis/leaderworkerset.x-k8s.io/v1", "leaderworkersets", false;
    StormService: "/apis/orchestration.aibrix.ai/v1alpha1", "stormservices", false;
    Pod: "/api/v1", "pods", false;
    Namespace: "/api/v1", "namespaces", false;
    ConfigMap: "/api/v1", "configmaps", true;
    Lease: "/apis/coordination.k8s.io/v1", "leases", false;
    InferencePool: "/apis/inference.networking.k8s.io/v1", "inferencepools", false;
    AlphaInferencePool: "/apis/inference.networking.x-k8s.io/v1alpha2", "inferencepools", false;
    EndpointSlice: "/apis/discovery.k8s.io/v1", "endpointslices", false;
    DeviceClass: "/apis/resource.k8s.io/v1", "deviceclasses", false;
    ResourceClaimTemplate: "/apis/resource.k8s.io/v1", "resourceclaimtemplates", false;
    Event: "/apis/events.k8s.io/v1", "events", false;
    APIService: "/apis/apiregistration.k8s.io/v1", "apiservices", true;
    ValidatingWebhookConfiguration: "/apis/admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", false;
    MutatingWebhookConfiguration: "/apis/admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", false;
    CustomResourceDefinition: "/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", true;
}

impl LiveKind {
    /// Its API group; that of the oldest kinds is empty.
    pub fn group(self) -> &'static str {
        let path = self.path().strip_prefix("/apis/").unwrap_or_default();
        path.split('/').next().unwrap_or_default()
    }

    pub const fn is_namespaced(self) -> bool {
        !matches!(
            self,
            Self::Namespace
                | Self::APIService
                | Self::DeviceClass
                | Self::ValidatingWebhookConfiguration
                | Self::MutatingWebhookConfiguration
                | Self::CustomResourceDefinition
        )
    }
}

/// One series in an answer of Prometheus.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SeriesFact {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its value.
    pub value: f64,
}

impl SeriesFact {
    /// The value of a label; empty where it has none.
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    /// The pod that it is of, under either label.
    pub fn pod(&self) -> &str {
        match self.label("pod") {
            "" => self.label("pod_name"),
            pod => pod,
        }
    }
}

/// The series of each query, or how Prometheus refused it.
pub(crate) type QueryAnswers = BTreeMap<String, Result<Vec<SeriesFact>, String>>;

#[derive(Debug, Clone)]
pub struct ControllerFacts {
    /// Namespace and name of its Deployment.
    pub key: ObjectKey,
    pub account: String,
    pub wanted: i64,
    pub ready: i64,
    /// What it runs with, or why it cannot start.
    pub settings: Result<Arc<Generation>, Vec<String>>,
    /// Whether some of its settings are in Secrets, which are not read.
    pub has_secrets: bool,
    /// What it refuses or ignores of its settings, each with its ConfigMap, if it is in one.
    pub problems: Vec<(Option<ObjectName>, String)>,
    /// What it takes of its settings and does not act as it seems to, each with its ConfigMap, if it is in one.
    pub notes: Vec<(Option<ObjectName>, String)>,
    /// The file of its Deployment, where it was read from one.
    pub file: Option<Arc<str>>,
}

impl ControllerFacts {
    pub fn title(&self) -> ObjectName {
        ObjectName {
            file: self.file.clone(),
            ..ObjectName::new("Deployment", &*self.key.namespace, &*self.key.name)
        }
    }

    /// The settings, where it can start.
    pub fn generation(&self) -> Option<&Generation> {
        self.settings.as_deref().ok()
    }

    /// The name of the instance, if it has one.
    pub fn instance(&self) -> Option<&str> {
        let scope = &self.generation()?.statics.scope;
        scope.controller_instance.as_deref()
    }

    /// Whether it takes an object of this kind, as far as its settings are known.
    pub fn takes(&self, object: &LiveObject) -> bool {
        let kinds = [LiveKind::HorizontalPodAutoscaler, LiveKind::ScaledObject];
        let is_scaler = kinds.iter().any(|kind| kind.as_str() == object.kind());
        let takes = |one: &Generation| one.statics.annotated_scalers == FeatureSwitch::Enabled;
        !is_scaler || self.generation().is_none_or(takes)
    }

    /// The one namespace that it watches, if it is only one.
    pub fn watched(&self) -> Option<&str> {
        let scope = &self.generation()?.statics.scope;
        scope.watch_namespace.as_deref()
    }
}

/// A right that an account needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RightFact {
    /// What does not work without it.
    pub object: ObjectName,
    pub account: String,
    /// The right, in words.
    pub right: String,
    pub is_granted: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FactSource {
    /// A cluster: what is not there is missing.
    #[default]
    Cluster,
    /// Manifests: what is not there may be elsewhere.
    Files,
}

/// One look.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Where they come from.
    pub source: FactSource,
    /// Seconds since the Unix epoch by the clock of this machine.
    pub now: f64,
    /// The only variant to look at.
    pub variant: Option<String>,
    /// Whether the controller is yet to be installed.
    pub is_before: bool,
    /// Whether the command line names a variant or a namespace, so that one has to be there.
    pub is_narrowed: bool,
    /// Seconds between `now` and the query of the clock of Prometheus.
    pub took: f64,
    /// The only namespace in which controllers were searched.
    pub searched: Option<String>,
    /// Major and minor version of Kubernetes.
    pub version: Reading<(u32, u32)>,
    /// Objects by kind.
    pub objects: BTreeMap<LiveKind, Reading<Vec<LiveObject>>>,
    /// Variants that scalers declare, with kind and metadata of the scaler and the fields of a VariantAutoscaling.
    pub(super) declared: Vec<LiveObject>,
    /// Files and documents that hold no object, and why.
    pub unreadable: Vec<(String, String)>,
    /// Files that are templates or no manifests, and why they are not read.
    pub not_read: Vec<(String, String)>,
    /// Objects of files that an API server would refuse, and why.
    pub malformed: Vec<(ObjectName, String)>,
    /// Objects of files with a key that stands twice. Their fields are not judged: which value is meant is not known.
    pub ambiguous: Vec<ObjectName>,
    /// What is refused or ignored in ConfigMaps of settings without their controller.
    pub settings_faults: Vec<(ObjectName, String)>,
    /// What does not act as it seems to in those ConfigMaps.
    pub settings_notes: Vec<(ObjectName, String)>,
    /// Objects that were read of files, of any kind.
    pub objects_read: usize,
    /// Deployments of the controller.
    pub controllers: Reading<Vec<ControllerFacts>>,
    /// Rights of the controllers' accounts.
    pub rights: Reading<Vec<RightFact>>,
    /// Rights of the accounts of scalers.
    pub scaler_rights: Reading<Vec<RightFact>>,
    /// Whether Prometheus answers the controller, or why it does not. It could not be asked as the controller asks
    /// where this failed.
    pub prometheus: Reading<Result<(), String>>,
    /// The address at which it was asked.
    pub prometheus_address: Option<String>,
    /// Answers to the doctor's own queries.
    pub series: BTreeMap<PrometheusProbe, Reading<Vec<SeriesFact>>>,
    /// Answers to the queries of scalers.
    pub triggers: Reading<QueryAnswers>,
}

impl Facts {
    /// The objects of a kind that were read.
    pub fn all(&self, kind: LiveKind) -> &[LiveObject] {
        let known = self.objects.get(&kind).and_then(Reading::known);
        known.map_or(&[], Vec::as_slice)
    }

    /// Takes in what scalers declare, which depends on objects and controllers.
    pub fn declare(&mut self) {
        self.declared = if self.takes_annotations() { declared(self) } else { Vec::new() };
    }

    /// All variants, whichever object declares them.
    pub fn every_variant(&self) -> impl Iterator<Item = &LiveObject> {
        let all = self.all(LiveKind::VariantAutoscaling).iter();
        all.chain(&self.declared).filter(|object| !object.is_leaving())
    }

    /// The variants to look at.
    pub fn variants(&self) -> impl Iterator<Item = &LiveObject> {
        let name = self.variant.as_deref();
        self.every_variant().filter(move |object| name.is_none_or(|name| name == object.name()))
    }

    /// The file of an object that is named without its object.
    pub(super) fn file_of(&self, object: &ObjectName) -> Option<Arc<str>> {
        let mut kinds = LiveKind::ALL.into_iter();
        let kind = kinds.find(|kind| kind.as_str() == object.kind)?;
        let found = self.find(kind, &object.namespace, &object.name)?;
        found.file().cloned()
    }

    /// The object of a kind with this name.
    pub fn find(&self, kind: LiveKind, namespace: &str, name: &str) -> Option<&LiveObject> {
        let mut all = self.all(kind).iter();
        all.find(|object| object.namespace() == namespace && object.name() == name)
    }

    /// The deployments of the controller that were read.
    pub fn controllers(&self) -> &[ControllerFacts] {
        self.controllers.known().map_or(&[], Vec::as_slice)
    }

    /// Whether annotations may declare variants: some controller takes them, or none is known.
    pub fn takes_annotations(&self) -> bool {
        let mut settings = self.generations().peekable();
        settings.peek().is_none()
            || settings.any(|one| one.statics.annotated_scalers == FeatureSwitch::Enabled)
    }

    /// The settings of the controllers whose settings are known.
    pub fn generations(&self) -> impl Iterator<Item = &Generation> {
        let controllers = self.controllers().iter();
        controllers.filter_map(ControllerFacts::generation)
    }

    /// The series of an answer.
    pub fn series(&self, probe: PrometheusProbe) -> &[SeriesFact] {
        let known = self.series.get(&probe).and_then(Reading::known);
        known.map_or(&[], Vec::as_slice)
    }
}
