//! Requests that stand in a router, whatever analyzers make of what replicas report.

use std::fmt::Write as _;

use super::{decide, reason, settings, situation, targets, words};
use wva_policy::check_plan;
use wva_policy::learned::Learned;
use wva_policy::params::DynamicSettings;
use wva_policy::plan::Plan;

const HYBRID: &str = "EXPERIMENTAL_PROACTIVE_MODEL: true";
const MODES: [&str; 7] = [
    "{}",
    "saturation: {default: {analyzerName: saturation}}",
    "saturation: {default: {analyzers: [{name: throughput}]}}",
    "saturation: {default: {analyzerName: slo}}",
    "queueingModel: {default: {}}",
    HYBRID,
    "{saturation: {default: {analyzerName: saturation}}, EXPERIMENTAL_PROACTIVE_MODEL: true}",
];

/// What stands at one time: the replicas of a variant with the load of each, and the queue of its router.
#[derive(Clone, Copy)]
struct Look {
    seconds: u64,
    desired: Option<u32>,
    ready: u32,
    current: u32,
    max: u32,
    usage: f64,
    queue: Option<f64>,
}

impl Look {
    /// Two replicas that an analysis leaves as they are.
    fn at(seconds: u64, queue: f64) -> Self {
        let queue = Some(queue);
        Self { seconds, desired: None, ready: 2, current: 2, max: 9, usage: 0.55, queue }
    }

    fn text(self) -> String {
        let Self { seconds, desired, ready, current, max, usage, queue } = self;
        let desired = desired.map_or_else(String::new, |desired| format!("desired: {desired}, "));
        let rest = format!("{desired}bounds: {{max: {max}}}");
        let variant = variant("v", &rest, (ready, current), usage);
        document(seconds, &variant, queue)
    }
}

fn variant(name: &str, rest: &str, (ready, current): (u32, u32), usage: f64) -> String {
    let signals = format!(
        "{{kvUsage: {usage}, queueLength: 0, kvCapacity: 16000, inputTokens: 100, outputTokens: 20}}"
    );
    let pod = |number| format!("{{name: {name}{number}, age: 9h, signals: {signals}}}");
    let pods: Vec<String> = (0..ready).map(pod).collect();
    format!(
        "- {{namespace: ns, name: {name}, model: m, {rest}, \
         target: {{current: {current}, ready: {ready}}}, pods: [{}]}}\n",
        pods.join(", ")
    )
}

fn document(seconds: u64, variants: &str, queue: Option<f64>) -> String {
    let uptime = 7200 + seconds;
    let mut text = format!("version: 1\ntime: {{uptime: {uptime}s}}\nvariants:\n{variants}");
    if let Some(queue) = queue {
        let bytes = queue * 400.0;
        let router = format!("{{queueRequests: {queue}, queueBytes: {bytes}, arrivalRate: 0}}");
        writeln!(text, "models: [{{namespace: ns, model: m, router: {router}}}]").unwrap();
    }
    text
}

fn after(known: &Learned, text: &str, with: &DynamicSettings) -> (Learned, Plan) {
    let situation = situation(text, with);
    let (known, plan) = decide(&situation, known, with);
    assert_eq!(check_plan(&situation.snapshot, with, &plan), Ok(()), "{text}");
    (known, plan)
}

/// The target and the reason after the last of several looks.
fn last(looks: &[Look], with: &str) -> (u32, String) {
    let with = settings(with);
    let mut known = Learned::default();
    let mut said = (0, String::new());
    for look in looks {
        let (next, plan) = after(&known, &look.text(), &with);
        known = next;
        said = (targets(&plan)["v"], reason(&plan, "v"));
    }
    said
}

#[test]
fn a_queue_that_does_not_become_shorter_adds_one_replica_in_every_mode() {
    for mode in MODES {
        let queue = 11.0;
        let (early, _) = last(&[Look::at(0, queue), Look::at(119, queue)], mode);
        let (late, why) = last(&[Look::at(0, queue), Look::at(120, queue + 4.0)], mode);
        assert_eq!((early, late), (2, 3), "{mode}: {why}");
    }
}

/// The plan once the queue has stood for two minutes.
fn standing(variants: &str, queue: f64, with: &str, rest: &str) -> Plan {
    let with = settings(with);
    let text = |seconds| format!("{}{rest}", document(seconds, variants, Some(queue)));
    let (known, _) = after(&Learned::default(), &text(0), &with);
    after(&known, &text(120), &with).1
}

#[test]
fn a_queue_that_stands_says_for_how_long() {
    let found = |looks: &[Look]| last(looks, "{}");
    let (target, why) = found(&[Look::at(0, 11.0), Look::at(120, 15.0)]);
    let said = "15 requests wait in the router, and 11 or more have for 120s: one more replica";
    assert_eq!((target, &*why), (3, said));
    assert_eq!(found(&[Look::at(0, 10.0), Look::at(120, 10.0)]).0, 2, "five for each replica");

    // It became shorter.
    let fell = [Look::at(0, 20.0), Look::at(60, 19.0)];
    assert_eq!(found(&[fell[0], fell[1], Look::at(179, 19.0)]).0, 2);
    let (target, why) = found(&[fell[0], fell[1], Look::at(180, 19.0)]);
    let said = "19 requests wait in the router, and 19 or more have for 120s: one more replica";
    assert_eq!((target, &*why), (3, said));

    // A replica that lands has two minutes to shorten it.
    let loading = Look { current: 3, ..Look::at(120, 20.0) };
    let landed = |seconds| Look { ready: 3, current: 3, ..Look::at(seconds, 20.0) };
    let before = [Look::at(0, 20.0), loading, landed(150)];
    assert_eq!(found(&before[..2]).0, 3);
    assert_eq!(found(&[&before[..], &[landed(269)]].concat()).0, 3);
    assert_eq!(found(&[&before[..], &[landed(270)]].concat()).0, 4);

    let at_most = Look { max: 2, ..Look::at(0, 20.0) };
    assert_eq!(found(&[at_most, Look { seconds: 120, ..at_most }]).0, 2);
}

