//! Demand against supply of one role, and what may be made of the difference.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::average::mean;
use super::floor::{FloorLoad, Landing, MIN_HORIZON, hold, orders_nothing, queue_order, served};
use super::input::{Params, ThroughputVariantInput};
use super::variant::ThroughputVariantFigures;
use crate::combine::{Balance, Band, VoteDirection};
use crate::units::Replicas;

/// One look orders nothing, in neither direction.
const CONFIRMING_CYCLES: u8 = 2;

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RoleLoad {
    /// Requests per second.
    pub arrivals: f64,
    /// Requests of the router's queue that fall to it.
    pub router_queue: f64,
    /// Tokens of one request that it has to compute.
    pub tokens_per_request: f64,
    /// Tokens per second: those of the arrivals, and for the router's queue.
    pub demand: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ThroughputRoleFigures {
    pub load: RoleLoad,
    /// What it needs whatever its size; absent for a role that nothing is known of at full load.
    pub floor: Option<FloorFigures>,
    /// Demand and supply in the unit of the report, before damping.
    pub balance: Balance,
    /// Cycles in a row that wanted the same.
    pub streak: Option<Streak>,
    pub damping: Damping,
    /// What the assessment states, in the same unit.
    pub stated: f64,
}

/// What keeps a difference between demand and supply from acting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Damping {
    Free,
    /// What it shows is the backlog of decode.
    DecodeBacklog,
    /// The capacity of a variant that serves is a first impression, or not known, and matters.
    WarmUp,
    /// One cycle wanted it so far.
    Unconfirmed,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FloorFigures {
    /// Requests per second that a full replica completes, the mean over the variants (mu).
    pub rate_per_replica: f64,
    /// Whether the floor may order replicas; else it holds those that there are.
    pub is_proven: bool,
    /// Requests that wait, in engines and in the router.
    pub backlog: f64,
    /// Time in which a backlog has to be worked off.
    pub horizon: Duration,
    /// Replicas that the load needs, whatever their number is now.
    pub replicas: f64,
    pub landing: Landing,
    /// Replicas that are missing then; negative where there are more.
    pub missing: f64,
    /// Replicas that a queue in the router orders while the floor is not proven.
    pub queue_order: Replicas,
    /// The floor in tokens per second.
    pub demand: f64,
    /// Tokens per second at landing.
    pub landing_demand: f64,
    /// Tokens per second of it that may act.
    pub permitted: f64,
}

/// How many cycles in a row wanted the same direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streak {
    pub direction: VoteDirection,
    /// Cycles, the latest one included.
    pub cycles: u8,
}

impl Streak {
    /// Continues a streak with a cycle, or starts a new one; none where the cycle wants neither.
    pub(super) fn next(previous: Option<Self>, wanted: Option<VoteDirection>) -> Option<Self> {
        let direction = wanted?;
        let before = previous
            .filter(|streak| streak.direction == direction)
            .map_or(0, |streak| streak.cycles);
        Some(Self { direction, cycles: before.saturating_add(1) })
    }

    fn confirms(self, direction: VoteDirection) -> bool {
        self.direction == direction && self.cycles >= CONFIRMING_CYCLES
    }
}

