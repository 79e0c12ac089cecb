//! Edits of settings, and how they are put back.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::random::{Drawn, EditTargets, draw};
use super::{Injector, SATURATION, broken, fixed};
use crate::chaos::fault::Edit;
use crate::chaos::process_manager::MAIN;
use crate::workloads::object::path;
use crate::world::ConfigMap;
use crate::world::objects::SYSTEM;
use wva::settings::config_maps::ConfigMapNames;

const ZERO: &str = ConfigMapNames::SCALE_TO_ZERO;
/// How long a model is idle before it goes to zero whose bounds forbid that.
const SOON: Duration = Duration::from_mins(1);
/// Longer than any time without requests for the model that may go to zero.
const LATER: Duration = Duration::from_mins(30);

impl Injector {
    pub(crate) async fn edit(&self, how: Edit) -> bool {
        match how {
            Edit::Interval(seconds) => {
                self.set(MAIN, "GLOBAL_OPT_INTERVAL", &format!("{seconds}s")).await
            }
            Edit::Immutable(number) => {
                let (key, value) = fixed::draw(number);
                self.set(MAIN, key, &value).await
            }
            Edit::BadValue => self.set(MAIN, "GLOBAL_OPT_INTERVAL", "soon").await,
            Edit::BrokenYaml(number) => {
                let (is_of_analyzers, (_, text)) = broken::draw(number);
                let (map, entry) = self.entry(is_of_analyzers);
                self.set(map, &entry, &text).await
            }
            Edit::Thresholds(percent) => {
                let text = format!(
                    "kvCacheThreshold: 0.{percent}\nqueueLengthThreshold: 4\nkvSpareTrigger: 0.1\nqueueSpareTrigger: 2\n"
                );
                self.set(SATURATION, "default", &text).await
            }
            Edit::Deleted => self.delete(MAIN).await,
            Edit::SaturationDeleted => self.delete(SATURATION).await,
            Edit::Recreated(number) => self.recreate(number).await,
            Edit::ZeroDeleted => self.delete(ZERO).await,
            Edit::ZeroForbidden => self.rewrite_zero("enable_scale_to_zero: false").await,
            Edit::ZeroLater => {
                let entry =
                    format!("enable_scale_to_zero: true\nretention_period: {}s", LATER.as_secs());
                self.rewrite_zero(&entry).await
            }
            Edit::ZeroAllowed => {
                let mut models = self.plot.scenario.models.iter();
                let bounded = models.find(|model| {
                    let mut variants = model.variants.iter();
                    variants.all(|variant| variant.bounds.0 > 0)
                });
                let Some(model) = bounded else {
                    return false;
                };
                let entry = ConfigMap::zero_entry(model.id, true, SOON);
                self.set(ZERO, model.name, &entry).await
            }
            Edit::Storm(count) => {
                let mut done = false;
                for number in 0..count {
                    let seconds = format!("{}s", 5 + number % 9);
                    done |= self.set(MAIN, "GLOBAL_OPT_INTERVAL", &seconds).await;
                }
                done
            }
            Edit::Random(number) => {
                let Drawn { map, entry, text, .. } = self.drawn(number);
                self.set(map, &entry, &text).await
            }
        }
    }

    pub(crate) fn words(&self, how: Edit) -> Option<String> {
        match how {
            Edit::Random(number) => Some(self.drawn(number).words),
            Edit::Immutable(number) => {
                let (key, value) = fixed::draw(number);
                Some(format!("{MAIN} {key}: {value:?}"))
            }
            Edit::BrokenYaml(number) => {
                let (is_of_analyzers, (what, _)) = broken::draw(number);
                let (map, entry) = self.entry(is_of_analyzers);
                Some(format!("{map} {entry}: {what}"))
            }
            Edit::Recreated(number) => Some(self.stored_map(number)?.0.to_owned()),
            _ => None,
        }
    }