#[test]
fn nothing_is_released_while_requests_stand_in_the_router() {
    let calm = |seconds, queue| Look { usage: 0.1, ..Look::at(seconds, queue) };
    let falls = [calm(0, 100.0), calm(60, 80.0), calm(120, 60.0)];
    for mode in MODES {
        let (target, why) = last(&falls, mode);
        assert_eq!(target, 2, "{mode}: {why}");
    }
    let said = |seconds| {
        format!(
            "nothing is released while 60 requests wait in the router, where too many have for {seconds}s"
        )
    };
    let early = calm(119, 60.0);
    assert_eq!(last(&[falls[0], falls[1], early], "{}").0, 1);
    assert_eq!(last(&falls, "{}"), (2, said(120)));
    let gone = calm(121, 10.0);
    assert_eq!(last(&[&falls[..], &[gone]].concat(), "{}").0, 1);

    // A router that says nothing has not said that it is empty.
    let silent = |seconds| Look { queue: None, ..calm(seconds, 0.0) };
    assert_eq!(last(&[&falls[..], &[silent(240)]].concat(), "{}"), (2, said(240)));
    assert_eq!(last(&[&falls[..], &[silent(241)]].concat(), "{}").0, 1);

    // A release that is published and not applied is taken back.
    let published = |seconds| Look { desired: Some(1), ..calm(seconds, 60.0) };
    assert_eq!(last(&[published(0), published(119)], "{}").0, 1);
    let why = "more is needed: the release from 2 to 1 is cancelled before it is applied";
    assert_eq!(last(&[published(0), published(120)], "{}"), (2, why.to_owned()));
}

#[test]
fn a_backlog_starts_nothing_without_usable_metrics_or_for_replicas_that_idle() {
    let serving = |usage| variant("v", "cost: 5", (2, 2), usage);
    let asleep = variant("w", "cost: 50, bounds: {min: 0}", (0, 0), 0.0);
    for mode in MODES {
        let found = |usage: f64, rest: &str| {
            let plan = standing(&format!("{}{asleep}", serving(usage)), 20.0, mode, rest);
            (targets(&plan)["v"], targets(&plan)["w"])
        };
        assert_eq!(found(0.55, ""), (3, 0), "{mode}");
        assert_eq!(found(0.55, "collection: {failures: {kvUsage: down}}\n"), (2, 0), "{mode}");
        assert_eq!(found(0.0, ""), (2, 0), "{mode}");
    }
}

#[test]
fn a_replica_that_gpus_refuse_falls_to_the_next_variant() {
    let cheap = variant("v", "cost: 5, accelerator: A100", (2, 2), 0.55);
    let other = variant("w", "cost: 20, accelerator: H100", (1, 1), 0.55);
    let found = |free: u32| {
        let total = 1 + free;
        let inventory = format!(
            "inventory: {{types: {{A100: {{total: 2, used: 2}}, H100: {{total: {total}, used: 1}}}}}}\n"
        );
        let with = "saturation: {default: {enableLimiter: true}}";
        standing(&format!("{cheap}{other}"), 20.0, with, &inventory)
    };
    let counts = |plan: &Plan| targets(plan).into_values().collect::<Vec<_>>();
    assert_eq!(counts(&found(1)), [2, 2], "{:#?}", words(&found(1)));
    assert_eq!(counts(&found(0)), [2, 1], "{:#?}", words(&found(0)));
}

#[test]
fn of_several_roles_those_grow_that_are_full() {
    let found = |prefill: f64, decode: f64| {
        let prefill = variant("p", "role: prefill", (2, 2), prefill);
        let decode = variant("d", "role: decode", (2, 2), decode);
        let mode = "queueingModel: {default: {}}";
        let plan = standing(&format!("{prefill}{decode}"), 40.0, mode, "");
        (targets(&plan)["p"], targets(&plan)["d"])
    };
    assert_eq!(found(0.2, 0.85), (2, 3));
    assert_eq!(found(0.85, 0.2), (3, 2));
    assert_eq!(found(0.2, 0.2), (3, 3), "it is not known which");
}

#[test]
fn a_budget_that_is_shared_by_priority_goes_first() {
    let with = "saturation: {default: {analyzerName: saturation, enableLimiter: true, enableRescale: true, \
                limiters: [{name: q, type: quota, scope: cluster, quotas: {H100: 3}}]}, \
                one: {modelId: m, namespace: ns, priority: 9}}";
    let own = variant("v", "accelerator: H100", (2, 2), 0.55);
    let other = variant("w", "accelerator: H100", (1, 1), 0.97).replace("model: m", "model: n");
    let plan = standing(&format!("{own}{other}"), 20.0, with, "");
    let [first, second] = &words(&plan)[..] else { panic!() };
    assert!(first.1.contains("one more replica; rescale: "), "{first:?}");
    assert_eq!((first.0, second.0), (2, 1), "{first:?} {second:?}");
}
