//! Fields of entries that nothing reads: what decides the models of an entry has no use for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::problem::EntryPlace;
use crate::purpose::Purpose;
use wva_policy::params::{
    AnalyzerSettings, DEFAULT_KEY, DynamicSettings, SATURATION, SLO, SaturationEntry, ScopedEntries,
};

/// Every field that no model of its entry has a use for, with what to do. An entry above may select for some models
/// what reads a field of the entries below, so that all are looked at together.
pub(crate) fn unread_fields(settings: &DynamicSettings) -> Vec<(EntryPlace, String)> {
    let mut all = placed(&settings.saturation.entries);
    all.sort_by_key(|one| one.rank);
    let selectors = Selectors::of(&all);
    let mut unread = Vec::new();
    for one in &all {
        let stated = FIELDS.iter().filter(|(_, _, is_stated)| is_stated(one.entry));
        let stated: Vec<_> = stated.collect();
        if stated.is_empty() {
            continue;
        }
        let met = selectors.met_by(one);
        for (name, reader, is_stated) in stated {
            let found = selections(one, &met, *is_stated);
            if !found.iter().any(|found| reader.reads(*found, settings)) {
                let is_listed = found.iter().any(|found| found.listed.is_some());
                let text = format!("{name}: {}", reader.remedy(is_listed));
                unread.push((one.place(), text));
            }
        }
    }
    unread
}

type ByNamespace<'a> = BTreeMap<Option<&'a str>, Vec<&'a PlacedEntry<'a>>>;

/// Entries that select, by the model and the namespace that they are for: there may be one for each of many models.
struct Selectors<'a>(BTreeMap<Option<&'a str>, ByNamespace<'a>>);

impl<'a> Selectors<'a> {
    fn of(all: &'a [PlacedEntry<'a>]) -> Self {
        let mut selectors = Self(BTreeMap::new());
        let selects =
            |entry: &SaturationEntry| entry.analyzer_name.is_some() || entry.analyzers.is_some();
        for one in all.iter().filter(|one| selects(one.entry)) {
            let of_model = selectors.0.entry(one.model).or_default();
            of_model.entry(one.namespace).or_default().push(one);
        }
        selectors
    }

    /// Those that may apply to a model of an entry, strongest first.
    fn met_by(&self, one: &PlacedEntry<'a>) -> Vec<&'a PlacedEntry<'a>> {
        let of_model = of_part(&self.0, one.model);
        let of_both = of_model.flat_map(|selectors| of_part(selectors, one.namespace));
        let mut met: Vec<&PlacedEntry<'_>> =
            of_both.flatten().copied().filter(|other| one.meets(other)).collect();
        met.sort_by_key(|other| other.rank);
        met
    }
}

/// Values of a part and those of none, which are for all; where no part is asked for, those of each.
fn of_part<'m, 'a, V>(
    all: &'m BTreeMap<Option<&'a str>, V>,
    part: Option<&'a str>,
) -> impl Iterator<Item = &'m V> {
    let keys = part.map(|_| [part, None]).into_iter().flatten();
    let each = part.is_none().then(|| all.values());
    let named = keys.filter_map(move |key| all.get(&key));
    named.chain(each.into_iter().flatten())
}

/// Whether an entry states a field.
type IsStated = fn(&SaturationEntry) -> bool;

/// Fields with what reads them.
const FIELDS: [(&str, Reader, IsStated); 5] = [
    ("kvSpareTrigger", Reader::Percentages, |entry| entry.kv_spare_trigger.is_some()),
    ("queueSpareTrigger", Reader::Percentages, |entry| entry.queue_spare_trigger.is_some()),
    ("scaleUpThreshold", Reader::UpperBand, |entry| entry.scale_up_threshold.is_some()),
    ("scaleDownBoundary", Reader::LowerBand, |entry| entry.scale_down_boundary.is_some()),
    ("burstReserve", Reader::Slo, |entry| entry.burst_reserve.is_some()),
];

#[derive(Clone, Copy)]
enum Reader {
    Percentages,
    UpperBand,
    LowerBand,
    Slo,
}

impl Reader {
    /// Whether it reads a field where entries select so.
    fn reads(self, selection: Selection, settings: &DynamicSettings) -> bool {
        let is_hybrid = settings.proactive_model;
        let is_queueing = settings.queueing_model.selected();
        let Selection { named, listed } = selection;
        let is_alone = listed.is_none();
        match self {
            // In hybrid mode they stand for any analysis but that of tokens, and else for `slo` before it has learned.
            Self::Percentages if is_hybrid => named == Named::Slo || selection.is_percentage(),
            Self::Percentages => {
                !is_queueing && (selection.is_percentage() || (named == Named::Slo && is_alone))
            }
            Self::UpperBand | Self::LowerBand if is_hybrid || is_queueing => true,
            Self::UpperBand => listed.map_or(named != Named::Other, |listed| {
                listed.takes_upper || (named == Named::Slo && !listed.has_slo)
            }),
            Self::LowerBand => listed.map_or(named != Named::Other, |listed| listed.takes_lower),
            Self::Slo => {
                let is_selected = named == Named::Slo && !is_queueing;
                !is_hybrid && (is_selected || listed.is_some_and(|listed| listed.has_slo))
            }
        }
    }