    fn entry(&self, is_of_analyzers: bool) -> (&'static str, String) {
        if is_of_analyzers {
            return (SATURATION, "default".to_owned());
        }
        let entries = self.original_map(ZERO).unwrap_or_default();
        let entry = entries.into_keys().next();
        (ZERO, entry.unwrap_or_else(|| "default".to_owned()))
    }

    fn stored_map(&self, number: u8) -> Option<(&'static str, Value)> {
        let data = |name| {
            let map = self.server.get("configmaps.", SYSTEM, name)?;
            Some((name, map.get("data").cloned().unwrap_or_default()))
        };
        let all: Vec<_> = [MAIN, SATURATION, ZERO].into_iter().filter_map(data).collect();
        let place = usize::from(number).checked_rem(all.len())?;
        all.into_iter().nth(place)
    }

    /// Deletes a ConfigMap, and creates it again before any process knows of that.
    async fn recreate(&self, number: u8) -> bool {
        let Some((map, data)) = self.stored_map(number) else {
            return false;
        };
        self.delete(map).await && self.merge(map, &data, true).await
    }

    fn drawn(&self, number: u64) -> Drawn {
        let original = |map: &str| self.original_map(map).unwrap_or_default();
        let (saturation, zero) = (original(SATURATION), original(ZERO));
        let models = self.plot.scenario.models.iter().map(|model| model.id);
        let ground = EditTargets {
            saturation: saturation.get("default").map_or("", String::as_str),
            zero: zero.iter().next(),
            models: &models.collect::<Vec<_>>(),
        };
        draw(number, &ground)
    }

    async fn rewrite_zero(&self, rest: &str) -> bool {
        let entries = self.original_map(ZERO).unwrap_or_default();
        let Some((key, text)) = entries.iter().next() else {
            return false;
        };
        let model = text.lines().next().unwrap_or_default();
        self.set(ZERO, key, &format!("{model}\n{rest}\n")).await
    }

    async fn delete(&self, map: &str) -> bool {
        let at = path("v1", SYSTEM, "configmaps", map);
        self.server.delete(&at, &json!({})).await.is_ok()
    }

    /// Writes one entry of a ConfigMap, which is made where there is none. The main one stays away where
    /// it was deleted.
    async fn set(&self, map: &str, entry: &str, text: &str) -> bool {
        self.merge(map, &json!({entry: text}), map != MAIN).await
    }

    async fn merge(&self, map: &str, data: &Value, creates: bool) -> bool {
        let object = json!({"metadata": {"name": map}, "data": data});
        let all = path("v1", SYSTEM, "configmaps", "");
        if creates && self.server.create(&all, &object).await.is_ok() {
            return true;
        }
        let one = path("v1", SYSTEM, "configmaps", map);
        self.server.merge(&one, &json!({"data": data})).await.is_ok()
    }

    fn original_map(&self, name: &str) -> Option<BTreeMap<String, String>> {
        if name == MAIN {
            return serde_json::from_value(self.main().get("data")?.clone()).ok();
        }
        let mut maps = self.plot.scenario.config.iter();
        let map = maps.find(|map| map.name == name)?;
        let entries = map.data.iter();
        let entries = entries.map(|(key, text)| ((*key).to_owned(), text.clone()));
        Some(entries.collect())
    }

    pub(crate) async fn restore_settings(&self) {
        for name in [MAIN, SATURATION, ZERO] {
            let Some(original) = self.original_map(name) else {
                self.delete(name).await;
                continue;
            };
            let stored = self.server.get("configmaps.", SYSTEM, name);
            let stored = stored.and_then(|map| map.get("data")?.as_object().cloned());
            let mut data = json!(original);
            if let Some(data) = data.as_object_mut() {
                for key in stored.iter().flat_map(|stored| stored.keys()) {
                    // What was not there at first goes.
                    data.entry(key.clone()).or_insert(Value::Null);
                }
            }
            self.merge(name, &data, stored.is_none()).await;
        }
    }
}
