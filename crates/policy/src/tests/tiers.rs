//! Tiers that variants name, and seeds that they state.

use std::sync::Arc;
use std::time::Duration;

use super::world::{Variant, World, at, settings, targets};
use crate::condition::ConditionType;
use crate::key::{ModelKey, VariantKey};
use crate::learned::Learned;
use crate::params::{
    DynamicSettings, EntryLayer, LatencyTargets, LayerScope, PolicyValue, SaturationEntry,
    SaturationLayers, ServiceClass,
};
use crate::plan::Plan;
use crate::record::{PublishedRecord, Troubles};
use crate::startup::StartSeeds;
use crate::{check_plan, learn, plan, tiered};

/// An entry by which a model grows below this spare share of its KV cache.
fn grows_below(share: f64) -> SaturationEntry {
    SaturationEntry { kv_spare_trigger: Some(share), ..SaturationEntry::default() }
}

/// Tiers `early` and `late`; the default leaves a model of half load alone.
fn with_tiers() -> DynamicSettings {
    let mut settings = settings();
    let global = &mut settings.saturation.entries.global;
    let tiers = [("early", 0.4), ("late", 0.05)];
    global.tiers = tiers.map(|(tier, share)| (tier.to_owned(), grows_below(share))).into();
    settings
}

/// A replica at half load, which names a tier.
fn variant(name: &str, tier: Option<&str>) -> Variant {
    let mut variant = Variant::new(name).replicas(1, 0.5, 0.0);
    variant.view.policy.scaling_policy = tier.map(Arc::from);
    variant
}

fn planned(variants: impl IntoIterator<Item = Variant>, settings: &DynamicSettings) -> Plan {
    let snapshot = World::of(variants).snapshot(at(0));
    let learned = learn(&snapshot, &Learned::default(), settings, at(0));
    let plan = plan(&snapshot, &learned, settings, 1, at(0));
    check_plan(&snapshot, settings, &plan).unwrap();
    plan
}

fn notes<'a>(plan: &'a Plan, name: &str) -> &'a [String] {
    &plan.decisions[&VariantKey::new("ns", name)].notes
}

#[test]
fn a_tier_acts_on_the_model_whose_variant_names_it() {
    let settings = with_tiers();
    let plan = planned([variant("a", None)], &settings);
    assert_eq!(targets(&plan), [("a".to_owned(), 1)].into());
    let other = variant("b", None).model("other");
    let plan = planned([variant("a", Some("early")), other], &settings);
    let expected = [("a".to_owned(), 2), ("b".to_owned(), 1)];
    assert_eq!(targets(&plan), expected.into());
    assert!(notes(&plan, "a").is_empty());
}

#[test]
fn a_tier_that_does_not_exist_is_said_and_the_next_layer_acts() {
    let mut settings = with_tiers();
    let plan = planned([variant("a", Some("early"))], &settings);
    assert_eq!(targets(&plan), [("a".to_owned(), 2)].into());
    settings.saturation.entries.global.tiers.remove("early");
    let plan = planned([variant("a", Some("early"))], &settings);
    assert_eq!(targets(&plan), [("a".to_owned(), 1)].into());
    let note = "scalingPolicy \"early\" names no tier, and what applies without one acts; add an entry \"early\" without \
                modelId to the saturation ConfigMap, or correct the name";
    assert_eq!(notes(&plan, "a"), [note]);
    let view = variant("a", Some("early")).view;
    let record = PublishedRecord::of(&view, Some(&plan), None, Troubles::default(), at(0));
    let mut conditions = record.conditions.iter();
    let ready = conditions.find(|one| one.kind == ConditionType::OptimizationReady);
    let message = &ready.unwrap().message;
    assert!(message.ends_with(note), "{message}");
}

#[test]
fn of_two_tiers_that_of_the_first_variant_acts_and_both_say_so() {
    let mut settings = with_tiers();
    let alike = [variant("a", Some("late")), variant("b", Some("late"))];
    let plan = planned(alike, &settings);
    assert_eq!(targets(&plan).values().sum::<u32>(), 2);
    assert!(notes(&plan, "a").is_empty() && notes(&plan, "b").is_empty());
    let differ = || [variant("a", Some("early")), variant("b", Some("late"))];
    let plan = planned(differ(), &settings);
    assert_eq!(targets(&plan).values().sum::<u32>(), 3);
    let said = |own: &str, other: &str, of: &str| {
        format!(
            "scalingPolicy {own:?} and {other:?} of ns/{of} differ for one model, and \"early\" acts; name one tier in both"
        )
    };
    assert_eq!(notes(&plan, "a"), [said("early", "late", "b")]);
    assert_eq!(notes(&plan, "b"), [said("late", "early", "a")]);
    // One that does not exist is no rival.
    settings.saturation.entries.global.tiers.remove("early");
    let plan = planned(differ(), &settings);
    assert_eq!(targets(&plan).values().sum::<u32>(), 2);
    assert!(notes(&plan, "a")[0].contains("names no tier"));
    assert!(notes(&plan, "b").is_empty());
}

