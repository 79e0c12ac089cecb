//! What a ConfigMap is for.

wva_base::named! {
    listed
    /// What a ConfigMap is for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Purpose {
        /// Keys of the schema.
        Main = "main",
        /// Saturation thresholds.
        Saturation = "saturation",
        /// Scale to zero.
        ScaleToZero = "scale-to-zero",
        /// Queueing model.
        QueueingModel = "queueing-model",
        /// Service classes.
        ServiceClasses = "service-classes",
    }
}

impl Purpose {
    /// Whether a namespace may have its own.
    pub fn may_be_local(self) -> bool {
        matches!(self, Self::Saturation | Self::ScaleToZero | Self::QueueingModel)
    }

    /// Older documented names, best first.
    pub(super) fn older_names(self) -> &'static [&'static str] {
        match self {
            Self::Main | Self::QueueingModel => &[],
            Self::Saturation => &["saturation-scaling-config", "capacity-scaling-config"],
            Self::ScaleToZero => &["model-scale-to-zero-config"],
            Self::ServiceClasses => &["serviceclass"],
        }
    }
}

wva_base::display_of! { Purpose: purpose => "{} ConfigMap", purpose.as_str(); }
