//! Findings, and the one table of their codes: group, severity, title, meaning and remedy.

mod remedy;

use serde_json::{Value, json};

use super::object::ObjectName;

wva_base::named! {
    listed
    /// What a finding is about, in the order of the report.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum FindingGroup {
        /// What the API server serves.
        Cluster = "cluster",
        /// The controller and its settings.
        Controller = "controller",
        /// Prometheus.
        Prometheus = "prometheus",
        /// Model servers and routers.
        Engines = "engines",
        /// VariantAutoscalings and their targets.
        Variants = "variants",
        /// What follows the published counts.
        Scalers = "scalers",
        /// PodAutoscalers and their targets.
        PodAutoscalers = "podautoscalers",
    }
}

wva_base::named! {
    /// How bad a finding is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum FindingSeverity {
        /// Something does not work.
        Error = "error",
        /// Something works badly, or will stop.
        Warning = "warning",
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingSpec {
    pub number: u16,
    pub group: FindingGroup,
    pub severity: FindingSeverity,
    /// What is wrong, in a few words.
    pub title: &'static str,
    /// Why that matters, for the page alone.
    pub meaning: &'static str,
    /// A command with `{namespace}`, `{name}` and `{kind}` of the object, and `{value}` of the finding. That of a scaler
    /// has `{target}`, `{target_kind}` and `{target_version}`, too.
    pub remedy: &'static str,
}

/// The remedy of a row that states none.
const EDIT: &str = "kubectl edit {kind} {name} --namespace {namespace}";

macro_rules! codes {
    (@remedy) => { EDIT };
    (@remedy $remedy:literal) => { $remedy };
    ($(
        $code:ident = $number:literal, $group:ident, $severity:ident, $title:literal, $meaning:literal
        $(, $remedy:literal)?;
    )*) => {
        /// The code of a finding. It never changes its meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "the table has the title of each")]
        pub enum FindingCode {
            $($code,)*
        }

        impl FindingCode {
            /// Every code, by number.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$code),*];

            /// Its row of the table.
            pub const fn spec(self) -> FindingSpec {
                match self {
                    $(Self::$code => FindingSpec {
                        number: $number,
                        group: FindingGroup::$group,
                        severity: FindingSeverity::$severity,
                        title: $title,
                        meaning: $meaning,
                        remedy: codes!(@remedy $($remedy)?),
                    },)*
                }
            }
        }
    };
}

codes! {
    VariantKindMissing = 1, Cluster, Error,
        "VariantAutoscaling is not served",
        "Without the definition no variant can exist. `helm upgrade` leaves definitions alone.",
        "wva crds | kubectl apply --server-side -f -";
    PodAutoscalerKindMissing = 2, Cluster, Error,
        "PodAutoscaler is enabled and not served",
        "The definition of PodAutoscalers is not installed.",
        "wva crds | kubectl apply --server-side -f -";
    ExternalMetricsMissing = 3, Cluster, Error,
        "external.metrics.k8s.io is not available",
        "HorizontalPodAutoscalers that read the count as an external metric keep their scale.",
        "kubectl get apiservice v1beta1.external.metrics.k8s.io -o yaml";
    WebhookUnserved = 4, Cluster, Error,
        "a webhook of this project has no server",
        "With failurePolicy Fail the API server refuses every write of the kind.",
        "kubectl get {kind} {name} -o yaml";
    CertificateEnds = 5, Cluster, Error,
        "a certificate ends within a week",
        "Then webhooks fail, and external metrics are gone.",
        "kubectl get {kind} {name} -o yaml";
    NoScalerKind = 6, Cluster, Error,
        "nothing can follow the counts",
        "Install KEDA or an adapter for external metrics, to read wva_desired_replicas.",
        "helm install keda keda --repo https://kedacore.github.io/charts --namespace keda --create-namespace";
    OldKubernetes = 7, Cluster, Warning,
        "Kubernetes is too old",
        "API servers enforce the rules of the definitions (x-kubernetes-validations) from 1.25 on.",
        "kubectl version";
    DefinitionOld = 8, Cluster, Error,
        "the definition of VariantAutoscaling is old",
        "The API server drops fields that it lacks. Helm leaves an existing definition alone.",
        "wva crds | kubectl apply --server-side -f -";
    ControllerMissing = 20, Controller, Error,
        "no controller is installed",
        "Nothing decides.",
        "helm install workload-variant-autoscaler charts/workload-variant-autoscaler --namespace workload-variant-autoscaler-system --create-namespace --set wva.image.repository=REGISTRY/workload-variant-autoscaler --set wva.prometheus.baseURL=https://PROMETHEUS:9090";
    ControllerNotReady = 21, Controller, Error,
        "no replica of the controller is ready",
        "Nothing decides. Published counts stay.",
        "kubectl describe pods --namespace {namespace} --selector control-plane=controller-manager";
    ControllerOff = 22, Controller, Warning,
        "the controller is scaled to 0",
        "It was paused. Scalers keep what there is.",
        "kubectl scale deployment {name} --namespace {namespace} --replicas 2";
    ControllersOverlap = 23, Controller, Error,
        "two controllers handle the same objects",
        "A scaler adds their counts up, or follows either.",
        "kubectl get deployments --all-namespaces --selector control-plane=controller-manager";
    SettingsRefused = 24, Controller, Error,
        "the controller cannot start with its settings",
        "A setting is missing, contradicts another one, or has no valid value.",
        "kubectl logs deployment/{name} --namespace {namespace} --tail 50";
    SettingIgnored = 25, Controller, Warning,
        "a setting has no effect",
        "A key or an entry of a ConfigMap is unknown or invalid, and something else is in force.",
        "kubectl get configmaps --namespace {namespace} -o yaml";
    ConfigMapUnread = 26, Controller, Warning,
        "a ConfigMap of settings is not read",
        "It looks like settings of the controller, which reads another name or namespace.",
        "kubectl get configmap {name} --namespace {namespace} -o yaml | sed 's/^  name: .*/  name: {value}/' | kubectl apply -f - && kubectl delete configmap {name} --namespace {namespace}";
    RightMissing = 27, Controller, Error,
        "the controller lacks a right",
        "The API server refuses a request that the controller needs.",
        "kubectl auth can-i --list --namespace {namespace} --as system:serviceaccount:{namespace}:{value}";
    LeaseUnheld = 28, Controller, Error,
        "no replica of the controller leads",
        "The lease is missing, empty or expired: replicas are ready and none decides.",
        "kubectl get lease {name} --namespace {namespace} -o yaml";
    PrometheusUnusable = 40, Prometheus, Error,
        "Prometheus does not answer",
        "Every decision needs it. Counts stay.",
        "kubectl get services --all-namespaces | grep -i prometheus";
    PrometheusPlain = 41, Prometheus, Error,
        "Prometheus serves plain HTTP, and the address says https",
        "No certificate or authority helps: the server does not speak TLS.",
        "helm upgrade workload-variant-autoscaler charts/workload-variant-autoscaler --namespace {namespace} --reuse-values --set wva.prometheus.baseURL={value} --set wva.prometheus.allowHTTP=true";
    PrometheusEmpty = 42, Prometheus, Error,
        "Prometheus holds no target at all",
        "It is another tenant, a new server, or a querier without stores.",
        "kubectl get configmaps,secrets --all-namespaces | grep -i prometheus";
    OwnSeriesMissing = 43, Prometheus, Error,
        "Prometheus has no wva_desired_replicas",
        "It does not scrape the controller, so no scaler sees a count. Often the ServiceMonitor lacks the label that Prometheus selects by.",
        "kubectl get prometheus --all-namespaces -o jsonpath='{.items[*].spec.serviceMonitorSelector}'";
    VariantSeriesMissing = 44, Prometheus, Error,
        "Prometheus has counts, and none of this variant",
        "The controller publishes none, or the scrape drops or renames its labels.",
        "kubectl describe {kind} {name} --namespace {namespace}";
    ClockSkew = 45, Prometheus, Warning,
        "the clock of Prometheus differs",
        "A sample from the future never becomes old. Run the remedy here and on the node of Prometheus, and `chronyc makestep` where the offset is large.",
        "chronyc tracking";
    SlowScrape = 46, Prometheus, Warning,
        "engines are scraped too seldom",
        "A rate over a minute needs two samples, and a model never shrinks on samples older than a minute.",
        "kubectl get servicemonitors,podmonitors --namespace {namespace} -o yaml | grep interval";
    DoubleScrape = 47, Prometheus, Warning,
        "an engine is scraped twice",
        "Sums count the series of two jobs, with different labels, twice.",
        "kubectl get servicemonitors,podmonitors --all-namespaces -o yaml";
    EngineNotScraped = 60, Engines, Error,
        "Prometheus does not scrape the pods",
        "No ServiceMonitor or PodMonitor selects them, or it lacks the label that [Prometheus selects by](../integrations/prometheus.md#have-the-monitors-found).",
        "kubectl get servicemonitors,podmonitors --namespace {namespace}";
    EngineScrapeFails = 61, Engines, Error,
        "Prometheus cannot read the pods",
        "Every scrape fails: wrong port or path, a network policy, a token.",
        "kubectl get --raw /api/v1/namespaces/{namespace}/pods/{value}/proxy/metrics";
    LabelsMissing = 62, Engines, Error,
        "series of engines lack namespace or pod",
        "The scrape does not attach the labels of the pod, so no series belongs to a variant.",
        "kubectl get servicemonitors,podmonitors --all-namespaces -o yaml";
    ModelNameDiffers = 63, Engines, Error,
        "the pods serve under another model name",
        "modelID has to equal model_name of the engine's series, which --served-model-name sets.",
        "kubectl patch variantautoscaling {name} --namespace {namespace} --type merge --patch '{\"spec\":{\"modelID\":\"{value}\"}}'";
    ModelNameSpelledOtherwise = 64, Engines, Error,
        "modelID differs from the model name in case or path",
        "Names are compared letter by letter.",
        "kubectl patch variantautoscaling {name} --namespace {namespace} --type merge --patch '{\"spec\":{\"modelID\":\"{value}\"}}'";
    UnknownGeneration = 65, Engines, Error,
        "the engine's series have no known name",
        "No series of the pods has a name that [is read](../integrations/prometheus.md#series).",
        "kubectl get --raw /api/v1/namespaces/{namespace}/pods/{value}/proxy/metrics";
    SeriesOfDeadPods = 66, Engines, Warning,
        "a pod that no longer exists still has running requests",
        "A cache or a push gateway keeps its series, which count as load.",
        "kubectl get pods --namespace {namespace}";
    FlowControlOff = 67, Engines, Warning,
        "the router has no queue of its own",
        "Without flow control the router holds no requests, and nothing wakes a model from zero.",
        "kubectl get configmaps --namespace {namespace} -o yaml | grep -i featureGates";
    NoWakeSignal = 68, Engines, Error,
        "a model may go to zero and nothing can wake it",
        "Scale to zero is enabled, and no InferencePool selects the pods of the model.",
        "kubectl get inferencepools --namespace {namespace}";
    RequestsExpireFirst = 69, Engines, Error,
        "requests expire before a replica has started",
        "A router that gives up a request so soon wakes a model too late.";
    VariantMalformed = 80, Variants, Error,
        "an object cannot be read",
        "A field, an annotation or a key of a trigger is missing, unknown or invalid.",
        "kubectl get {kind} {name} --namespace {namespace} -o yaml";
    ForeignInstance = 81, Variants, Error,
        "no controller has the instance of this object",
        "Its label wva.llmd.ai/controller-instance names no installed controller, or is missing where every controller has an instance. The object is ignored.",
        "kubectl label {kind} {name} --namespace {namespace} --overwrite wva.llmd.ai/controller-instance={value}";
    NamespaceNotWatched = 82, Variants, Error,
        "no controller watches this namespace",
        "Every controller is limited to another one. The object is ignored.",
        "helm upgrade workload-variant-autoscaler charts/workload-variant-autoscaler --namespace {value} --reuse-values --set wva.namespaceScoped=false";
    NamespaceExcluded = 83, Variants, Warning,
        "the namespace is excluded",
        "It is annotated wva.llmd.ai/exclude: its objects are ignored.",
        "kubectl annotate namespace {namespace} wva.llmd.ai/exclude-";
    TargetMissing = 84, Variants, Error,
        "the target does not exist",
        "Create it, or correct scaleTargetRef.",
        "kubectl get deployments,statefulsets --namespace {namespace}";
    TargetKindUnknown = 85, Variants, Error,
        "the target's kind cannot be resolved",
        "Kinds other than Deployment, StatefulSet and LeaderWorkerSet need an apiVersion.";
    TargetContested = 86, Variants, Error,
        "two objects name one target",
        "Neither is acted on. Of an annotated scaler remove the annotation, not the object.",
        "kubectl delete variantautoscaling {name} --namespace {namespace}";
    CostsEqual = 87, Variants, Warning,
        "all variants of a model cost the same",
        "Capacity decides then which variant grows first, and between equals the name.",
        "kubectl patch variantautoscaling {name} --namespace {namespace} --type merge --patch '{\"spec\":{\"variantCost\":\"20.0\"}}'";
    OneNameTwoModels = 88, Variants, Error,
        "two models have one name",
        "Targets with one modelID run different models, whose load and capacity are added up.",
        "kubectl get deployments --namespace {namespace} -o yaml | grep -e --model -e --served-model-name";
    PodsDoNotStart = 89, Variants, Error,
        "pods do not start",
        "Requested replicas do not become ready; more of them help nothing.",
        "kubectl describe pod {value} --namespace {namespace}";
    PodsGated = 90, Variants, Warning,
        "pods wait for admission",
        "A scheduling gate, like Kueue's, holds them. For 5 minutes they count as ordered, while percentages hold their variant and others grow; then as late, and other variants go first.",
        "kubectl describe pod {value} --namespace {namespace}";
    ClaimsNotCounted = 91, Variants, Warning,
        "GPUs of resource claims are not counted",
        "Limits count devices of dynamic resource allocation where every claim is made from a ResourceClaimTemplate of an exact number of GPUs, and those of nodes while ResourceSlices are seen. Else the variant grows to its minimum alone.",
        "kubectl get resourceclaims --namespace {namespace}";
    AtZeroByHand = 92, Variants, Warning,
        "the target is at zero by hand",
        "A person or another program scaled it to 0, where a HorizontalPodAutoscaler pauses.",
        "kubectl scale {kind} {name} --namespace {namespace} --replicas 1";
    ParentOwnsReplicas = 93, Variants, Warning,
        "another object writes the target's replicas",
        "The controller that generated the target writes its own count back.",
        "kubectl get {kind} {name} --namespace {namespace} -o jsonpath='{.metadata.ownerReferences}'";
    TwoWritersOfScale = 94, Variants, Warning,
        "replicas were written past the scaler",
        "A person or a deployment tool owns the field of replicas, and changes what the scaler sets.",
        "kubectl get {kind} {name} --namespace {namespace} --show-managed-fields -o yaml";
    NotApplied = 95, Variants, Error,
        "the controller reports an obstacle",
        "The message of the False condition has the cause.",
        "kubectl describe {kind} {name} --namespace {namespace}";
    ThroughputWithoutRouter = 96, Variants, Warning,
        "throughput is the only analyzer, and no router is scraped",
        "It learns from arrivals at routers. The first decision comes late, or never.",
        "kubectl edit configmap {name} --namespace {namespace}";
    TierWithoutEffect = 97, Variants, Warning,
        "a tier has no effect",
        "A scalingPolicy names no tier of the saturation ConfigMap; or variants of one model name different tiers, of which that of the first by name acts; or no variant names a tier, which every entry without modelId is.";
    AnnotationsNotTaken = 98, Variants, Warning,
        "no controller takes this annotated scaler",
        "llm-d.ai/managed or modelID declares a variant with ANNOTATED_SCALERS_ENABLED=true alone. The object is ignored.",
        "helm upgrade workload-variant-autoscaler charts/workload-variant-autoscaler --namespace {value} --reuse-values --set annotatedScalers.enabled=true";
    PodsRefused = 99, Variants, Error,
        "new pods are refused",
        "A quota, a limit range, pod security or a webhook refuses them.",
        "kubectl describe {kind} {name} --namespace {namespace}";
    NoScaler = 120, Scalers, Error,
        "nothing scales the target",
        "No [HorizontalPodAutoscaler or ScaledObject](../integrations/hpa-integration.md) applies the count. Where the variant may go to zero, the remedy takes scaledobject.yaml: set its serverAddress to your Prometheus.",
        "sed \"s,llm-d,{namespace},; /variant_name/s,llama-8b,{name},; s, name: llama-8b, name: {target},; s,apps/v1,{target_version},; s,kind: Deployment,kind: {target_kind},\" config/samples/scalers/hpa.yaml | kubectl apply --namespace {namespace} -f -";
    SeveralScalers = 121, Scalers, Error,
        "several scalers write one target",
        "Each undoes what the other one sets.",
        "kubectl get hpa --namespace {namespace}";
    CountNotRead = 122, Scalers, Error,
        "the scaler reads another metric or variant",
        "Its metric, variant_name, exported_namespace or target is not that of the variant.";
    WrongTarget = 123, Scalers, Error,
        "the scaler makes something else of the count",
        "Write type AverageValue with averageValue 1. Type Value multiplies the count by the replicas that exist; another averageValue, a number or function of the query, or a formula of scalingModifiers changes it. An activationThreshold of 1 or more hides the first replica from KEDA.";
    ScalerPaused = 124, Scalers, Warning,
        "the scaler is paused",
        "An annotation, or selectPolicy Disabled of scaleUp, stops it.";
    ScalerFails = 125, Scalers, Error,
        "the scaler reports that it does not work",
        "It keeps its scale, or falls back. The message quotes its condition. Where it finds no metric, [have the controller scraped](../integrations/prometheus.md#have-the-controller-scraped).",
        "kubectl describe {kind} {name} --namespace {namespace}";
    ScalerMinimum = 126, Scalers, Warning,
        "the scaler's minimum hides lower counts",
        "Change one of the two minima.";
    ScalerMaximum = 127, Scalers, Warning,
        "the scaler's maximum hides higher counts",
        "Change one of the two maxima.";
    ScalerTolerance = 128, Scalers, Warning,
        "the scaler ignores steps of one replica",
        "With the default tolerance of a tenth, 10 to 11 never happens. Set behavior.*.tolerance to 0.";
    NullCountsAsZero = 129, Scalers, Error,
        "a missing count counts as 0",
        "While no controller publishes, KEDA takes the target to its minimum. Set ignoreNullValues to false.";
    SlowScaleUp = 130, Scalers, Warning,
        "the scaler waits before it adds replicas",
        "A stabilization window applies its lowest count, as `min_over_time` in a query does, an `offset` an old one, a policy adds less than a pod a minute, or, at zero or with useCachedMetrics, KEDA looks once a pollingInterval.";
    FallbackZero = 131, Scalers, Error,
        "the fallback is zero replicas",
        "After failed queries KEDA takes the target to 0, or to its minimum where that is more.";
    QueryAddsUp = 132, Scalers, Error,
        "the query adds up series",
        "While two replicas of the controller are scraped, or its pod changes, the sum is a multiple of the count.";
    QueryInventsZero = 133, Scalers, Error,
        "the query answers a number where there is no series",
        "`or vector(0)` makes a lost controller a scale-down, another number that many replicas.";
    QueryFindsNothing = 134, Scalers, Error,
        "the query has no answer",
        "Prometheus has no series for the scaler's query, or for the selector of a HorizontalPodAutoscaler as an adapter sends it. Often it selects `namespace`, that of the controller's pod, in place of `exported_namespace`.";
    QueryFindsSeveral = 135, Scalers, Error,
        "the query has several answers",
        "KEDA reports an error then, and a HorizontalPodAutoscaler adds them up.";
    QueryFails = 136, Scalers, Error,
        "Prometheus refuses the query",
        "The text is not PromQL, or the server fails at it.";
    SaturationCannotAsk = 137, Scalers, Error,
        "a share can never ask for more than two replicas",
        "A mean share over all pods is at most 1, and an AverageValue divides it by the replicas: the answer never exceeds 1 by the target.";
    InstanceNotSelected = 138, Scalers, Warning,
        "the scaler does not select the instance",
        "Several controllers publish. Without controller_instance it may add up their counts.";
    ScalerRightMissing = 139, Scalers, Error,
        "the scaler's account lacks a right",
        "Replicas stay as they are. The HorizontalPodAutoscaler controller reads external metrics and scales, KEDA's operator scales, its metrics server reviews readers.",
        "kubectl auth can-i --list --namespace {namespace} --as {value}";
    AutoscalerInvalid = 160, PodAutoscalers, Error,
        "the specification is not accepted",
        "A bound, a window, a schedule, a strategy or a metric source is impossible. The target keeps its replicas.";
    AutoscalerTargetMissing = 161, PodAutoscalers, Error,
        "the target of a PodAutoscaler does not exist",
        "Create it, or correct scaleTargetRef.",
        "kubectl get deployments,statefulsets --namespace {namespace}";
    AutoscalerConflict = 162, PodAutoscalers, Error,
        "another object scales the target",
        "It is an older PodAutoscaler or VariantAutoscaling, or any HorizontalPodAutoscaler or ScaledObject. This one does nothing.",
        "kubectl delete {kind} {name} --namespace {namespace}";
    AutoscalerMetricAbsent = 163, PodAutoscalers, Error,
        "a metric has no value",
        "The source's page lacks the metric. A release needs a demand of every source.",
        "kubectl describe {kind} {name} --namespace {namespace}";
    AutoscalerMetricsFail = 164, PodAutoscalers, Error,
        "a metric source fails",
        "Port, path, protocol, a network policy, a missing metrics API, or no pod that serves. Counts are kept.",
        "kubectl describe {kind} {name} --namespace {namespace}";
    AutoscalerPort = 165, PodAutoscalers, Warning,
        "a metric source names a port that the pods do not state",
        "A container may listen there all the same.";
    AutoscalerAnnotation = 166, PodAutoscalers, Warning,
        "an annotation or a field has no effect",
        "It is unknown, its value is wrong and the default holds, strategy, target or bounds leave it unread, or the HPA rounds it.";
    AutoscalerStuck = 167, PodAutoscalers, Error,
        "the target cannot be read or scaled",
        "A right, a role or a field of the target is missing, its kind cannot be scaled, or a foreign object has the name of the generated one.",
        "kubectl describe {kind} {name} --namespace {namespace}";
    AutoscalersIgnored = 168, PodAutoscalers, Error,
        "no controller takes PodAutoscalers",
        "The kind is switched off, so nothing scales the target.",
        "helm upgrade workload-variant-autoscaler charts/workload-variant-autoscaler --namespace {value} --reuse-values --set podAutoscalers.enabled=true";
    AutoscalerAtZero = 169, PodAutoscalers, Warning,
        "the target is at zero, and its PodAutoscaler did not put it there",
        "A person or another program scaled it to 0, where it stays.",
        "kubectl describe {kind} {name} --namespace {namespace}";
    AutoscalerGated = 170, PodAutoscalers, Warning,
        "all pods of a PodAutoscaler wait for admission",
        "A scheduling gate, like Kueue's, has held them for 10 minutes. Counts are kept.",
        "kubectl get pods --namespace {namespace} --field-selector status.phase=Pending";
}

impl FindingCode {
    /// The code as it is printed, like `WVA001`.
    pub fn id(self) -> String {
        format!("WVA{:03}", self.spec().number)
    }

    /// A finding of this code.
    pub fn at(self, object: ObjectName, cause: impl Into<String>) -> Finding {
        Finding { code: self, object, cause: cause.into(), value: String::new(), target: None }
    }
}

/// Something that keeps the installation from working.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Its code.
    pub code: FindingCode,
    /// What it is about.
    pub object: ObjectName,
    /// Why, with what was seen.
    pub cause: String,
    /// What stands for `{value}` in the remedy.
    pub value: String,
    /// What the remedy makes a scaler for.
    pub target: Option<UnscaledTarget>,
}

/// The target of a variant that no scaler follows, as the variant names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnscaledTarget {
    /// Group and version of its kind.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Whether the variant may go to zero.
    pub rests: bool,
}

impl Finding {
    /// The same with the value of its remedy.
    #[must_use]
    pub fn with(self, value: impl Into<String>) -> Self {
        Self { value: value.into(), ..self }
    }

    /// The finding as JSON.
    pub fn to_json(&self) -> Value {
        let spec = self.code.spec();
        let mut document = json!({
            "code": self.code.id(),
            "group": spec.group.as_str(),
            "severity": spec.severity.as_str(),
            "title": spec.title,
            "object": self.object,
            "cause": self.cause,
            "remedy": self.remedy(),
        });
        if let (Some(file), Some(fields)) = (&self.object.file, document.as_object_mut()) {
            fields.insert("file".to_owned(), json!(&**file));
        }
        document
    }
}
