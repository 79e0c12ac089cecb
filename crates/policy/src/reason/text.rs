//! Reasons in words, with their numbers.

use std::fmt::{self, Display};

use super::Reason;
use super::figures::{ReleaseObstacle, WantedAmount};
use super::gap::view_gap;
use super::zero::{WakeCause, wake_refused};
use crate::router_queue::QueueSource;
use wva_base::text::listed;

wva_base::display_of! { Reason:
    Self::LastDesired => "starts from the count published last";
    Self::CurrentReplicas => "starts from what exists: none was published yet";
    Self::Grown { trigger } => "{trigger}: the cheapest eligible variant grows";
    Self::GrownElsewhere { chosen } => "spare capacity is low: {chosen} grows instead";
    Self::GrowthWaits { landed, ago } =>
        "spare capacity is low by peaks that reach back before the last start: a replica of {landed} is ready for {}s",
        ago.as_secs();
    Self::AtMaximum { max } => "spare capacity is low, but the maximum is {max}";
    Self::Shrunk { left } => "the most expensive variant shrinks, which leaves {left}";
    Self::ShrunkElsewhere { chosen } => "capacity to spare: {chosen} shrinks instead";
    Self::AwaitsScaler { published, current } =>
        "{published} replicas would be enough, and nothing scales the {current} that exist";
    Self::AtFloor { floor } => "capacity to spare, but the floor is {floor}";
    Self::Steady { spare } => "capacity is in balance: {spare}";
    Self::NoReplicas => "no replicas, nothing to measure";
    Self::InTransition { causes } => "in transition, keeps its own target: {}", listed(causes);
    Self::TransitionExpired { causes } => "limit reached, no longer held back: {}", listed(causes);
    Self::NoUsableMetrics { state, queue: None } => "{state}: nothing is lowered";
    Self::NoUsableMetrics { state, queue: Some(queue) } => "{state}: its count stays; {queue}";

    // What keeps a model from shrinking by percentages.
    Self::ShrinkWaits { transitions } => "capacity to spare, but shrinking waits for {}", listed(transitions);
    Self::ShrinkOnStale { replicas } => "no shrinking on old samples: replicas concerned {replicas}";
    Self::ShrinkOnStaleRouter => "no shrinking on old samples of the router";
    Self::ShrinkOnPartial { without_kv, without_queue } =>
        "no shrinking on half reports: replicas without KV sample {without_kv}, without queue sample {without_queue}";
    Self::ShrinkOnSilent { reporting, current } =>
        "no shrinking while only {reporting} of {current} replicas report";

    Self::RaisedToMinimum { min, source } => "raised to the minimum of {min} ({source})";
    Self::CutToMaximum { max } => "cut to the maximum of {max} (maxReplicas)";
    Self::CutToCeiling { ceiling } => "cut to {ceiling}, the most replicas that a scale subresource holds";
    Self::BoundsConflict { min, max } => "minReplicas {min} is above maxReplicas {max}: the maximum holds";
    Self::WithinBounds { min, max: None } => "within bounds: at least {min}";
    Self::WithinBounds { min, max: Some(max) } => "within bounds: {min} to {max}";

    // What the optimizer made of the analyzers' votes.
    Self::ScaledUp { method, required } =>
        "V2 scale-up (optimizer: {}, required: {})", method.as_str(), amounts(required);
    Self::ScaledDown { method, releasable } =>
        "V2 scale-down (optimizer: {}, releasable: {})", method.as_str(), amounts(releasable);
    Self::NotChosen { method } =>
        "V2 steady state (optimizer: {}): other variants meet the need", method.as_str();
    Self::Straggles { straggler } =>
        "a replica holds {} requests within the latency objectives, one of the other variants {}: {}",
        straggler.sequences,
        straggler.others,
        if straggler.is_replaced { "those serve what is needed" } else { "those grow first" };
    Self::Gated { cause } => "{cause}";
    Self::StartsStalled => "other variants grow first: its last replicas are late or gated";
    Self::Ordered { standing } =>
        "more capacity is needed, and its {standing} replicas, published or its minimum, are counted on";
    Self::NeedAtMaximum { max } => "more capacity is needed, but the maximum is {max}";
    Self::FedByPrefill { reached } =>
        "prefill is at its maximum and reaches {:.1}% of its need: decode follows", reached * 100.0;
    Self::NotSized => "no analyzer knows the capacity of one replica";
    Self::NotReleased { releasable, obstacle } =>
        "V2 steady state: releasable: {}, {}", amounts(releasable), stays(obstacle, releasable.len() > 1);
    Self::ModelGrows => "another role of the model needs capacity";
    Self::Held { hold } => "V2 steady state: {hold}";
    Self::NotMeasured { analyzer, by: Some(by), missing, because } =>
        "{analyzer} has not measured its replicas yet{}; {by} decides: {because}", view_gap(missing, &[]);
    Self::NotMeasured { analyzer, by: None, missing, because } =>
        "{analyzer} has not measured its replicas yet{}; percentages decide: {because}", view_gap(missing, &[]);
    Self::LeftToSaturation => "the queueing model has no opinion to follow: saturation decides alone";
    Self::NoView { role, missing, abstaining } =>
        "no analyzer has a view on role {role}{}", view_gap(missing, abstaining);
    Self::Arbitrated { reason, .. } => "{reason}";

    // What GPUs and quotas allowed.
    Self::NotGrowing { target, current } => "no scale-up (target={target}, current={current})";
    Self::Granted { gpus, added } => "allocated {gpus} GPUs for +{added} replicas";
    Self::Limited { gpus, added, by, .. } =>
        "limited: allocated {gpus} GPUs for +{added} replicas{}", limited_by(by);
    Self::ShareLimited { gpus, added, wanted, by } =>
        "limited: allocated {gpus} GPUs for +{added} replicas of +{wanted} wanted, +{} unmet{}",
        wanted.saturating_sub(*added),
        limited_by(by);
    Self::BudgetUnknown { added, wanted, pools } =>
        "BudgetUnknown: +{added} of +{wanted} replicas{}",
        fmt::from_fn(|f| pools.iter().try_for_each(|pool| write!(f, "; {pool} is not known")));
    Self::GpusNotCounted(why) => "{why}";
    Self::CountedOn { standing } => "its {standing} replicas, published or its minimum, are counted on";
    Self::ServedByOthers => "other variants of its role meet the need";
    Self::Reclaimed { held, share } => "rescale: the role holds {held} GPUs, its share is {share}";
    Self::Filled { gpus, share } => "rescale: takes {gpus} free GPUs towards a share of {share}";
    Self::ShareKept { held, share } => "rescale: kept, the role holds {held} GPUs of a share of {share}";
    Self::Withheld(why) => "{why}";
    Self::MinimumAboveGpus { min, by } => "the minimum of {min} exceeds its GPUs{}", limited_by(by);
    Self::HeldForStart { by } => "GPUs are held for starts from zero: {}", listed(by);

    // What the stages after the optimizer made of a count.
    Self::Relapsed { replicas, occupancy, now: None } =>
        "{replicas} replicas did not last when {occupancy:.2} KV caches were in use";
    Self::Relapsed { replicas, occupancy, now: Some(now) } =>
        "{replicas} replicas did not last when {occupancy:.2} KV caches were in use, and {now:.2} are now";
    Self::QueueHoldsRelease { requests, lasts } =>
        "nothing is released while {requests:.0} requests wait in the router, where too many have for {}s",
        lasts.as_secs();
    Self::QueueStands { requests, fewest, lasts } =>
        "{requests:.0} requests wait in the router, and {fewest:.0} or more have for {}s: one more replica",
        lasts.as_secs();
    Self::ReleaseCancelled { published, current } =>
        "more is needed: the release from {current} to {published} is cancelled before it is applied";
    Self::Unserved { lasts, because } =>
        "requests have waited for {}s and nothing grows: {because}", lasts.as_secs();
    Self::TargetUnusable { problem } => "{problem}";

    // What the boundary between no replicas and some made of a count.
    Self::NoRequests { idle, retention } =>
        "No requests in retention period, scaling to zero (idle for {}s of {}s)",
        idle.as_secs(),
        retention.as_secs();
    Self::ZeroBlocked { block } => "{block}";
    Self::Woken { cause: WakeCause::MinimumOfOne, .. } =>
        "Preserving minimum replica on cheapest variant (scale-to-zero disabled)";
    Self::Woken { cause, source: Some(QueueSource::Router) } =>
        "started from zero: {cause}, as it says itself";
    Self::Woken { cause, .. } => "started from zero: {cause}";
    Self::AwaitsDecode { decode } => "prefill starts once decode is ready: waits for {decode}";
    Self::WakeSignalFailed { why } => "whether requests wait for it is not known: {why}";
    Self::WakeRefused { cause, obstacle, gpus, by, claims } =>
        "{}", wake_refused(*obstacle, *gpus, by, claims, *cause);
}

