//! Why a request has no result, as the API says it.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {text}", self.kind.as_str())]
pub(crate) struct QueryRefusal {
    pub(crate) kind: FaultKind,
    pub(crate) text: String,
}

wva_base::named! {
    /// The kinds of faults that the API distinguishes, as far as this server has them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum FaultKind {
        /// A parameter that cannot be read.
        BadData = "bad_data",
        /// An expression that cannot be evaluated on these samples.
        Execution = "execution",
    }
}

impl FaultKind {
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::BadData => 400,
            Self::Execution => 422,
        }
    }
}

impl QueryRefusal {
    pub(super) fn parameter(name: &str, problem: &str) -> Self {
        Self { kind: FaultKind::BadData, text: format!("invalid parameter \"{name}\": {problem}") }
    }

    pub(super) fn execution(text: impl Into<String>) -> Self {
        Self { kind: FaultKind::Execution, text: text.into() }
    }
}
