//! What a process shows, against what it decided and what is stored.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{DECIDED, KNOWN, ProcessChecker, SHOWN, STORED};
use crate::chaos::check::InvariantViolation;
use crate::chaos::check::series::ExposedSeries;
use crate::chaos::conditions::unlike_the_record;
use crate::chaos::surroundings::{Surroundings, is_declaring};
use wva::policy::key::VariantKey;
use wva::policy::ownership::Ownership;
use wva::policy::record::PublishedRecord;
use wva::policy::units::Replicas;
use wva_base::moment::Moment;

impl ProcessChecker {
    pub(super) fn page(
        &mut self,
        now: Moment,
        page: &ExposedSeries,
        around: &Surroundings,
    ) -> Vec<InvariantViolation> {
        let mut found = page.broken.clone();
        found.extend(self.relapses());
        for (number, count) in &page.counted {
            if *count > self.counted.get(number).copied().unwrap_or(0.0) {
                let text = format!("{number} was counted by the controller itself");
                found.push(InvariantViolation::new("D", text));
            }
        }
        self.counted.clone_from(&page.counted);
        let leads = self.door.shared.claim.may_write(now);
        if !leads {
            if let Some(key) = page.named.iter().next() {
                let text = format!("series of {key} are shown without a claim");
                found.push(InvariantViolation::new("E5", text));
            }
            if let Some(key) = page.autoscalers.first() {
                let text = format!("the series of {key} is shown without a claim");
                found.push(InvariantViolation::new("E5", text));
            }
            return found;
        }
        let is_there = |key: &&VariantKey| around.variants.contains_key(*key);
        let gone = page.desired.keys().filter(|key| !is_there(key));
        let gone = gone.map(|key| format!("{key} is gone and still shown"));
        found.extend(self.patience.judge(("E4", "gone"), gone, self.led(now), SHOWN));
        let (absent, times) = (self.absent(page, around), self.within(now));
        found.extend(self.patience.judge(("E2", "absent"), absent, times, SHOWN));
        found.extend(self.counts(now, page, around));
        found.extend(self.existing(now, page));
        found.extend(self.unreported(now, around));
        found.extend(self.idle(now));
        found
    }

    /// D7: what counts of a variant is never of a cycle before the one that counted last, nor in a new term of one
    /// of the term before.
    fn relapses(&mut self) -> Vec<InvariantViolation> {
        let records = &self.door.shared.records;
        let term = records.term();
        let mut found = Vec::new();
        for (key, record) in records.snapshot() {
            let Some(cycle) = record.decided.cycle else {
                continue;
            };
            let last = self.cycles.insert(key.clone(), (term, cycle));
            let is_older =
                last.is_some_and(|(of, last)| cycle < last || (of < term && cycle == last));
            if is_older {
                let text = format!("{key} counts by cycle {cycle} again");
                found.push(InvariantViolation::new("D7", text));
            }
        }
        found
    }

    /// E7: the replicas that are shown are those that exist.
    fn existing(&mut self, now: Moment, page: &ExposedSeries) -> Vec<InvariantViolation> {
        let views = self.door.shared.board.snapshot();
        let is_odd = |key: &VariantKey, shown: f64| {
            let view = views.get(key);
            let target = view.and_then(|view| view.target.resolved());
            target.is_some_and(|target| target.current.to_f64().total_cmp(&shown).is_ne())
        };
        let odd = page.current.iter();
        let odd = odd.filter(|(key, shown)| is_odd(key, **shown));
        let odd = odd.map(|(key, _)| format!("{key} is shown with other replicas than it has"));
        self.patience.judge(("E7", "existing"), odd, self.within(now), SHOWN)
    }

    /// Who leads decides at every tick, on what was collected for it.
    fn idle(&mut self, now: Moment) -> Vec<InvariantViolation> {
        let interval = self.door.shared.settings.load().generation.dynamic.interval;
        let collected = self.door.shared.metrics.load().collected;
        let last = [
            ("published no plan", self.plans.last_at().unwrap_or_default()),
            ("collected nothing", collected.map_or(Duration::ZERO, |at| at.monotonic)),
        ];
        let since = |at: Duration| now.monotonic.saturating_sub(at);
        let idle = last.iter().filter(|(_, at)| since(*at) > interval * 2);
        let limit = (interval * 2).as_secs();
        let idle = idle.map(|(what, _)| format!("leads, and has {what} for more than {limit} s"));
        self.patience.judge(("L1", "idle"), idle, self.beats(now), interval + KNOWN)
    }