fn limited_by(pools: &[impl Display]) -> impl Display {
    fmt::from_fn(move |f| {
        let mut pools = pools.iter();
        pools.try_for_each(|pool| write!(f, "; limited by {pool}"))
    })
}

fn stays(obstacle: &ReleaseObstacle, has_several: bool) -> impl Display {
    fmt::from_fn(move |f| match obstacle {
        ReleaseObstacle::Minimum(min) => write!(f, "but its minimum is {min}"),
        ReleaseObstacle::NoReplicas => f.write_str("but it has no replicas"),
        ReleaseObstacle::LastOfRole => f.write_str("but the last replica of its role stays"),
        ReleaseObstacle::TooLarge(supply) => {
            f.write_str("but one of its replicas supplies ")?;
            if has_several {
                write!(f, "{} ", supply.analyzer)?;
            }
            write_amount(f, supply.amount)
        }
        ReleaseObstacle::OthersFirst => f.write_str("and other variants go first"),
    })
}

/// One amount alone needs no name.
fn amounts(wanted: &[WantedAmount]) -> impl Display {
    fmt::from_fn(move |f| {
        if let [only] = wanted {
            return write_amount(f, only.amount);
        }
        for (index, wanted) in wanted.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{} ", wanted.analyzer)?;
            write_amount(f, wanted.amount)?;
        }
        Ok(())
    })
}

/// Whole numbers from 1 on. Requests per second may be fewer.
fn write_amount(f: &mut fmt::Formatter<'_>, amount: f64) -> fmt::Result {
    let decimals = match amount.abs() {
        0.0 => 0,
        small if small < 0.095 => 4,
        small if small < 0.95 => 2,
        _ => 0,
    };
    write!(f, "{amount:.decimals$}")
}
