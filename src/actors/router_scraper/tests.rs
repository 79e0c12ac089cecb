//! What routers say together, which models they are asked about, and who is woken.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use super::*;
use crate::actors::emitter::tests::{key, view};
use crate::actors::optimizer::OptimizerMessage;
use crate::actors::pod_autoscaler::tests::asleep::{sleeping, with_pool};
use crate::actors::pod_autoscaler::tests::decide;
use crate::actors::pump;
use crate::actors::variants::tests::{run, shared};
use crate::policy::learned::Learned;
use crate::policy::snapshot::TargetView;
use crate::roles::Role;
use crate::settings::bundle::read_bundle;
use crate::signals::RouterAnswer;
use crate::signals::router_page::PageReader;
use crate::state::mirrors::tests::at;
use crate::state::{InForce, SharedState};
use wva_supervise::{Address, DirtySet, Epoch, StateMachine};

const NOW: u64 = 100;

#[derive(Deserialize)]
struct Vectors {
    pages: Vec<Pool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pool {
    id: String,
    #[serde(rename = "corrected")]
    _corrected: Option<String>,
    pages: Vec<Option<String>>,
    ages: Vec<u64>,
    expect: Option<f64>,
    age: Option<u64>,
}

fn held(page: Option<&str>, age: u64) -> Held {
    let broken = |why: &str| Silence::new("test", why);
    let page = page.ok_or_else(|| broken("no page"))?;
    let mut reader = PageReader::default();
    let read = reader.feed(page.as_bytes());
    let read = read.and_then(|()| reader.finish());
    let held = read.map_err(|error| broken(&error.to_string()))?;
    Ok((held, at(NOW - age)))
}

#[test]
fn routers_of_a_pool_say_together_what_the_vectors_say() {
    let text = include_str!("../../../tests/vectors/routers.yaml");
    let vectors: Vectors = serde_yaml::from_str(text).unwrap();
    assert!(vectors.pages.len() > 5);
    let model = ModelKey::new("ns", "m");
    for vector in vectors.pages {
        let mut answer = Answer { is_whole: true, ..Answer::default() };
        for (page, age) in vector.pages.iter().zip(&vector.ages) {
            answer.add(held(page.as_deref(), *age));
        }
        let mut asked = Asked { models: BTreeSet::from([model.clone()]), ..Asked::default() };
        let has_failed = answer.failure.is_some();
        asked.take_in(answer);
        let queue = together(&model, &[&asked]);
        let found = queue.counted.map(|counted| counted.requests);
        assert_eq!(found, vector.expect, "{}", vector.id);
        let age = queue.counted.map(|counted| at(NOW).since(counted.at).as_secs());
        assert!(vector.age.is_none() || age == vector.age, "{}", vector.id);
        assert_eq!(queue.failure.is_some(), has_failed, "{}", vector.id);
    }
}

#[test]
fn requests_behind_several_pools_add_up_and_none_is_known_of_all_alone() {
    let model = ModelKey::new("ns", "m");
    let asked = |requests: Option<f64>, age: u64| Asked {
        last: requests.map(|requests| LastAnswer {
            held: HeldRequests::from([(Arc::from("m"), requests)]),
            at: at(NOW - age),
            is_whole: true,
        }),
        failure: requests.is_none().then(|| Arc::from("down")),
        ..Asked::default()
    };
    let counted = |asked: &[&Asked]| {
        let queue = together(&model, asked);
        queue.counted.map(|counted| (counted.requests, at(NOW).since(counted.at).as_secs()))
    };
    let (two, three, zero, silent) =
        (asked(Some(2.0), 1), asked(Some(3.0), 5), asked(Some(0.0), 1), asked(None, 0));
    assert_eq!(counted(&[&two, &three]), Some((5.0, 5)));
    assert_eq!(counted(&[&zero]), Some((0.0, 1)));
    assert_eq!(counted(&[&zero, &silent]), None);
    assert_eq!(counted(&[&two, &silent]), Some((2.0, 1)));
    assert_eq!(counted(&[&silent]), None);
}

#[test]
fn the_last_answer_stays_and_ages_until_something_else_is_known() {
    let model = ModelKey::new("ns", "m");
    let mut asked = Asked { models: BTreeSet::from([model.clone()]), ..Asked::default() };
    let page =
        |requests: u32| format!("llm_d_epp_flow_control_queue_size{{model_name=\"m\"}} {requests}");
    let mut take_in = |pages: &[(Option<String>, u64)]| {
        let mut answer = Answer { is_whole: true, ..Answer::default() };
        for (page, age) in pages {
            answer.add(held(page.as_deref(), *age));
        }
        asked.take_in(answer);
        let queue = together(&model, &[&asked]);
        let counted = queue.counted;
        (counted.map(|counted| (counted.requests, counted.at)), queue.failure)
    };
    let (three, none) = (Some(page(3)), Some(page(0)));
    assert_eq!(take_in(&[(three.clone(), 9)]), (Some((3.0, at(91))), None));
    let down = Some(Arc::from("no page"));
    assert_eq!(take_in(&[(None, 5)]), (Some((3.0, at(91))), down.clone()));
    // Half of an answer is enough for requests, and not for their absence.
    assert_eq!(take_in(&[(none.clone(), 4), (None, 4)]), (Some((3.0, at(91))), down.clone()));
    assert_eq!(take_in(&[(three, 3), (None, 3)]), (Some((3.0, at(97))), down));
    assert_eq!(take_in(&[(none, 2)]), (Some((0.0, at(98))), None));
}

/// Routers that hold two requests for `m`.
#[derive(Debug)]
struct FullRouters;

impl RouterApi for FullRouters {
    fn held(&self, _router: SocketAddr, _deadline: Duration) -> RouterAnswer<'_> {
        let held = HeldRequests::from([(Arc::from("m"), 2.0)]);
        Box::pin(std::future::ready(Ok(held)))
    }
}

