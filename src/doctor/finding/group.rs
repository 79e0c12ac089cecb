//! Groups and severities of findings.

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
