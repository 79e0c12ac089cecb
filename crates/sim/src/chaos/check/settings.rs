//! C: generations of the settings; and settings that bounds of the judge follow, as a process has had them in force
//! lately.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::InvariantViolation;
use crate::apiserver::Insider;
use crate::workloads::object::Object;
use wva::policy::params::DynamicSettings;
use wva::settings::config_maps::{ConfigMapView, gather};
use wva::settings::generation::{SettingChange, transition};
use wva::settings::sources::Data;
use wva::settings::{Generation, Sources};

/// C5: whether the settings in force are those that are stored.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    agreed: Option<(u64, u64)>,
}

impl Followed {
    /// The keys by which the settings that follow from what is stored differ from those in force, as one
    /// text.
    pub(crate) fn behind(
        &mut self,
        now: &Generation,
        fixed: &Sources,
        insider: &Insider,
    ) -> Option<String> {
        let version = insider.version();
        let is_known = self.agreed.is_some_and(|(number, version)| {
            number == now.number && !insider.changed_since(version, &["configmaps."])
        });
        if is_known {
            self.agreed = Some((now.number, version));
            return None;
        }
        let transition = transition(now, &stored(now, fixed, insider));
        let keys = transition.changes.iter().map(|change: &SettingChange| change.key);
        let is_behind = transition.next.is_some();
        self.agreed = (!is_behind).then_some((now.number, version));
        is_behind.then(|| keys.collect::<Vec<_>>().join(", "))
    }
}

/// The sources of settings as they are stored. ConfigMaps count in the namespace of the controller alone.
pub(in crate::chaos) fn stored(now: &Generation, fixed: &Sources, insider: &Insider) -> Sources {
    let maps: Vec<(Object, Data)> = insider
        .list("configmaps.")
        .into_iter()
        .map(|map| (Object(Arc::clone(&map)), data_of(&map)))
        .collect();
    let views = maps.iter().map(|(map, data)| ConfigMapView {
        namespace: map.namespace(),
        name: map.name(),
        data,
    });
    let mut sources = fixed.clone();
    let names = &now.statics.config_maps;
    let home = &now.statics.scope.system_namespace;
    let _notices = gather(&mut sources, names, home, |_| false, views);
    sources
}

pub(in crate::chaos) fn data_of(map: &Value) -> Data {
    let data = map.get("data").and_then(Value::as_object);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let data = data.into_iter().flatten();
    data.map(|(key, value)| (key.clone(), text(value))).collect()
}

#[derive(Debug, Default)]
pub(crate) struct Generations(Option<Generation>);

impl Generations {
    pub(crate) fn judge(&mut self, now: &Generation) -> Option<InvariantViolation> {
        let before = self.0.replace(now.clone())?;
        let (was, is) = (before.number, now.number);
        if before.statics != now.statics {
            let text = format!("static settings differ between generations {was} and {is}");
            return Some(InvariantViolation::new("C1", text));
        }
        if is < was {
            let text = format!("generation {is} follows {was}");
            return Some(InvariantViolation::new("C3", text));
        }
        let is_same = before.dynamic == now.dynamic && before.values == now.values;
        if is == was && !is_same {
            let text = format!("generation {is} has changed its content");
            return Some(InvariantViolation::new("C3", text));
        }
        if is == was + 1 && is_same {
            let text = format!("generation {is} has the content of {was}");
            return Some(InvariantViolation::new("C4", text));
        }
        None
    }
}

/// How long they are remembered: the longest interval.
const REMEMBERED: Duration = Duration::from_hours(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::chaos) struct CollectionTimes {
    pub(crate) interval: Duration,
    pub(crate) fresh: Duration,
    pub(crate) usable: Duration,
}

impl CollectionTimes {
    fn of(settings: &DynamicSettings) -> Self {
        Self {
            interval: settings.interval,
            fresh: settings.freshness.fresh,
            usable: settings.freshness.unavailable,
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            interval: self.interval.max(other.interval),
            fresh: self.fresh.max(other.fresh),
            usable: self.usable.max(other.usable),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Spans {
    all: VecDeque<(Duration, CollectionTimes)>,
    pub(crate) beat_since: Duration,
}

impl Spans {
    pub(crate) fn note(&mut self, settings: &DynamicSettings, now: Duration) {
        let span = CollectionTimes::of(settings);
        match self.all.back_mut() {
            Some((until, last)) if *last == span => *until = now,
            last => {
                if last.is_none_or(|(_, last)| last.interval != span.interval) {
                    self.beat_since = now;
                }
                self.all.push_back((now, span));
            }
        }
        self.all.retain(|(until, _)| now.saturating_sub(*until) <= REMEMBERED);
    }

    /// The longest of each that was in force since then; the last ones at least.
    pub(crate) fn widest(&self, from: Duration) -> Option<CollectionTimes> {
        let (_, last) = self.all.back()?;
        let since = self.all.iter().filter(|(until, _)| *until >= from);
        Some(since.fold(*last, |widest, (_, span)| widest.max(*span)))
    }

    pub(crate) fn shortest_interval(&self, from: Duration) -> Option<Duration> {
        let since = self.all.iter().filter(|(until, _)| *until >= from);
        since.map(|(_, span)| span.interval).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wva::settings::bundle::read_bundle;
    use wva::settings::{Sources, start};

    fn generation(interval: &str) -> Generation {
        let mut sources = Sources::default();
        for (name, value) in [
            ("POD_NAMESPACE", "wva-system"),
            ("PROMETHEUS_BASE_URL", "https://prometheus"),
            ("GLOBAL_OPT_INTERVAL", interval),
        ] {
            sources.environment.insert(name.to_owned(), value.to_owned());
        }
        start(&sources).unwrap().generation
    }

    #[test]
    fn numbers_grow_with_content_alone() {
        let first = generation("30s");
        let numbered = |generation: &Generation, number| {
            let mut numbered = generation.clone();
            numbered.number = number;
            numbered
        };
        let other = generation("60s");
        for (next, expected) in [
            (first.clone(), None),
            (numbered(&other, 2), None),
            (other.clone(), Some("C3")),
            (numbered(&first, 2), Some("C4")),
            (numbered(&first, 0), Some("C3")),
        ] {
            let mut generations = Generations::default();
            assert_eq!(generations.judge(&first), None);
            let found = generations.judge(&next).map(|found| found.invariant);
            assert_eq!(found, expected, "{}", next.number);
        }
    }

    #[test]
    fn what_was_in_force_counts_for_as_long_as_is_asked_for() {
        let seconds = Duration::from_secs;
        let mut settings = read_bundle("").unwrap();
        let mut spans = Spans::default();
        assert_eq!(spans.widest(seconds(0)), None);
        for (at, interval, fresh) in [(10, 30, 60), (20, 30, 60), (21, 90, 20), (40, 5, 20)] {
            settings.interval = seconds(interval);
            settings.freshness.fresh = seconds(fresh);
            spans.note(&settings, seconds(at));
        }
        let wide = |from| {
            let widest = spans.widest(seconds(from)).unwrap();
            (widest.interval.as_secs(), widest.fresh.as_secs())
        };
        assert_eq!(wide(20), (90, 60));
        assert_eq!(wide(21), (90, 20));
        assert_eq!(wide(22), (5, 20));
        assert_eq!(spans.shortest_interval(seconds(0)), Some(seconds(5)));
        assert_eq!(spans.beat_since, seconds(40));
    }
}