/// Latency targets of two classes for model `m`.
fn with_classes() -> DynamicSettings {
    let mut settings = settings();
    let slo =
        SaturationEntry { analyzer_name: Some("slo".to_owned()), ..SaturationEntry::default() };
    settings.saturation.entries.global.default = Some(slo);
    let targets = LatencyTargets {
        time_to_first_token: Duration::from_millis(500),
        inter_token_latency: Duration::from_millis(20),
    };
    let class = |name: &str, model: &str| ServiceClass {
        name: name.to_owned(),
        priority: 1,
        targets: [(model.to_owned(), targets)].into(),
    };
    let classes =
        [("Gold", "m"), ("Silver", "m"), ("Other", "o")].map(|(name, model)| class(name, model));
    let entries = &mut settings.service_classes.entries;
    entries.insert("classes".to_owned(), classes.into());
    settings
}

fn of_class(name: &str, class: &str) -> Variant {
    let mut variant = variant(name, None);
    variant.view.template.service_class = Some(class.into());
    variant
}

#[test]
fn a_class_without_effect_is_said() {
    let settings = with_classes();
    let plan = planned([of_class("a", "gold"), of_class("b", "Gold")], &settings);
    assert!(notes(&plan, "a").is_empty() && notes(&plan, "b").is_empty());
    let plan = planned(
        [of_class("a", "Other"), of_class("b", "gold"), of_class("c", "silver")],
        &settings,
    );
    let missing = "wva.llmd.ai/service-class \"Other\" is no class with targets for this model, and what applies without \
                   one acts; add the model to that class, or correct the label";
    assert_eq!(notes(&plan, "a"), [missing]);
    let said = |own: &str, other: &str, of: &str| {
        format!(
            "wva.llmd.ai/service-class {own:?} and {other:?} of ns/{of} differ for one model, and \"Gold\" acts; name one \
             class in both"
        )
    };
    assert_eq!(notes(&plan, "b"), [said("Gold", "Silver", "c")]);
    assert_eq!(notes(&plan, "c"), [said("Silver", "Gold", "b")]);
    // Where no latency target acts, neither does a class.
    let mut settings = settings;
    settings.saturation.entries.global.default = None;
    let plan = planned([of_class("a", "Other")], &settings);
    assert!(notes(&plan, "a").is_empty());
}

/// The spare trigger in force, and the place of the entry that states it.
fn trigger(layers: &SaturationLayers) -> (String, Option<(LayerScope, String)>) {
    let values = layers.effective(&ModelKey::new("ns", "m"));
    let mut values = values.into_iter();
    let found = values.find(|value| value.field == "kvSpareTrigger").unwrap();
    let PolicyValue { value, source, .. } = found;
    let place = |EntryLayer { scope, key }: EntryLayer<'_>| (scope, key.to_owned());
    (value, source.map(place))
}

#[test]
fn a_tier_is_above_defaults_and_below_the_entry_of_the_namespace() {
    use LayerScope::{Global, Namespace};
    let world = World::of([variant("a", Some("early"))]);
    let mut settings = settings();
    let mut expect = |change: &dyn Fn(&mut SaturationLayers), value: &str, scope, key: &str| {
        change(&mut settings.saturation);
        let snapshot = world.snapshot(at(0));
        let layers = &tiered(&settings, &snapshot).saturation;
        let place = Option::map(scope, |scope| (scope, key.to_owned()));
        assert_eq!(trigger(layers), (value.to_owned(), place));
    };
    expect(&|_| {}, "0.1", None, "");
    expect(
        &|layers| layers.entries.global.default = Some(grows_below(0.2)),
        "0.2",
        Some(Global),
        "default",
    );
    let local = |layers: &mut SaturationLayers,
                 change: &dyn Fn(&mut crate::params::EntrySet<SaturationEntry>)| {
        change(layers.entries.namespaces.entry("ns".into()).or_default());
    };
    expect(
        &|layers| local(layers, &|set| set.default = Some(grows_below(0.21))),
        "0.21",
        Some(Namespace),
        "default",
    );
    expect(
        &|layers| {
            layers.entries.global.tiers.insert("early".to_owned(), grows_below(0.22));
        },
        "0.22",
        Some(Global),
        "early",
    );
    expect(
        &|layers| {
            local(layers, &|set| {
                set.tiers.insert("early".to_owned(), grows_below(0.23));
            });
        },
        "0.23",
        Some(Namespace),
        "early",
    );
    expect(
        &|layers| {
            let identity = crate::params::Identity { model: "m".into(), namespace: None };
            local(layers, &|set| {
                set.models.insert(identity.clone(), ("own".to_owned(), grows_below(0.24)));
            });
        },
        "0.24",
        Some(Namespace),
        "own",
    );
}

#[test]
fn a_stated_start_is_the_seed_of_its_variant() {
    let mut stated = variant("a", None);
    let of = |variants: [Variant; 2]| {
        let snapshot = World::of(variants).snapshot(at(0));
        StartSeeds::of(&snapshot, &settings())
    };
    let usual = settings().start_time;
    let seeds = of([stated.clone(), variant("b", None)]);
    assert_eq!((seeds.usual, seeds.stated), (usual, [].into()));
    stated.view.policy.replica_start_seconds = Some(300);
    let seeds = of([stated, variant("b", None)]);
    let expected = [(VariantKey::new("ns", "a"), Duration::from_mins(5))];
    assert_eq!((seeds.usual, seeds.stated), (usual, expected.into()));
}
