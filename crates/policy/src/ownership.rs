//! Another controller that claims an object of ours: who gives way, and when it is taken for dead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::key::VariantKey;
use wva_base::moment::WallTime;

/// Collections in a row that must agree before anything is concluded: at a hand-over, Prometheus
/// still holds the old pod's samples for a scrape.
pub(crate) const CONFIRMATIONS: u32 = 3;

/// A controller of our kind that has written the status of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusOwner {
    /// Its name as a field manager.
    pub manager: Arc<str>,
    /// What it holds.
    pub holds: Holding,
    /// Whether it says that another one holds the object.
    pub reports: bool,
    /// When it wrote last.
    pub written: WallTime,
}

/// What a controller holds of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holding {
    /// Nothing but the word that another one does.
    Nothing,
    /// The status.
    Status,
}

/// How this controller stands towards one object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ownership {
    /// No other instance claims it.
    #[default]
    Alone,
    /// This one goes on, and another instance publishes the same variant.
    #[serde(rename = "Beside")]
    Shared,
    /// Another one was first: nothing is published, and nothing but that is written.
    Behind {
        /// The others, by their names as field managers.
        managers: Vec<Arc<str>>,
    },
}

/// Whether Prometheus holds the count that is published for a variant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exposure {
    /// It does, or that is not known.
    #[default]
    Assumed,
    /// It does not, for several collections in a row.
    Missing,
}

/// What this controller knows of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnershipConflicts {
    /// Collections in a row without a sign of life, by manager.
    silent: BTreeMap<Arc<str>, u32>,
    /// Managers that are taken for dead, with the time of their last writing.
    retired: BTreeMap<Arc<str>, WallTime>,
    /// Objects of managers that were taken for dead, with the time of their last writing then. A
    /// manager that holds one of them again is alive, though Prometheus does not show it.
    taken: BTreeMap<(Arc<str>, VariantKey), WallTime>,
    /// Collections in a row with a second series, by variant.
    doubled: BTreeMap<VariantKey, u32>,
    /// Collections in a row without any series, by variant of ours.
    unexposed: BTreeMap<VariantKey, u32>,
}

impl OwnershipConflicts {
    /// The managers that are taken for dead.
    pub fn retired(&self) -> BTreeSet<String> {
        self.retired.keys().map(ToString::to_string).collect()
    }

    /// How `me` stands towards an object with these owners. The holder of the status keeps it; of
    /// several that hold it alike, the first by name does.
    pub fn standing(&self, me: &str, variant: &VariantKey, owners: &[StatusOwner]) -> Ownership {
        let mut holders: Vec<&Arc<str>> = owners
            .iter()
            .filter(|owner| owner.holds == Holding::Status && !self.is_retired(owner))
            .map(|owner| &owner.manager)
            .collect();
        holders.sort();
        let is_first = match holders.first() {
            None => true,
            Some(_) if !holders.iter().any(|holder| &***holder == me) => false,
            Some(first) => &***first == me,
        };
        if !is_first {
            let others = holders.into_iter().filter(|holder| &***holder != me);
            return Ownership::Behind { managers: others.cloned().collect() };
        }
        let doubled = self.doubled.get(variant).copied().unwrap_or_default();
        if doubled >= CONFIRMATIONS { Ownership::Shared } else { Ownership::Alone }
    }

    /// Whether Prometheus holds a count of a variant, as far as it was asked.
    pub fn exposure(&self, variant: &VariantKey) -> Exposure {
        match self.unexposed.get(variant) {
            Some(streak) if *streak >= CONFIRMATIONS => Exposure::Missing,
            Some(_) | None => Exposure::Assumed,
        }
    }

    fn is_retired(&self, owner: &StatusOwner) -> bool {
        let retired = self.retired.get(&owner.manager);
        retired.is_some_and(|written| *written >= owner.written)
    }

