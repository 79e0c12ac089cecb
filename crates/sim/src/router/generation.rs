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
    /// The older name has the prefix of extensions.
    Extension(&'static str, &'static str),
}

impl RouterMetricNames {
    fn name(self, name: Name) -> String {
        let (Name::Request(current, _) | Name::Extension(current, _)) = name;
        let requests = match self {
            Self::Model => "inference_model_",
            Self::Objective => "inference_objective_",
            Self::RouterEpp => return format!("llm_d_router_epp_{current}"),
            Self::Epp => return format!("llm_d_epp_{current}"),
        };
        match name {
            Name::Request(_, older) => format!("{requests}{older}"),
            Name::Extension(_, older) => format!("inference_extension_{older}"),
        }
    }

    /// Every name under which a series appears: the newest generation still shows some a second time.
    /// Source: llm-d-autoscaling #1202.
    pub(super) fn names(self, name: Name) -> Vec<String> {
        let mut names = vec![self.name(name)];
        if let (Self::Epp, Name::Extension(_, older)) = (self, name) {
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

    /// Whether requests carry fairness id and priority.
    pub(super) fn has_fairness(self) -> bool {
        matches!(self, Self::RouterEpp | Self::Epp)
    }
}
