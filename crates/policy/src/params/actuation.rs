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
    /// Whether an HPA or KEDA is to follow.
    pub fn is_scaler(&self) -> bool {
        *self == Self::Scaler
    }
}
