//! What the controller reports about a cause by itself: a condition of the first variant, and a series of its page.

use futures::future::try_join;
use tokio::time::Instant;

use super::causes::Cause;
use super::fleet::{Fleet, VARIANTS};
use super::{SOON, since};
use crate::harness::fault::Result;
use crate::harness::wait::{eventually, seen};

/// Scalers that fail are all that the controller sees of some causes.
const FAILING: (&str, &str) = ("ScalerFailing", "WVA125");

/// What is waited for.
#[derive(Clone, Copy)]
pub(super) struct Said {
    reason: &'static str,
    /// The code in `wva_findings`.
    code: &'static str,
}

impl Said {
    /// What the controller has to report about a cause.
    pub(super) fn of(cause: &Cause) -> Option<Self> {
        let (failing, fails) = FAILING;
        cause
            .says
            .map(|reason| Self { reason, code: if reason == failing { fails } else { cause.code } })
    }

    async fn has_condition(self, fleet: &Fleet<'_>) -> Result<bool> {
        let namespace = &fleet.cx.namespace;
        let kind = ("llmd.ai/v1alpha1", "VariantAutoscaling");
        let variants = namespace.dynamic(kind.0, kind.1).await?;
        let variant = variants.get(VARIANTS[0].0).await?;
        let conditions = variant.data["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        Ok(conditions.any(|one| one["status"] == "False" && one["reason"] == self.reason))
    }

    async fn has_series(self, fleet: &Fleet<'_>) -> Result<bool> {
        let series = fleet.controller.series().await?;
        let labels = [("code", self.code)];
        let mut series = series.iter();
        Ok(series.any(|one| one.matches("wva_findings", &labels) && one.value > 0.0))
    }

    /// Waits until both are said, or neither is; the seconds since then.
    pub(super) async fn becomes(
        self,
        fleet: &Fleet<'_>,
        wanted: bool,
        begun: Instant,
    ) -> Result<(f64, f64)> {
        let Self { reason, code } = self;
        let condition = eventually(format!("{reason} is {wanted}"), SOON, async || {
            seen(&self.has_condition(fleet).await?, &wanted)
        });
        let series = eventually(format!("{code} is {wanted}"), SOON, async || {
            seen(&self.has_series(fleet).await?, &wanted)
        });
        try_join(since(begun, condition), since(begun, series)).await
    }
}
