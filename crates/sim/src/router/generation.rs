//! The names that endpoint pickers have given their series.

/// Which names a router uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouterMetricNames {
    /// Early Gateway API Inference Extension: `inference_model_*`.
    Model,
    /// Its releases 1.x, and llm-d up to 0.7: `inference_objective_*`.
    Objective,
    /// llm-d 0.8: `llm_d_router_epp_*`.
    RouterEpp,
    /// llm-d-router since June 2026: `llm_d_epp_*`.
    Epp,
}

/// A name of [`RouterMetricNames::Epp`] without its prefix, and what it was called before.
#[derive(Debug, Clone, Copy)]
pub(super) enum Name {
    /// The older name has the prefix of requests.
    Request(&'static str, &'static str),
    /// The older name has the prefix of pools.
    Pool(&'static str, &'static str),
    /// The older name has the prefix of extensions.
    Extension(&'static str, &'static str),
    /// There was none.
    New(&'static str),
}

impl RouterMetricNames {
    /// All, from the oldest.
    pub const ALL: [Self; 4] = [Self::Model, Self::Objective, Self::RouterEpp, Self::Epp];

    /// The full name; none where this generation lacks the series.
    pub(super) fn name(self, name: Name) -> Option<String> {
        let requests = match self {
            Self::Model => "inference_model_",
            Self::Objective => "inference_objective_",
            Self::RouterEpp => return Some(format!("llm_d_router_epp_{}", name.current())),
            Self::Epp => return Some(format!("llm_d_epp_{}", name.current())),
        };
        match name {
            Name::Request(_, older) => Some(format!("{requests}{older}")),
            Name::Pool(_, older) => Some(format!("inference_pool_{older}")),
            Name::Extension(_, older) => Some(format!("inference_extension_{older}")),
            Name::New(_) => None,
        }
    }

    /// Every name under which a series appears: the newest generation still shows some a second time.
    pub(super) fn names(self, name: Name) -> Vec<String> {
        let mut names: Vec<String> = self.name(name).into_iter().collect();
        if let (Self::Epp, Name::Extension(_, older)) = (self, name)
            && STILL_TWICE.contains(&older)
        {
            names.push(format!("inference_extension_{older}"));
        }
        names
    }

    /// The label that names a server in the scheduler's series.
    pub(super) fn endpoint_label(self) -> &'static str {
        match self {
            Self::Epp => "endpoint_name",
            Self::Model | Self::Objective | Self::RouterEpp => "pod_name",
        }
    }

    /// The label that names a server in the series of queues by server.
    pub(super) fn server_label(self) -> &'static str {
        match self {
            Self::Model | Self::Objective => "model_server_pod",
            Self::RouterEpp | Self::Epp => "model_server_endpoint",
        }
    }

    /// Whether requests carry fairness id and priority.
    pub(super) fn has_fairness(self) -> bool {
        matches!(self, Self::RouterEpp | Self::Epp)
    }
}

/// Source: llm-d-autoscaling #1202.
const STILL_TWICE: [&str; 3] = [
    "scheduler_attempts_total",
    "flow_control_queue_size",
    "flow_control_queue_bytes",
];

impl Name {
    fn current(self) -> &'static str {
        match self {
            Self::Request(current, _)
            | Self::Pool(current, _)
            | Self::Extension(current, _)
            | Self::New(current) => current,
        }
    }
}
