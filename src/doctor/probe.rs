//! The doctor's own queries. Each brings few series, or one a pod.

/// Series that every pod of a known engine has.
macro_rules! running {
    () => {
        r#"{__name__=~"vllm[:_]num_requests_running|sglang[:_]num_running_reqs"}"#
    };
}

macro_rules! router_picks {
    () => {
        r#"{__name__=~"llm_d_epp_scheduler_attempts_total|llm_d_router_epp_scheduler_attempts_total|inference_extension_scheduler_attempts_total"}"#
    };
}

macro_rules! router_queue {
    () => {
        r#"{__name__=~"llm_d_epp_flow_control_queue_size|llm_d_router_epp_flow_control_queue_size|inference_extension_flow_control_queue_size"}"#
    };
}

wva_base::named! {
    listed
    /// A query of the doctor.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum PrometheusProbe {
        /// Targets that are scraped, and whether the last scrape succeeded.
        Targets = "count by (job) (up)",
        /// Pods that are targets: 1 where a scrape succeeds.
        Pods = r#"max by (namespace, pod) (up{pod!=""})"#,
        /// Counts of controllers.
        Counts = "count by (namespace, exported_namespace, variant_name, controller_instance) (wva_desired_replicas)",
        /// The clock of Prometheus.
        Clock = "vector(time())",
        /// Running requests by pod and model.
        Running = concat!("max by (namespace, pod, pod_name, model_name) (", running!(), ")"),
        /// Pods with series of an engine, under any name.
        EngineSeries = r#"count by (namespace, pod, pod_name) ({__name__=~"(vllm|sglang|tgi|trtllm|nv_trt_llm|lmdeploy)[:_].+"})"#,
        /// Pods whose series exist more than once.
        Doubles = concat!("count by (namespace, pod, model_name, engine, tp_rank, pp_rank, dp_rank, __name__) (", running!(), ") > 1"),
        /// The longest age of a sample by pod, in seconds: the interval of its scrape.
        Ages = concat!("max by (namespace, pod) (max_over_time((time() - timestamp(", running!(), "))[3m:5s]))"),
        /// Namespaces with routers.
        RouterPicks = concat!("count by (namespace) (", router_picks!(), ")"),
        /// Namespaces with routers that hold requests.
        RouterQueues = concat!("count by (namespace) (", router_queue!(), ")"),
        /// Start-up times that the controller has learned, in seconds.
        Starts = "max by (namespace, exported_namespace, variant_name) (wva_replica_start_seconds_estimate)",
    }
}

#[cfg(test)]
mod tests {
    use super::PrometheusProbe;
    use crate::signals::sources::{ARRIVALS, router_queue};

    #[test]
    fn the_names_are_those_that_collections_read() {
        for (probe, sources) in [
            (PrometheusProbe::RouterPicks, ARRIVALS.sources),
            (PrometheusProbe::RouterQueues, router_queue()),
        ] {
            for source in sources {
                let text = probe.as_str();
                assert!(text.contains(source.name), "{} in {text}", source.name);
            }
        }
    }
}
