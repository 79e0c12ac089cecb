//! Every figure behind the analyzer's view of one model.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::SloGoal;
use super::capacity::{NEAREST_OBJECTIVE, SloCapacity};
use super::demand::DemandTrack;
use super::release::ReleaseHold;
use crate::capacity::ServingRole;
use crate::key::VariantKey;
use crate::reason::Straggler;
use crate::rounding::hundredths;
use crate::signal::SignalName;
use crate::units::Replicas;

/// Every figure behind the view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SloReport {
    /// The objectives.
    pub goal: SloGoal,
    /// Its requests; `None` as long as no arrivals were ever known.
    pub demand: Option<DemandTrack>,
    /// Requests that wait, in the router and in engines.
    pub backlog: f64,
    /// Signals that no engine exposes and that follow from others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derived: Vec<SignalName>,
    /// By role.
    pub roles: BTreeMap<ServingRole, SloRoleFigures>,
    /// What one replica of each variant does; a variant without an entry is not known yet.
    pub variants: BTreeMap<VariantKey, SloCapacity>,
    /// Variants that are too slow to serve with the others of their role.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stragglers: BTreeMap<VariantKey, Straggler>,
}

impl SloReport {
    /// The variants that are not sized for the objective between tokens, since an idle replica hardly meets it, each
    /// with what to do.
    pub fn unreachable(&self) -> impl Iterator<Item = (&VariantKey, String)> {
        let objective = self.goal.inter_token_latency;
        let variants = self.variants.iter();
        let slow = variants.filter(move |(_, found)| found.idle * NEAREST_OBJECTIVE > objective);
        slow.map(move |(variant, _)| {
            let text = format!(
                "no count of replicas keeps {} ms between tokens ({}), which an idle replica hardly meets, or not at \
                 all: they are sized for a tenth more than it takes; raise slo-tpot of its service class or targetITL \
                 of its entry, or serve the model by a faster variant",
                hundredths(objective * 1e3),
                self.goal.source.as_str(),
            );
            (variant, text)
        })
    }

    /// Every term as a line of text: the objectives, the demand of each role, what a replica does.
    pub fn lines(&self) -> Vec<String> {
        let goal = self.goal;
        let Some(demand) = self.demand else {
            return vec!["slo: no arrivals are known yet".to_owned()];
        };
        let first = format!(
            "slo: objectives {:.3} s to the first token, {:.4} s between tokens ({}); {:.2} requests/s \
             ({:.2} smoothed, {:.2} in the last minute, the router's queue by {:+.2}, {:.2} by requests in flight, \
             {:.2} since the last count), {:.0} waiting",
            goal.time_to_first_token,
            goal.inter_token_latency,
            goal.source.as_str(),
            demand.rate(),
            demand.arrivals.smoothed,
            demand.arrivals.recent,
            demand.queue_growth,
            demand.surge,
            demand.jump,
            self.backlog,
        );
        let roles = self.roles.iter().map(|(role, figures)| {
            format!(
                "slo {role}: {:.0} tokens/s arrive ({:.0} by what is generated; {:.0} a request), {:.0} remembered \
                 for {} s and {:.0} % more held for growth, {:.0} for bursts{}, {:.0} more expected at landing, {:.0} \
                 tokens wait at landing, drained in {} s; a start takes {} s, {} replicas are on their way{}; the \
                 busiest variant has {:.2} of the mean load; demand {:.0}{}",
                figures.arriving,
                figures.generated,
                figures.per_request,
                figures.remembered,
                figures.horizon.as_secs(),
                figures.reserve * 100.0,
                figures.held_burst,
                figures.cut_text(),
                figures.growth,
                figures.landing_backlog,
                figures.drain.as_secs(),
                figures.start.as_secs(),
                (figures.starting).saturating_sub(figures.gated.unwrap_or_default()),
                figures.gated_text(),
                figures.imbalance,
                figures.stated,
                figures.hold.map_or("", ReleaseHold::as_str),
            )
        });
        let variants = self.variants.iter().map(|(variant, capacity)| {
            format!(
                "slo {variant}: a replica does {:.0} tokens/s with {:.1} sequences at {:.4} s, limited by {}{}",
                capacity.per_second,
                capacity.concurrency,
                capacity.latency,
                capacity.bound.as_str(),
                if capacity.is_assumed {
                    ", by a latency that is assumed"
                } else {
                    ""
                },
            )
        });
        let stragglers = self.stragglers.iter();
        let stragglers = stragglers.map(|(variant, straggler)| straggler.line(variant));
        let derived = self.derived.iter().map(|signal| {
            let signal = signal.as_str();
            format!("slo: no engine exposes {signal}, which follows from other signals")
        });
        let first = std::iter::once(first).chain(derived);
        first.chain(roles).chain(variants).chain(stragglers).collect()
    }
}

/// Demand of one role, in work per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SloRoleFigures {
    /// Work of one request.
    pub per_request: f64,
    /// Work that arrives: requests times their mean work, or more by what is generated.
    pub arriving: f64,
    /// Work that arrives by the tokens that are generated, as if none had to wait; 0 while a queue drains.
    pub generated: f64,
    /// What replicas are needed for now: the largest of what arrives, a surge and a jump.
    pub need: f64,
    /// Work of a surge or a jump; 0 where there is none.
    pub burst: f64,
    /// The largest arriving work of the horizon.
    pub remembered: f64,
    /// Share of that which is held for growth within one start.
    pub reserve: f64,
    /// The largest burst that replicas are held for.
    pub held_burst: f64,
    /// Work that will arrive beyond what does now when a replica that is ordered now is ready; 0 where it does not
    /// rise steadily.
    #[serde(default)]
    pub growth: f64,
    /// What remembered needs and bursts keep where that is less: load has fallen, and no replica starts for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<f64>,
    /// How long a need is remembered.
    pub horizon: Duration,
    /// Work that will wait when a replica that is ordered now is ready.
    pub landing_backlog: f64,
    /// Time in which it is to be drained from then on.
    pub drain: Duration,
    /// Time that a start takes, as learned: the longest of its variants.
    #[serde(default)]
    pub start: Duration,
    /// Replicas on their way.
    #[serde(default)]
    pub starting: Replicas,
    /// Those of them that scheduling gates hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gated: Option<Replicas>,
    /// Load of the busiest variant to that of all, by which the demand is raised.
    #[serde(default = "even")]
    pub imbalance: f64,
    /// Why replicas are not released, or few at once.
    pub hold: Option<ReleaseHold>,
    /// What is stated as demand.
    pub stated: f64,
}

impl SloRoleFigures {
    fn cut_text(&self) -> String {
        self.cut.map_or_else(String::new, |cut| {
            format!(" (cut to {cut:.0}: load has fallen, and none starts for it)")
        })
    }

    fn gated_text(&self) -> String {
        let text = |gated| format!(", {gated} gated");
        self.gated.map_or_else(String::new, text)
    }
}

fn even() -> f64 {
    1.0
}