fn scraper(shared: &SharedState, mailboxes: &Arc<Mailboxes>) -> RouterScraper {
    RouterScraper::new(
        shared.readers.clone(),
        Arc::clone(&shared.writers.router_scraper),
        Arc::new(FullRouters),
        Arc::clone(mailboxes),
    )
}

#[tokio::test(start_paused = true)]
async fn requests_for_a_model_wake_the_autoscaler_of_its_target() {
    let shared = sleeping();
    with_pool(&shared);
    let record = Arc::new(decide(&shared, "a"));
    let key = record.key.clone();
    let epoch = Epoch::for_test(Role::PodAutoscaler(key.clone()), 1);
    let board = &shared.writers.pod_autoscalers;
    board.put(&epoch, record).unwrap();
    let woken = Arc::new(tokio::sync::Notify::new());
    let bell = Arc::clone(&woken);
    let mailboxes = Mailboxes {
        autoscalers: DirtySet::new(move || bell.notify_one()),
        ..Mailboxes::new(&shared.series)
    };
    let mailboxes = Arc::new(mailboxes);
    assert!(mailboxes.autoscalers.drain().is_empty());
    let scraper = scraper(&shared, &mailboxes);
    let role = pump(Role::RouterScraper, &Address::vacant(), scraper);
    drop(run(&shared, role));
    woken.notified().await;
    assert_eq!(mailboxes.autoscalers.drain(), [AutoscalerInvalidation::Object(key)].into());
    let queues = shared.readers.direct.load();
    let counted = queues[&ModelKey::new("ns", "m")].counted.unwrap();
    assert!((counted.requests - 2.0).abs() < f64::EPSILON);
}

