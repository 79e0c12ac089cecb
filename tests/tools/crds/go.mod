module workload-variant-autoscaler/tests/tools/crds

go 1.26.0

require sigs.k8s.io/gateway-api-inference-extension v1.2.1
