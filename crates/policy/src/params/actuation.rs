//! How published counts reach scale targets.

use serde::{Deserialize, Serialize};

wva_base::named! {
    listed
    /// Who writes the count of a target.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum ActuationMode {
        /// An HPA or KEDA, which follows what is published.
        #[default]
        Scaler = "scaler",
        /// The controller, as long as no scaler is attached to the target.
        Direct = "direct",
    }
}

impl ActuationMode {
    /// The way of a name, or what is wrong with it.
    ///
    /// # Errors
    /// The names that there are.
    pub fn parse(name: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        (all.find(|one| one.as_str() == name)).ok_or_else(|| {
            format!("actuation must be scaler or direct, got {name:?}: write scaler where an HPA or KEDA follows")
        })
    }

    /// Whether an HPA or KEDA is to follow.
    pub fn is_scaler(&self) -> bool {
        *self == Self::Scaler
    }
}