pub(super) fn wanted(balance: &Balance) -> Option<VoteDirection> {
    if balance.required > 0.0 {
        Some(VoteDirection::Up)
    } else if balance.spare > 0.0 {
        Some(VoteDirection::Down)
    } else {
        None
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct RoleMember<'a> {
    pub(super) input: &'a ThroughputVariantInput,
    pub(super) figures: &'a ThroughputVariantFigures,
}

/// What ready, and ready and pending replicas supply, in tokens per second.
#[derive(Debug, Clone, Copy)]
struct RoleSupply {
    supply: f64,
    anticipated: f64,
}

/// Figures of a role; none where no variant of it can be sized, or no number holds its demand.
pub(super) fn figures(
    parts: &[RoleMember<'_>],
    load: RoleLoad,
    params: &Params,
    streak: Option<Streak>,
    is_masked: bool,
) -> Option<ThroughputRoleFigures> {
    let fleet = RoleSupply::of(parts)?;
    let RoleSupply { supply, anticipated } = fleet;
    let floor = FloorFigures::of(parts, load, fleet, params.band);
    let demand = floor.map_or(load.demand, |floor| floor.demanded(load));
    let demand = if is_masked {
        let waiting = floor.map_or(MIN_HORIZON, |floor| floor.horizon);
        let of_router = load.router_queue * load.tokens_per_request / waiting.as_secs_f64();
        hold(demand - of_router, supply, anticipated, params.band) + of_router
    } else {
        demand
    };
    if !demand.is_finite() {
        // A product of absurd figures, which no fleet could serve.
        return None;
    }
    let balance = Balance::of(demand, supply, anticipated, params.band);
    let is_ordered = floor.is_some_and(|floor| {
        floor.is_proven && floor.landing_demand > params.band.scale_up * anticipated
    });
    let is_warm =
        (parts.iter()).all(|part| part.input.ready == Replicas::ZERO || part.figures.is_settled);
    let damping = damping(is_warm, &balance, streak, is_masked, is_ordered);
    Some(ThroughputRoleFigures {
        load,
        floor,
        balance,
        streak,
        damping,
        stated: damping.stated(&balance, params.band),
    })
}

/// Figures of a role that nothing is asked of, in replicas. What one can do does not matter, hence
/// neither whether that is a first impression.
pub(super) fn idle(
    parts: &[RoleMember<'_>],
    band: Band,
    streak: Option<Streak>,
) -> ThroughputRoleFigures {
    let ready: f64 = parts.iter().map(|part| part.input.ready.to_f64()).sum();
    let existing: f64 = parts.iter().map(RoleMember::existing).sum();
    let balance = Balance::of(0.0, ready, existing, band);
    let damping = damping(true, &balance, streak, false, false);
    ThroughputRoleFigures {
        load: RoleLoad::default(),
        floor: None,
        balance,
        streak,
        damping,
        stated: damping.stated(&balance, band),
    }
}

impl Damping {
    /// The demand that acts: where it must not, one that neither orders nor releases.
    fn stated(self, balance: &Balance, band: Band) -> f64 {
        match self {
            Self::Free | Self::DecodeBacklog => balance.demand,
            Self::WarmUp | Self::Unconfirmed => {
                hold(balance.demand, balance.supply, balance.anticipated, band)
            }
        }
    }
}

/// One look neither orders nor releases; what a proven floor orders needs no second one, since it
/// rests on the load alone.
fn damping(
    is_warm: bool,
    balance: &Balance,
    streak: Option<Streak>,
    is_masked: bool,
    is_ordered: bool,
) -> Damping {
    match wanted(balance) {
        None if is_masked => Damping::DecodeBacklog,
        None => Damping::Free,
        Some(VoteDirection::Up) if is_ordered => Damping::Free,
        Some(_) if !is_warm => Damping::WarmUp,
        Some(direction) if streak.is_some_and(|streak| streak.confirms(direction)) => Damping::Free,
        Some(_) => Damping::Unconfirmed,
    }
}

impl RoleSupply {
    fn of(parts: &[RoleMember<'_>]) -> Option<Self> {
        let (mut supply, mut anticipated, mut is_sized) = (0.0, 0.0, false);
        for RoleMember { input, figures } in parts {
            if let Some(rate) = figures.per_replica {
                is_sized = true;
                supply += rate * input.ready.to_f64();
                anticipated += rate * (input.ready.to_f64() + input.pending.to_f64());
            }
        }
        is_sized.then_some(Self { supply, anticipated })
    }
}

impl FloorFigures {
    fn of(parts: &[RoleMember<'_>], load: RoleLoad, fleet: RoleSupply, band: Band) -> Option<Self> {
        let is_proven = parts.iter().any(RoleMember::is_proven);
        let rated: Vec<_> = (parts.iter())
            .filter(|part| part.is_proven() == is_proven)
            .filter_map(|part| Some((part.figures.service?, part.figures.per_replica?)))
            .collect();
        let rate = mean(rated.iter().map(|(service, _)| service.requests_per_second))?;
        let capacity = mean(rated.iter().map(|(_, capacity)| *capacity))?;
        let start = parts.iter().map(|part| part.input.start).max()?;
        let of_engines: f64 = parts.iter().map(|part| part.input.backlog()).sum();
        let requests =
            FloorLoad { arrivals: load.arrivals, backlog: of_engines + load.router_queue };
        let replicas = requests.replicas(rate, start)?;
        let landing =
            Landing::of(requests, parts.iter().map(|part| part.served(rate, start)).sum(), start);
        let per_request = capacity / rate;
        let existing: f64 = parts.iter().map(RoleMember::existing).sum();
        let mut figures = Self {
            rate_per_replica: rate,
            is_proven,
            backlog: requests.backlog,
            horizon: start.max(MIN_HORIZON),
            replicas,
            landing,
            missing: landing.rate / rate - existing,
            queue_order: queue_order(load.router_queue, load.arrivals, rate),
            demand: replicas * capacity,
            landing_demand: landing.rate * per_request,
            permitted: 0.0,
        };
        figures.permitted = figures.permit(fleet, capacity, band);
        Some(figures)
    }

    /// Tokens per second that the role is asked for. A proven floor has the router's queue in its
    /// backlog: it is not priced by the latency of a token once more.
    fn demanded(&self, load: RoleLoad) -> f64 {
        let alone =
            if self.is_proven { load.arrivals * load.tokens_per_request } else { load.demand };
        alone.max(self.permitted)
    }

    /// A backlog that is worked off before a new replica is ready orders none, and keeps those that
    /// there are; what will be left then orders, once the rate is proven. Until then only a standing
    /// queue in the router does, counted from the ready replicas so that it orders once.
    fn permit(&self, fleet: RoleSupply, capacity: f64, band: Band) -> f64 {
        let held = |demand: f64| demand.min(orders_nothing(fleet.anticipated, band));
        if self.is_proven {
            self.landing_demand.max(held(self.demand))
        } else if self.queue_order > Replicas::ZERO {
            let ordered = fleet.supply + self.queue_order.to_f64() * capacity;
            held(self.demand.max(self.landing_demand)).max(band.scale_up * ordered)
        } else {
            held(self.demand.max(self.landing_demand))
        }
    }
}

impl RoleMember<'_> {
    fn is_proven(&self) -> bool {
        self.figures.service.is_some_and(|service| service.source.is_proven())
    }

    fn existing(&self) -> f64 {
        self.input.ready.to_f64() + self.input.pending.to_f64()
    }

    /// Requests that it serves within `start`; a variant that nothing is known of counts as `usual`.
    fn served(&self, usual: f64, start: Duration) -> f64 {
        let rate = (self.figures.service).map_or(usual, |service| service.requests_per_second);
        let count = usize::try_from(self.input.pending.0).unwrap_or(usize::MAX);
        let remaining: Vec<Duration> = self.input.remaining.iter().copied().take(count).collect();
        served(rate, self.input.ready, &remaining, start)
    }
}
