//! What routers say together.

use std::time::Duration;

use serde::Deserialize;

use super::*;
use crate::actors::pod_autoscaler::tests::asleep::{sleeping, with_pool};
use crate::actors::pod_autoscaler::tests::decide;
use crate::actors::pump;
use crate::actors::variants::tests::run;
use crate::roles::Role;
use crate::signals::RouterAnswer;
use crate::signals::router_page::PageReader;
use crate::state::mirrors::tests::at;
use wva_supervise::{Address, DirtySet, Epoch};

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
        let mut answer = Answer {
            is_whole: true,
            ..Answer::default()
        };
        for (page, age) in vector.pages.iter().zip(&vector.ages) {
            answer.add(held(page.as_deref(), *age));
        }
        let mut asked = Asked {
            models: BTreeSet::from([model.clone()]),
            ..Asked::default()
        };
        let has_failed = answer.failure.is_some();
        asked.take_in(answer);
        let queue = together(&model, &[&asked]);
        let found = queue.counted.map(|counted| counted.requests);
        assert_eq!(found, vector.expect, "{}", vector.id);
        let age = queue
            .counted
            .map(|counted| at(NOW).since(counted.at).as_secs());
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
        queue
            .counted
            .map(|counted| (counted.requests, at(NOW).since(counted.at).as_secs()))
    };
    let (two, three, zero, silent) = (
        asked(Some(2.0), 1),
        asked(Some(3.0), 5),
        asked(Some(0.0), 1),
        asked(None, 0),
    );
    assert_eq!(counted(&[&two, &three]), Some((5.0, 5)));
    assert_eq!(counted(&[&zero]), Some((0.0, 1)));
    assert_eq!(counted(&[&zero, &silent]), None);
    assert_eq!(counted(&[&two, &silent]), Some((2.0, 1)));
    assert_eq!(counted(&[&silent]), None);
}

#[test]
fn the_last_answer_stays_and_ages_until_something_else_is_known() {
    let model = ModelKey::new("ns", "m");
    let mut asked = Asked {
        models: BTreeSet::from([model.clone()]),
        ..Asked::default()
    };
    let page =
        |requests: u32| format!("llm_d_epp_flow_control_queue_size{{model_name=\"m\"}} {requests}");
    let mut take_in = |pages: &[(Option<String>, u64)]| {
        let mut answer = Answer {
            is_whole: true,
            ..Answer::default()
        };
        for (page, age) in pages {
            answer.add(held(page.as_deref(), *age));
        }
        asked.take_in(answer);
        let queue = together(&model, &[&asked]);
        let counted = queue.counted;
        (
            counted.map(|counted| (counted.requests, counted.at)),
            queue.failure,
        )
    };
    let (three, none) = (Some(page(3)), Some(page(0)));
    assert_eq!(take_in(&[(three.clone(), 9)]), (Some((3.0, at(91))), None));
    let down = Some(Arc::from("no page"));
    assert_eq!(take_in(&[(None, 5)]), (Some((3.0, at(91))), down.clone()));
    // Half of an answer is enough for requests, and not for their absence.
    assert_eq!(
        take_in(&[(none.clone(), 4), (None, 4)]),
        (Some((3.0, at(91))), down.clone())
    );
    assert_eq!(
        take_in(&[(three, 3), (None, 3)]),
        (Some((3.0, at(97))), down)
    );
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
    let scraper = RouterScraper::new(
        shared.readers.clone(),
        Arc::clone(&shared.writers.router_scraper),
        Arc::new(FullRouters),
        Arc::clone(&mailboxes),
    );
    let role = pump(Role::RouterScraper, &Address::vacant(), scraper);
    drop(run(&shared, role));
    woken.notified().await;
    assert_eq!(
        mailboxes.autoscalers.drain(),
        [AutoscalerInvalidation::Object(key)].into()
    );
    let queues = shared.readers.direct.load();
    let counted = queues[&ModelKey::new("ns", "m")].counted.unwrap();
    assert!((counted.requests - 2.0).abs() < f64::EPSILON);
}
