//! The largest need of a while, so that what comes back finds its replicas. How long the while is, is
//! learned: a need that comes back soon after it was forgotten doubles it, rest halves it.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::params::BurstReserve;
use crate::rounding::{self, hundredths};
use crate::units::Replicas;
use wva_base::moment::Moment;

/// Needs of this long are remembered by their largest.
const BUCKET: Duration = Duration::from_secs(30);
/// The longest horizon.
pub const MAX_HORIZON: Duration = Duration::from_hours(1);
/// Starts for which a need is held that grew faster than replicas start. What comes back unexpected misses its objective
/// for a start once more.
const STARTS_HELD: u32 = 16;
/// Share of a forgotten need that is the same need once more.
const SAME: f64 = 0.9;
/// Buckets of history from which on growth is learned.
const LEAST_GROWTHS: usize = 20;
/// One part in so many of the history in which needs may grow by more than the reserve within one start.
const RARE: usize = 10;
/// And at most one in so many.
const MOST_RARE: usize = 4;
/// The reserve until there is enough history.
const FIRST_RESERVE: f64 = 0.2;
/// The reserve to that growth: what exceeds the capacity by little misses the objective between tokens for all
/// requests at once.
const RESERVE_GAIN: f64 = 2.0;
const MOST_RESERVE: f64 = 0.35;
/// The largest growth within a start that a reserve can meet: what grows by more misses with it as without it. Source:
/// the largest reserve on top of the default headroom, 1.35 / 0.85.
const MEETABLE: f64 = 0.6;
/// Horizons of rest after which the horizon is halved.
const REST: u32 = 4;
/// How long the first needs say little: the window of the mean request. Source: that of every mean that is queried.
const SETTLING: Duration = Duration::from_mins(5);
/// Share of a need that a forgotten one covers at least, for it to have been worth remembering.
const COVERED: f64 = 0.5;
/// How long a release that was taken back is not tried again at the same need, at first and at most. Each time that it
/// is taken back once more doubles it. Where more replicas were needed than before the release, it is the longest at once.
const FIRST_HOLD: Duration = Duration::from_hours(1);
const LONGEST_HOLD: Duration = Duration::from_hours(6);
/// How long after a release the replicas that are left show what they bear: the window of rates and a scrape, and the
/// looks from which on they bound a latency that is assumed.
const SHOWN: Duration = Duration::from_mins(3);
/// Ages in seconds between which requests must have become more for them to keep doing so. The last minute is in it
/// alone, too: a step, which the smoothed rate follows for minutes, has nearly ended by then.
const RISES: [(u64, u64); 3] = [(0, 60), (0, 120), (120, 240)];
/// The share of a standard deviation of the smoothed rate by which requests must become more in so long.
const RISING: f64 = 0.5;
const RISE: Duration = Duration::from_mins(2);
/// The largest growth that is expected, to the need of now.
const MOST_GROWTH: f64 = 1.0;
/// Starts within which growth counts for the reserve once: a single step is no habit.
const ONCE: f64 = 1.5;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct NeedBucket {
    at: Moment,
    peak: f64,
    /// The largest burst, which needed more than the arrivals of a minute say.
    #[serde(default)]
    burst: f64,
    /// How long it is held at least, since it grew faster than replicas start.
    #[serde(default, skip_serializing_if = "Duration::is_zero")]
    held: Duration,
    /// The most requests per second; `None` where an earlier version kept none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requests: Option<f64>,
}