    fn remedy(self, is_listed: bool) -> &'static str {
        match self {
            Self::Percentages => {
                "only percentages read it, and analyzers decide the models of this entry; remove it"
            }
            Self::UpperBand | Self::LowerBand if is_listed => {
                "no item of analyzers takes it from here; state it in an item, or remove it"
            }
            Self::UpperBand | Self::LowerBand => {
                "percentages do not read it, and they decide the models of this entry; write analyzerName: slo or \
                 saturation, or remove it"
            }
            Self::Slo => {
                "only slo reads it, which has no part in the models of this entry; remove it"
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Selection {
    named: Named,
    listed: Option<Listed>,
}

impl Selection {
    fn is_percentage(self) -> bool {
        self.named == Named::Other && self.listed.is_none()
    }
}

/// By `analyzerName`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    Saturation,
    Slo,
    Other,
}

impl Named {
    fn of(name: &str) -> Self {
        match name {
            SATURATION => Self::Saturation,
            SLO => Self::Slo,
            _ => Self::Other,
        }
    }
}

/// By `analyzers`, as a list that is not empty.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Listed {
    has_slo: bool,
    /// Whether an item takes `scaleUpThreshold` of the entry, or none is enabled, which has a remark of its own.
    takes_upper: bool,
    /// The same of `scaleDownBoundary`, which `slo` does not take.
    takes_lower: bool,
}

impl Listed {
    fn of(list: &[AnalyzerSettings]) -> Option<Self> {
        let enabled = || list.iter().filter(|item| item.enabled);
        let is_off = enabled().next().is_none();
        (!list.is_empty()).then(|| Self {
            has_slo: enabled().any(|item| item.kind == SLO),
            takes_upper: is_off || enabled().any(|item| item.scale_up_threshold.is_none()),
            takes_lower: is_off
                || enabled().any(|item| item.kind != SLO && item.scale_down_boundary.is_none()),
        })
    }
}

/// Everything that entries may select for a model that has a field of `one` in force.
fn selections(
    one: &PlacedEntry<'_>,
    met: &[&PlacedEntry<'_>],
    is_stated: fn(&SaturationEntry) -> bool,
) -> BTreeSet<Selection> {
    let named =
        possible(one, met, is_stated, |entry| entry.analyzer_name.as_deref().map(Named::of));
    let listed = possible(one, met, is_stated, |entry| entry.analyzers.as_deref().map(Listed::of));
    let pairs = named.into_iter().flat_map(|named| {
        let listed = listed.iter();
        listed.map(move |listed| Selection {
            named: named.unwrap_or(Named::Other),
            listed: listed.flatten(),
        })
    });
    pairs.collect()
}

/// What a field that selects may be for a model that has a field of `one` in force; `None` where no entry states it.
/// `met` come strongest first.
fn possible<T: Ord>(
    one: &PlacedEntry<'_>,
    met: &[&PlacedEntry<'_>],
    is_stated: fn(&SaturationEntry) -> bool,
    read: impl Fn(&SaturationEntry) -> Option<T>,
) -> BTreeSet<Option<T>> {
    let mut found = BTreeSet::new();
    for other in met {
        // What states the field above is in force instead.
        if other.rank < one.rank && is_stated(other.entry) {
            continue;
        }
        if let Some(value) = read(other.entry) {
            found.insert(Some(value));
            if other.rank >= one.rank && one.lies_within(other) {
                return found;
            }
        }
    }
    found.insert(None);
    found
}

/// An entry, with the models that it is for; `None` is every one.
struct PlacedEntry<'a> {
    scope: Option<&'a Arc<str>>,
    key: &'a str,
    namespace: Option<&'a str>,
    model: Option<&'a str>,
    tier: Option<&'a str>,
    /// Its place among the layers of a model, the strongest first.
    rank: u8,
    entry: &'a SaturationEntry,
}

impl PlacedEntry<'_> {
    fn place(&self) -> EntryPlace {
        EntryPlace::new(Purpose::Saturation, self.scope, self.key)
    }

    fn parts(&self) -> [Option<&str>; 3] {
        [self.namespace, self.model, self.tier]
    }

    /// Whether both may apply to one model.
    fn meets(&self, other: &PlacedEntry<'_>) -> bool {
        let mut parts = self.parts().into_iter().zip(other.parts());
        parts.all(|(own, other)| own.zip(other).is_none_or(|(own, other)| own == other))
    }

    /// Whether the other one applies to every model that this one applies to.
    fn lies_within(&self, other: &PlacedEntry<'_>) -> bool {
        let mut parts = self.parts().into_iter().zip(other.parts());
        parts.all(|(own, other)| other.is_none() || own == other)
    }
}

/// All entries, ranked as [`ScopedEntries::sources`] has the layers of one model.
fn placed(entries: &ScopedEntries<SaturationEntry>) -> Vec<PlacedEntry<'_>> {
    let mut all = Vec::new();
    for (scope, set) in entries.scopes() {
        let is_global = scope.is_none();
        let for_all = |key, rank, entry| PlacedEntry {
            scope,
            key,
            namespace: scope.map(|name| &**name),
            model: None,
            tier: None,
            rank,
            entry,
        };
        let default = set.default.iter();
        all.extend(default.map(|entry| for_all(DEFAULT_KEY, if is_global { 6 } else { 3 }, entry)));
        all.extend(set.tiers.iter().map(|(key, entry)| PlacedEntry {
            tier: Some(key),
            ..for_all(key, if is_global { 2 } else { 1 }, entry)
        }));
        all.extend(set.models.iter().map(|(identity, (key, entry))| {
            let namespace = identity.namespace.as_ref().or(scope);
            let rank = match (scope, namespace) {
                (Some(_), _) => 0,
                (None, Some(_)) => 4,
                (None, None) => 5,
            };
            PlacedEntry {
                namespace: namespace.map(|name| &**name),
                model: Some(&identity.model),
                ..for_all(key, rank, entry)
            }
        }));
    }
    all
}

#[cfg(test)]
mod tests;
