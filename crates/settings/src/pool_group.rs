//! Which InferencePools are watched.

/// The API groups of the InferencePools that are watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PoolGroup {
    /// Each that the cluster serves. A pool that is present in several counts as in the first of [`PoolGroup::ALL`].
    #[default]
    Discovered,
    /// This one only.
    Only(&'static str),
}

impl PoolGroup {
    /// API group of `v1`.
    pub const STABLE: &'static str = "inference.networking.k8s.io";
    /// API group of `v1alpha2`.
    pub const ALPHA: &'static str = "inference.networking.x-k8s.io";
    /// API group of the Gateway API, to which the pool moves.
    pub const GATEWAY: &'static str = "gateway.networking.k8s.io";
    /// API group of llm-d.
    pub const LLM_D: &'static str = "llm-d.ai";
    /// Every group, in the order in which a pool is looked for.
    pub const ALL: [&'static str; 4] = [Self::STABLE, Self::GATEWAY, Self::LLM_D, Self::ALPHA];

    /// Reads a group; empty is every group.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::Discovered);
        }
        Self::ALL.into_iter().find(|group| *group == text).map(Self::Only)
    }

    /// Whether the pools of a group are watched.
    pub fn includes(self, group: &str) -> bool {
        match self {
            Self::Discovered => true,
            Self::Only(only) => only == group,
        }
    }
}

wva_base::display_of! { PoolGroup:
    Self::Discovered => "";
    Self::Only(group) => "{group}";
}