#[test]
fn a_served_model_is_asked_about_where_it_is_sized_for_latency() {
    const SLO: &str = "saturation: {default: {analyzerName: slo}}";
    let shared = shared();
    let scraper = scraper(&shared, &Arc::new(Mailboxes::new(&shared.series)));
    let elsewhere = format!("namespaces: {{other: {{{SLO}}}}}");
    for (settings, current, is_watched) in wva_base::cases! {
        ("", 3, false),
        (SLO, 3, true),
        (elsewhere.as_str(), 3, false),
        ("", 0, true),
        (SLO, 0, true),
    } {
        let dynamic = Arc::new(read_bundle(settings).unwrap());
        let epoch = Epoch::for_test(Role::Config, 1);
        let put = |in_force: &mut InForce| in_force.generation.dynamic = dynamic;
        let writers = &shared.writers.config;
        writers.settings.update(&epoch, put).unwrap();
        let mut view = view(1);
        if let TargetView::Resolved(target) = &mut view.target {
            target.current = Replicas(current);
        }
        let epoch = Epoch::for_test(Role::Variant(key()), 1);
        let board = &shared.writers.variants.board;
        board.put(&epoch, Arc::new(view)).unwrap();
        let watched = scraper.watched();
        let model = ModelKey::new("ns", "m");
        assert_eq!(watched.contains_key(&model), is_watched, "{settings} {current}");
    }
}

/// An optimizer that counts hints about requests.
struct Hinted(Arc<AtomicU32>);

impl StateMachine for Hinted {
    type Msg = OptimizerMessage;
    type Effect = ();

    fn step(&mut self, _now: Moment, event: Event<Self::Msg>, _effects: &mut Vec<()>) {
        if matches!(event, Event::Message(OptimizerMessage::EarlyCycleWanted)) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn perform(&mut self, _cx: &Context<Self::Msg>, (): ()) {}
}

#[tokio::test(start_paused = true)]
async fn a_backlog_that_grows_hints_the_optimizer_at_most_every_five_seconds() {
    let shared = shared();
    let mailboxes = Arc::new(Mailboxes::new(&shared.series));
    let mut scraper = scraper(&shared, &mailboxes);
    let hints = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&hints);
    let address = &mailboxes.addresses.optimizer;
    let make = move |_: &Epoch| Hinted(Arc::clone(&counted));
    let role = wva_supervise::machine(Role::Optimizer, address, make);
    drop(run(&shared, role));
    // Ten requests a second: more than twenty are a backlog.
    let demand = json!({
        "at": at(0), "arrivals": {"smoothed": 10.0, "recent": 10.0}, "served": 10.0,
        "queue": 0.0, "queue_growth": 0.0, "shape": null,
    });
    let learned = Learned {
        slo: serde_json::from_value(json!({"ns/m": {"demand": demand}})).unwrap(),
        ..Learned::default()
    };
    let epoch = Epoch::for_test(Role::Collector, 1);
    let writer = &shared.writers.collector.learned;
    writer.publish(&epoch, Arc::new(learned)).unwrap();
    let queues = |model: &str, requests: f64| {
        let at = at(0);
        let queue = DirectQueue { counted: Some(CountedQueue { requests, at }), failure: None };
        DirectQueues::from([(ModelKey::new("ns", model), queue)])
    };
    sleep(Duration::from_millis(1)).await;
    for (model, before, after, second, expected) in wva_base::cases! {
        ("unknown", 0.0, 99.0, 0, 0),
        ("m", 5.0, 20.0, 1, 0),
        ("m", 30.0, 30.0, 1, 0),
        ("m", 40.0, 30.0, 1, 0),
        ("m", 20.0, 21.0, 2, 1),
        ("m", 21.0, 90.0, 6, 0),
        ("m", 90.0, 90.0, 7, 0),
        ("m", 90.0, 91.0, 7, 1),
    } {
        let (old, new) = (queues(model, before), queues(model, after));
        scraper.report_jump(&old, &new, at(second));
        sleep(Duration::from_millis(1)).await;
        let found = hints.swap(0, Ordering::Relaxed);
        assert_eq!(found, expected, "{model} {before} {after} {second}");
    }
}