impl NeedBucket {
    fn of(peak: f64, burst: f64, at: Moment) -> Self {
        Self { at, peak, burst, held: Duration::ZERO, requests: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct ForgottenNeed {
    at: Moment,
    peak: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct TakenBack {
    at: Moment,
    /// The need that took it back.
    need: f64,
    /// Replicas before it, or since it was taken back, where these are fewer.
    replicas: Replicas,
    /// How long it is not tried again.
    #[serde(default)]
    lasts: Duration,
}

/// Needs of one role, in work per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NeedMemory {
    /// When the first need was seen.
    since: Moment,
    /// Replicas that existed then, on their way or ready; `None` where a release below any count waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    found: Option<Replicas>,
    /// When the horizon changed last.
    changed: Moment,
    horizon: Duration,
    buckets: VecDeque<NeedBucket>,
    /// The largest need that left the horizon and may come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forgotten: Option<ForgottenNeed>,
    /// Replicas, ready or on their way, when they were counted last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replicas: Option<Replicas>,
    /// When some were released last, and how many there were before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    released: Option<(Moment, Replicas)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    taken_back: Option<TakenBack>,
}

impl NeedMemory {
    /// A memory that starts now, with so many replicas.
    pub fn new(now: Moment, shortest: Duration, found: Replicas) -> Self {
        Self {
            since: now,
            found: Some(found),
            changed: now,
            horizon: shortest.min(MAX_HORIZON),
            buckets: VecDeque::new(),
            forgotten: None,
            replicas: None,
            released: None,
            taken_back: None,
        }
    }

    /// The share of so many replicas that a release which was taken back showed to be needed, while needs are about the
    /// same; else 0.
    pub fn taken_back(&self, replicas: Replicas, now: Moment) -> f64 {
        let stands = |release: &TakenBack| now.since(release.at) < release.lasts;
        let known = (self.taken_back).filter(|release| stands(release) && replicas.0 > 0);
        known.map_or(0.0, |release| release.replicas.min(replicas).to_f64() / replicas.to_f64())
    }

    /// Whether replicas were released so lately that those that are left have not shown yet what they bear.
    pub fn has_just_released(&self, now: Moment) -> bool {
        (self.released).is_some_and(|(at, _)| now.since(at) < SHOWN)
    }

    /// Takes in a count that other variants make up than before.
    pub fn recount(&mut self, replicas: Replicas) {
        self.replicas = Some(replicas);
        self.released = None;
        self.taken_back = None;
    }

    /// Takes the count of replicas in, after the need that may have ordered some of them. What was ordered for
    /// `growth` takes no release back.
    pub fn count(&mut self, replicas: Replicas, growth: f64, now: Moment) {
        let before = self.replicas.replace(replicas).unwrap_or(replicas);
        let peak = self.peak(now);
        if replicas < before {
            self.released = Some((now, before));
        }
        if replicas > before
            && growth <= 0.0
            && let Some((at, from)) = self.released
            && now.since(at) <= self.horizon
        {
            // Of several growths after one release, the need of the first is that which it was too small for.
            let (need, again) = match self.taken_back {
                Some(known) if known.at >= at => (known.need, known.lasts),
                Some(known) => (peak.max(known.need), known.lasts * 2),
                None => (peak, FIRST_HOLD),
            };
            let lasts = if replicas > from { LONGEST_HOLD } else { again };
            self.taken_back = Some(TakenBack {
                at: now,
                need,
                replicas: from.min(replicas),
                lasts: lasts.min(LONGEST_HOLD),
            });
        }
        let stands = |release: &TakenBack| {
            peak >= release.need * SAME && now.since(release.at) < release.lasts + LONGEST_HOLD
        };
        self.taken_back = self.taken_back.filter(stands);
    }

    /// The largest need that keeps replicas, and for how long it does. Needs are kept for the learned horizon, and for
    /// longer where they grew faster than replicas start. With the strict reserve all are, and without one none longer.
    pub fn remembered(&self, chosen: BurstReserve, now: Moment) -> (f64, Duration) {
        let kept = |bucket: &NeedBucket| match chosen {
            BurstReserve::None => self.horizon,
            BurstReserve::Economical => self.horizon.max(bucket.held),
            BurstReserve::Strict => MAX_HORIZON,
        };
        let within = self.buckets.iter().map(|bucket| (bucket, kept(bucket)));
        let within = within.filter(|(bucket, kept)| now.since(bucket.at) <= *kept);
        let known = within.map(|(bucket, kept)| (bucket.peak, kept));
        let none = kept(&NeedBucket::of(0.0, 0.0, now));
        known.fold((0.0, none), |most, one| if one.0 > most.0 { one } else { most })
    }

    /// The largest need that is remembered without a strict reserve.
    fn peak(&self, now: Moment) -> f64 {
        self.remembered(BurstReserve::Economical, now).0
    }

    /// Twice the share by which the need grows within the time of a start, nine times out of ten of the last hour: what
    /// is to be held for bursts that no order can meet.
    pub fn reserve(&self, start: Duration) -> f64 {
        let buckets = &self.buckets;
        let growth = |(place, from): (usize, &NeedBucket)| {
            let later = buckets.iter().skip(place + 1);
            let within = later.take_while(|later| later.at.since(from.at) <= start);
            let highest = within.map(|later| later.peak).fold(from.peak, f64::max);
            let growth = highest / from.peak - 1.0;
            (from.peak > 0.0 && growth <= MEETABLE).then_some(growth)
        };
        let mut growths: Vec<f64> = buckets.iter().enumerate().filter_map(growth).collect();
        if growths.len() < LEAST_GROWTHS {
            return FIRST_RESERVE;
        }
        growths.sort_unstable_by(f64::total_cmp);
        let once = rounding::ceil(ONCE * start.as_secs_f64() / BUCKET.as_secs_f64());
        let once = usize::try_from(once).unwrap_or(usize::MAX);
        let rare = once.clamp(growths.len() / RARE, growths.len() / MOST_RARE);
        let place = growths.len() - rare;
        (growths.get(place))
            .map_or(FIRST_RESERVE, |growth| (RESERVE_GAIN * growth).min(MOST_RESERVE))
    }

    /// The share by which the need will have grown after so long, where requests have become more steadily for
    /// minutes, by more than chance does, and the need is about above all of before; else 0. `noise` is the share of one
    /// standard deviation. Requests count alone: their mean size follows a step for minutes, and so does the imbalance.
    pub fn growth(&self, ahead: Duration, noise: f64, now: Moment) -> f64 {
        let requests_before = |seconds: u64| {
            let age = Duration::from_secs(seconds);
            let mut buckets = self.buckets.iter().rev();
            buckets.find(|bucket| now.since(bucket.at) >= age)?.requests
        };
        let slope = |(newer, older): (u64, u64)| {
            let seconds = Duration::from_secs(older - newer).as_secs_f64();
            Some((requests_before(newer)? - requests_before(older)?) / seconds)
        };
        let slopes: Option<Vec<f64>> = RISES.into_iter().map(slope).collect();
        let Some((slopes, requests)) = slopes.zip(requests_before(0)) else {
            return 0.0;
        };
        let least = slopes.into_iter().fold(f64::INFINITY, f64::min);
        let chance = RISING * noise * requests / RISE.as_secs_f64();
        let is_before = |bucket: &&NeedBucket| {
            let age = now.since(bucket.at);
            age >= 2 * RISE && age <= self.horizon
        };
        let need = self.buckets.back().map_or(0.0, |bucket| bucket.peak);
        let before = self.buckets.iter().filter(is_before);
        let is_new = before.map(|bucket| bucket.peak).all(|peak| need >= peak * SAME);
        if is_new && least > chance {
            (least * ahead.as_secs_f64() / requests).min(MOST_GROWTH)
        } else {
            0.0
        }
    }

    /// The largest burst of the last so many seconds.
    pub fn burst(&self, held: Duration, now: Moment) -> f64 {
        let within = (self.buckets.iter()).filter(|bucket| now.since(bucket.at) <= held);
        within.map(|bucket| bucket.burst).fold(0.0, f64::max)
    }

    /// Share of so many replicas that may serve a need that was not seen: all of them while the first needs settle,
    /// then those that were found, until needs have been seen for as long as they are remembered.
    pub fn unexplained(&self, replicas: Replicas, now: Moment) -> f64 {
        let seen = now.since(self.since);
        let found = self.found.unwrap_or(replicas);
        if seen >= self.horizon {
            0.0
        } else if seen < SETTLING || found >= replicas {
            1.0
        } else {
            found.to_f64() / replicas.to_f64()
        }
    }

    /// Takes a need and a burst in; `shortest` is the least horizon.
    pub fn observe(&mut self, need: f64, burst: f64, shortest: Duration, now: Moment) {
        let shortest = shortest.min(MAX_HORIZON);
        let last = self.buckets.back().map_or(now, |bucket| bucket.at);
        let before = self.peak(last);
        let remembered = self.peak(now);
        if remembered < before * SAME {
            let peak = self.forgotten.map_or(before, |known| known.peak.max(before));
            self.forgotten = Some(ForgottenNeed { at: now, peak });
        }
        if let Some(forgotten) = self.forgotten {
            if need >= forgotten.peak * SAME && need > remembered {
                if forgotten.peak >= need * COVERED {
                    self.resize(self.horizon.saturating_mul(2), shortest, now);
                }
                self.forgotten = None;
            } else if now.since(forgotten.at) > self.horizon.saturating_mul(REST) {
                self.forgotten = None;
            }
        }
        if now.since(self.changed) >= self.horizon.saturating_mul(REST) {
            self.resize(self.horizon / 2, shortest, now);
        }
        self.horizon = self.horizon.max(shortest);
        self.push(need, burst, now);
    }

    /// Holds the need that was observed last for longer where it grew within the time of a start, `landing`, by more than
    /// a reserve meets. Requests wait for it then, or one as large was held.
    pub fn observe_growth(&mut self, landing: Duration, waits: bool, now: Moment) {
        let age = |bucket: &NeedBucket| now.since(bucket.at);
        let recent = self.buckets.iter().rev();
        let recent = recent.take_while(|bucket| age(bucket) <= landing + BUCKET);
        let least = recent.map(|bucket| bucket.peak).fold(f64::INFINITY, f64::min);
        let need = self.buckets.back().map_or(0.0, |bucket| bucket.peak);
        let has_held = |bucket: &NeedBucket| {
            age(bucket) > landing && age(bucket) <= bucket.held && bucket.peak >= need * SAME
        };
        let is_sudden = need > least * (1.0 + MEETABLE);
        let is_held = is_sudden && (waits || self.buckets.iter().any(has_held));
        if let Some(bucket) = self.buckets.back_mut().filter(|_| is_held) {
            bucket.held = landing.saturating_mul(STARTS_HELD).min(MAX_HORIZON);
        }
    }

    /// Takes in the requests per second of the need that was observed last.
    pub fn observe_requests(&mut self, rate: f64) {
        if let Some(bucket) = self.buckets.back_mut() {
            let rate = hundredths(rate);
            bucket.requests = Some(bucket.requests.map_or(rate, |known| known.max(rate)));
        }
    }

    fn resize(&mut self, horizon: Duration, shortest: Duration, now: Moment) {
        self.horizon = horizon.clamp(shortest, MAX_HORIZON);
        self.changed = now;
    }

    fn push(&mut self, need: f64, burst: f64, now: Moment) {
        let need = hundredths(need);
        match self.buckets.back_mut() {
            Some(bucket) if now.since(bucket.at) < BUCKET => {
                bucket.peak = bucket.peak.max(need);
                bucket.burst = bucket.burst.max(burst);
            }
            _ => self.buckets.push_back(NeedBucket::of(need, burst, now)),
        }
        let is_old = |bucket: &NeedBucket| now.since(bucket.at) > MAX_HORIZON;
        while self.buckets.front().is_some_and(is_old) {
            self.buckets.pop_front();
        }
    }
}
