//! The pages of a world's controller, and what the doctor finds in a world.

use std::time::Duration;

use http::HeaderValue;
use tokio::time::sleep;

use super::{DATE, World, quiet};
use crate::hpa::SYNC;
use crate::prometheus::QueryValue;
use crate::world::scenario;
use wva::doctor::look::{DoctorScope, look};
use wva::doctor::probe::PrometheusProbe;
use wva::doctor::{Facts, Reading, SeriesFact, examine};

/// What a page of the controller is answered with.
fn page(world: &World, path: &str) -> (u16, Option<HeaderValue>) {
    let (head, ()) = http::Request::get(path).body(()).unwrap().into_parts();
    let answer = world.page(&head, &[]);
    let kind = answer.headers().get(http::header::CONTENT_TYPE);
    (answer.status().as_u16(), kind.cloned())
}

#[tokio::test(start_paused = true)]
async fn a_world_that_is_shown_remembers_its_decisions() {
    let silent = World::begin(&quiet(), 1, DATE).await.unwrap();
    sleep(Duration::from_mins(3)).await;
    assert!(silent.plan().is_some());
    assert_eq!(page(&silent, "/debug/recording").0, 404);
    silent.end().await;
    let scenario = quiet();
    let shown = World::arranged(&scenario, 1, DATE, None, SYNC, true);
    let shown = shown.await.unwrap();
    // A thread of its own writes the record.
    let mut minutes = 0;
    while page(&shown, "/debug/recording").0 == 404 && minutes < 60 {
        sleep(Duration::from_mins(1)).await;
        minutes += 1;
    }
    let (status, kind) = page(&shown, "/debug/recording");
    assert_eq!((status, kind.unwrap().as_bytes()), (200, &b"application/gzip"[..]));
    let (status, kind) = page(&shown, "/debug/page");
    assert_eq!((status, kind.unwrap().as_bytes()), (200, &b"text/html; charset=utf-8"[..]));
    shown.end().await;
}

/// What the doctor asks of the Prometheus of a world, as it would over HTTP.
fn asked(world: &World, facts: &mut Facts) {
    facts.prometheus = Reading::Known(Ok(()));
    let prometheus = world.prometheus.lock().unwrap();
    for probe in PrometheusProbe::ALL {
        let answer = prometheus.query(probe.as_str(), world.clock.now().wall);
        let QueryValue::Vector(samples) = answer.unwrap() else {
            panic!("{probe:?}");
        };
        let series = samples.into_iter().map(|sample| SeriesFact {
            labels: (sample.labels.iter())
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            value: sample.value,
        });
        facts.series.insert(probe, Reading::Known(series.collect()));
    }
}

/// `docs/demo.md` names both findings.
#[tokio::test(start_paused = true)]
async fn the_doctor_finds_in_a_healthy_world_what_it_lacks_and_no_more() {
    let scenario = scenario("fleet").unwrap().with_shipped_settings();
    let world = World::begin(&scenario, 1, DATE).await.unwrap();
    sleep(Duration::from_mins(10)).await;
    assert!(world.frame().totals.scalings > 0);
    let seconds = Duration::from_millis(world.clock.now().wall.0.unsigned_abs()).as_secs_f64();
    let (mut facts, _) = look(&world.server.client(), &DoctorScope::default(), seconds).await;
    asked(&world, &mut facts);
    let clock = facts.series(PrometheusProbe::Clock);
    assert!(matches!(clock, [one] if one.value >= seconds), "{clock:?}");
    for probe in [PrometheusProbe::Targets, PrometheusProbe::Running, PrometheusProbe::RouterPicks]
    {
        assert!(!facts.series(probe).is_empty(), "{probe:?}");
    }
    let diagnosis = examine(&facts);
    let codes: Vec<String> = diagnosis.findings().map(|one| one.code.id()).collect();
    assert_eq!(codes, ["WVA006", "WVA020"], "{}", diagnosis.to_text());
    assert_eq!(diagnosis.unseen().count(), 0, "{}", diagnosis.to_text());
    world.end().await;
}
