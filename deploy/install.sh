#!/usr/bin/env bash
# Installs the controller and its objects with the chart of this repository, from the flags and variables of the
# original's script. It installs nothing of other projects: a setting for that is refused by name.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
chart=$here/../charts/workload-variant-autoscaler
default_repo=workload-variant-autoscaler

usage() {
  cat <<'TEXT'
usage: deploy/install.sh [flags]

  -e, --environment NAME    kubernetes (default), openshift or kind-emulator
  -i, --wva-image IMAGE     image of the controller, repository:tag
  -m, --model ID            model_name label of the model's metrics
  -a, --accelerator NAME    accelerator of the sample variant
  -r, --release-name NAME   name of the Helm release
      --infra-only          the controller without VariantAutoscaling and scaler
  -u, --undeploy            remove the release; the CRD and your own objects stay
      --print               print the Helm command and run nothing
  -h, --help

Whatever is not given is as VALUES_FILE says, then as deploy/environments says, then as the chart does.

Variables: WVA_NS LLMD_NS MONITORING_NAMESPACE NAMESPACE_SUFFIX WELL_LIT_PATH_NAME IMG WVA_IMAGE_REPO
WVA_IMAGE_TAG WVA_IMAGE_PULL_POLICY WVA_RELEASE_NAME WVA_LOG_LEVEL WVA_RECONCILE_INTERVAL
WVA_METRICS_SECURE CONTROLLER_INSTANCE NAMESPACE_SCOPED ENABLE_SCALE_TO_ZERO SKIP_TLS_VERIFY
PROMETHEUS_URL PROM_CA_CERT_PATH PROMETHEUS_SECRET_NAME MODEL_ID ACCELERATOR_TYPE SLO_TPOT SLO_TTFT
VLLM_SVC_ENABLED VLLM_SVC_PORT VLLM_SVC_NODEPORT DEPLOY_WVA DEPLOY_VA DEPLOY_HPA HPA_MIN_REPLICAS
HPA_STABILIZATION_SECONDS KV_SPARE_TRIGGER QUEUE_SPARE_TRIGGER SCALER_BACKEND VALUES_FILE INFRA_ONLY
UNDEPLOY DELETE_NAMESPACES SKIP_CHECKS
TEXT
}

die() { echo "install.sh: $*" >&2; exit 2; }
note() { echo "install.sh: $*" >&2; }

# What other projects bring. A switch requests it when it is on, any other setting when it is set.
foreign_switches=(
  DEPLOY_PROMETHEUS DEPLOY_LLM_D DEPLOY_PROMETHEUS_ADAPTER INSTALL_GATEWAY_CTRLPLANE BENCHMARK_MODE
  E2E_TESTS_ENABLED MULTI_MODEL_TESTING KEDA_HELM_INSTALL CREATE_CLUSTER DELETE_CLUSTER
)
foreign=(
  LLM_D_OWNER LLM_D_PROJECT LLM_D_RELEASE LLM_D_INFERENCE_SCHEDULER_IMG
  LLM_D_INFERENCE_SIM_IMG_REPO LLM_D_INFERENCE_SIM_IMG_TAG
  ITL_AVERAGE_LATENCY_MS TTFT_AVERAGE_LATENCY_MS VLLM_MAX_NUM_SEQS DECODE_REPLICAS
  GATEWAY_PROVIDER DEFAULT_MODEL_ID MODEL_ID_2 KEDA_NAMESPACE KEDA_CHART_VERSION
  CLUSTER_NAME CLUSTER_NODES CLUSTER_GPUS CLUSTER_GPU_TYPE K8S_VERSION
)

print=
while [ $# -gt 0 ]; do
  case $1 in
    -e|--environment) ENVIRONMENT=${2:?$1 needs a value}; shift 2 ;;
    -i|--wva-image) IMG=${2:?$1 needs a value}; shift 2 ;;
    -m|--model) MODEL_ID=${2:?$1 needs a value}; shift 2 ;;
    -a|--accelerator) ACCELERATOR_TYPE=${2:?$1 needs a value}; shift 2 ;;
    -r|--release-name) WVA_RELEASE_NAME=${2:?$1 needs a value}; shift 2 ;;
    --infra-only) INFRA_ONLY=true; shift ;;
    -u|--undeploy) UNDEPLOY=true; shift ;;
    --print) print=yes; shift ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; die "unknown flag $1" ;;
  esac
done

# truth NAME: true or false of a variable; false where it is not set.
truth() {
  local value=${!1:-false}
  case ${value,,} in
    true|t|yes|y|on|1) echo true ;;
    false|f|no|n|off|0) echo false ;;
    *) die "$1=${!1}: write true or false" ;;
  esac
}
# is_on NAME: whether that is true. A bad value ends the script.
is_on() {
  local value
  value=$(truth "$1") || exit
  [ "$value" = true ]
}