    /// Takes in what Prometheus shows: variants with more than one series of
    /// `wva_desired_replicas`, and, while anybody else holds an object or a scaler fails, all with any; `None` of either
    /// says nothing, and what was concluded before stays. `held` are the
    /// objects that others hold, by manager, each with the time of its last writing; `managed` are all
    /// of ours.
    ///
    /// A live controller that is not scraped is taken for dead once. It takes its objects back when
    /// it does not see the series of the other one either, and from then on is left alone.
    #[must_use]
    pub fn observe(
        &self,
        doubled: Option<&BTreeSet<VariantKey>>,
        exposed: Option<&BTreeSet<VariantKey>>,
        held: &BTreeMap<Arc<str>, BTreeMap<VariantKey, WallTime>>,
        managed: &BTreeSet<VariantKey>,
    ) -> Self {
        let streak = |key: &VariantKey| self.doubled.get(key).copied().unwrap_or_default();
        let doubled = match doubled {
            Some(doubled) => {
                doubled.iter().map(|key| (key.clone(), streak(key).saturating_add(1))).collect()
            }
            None => self.doubled.clone(),
        };
        let unexposed = match exposed {
            Some(exposed) => managed
                .difference(exposed)
                .map(|key| {
                    let before = self.unexposed.get(key).copied().unwrap_or_default();
                    (key.clone(), before.saturating_add(1))
                })
                .collect(),
            None => self.unexposed.clone(),
        };
        let mut taken = self.taken.clone();
        taken.retain(|(_, key), _| managed.contains(key));
        let mut next = Self { taken, doubled, unexposed, ..Self::default() };
        for (manager, objects) in held {
            let newest = objects.values().max().copied().unwrap_or(WallTime(0));
            let was_retired = self.retired.get(manager).copied();
            let before = self.silent.get(manager).copied().unwrap_or_default();
            let silent = match exposed {
                _ if next.came_back(manager, objects) => 0,
                Some(exposed) if objects.keys().any(|key| exposed.contains(key)) => 0,
                Some(_) => before.saturating_add(1),
                None => before,
            };
            let stays = was_retired.is_some_and(|written| written >= newest);
            if silent >= CONFIRMATIONS || stays {
                next.retired.insert(Arc::clone(manager), newest);
                let objects = objects.iter().map(|(key, written)| (key.clone(), *written));
                next.taken
                    .extend(objects.map(|(key, written)| ((Arc::clone(manager), key), written)));
            }
            next.silent.insert(Arc::clone(manager), silent);
        }
        next
    }