    fn absent(&self, page: &ExposedSeries, around: &Surroundings) -> Vec<String> {
        let shared = &self.door.shared;
        let views = shared.board.snapshot();
        let resolved = views.iter().filter(|(key, view)| {
            view.target.resolved().is_some()
                && around.variants.contains_key(*key)
                && !page.desired.contains_key(*key)
                && !matches!(shared.standing(key), Ownership::Behind { .. })
        });
        resolved.map(|(key, _)| format!("{key} is resolved and not shown")).collect()
    }

    /// Variants that are shown with another count than the last plan gives them. One that was made for a
    /// target that has gone since gives none.
    fn unlike_the_plan(&self, page: &ExposedSeries) -> Vec<String> {
        let shared = &self.door.shared;
        let plan = shared.plan.load();
        let term = shared.claim.term();
        let Some(plan) = plan.as_ref().as_ref().filter(|last| last.term == term) else {
            return Vec::new();
        };
        let plan = &plan.plan;
        let views = shared.board.snapshot();
        let decided = |key: &VariantKey| {
            let decision = plan.decisions.get(key)?;
            let view = views.get(key)?;
            let is_of_now = view.target.resolved().is_some() && decision.current.is_some();
            let outlived = shared.records.get(key)?.outlived;
            let counts = is_of_now && outlived.is_none_or(|cycle| cycle < plan.cycle);
            decision.target.filter(|_| counts)
        };
        let unlike = page.desired.iter().filter_map(|(key, shown)| {
            let target = decided(key)?;
            let is_odd = target.to_f64().total_cmp(shown).is_ne();
            is_odd.then(|| {
                let counts = format!("with {shown} instead of {target}");
                format!("{key}, {counts}, is shown with another count than was decided")
            })
        });
        unlike.collect()
    }

    fn counts(
        &mut self,
        now: Moment,
        page: &ExposedSeries,
        around: &Surroundings,
    ) -> Vec<InvariantViolation> {
        let interval = self.door.shared.settings.load().generation.dynamic.interval;
        let (mut outside, mut unstored) = (Vec::new(), Vec::new());
        for (key, desired) in &page.desired {
            let Some(stored) = around.variants.get(key) else {
                continue;
            };
            let desired = Replicas(crate::number::rounded(*desired));
            let above = stored.bounds.1.is_some_and(|max| desired.0 > max);
            let crossed = stored.bounds.1.is_some_and(|max| stored.bounds.0 > Some(max));
            let below = !crossed && stored.bounds.0.is_some_and(|min| desired.0 < min);
            if above || below {
                outside.push(format!("{key} is shown outside its bounds"));
            }
            if stored.desired != Some(desired.0) {
                unstored.push(key.to_string());
            }
        }
        let (times, limit) = (self.beats(now), interval * 3 + KNOWN);
        let mut found = self.patience.judge(("D2", "outside"), outside, times, limit);
        let (unlike, times) = (self.unlike_the_plan(page), self.within(now));
        found.extend(self.patience.judge(("E8", "undecided"), unlike, times, DECIDED));
        found.extend(self.untried(now, &unstored));
        let text = |key| format!("{key} is shown with another count than is stored");
        let unstored = unstored.into_iter().map(text);
        found.extend(self.patience.judge(("E6", "unstored"), unstored, self.led(now), STORED));
        found
    }

    /// E6: the conditions and the accelerator that are stored are those that are recorded.
    fn unreported(&mut self, now: Moment, around: &Surroundings) -> Vec<InvariantViolation> {
        let shared = &self.door.shared;
        let views = shared.board.snapshot();
        // What an earlier life has stored stays until there is a decision, and of what another controller holds
        // only that it does is stated.
        let is_to_be_stated = |key: &VariantKey, record: &PublishedRecord| {
            let view = views.get(key);
            view.is_some_and(|view| view.target.resolved().is_some())
                && !record.awaits_decision()
                && !matches!(record.standing, Ownership::Behind { .. })
        };
        let records = shared.records.snapshot();
        let stated = records.iter().filter(|(key, record)| is_to_be_stated(key, record));
        let unlike = stated.filter_map(|(key, record)| {
            let stored = around.variants.get(key)?;
            // It has no status, and says the same by events.
            if is_declaring(&stored.object) {
                return None;
            }
            let (what, text) = unlike_the_record(&stored.object, record)?;
            // Whatever it is instead, it is the same that is not stated.
            Some((format!("{what} of {key}"), text))
        });
        let unlike: BTreeMap<String, String> = unlike.collect();
        let (odd, times) = (unlike.keys().cloned().collect(), self.led(now));
        let lasting = self.patience.lasting("unreported", odd, times, STORED).into_iter();
        let text = |what: String| {
            let words = unlike.get(&what).map_or("", String::as_str);
            format!("{what} is not what is recorded: {words}")
        };
        lasting.map(|what| InvariantViolation::new("E6", text(what))).collect()
    }
}