refused=()
for name in "${foreign_switches[@]}"; do
  if is_on "$name"; then refused+=("$name=${!name}"); fi
done
for name in "${foreign[@]}"; do
  if [ -n "${!name:-}" ]; then refused+=("$name=${!name}"); fi
done
if [ ${#refused[@]} -gt 0 ]; then
  die "not carried over: ${refused[*]}. Install Prometheus, its adapter, KEDA, llm-d and clusters by their own means, and unset these"
fi
if [ -n "${HF_TOKEN:-}" ]; then note "HF_TOKEN is not used: no model is downloaded here"; fi

ENVIRONMENT=${ENVIRONMENT:-kubernetes}
WVA_NS=${WVA_NS:-workload-variant-autoscaler-system}
WVA_RELEASE_NAME=${WVA_RELEASE_NAME:-workload-variant-autoscaler}
args=()
set_value() { args+=(--set-string "$1=${2//,/\\,}"); }
set_typed() { args+=(--set "$1=$2"); }

# Files come first, and what a variable says beats them.
case $ENVIRONMENT in
  kubernetes|kind-emulator)
    monitoring=${MONITORING_NAMESPACE:-workload-variant-autoscaler-monitoring}
    if [ -n "${MONITORING_NAMESPACE:-}" ]; then
      PROMETHEUS_URL=${PROMETHEUS_URL:-https://kube-prometheus-stack-prometheus.$MONITORING_NAMESPACE.svc.cluster.local:9090}
    fi
    ;;
  openshift)
    monitoring=${MONITORING_NAMESPACE:-openshift-user-workload-monitoring}
    args+=(--values "$chart/values-openshift.yaml")
    ;;
  *) die "environment $ENVIRONMENT: kubernetes, openshift or kind-emulator" ;;
esac
args+=(--values "$here/environments/$ENVIRONMENT.yaml")
if [ -n "${VALUES_FILE:-}" ]; then
  [ -f "$VALUES_FILE" ] || die "VALUES_FILE=$VALUES_FILE: no such file"
  args+=(--values "$VALUES_FILE")
fi

if [ -n "${IMG:-}" ]; then
  # A colon before the last slash is the registry's port.
  case ${IMG##*/} in
    *:*) WVA_IMAGE_REPO=${IMG%:*} WVA_IMAGE_TAG=${IMG##*:} ;;
    *) WVA_IMAGE_REPO=$IMG ;;
  esac
fi
if [ -n "${NAMESPACE_SUFFIX:-}" ]; then LLMD_NS=${LLMD_NS:-llm-d-$NAMESPACE_SUFFIX}; fi

# Text values, by variable.
while read -r variable key; do
  if [ -n "${!variable:-}" ]; then set_value "$key" "${!variable}"; fi
done <<'TABLE'
LLMD_NS llmd.namespace
MONITORING_NAMESPACE wva.prometheus.monitoringNamespace
PROMETHEUS_URL wva.prometheus.baseURL
WVA_IMAGE_REPO wva.image.repository
WVA_IMAGE_TAG wva.image.tag
WVA_IMAGE_PULL_POLICY wva.imagePullPolicy
WVA_LOG_LEVEL wva.logging.level
WVA_RECONCILE_INTERVAL wva.reconcileInterval
CONTROLLER_INSTANCE wva.controllerInstance
MODEL_ID llmd.modelID
ACCELERATOR_TYPE va.accelerator
TABLE
# Numbers: whole ones, and any.
while read -r variable kind key; do
  if [ -n "${!variable:-}" ]; then
    case $kind in
      whole) [[ ${!variable} =~ ^[0-9]+$ ]] || die "$variable=${!variable}: write a whole number" ;;
      *) [[ ${!variable} =~ ^[0-9]+(\.[0-9]+)?$ ]] || die "$variable=${!variable}: write a number" ;;
    esac
    set_typed "$key" "${!variable}"
  fi
done <<'TABLE'
SLO_TPOT any va.sloTpot
SLO_TTFT any va.sloTtft
VLLM_SVC_PORT whole vllmService.port
VLLM_SVC_NODEPORT whole vllmService.nodePort
HPA_MIN_REPLICAS whole hpa.minReplicas
HPA_STABILIZATION_SECONDS whole hpa.behavior.scaleUp.stabilizationWindowSeconds
HPA_STABILIZATION_SECONDS whole hpa.behavior.scaleDown.stabilizationWindowSeconds
KV_SPARE_TRIGGER any wva.capacityScaling.default.kvSpareTrigger
QUEUE_SPARE_TRIGGER any wva.capacityScaling.default.queueSpareTrigger
TABLE
# Switches.
while read -r variable key; do
  if [ -n "${!variable:-}" ]; then
    value=$(truth "$variable")
    set_typed "$key" "$value"
  fi
