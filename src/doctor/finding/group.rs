//! Groups and severities of findings.

/// What a finding is about, in the order of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingGroup {
    /// What the API server serves.
    Cluster,
    /// The controller and its settings.
    Controller,
    /// Prometheus.
    Prometheus,
    /// Model servers and routers.
    Engines,
    /// VariantAutoscalings and their targets.
    Variants,
    /// What follows the published counts.
    Scalers,
    /// PodAutoscalers and their targets.
    PodAutoscalers,
}

impl FindingGroup {
    /// Every group.
    pub const ALL: [Self; 7] = [
        Self::Cluster,
        Self::Controller,
        Self::Prometheus,
        Self::Engines,
        Self::Variants,
        Self::Scalers,
        Self::PodAutoscalers,
    ];

    /// Its heading.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Controller => "controller",
            Self::Prometheus => "prometheus",
            Self::Engines => "engines",
            Self::Variants => "variants",
            Self::Scalers => "scalers",
            Self::PodAutoscalers => "podautoscalers",
        }
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingSeverity {
    /// Something does not work.
    Error,
    /// Something works badly, or will stop.
    Warning,
}

impl FindingSeverity {
    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}
