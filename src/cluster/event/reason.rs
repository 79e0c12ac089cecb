//! Reasons of Kubernetes events: every event takes its reason from here.

use crate::policy::condition::ConditionReason;
use crate::policy::pod_autoscaler::event::AutoscalerEventReason;

macro_rules! reasons {
    ($($(#[$meaning:meta])+ $name:ident,)+) => {
        /// Why an event is sent, in one word.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum EventReason {
            $($(#[$meaning])+ $name,)+
            /// What a `PodAutoscaler` reports of a tick.
            Autoscaler(AutoscalerEventReason),
            /// A condition began to fail, fails otherwise, or recovered.
            Condition(ConditionReason),
        }

        impl EventReason {
            /// Every reason that is not that of a condition.
            pub const OWN: &[Self] = &[$(Self::$name),+];

            /// The text that Kubernetes stores.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                    Self::Autoscaler(reason) => reason.as_str(),
                    Self::Condition(reason) => reason.as_str(),
                }
            }
        }
    };
}

reasons! {
    /// The published count was raised.
    ScaledUp,
    /// The published count was lowered.
    ScaledDown,
    /// The published count became 0.
    ScaledToZero,
    /// The controller already handles as many variants as it accepts.
    VariantRefused,
    /// The handling of the object keeps failing.
    VariantQuarantined,
    /// The handling of a `PodAutoscaler` keeps failing.
    AutoscalerQuarantined,
    /// A conflict with another controller is over.
    NoOtherController,
    /// The API server refuses what the shipped roles grant.
    PermissionMissing,
    /// Prometheus no longer scrapes the controller.
    ServiceMonitorDeleted,
    /// An edit of a ConfigMap needs a restart.
    ImmutableConfigChangeRejected,
    /// A ConfigMap holds something that is not accepted.
    InvalidConfigEntry,
}