done <<'TABLE'
NAMESPACE_SCOPED wva.namespaceScoped
WVA_METRICS_SECURE wva.metrics.secure
ENABLE_SCALE_TO_ZERO wva.scaleToZero
SKIP_TLS_VERIFY wva.prometheus.tls.insecureSkipVerify
SKIP_TLS_VERIFY keda.unsafeSsl
VLLM_SVC_ENABLED vllmService.enabled
DEPLOY_WVA controller.enabled
DEPLOY_VA va.enabled
DEPLOY_HPA hpa.enabled
TABLE
case ${PROMETHEUS_URL:-} in http://*) set_typed wva.prometheus.allowHTTP true ;; esac
if [ -n "${VLLM_SVC_NODEPORT:-}" ]; then set_value vllmService.type NodePort; fi
if [ -n "${WELL_LIT_PATH_NAME:-}" ]; then set_value llmd.modelName "ms-$WELL_LIT_PATH_NAME-llm-d-modelservice"; fi
DEPLOY_HPA=${DEPLOY_HPA:-true}
case ${SCALER_BACKEND:-prometheus-adapter} in
  prometheus-adapter) ;;
  keda) if is_on DEPLOY_HPA; then set_typed keda.enabled true; fi ;;
  none) set_typed hpa.enabled false ;;
  *) die "SCALER_BACKEND=$SCALER_BACKEND: prometheus-adapter, keda or none" ;;
esac
if is_on INFRA_ONLY; then
  set_typed va.enabled false
  set_typed hpa.enabled false
  set_typed keda.enabled false
fi

# run COMMAND...: runs it, or shows it with --print.
run() {
  if [ -n "$print" ]; then
    printf '%q ' "$@"
    echo
  else
    "$@"
  fi
}

if ! is_on SKIP_CHECKS && [ -z "$print" ]; then
  for tool in helm kubectl; do
    command -v "$tool" >/dev/null || die "$tool is not installed"
  done
  kubectl version >/dev/null || die "the cluster does not answer; see KUBECONFIG"
fi

if is_on UNDEPLOY; then
  run helm uninstall "$WVA_RELEASE_NAME" --namespace "$WVA_NS" --ignore-not-found
  if is_on DELETE_NAMESPACES; then
    run kubectl delete namespace "$WVA_NS" --ignore-not-found
  fi
  exit 0
fi

# The authority of Prometheus: a file, or else a Secret where Prometheus runs.
if [ -n "${PROM_CA_CERT_PATH:-}" ]; then
  [ -s "$PROM_CA_CERT_PATH" ] || die "PROM_CA_CERT_PATH=$PROM_CA_CERT_PATH: no such file, or empty"
elif [ -n "${PROMETHEUS_SECRET_NAME:-}" ]; then
  get=(kubectl --namespace "$monitoring" get secret "$PROMETHEUS_SECRET_NAME" -o 'jsonpath={.data.tls\.crt}')
  if [ -n "$print" ]; then
    PROM_CA_CERT_PATH=prometheus-ca.crt
    echo "$(run "${get[@]}")| base64 -d >$PROM_CA_CERT_PATH"
  else
    PROM_CA_CERT_PATH=$(mktemp)
    trap 'rm -f "$PROM_CA_CERT_PATH"' EXIT
    "${get[@]}" | base64 -d >"$PROM_CA_CERT_PATH"
    [ -s "$PROM_CA_CERT_PATH" ] || die "PROMETHEUS_SECRET_NAME=$PROMETHEUS_SECRET_NAME: no tls.crt in it"
  fi
fi
if [ -n "${PROM_CA_CERT_PATH:-}" ]; then args+=(--set-file "wva.prometheus.caCert=$PROM_CA_CERT_PATH"); fi

DEPLOY_WVA=${DEPLOY_WVA:-true}
if [ -z "${WVA_IMAGE_REPO:-}${VALUES_FILE:-}" ] && is_on DEPLOY_WVA; then
  note "no image is given (-i): $default_repo must be known to the nodes"
fi
# Where the sample goes. Only Helm knows the namespace that VALUES_FILE gives it.
if [ -z "${LLMD_NS:-}${VALUES_FILE:-}" ]; then
  LLMD_NS=$(sed -n '/^llmd:/,$ s/^  namespace: //p' "$here/environments/$ENVIRONMENT.yaml")
fi
if [ -z "${LLMD_NS:-}" ]; then
  note "LLMD_NS is not given: the namespace that VALUES_FILE names as llmd.namespace must exist"
elif [ -n "$print" ]; then
  run kubectl create namespace "$LLMD_NS"
else
  kubectl create namespace "$LLMD_NS" --dry-run=client -o yaml | kubectl apply -f -
fi
run helm upgrade --install "$WVA_RELEASE_NAME" "$chart" \
  --namespace "$WVA_NS" --create-namespace "${args[@]}"