    fn came_back(&self, manager: &Arc<str>, objects: &BTreeMap<VariantKey, WallTime>) -> bool {
        objects.iter().any(|(key, written)| {
            let taken = self.taken.get(&(Arc::clone(manager), key.clone()));
            taken.is_some_and(|then| written > then)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> VariantKey {
        VariantKey::new("ns", name)
    }

    fn owner(manager: &str, holds: Holding, written: i64) -> StatusOwner {
        StatusOwner {
            manager: manager.into(),
            holds,
            reports: holds == Holding::Nothing,
            written: WallTime(written),
        }
    }

    fn behind(managers: &[&str]) -> Ownership {
        Ownership::Behind { managers: managers.iter().map(|name| Arc::from(*name)).collect() }
    }

    fn keys(names: &[&str]) -> BTreeSet<VariantKey> {
        names.iter().map(|name| key(name)).collect()
    }

    #[test]
    fn the_holder_of_the_status_keeps_it() {
        use Holding::{Nothing, Status};
        let ownership_conflicts = OwnershipConflicts::default();
        for (owners, expected) in wva_base::cases! {
            (vec![], Ownership::Alone),
            (vec![owner("wva-b", Status, 0)], Ownership::Alone),
            (vec![owner("wva-a", Status, 0)], behind(&["wva-a"])),
            (vec![owner("wva-a", Status, 0), owner("wva-b", Nothing, 0)], behind(&["wva-a"])),
            (vec![owner("wva-b", Status, 0), owner("wva-a", Nothing, 0)], Ownership::Alone),
            (vec![owner("wva-b", Status, 0), owner("wva-c", Status, 0)], Ownership::Alone),
            (vec![owner("wva-b", Status, 0), owner("wva-a", Status, 0)], behind(&["wva-a"])),
        } {
            assert_eq!(
                ownership_conflicts.standing("wva-b", &key("v"), &owners),
                expected,
                "{owners:?}"
            );
        }
    }

    fn held(written: i64) -> BTreeMap<Arc<str>, BTreeMap<VariantKey, WallTime>> {
        [("wva-a".into(), [(key("v"), WallTime(written))].into())].into()
    }

    #[test]
    fn one_that_shows_nothing_is_taken_for_dead_until_it_writes_again() {
        let owners = |written| [owner("wva-a", Holding::Status, written)];
        let mut ownership_conflicts = OwnershipConflicts::default();
        for _ in 0..CONFIRMATIONS {
            assert_eq!(
                ownership_conflicts.standing("wva-b", &key("v"), &owners(5)),
                behind(&["wva-a"])
            );
            ownership_conflicts = ownership_conflicts.observe(
                Some(&keys(&[])),
                Some(&keys(&["other"])),
                &held(5),
                &keys(&["v"]),
            );
        }
        assert_eq!(ownership_conflicts.standing("wva-b", &key("v"), &owners(5)), Ownership::Alone);
        assert_eq!(ownership_conflicts.retired(), ["wva-a".to_owned()].into());
        // Its last words stay its last: it is not asked for again.
        ownership_conflicts =
            ownership_conflicts.observe(Some(&keys(&[])), None, &held(5), &keys(&["v"]));
        assert_eq!(ownership_conflicts.standing("wva-b", &key("v"), &owners(5)), Ownership::Alone);
        assert_eq!(
            ownership_conflicts.standing("wva-b", &key("v"), &owners(6)),
            behind(&["wva-a"])
        );
    }

    #[test]
    fn one_that_takes_back_what_was_taken_from_it_is_left_alone_until_the_object_has_moved() {
        let nothing = keys(&[]);
        let silence = |ownership_conflicts: &OwnershipConflicts, held: &_, managed: &_| {
            (0..2 * CONFIRMATIONS).fold(ownership_conflicts.clone(), |ownership_conflicts, _| {
                ownership_conflicts.observe(None, Some(&nothing), held, managed)
            })
        };
        let stands = |ownership_conflicts: &OwnershipConflicts, written| {
            let owners = [owner("wva-a", Holding::Status, written)];
            ownership_conflicts.standing("wva-b", &key("v"), &owners)
        };
        let (ours, none) = (keys(&["v"]), BTreeMap::new());
        let taken = silence(&OwnershipConflicts::default(), &held(5), &ours);
        assert_eq!(stands(&taken, 5), Ownership::Alone);
        let taken = silence(&taken, &none, &ours);

        let back = silence(&taken, &held(9), &ours);
        assert_eq!(stands(&back, 9), behind(&["wva-a"]));
        assert_eq!(back.retired(), BTreeSet::new());

        // Labelled for the other one, and then for us again.
        let moved = silence(&back, &none, &nothing);
        let again = silence(&moved, &held(9), &ours);
        assert_eq!(stands(&again, 9), Ownership::Alone);
    }

    #[test]
    fn one_that_shows_its_series_lives_and_blindness_proves_nothing() {
        let owners = [owner("wva-a", Holding::Status, 5)];
        let mut ownership_conflicts = OwnershipConflicts::default();
        for exposed in [Some(keys(&[])), Some(keys(&["v"])), None, Some(keys(&[])), None, None] {
            ownership_conflicts = ownership_conflicts.observe(
                Some(&keys(&[])),
                exposed.as_ref(),
                &held(5),
                &keys(&["v"]),
            );
            assert_eq!(
                ownership_conflicts.standing("wva-b", &key("v"), &owners),
                behind(&["wva-a"])
            );
        }
    }

    #[test]
    fn a_second_series_is_said_once_it_lasts() {
        let owners = [owner("wva-b", Holding::Status, 5)];
        let mut ownership_conflicts = OwnershipConflicts::default();
        for _ in 0..CONFIRMATIONS {
            assert_eq!(ownership_conflicts.standing("wva-b", &key("v"), &owners), Ownership::Alone);
            ownership_conflicts = ownership_conflicts.observe(
                Some(&keys(&["v"])),
                None,
                &BTreeMap::new(),
                &keys(&["v", "w"]),
            );
        }
        // Without a look nothing is concluded.
        ownership_conflicts =
            ownership_conflicts.observe(None, None, &BTreeMap::new(), &keys(&["v", "w"]));
        assert_eq!(ownership_conflicts.standing("wva-b", &key("v"), &owners), Ownership::Shared);
        assert_eq!(ownership_conflicts.standing("wva-b", &key("w"), &owners), Ownership::Alone);
        ownership_conflicts = ownership_conflicts.observe(
            Some(&keys(&[])),
            None,
            &BTreeMap::new(),
            &keys(&["v", "w"]),
        );
        assert_eq!(ownership_conflicts.standing("wva-b", &key("v"), &owners), Ownership::Alone);
    }

    #[test]
    fn a_count_that_prometheus_lacks_is_missing_once_it_lasts() {
        let managed = keys(&["v", "w"]);
        let look = |ownership_conflicts: &OwnershipConflicts,
                    exposed: Option<&BTreeSet<VariantKey>>| {
            ownership_conflicts.observe(None, exposed, &BTreeMap::new(), &managed)
        };
        let mut ownership_conflicts = OwnershipConflicts::default();
        for _ in 0..CONFIRMATIONS {
            assert_eq!(ownership_conflicts.exposure(&key("v")), Exposure::Assumed);
            ownership_conflicts = look(&ownership_conflicts, Some(&keys(&["w"])));
            // What was not asked proves nothing.
            ownership_conflicts = look(&ownership_conflicts, None);
        }
        assert_eq!(ownership_conflicts.exposure(&key("v")), Exposure::Missing);
        assert_eq!(ownership_conflicts.exposure(&key("w")), Exposure::Assumed);
        ownership_conflicts = look(&ownership_conflicts, Some(&managed));
        assert_eq!(ownership_conflicts.exposure(&key("v")), Exposure::Assumed);
    }
}
