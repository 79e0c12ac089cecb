//! The Prometheus of the embedded world against a real one: the same samples, the same questions.

mod expressions;
mod history;
mod live;
mod remote_write;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use wva_base::moment::WallTime;
use wva_sim::prometheus::{Prometheus, Scraped};
use wva_supervise::SeedTree;

use self::history::{Course, Luck};
use crate::harness::fault::{Fault, Result};
use crate::harness::servers::prometheus;
use crate::harness::suite::{Case, Cx, case};

/// Fleets that are compared.
const SEEDS: u64 = 8;
/// How long each of them lives.
const MINUTES: i64 = 14;
/// Times at which each expression is evaluated.
const TIMES: usize = 5;
/// Largest relative difference of two values.
const TOLERANCE: f64 = 1e-12;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!(shared, prometheus::answers_are_the_same),
        case!(shared, prometheus, live::scrapes_leave_the_same),
    ]
}

/// A real Prometheus of a case's own.
struct Real(prometheus::Prometheus);

impl Drop for Real {
    fn drop(&mut self) {
        self.0.server.kill();
    }
}

impl Real {
    async fn start(cx: &Cx, name: &str, configuration: &str) -> Result<Self> {
        let site = &cx.world.site;
        let server = prometheus::Prometheus::configured(site, name, site.conf(name), configuration);
        let real = Self(server?);
        real.0.server.start()?;
        real.0.ready().await?;
        Ok(real)
    }

    /// What it answers about a time: status and document.
    async fn ask(&self, promql: &str, at: i64) -> Result<(u16, Value)> {
        let form = [("query", promql.to_owned()), ("time", in_seconds(at))];
        let url = format!("{}/api/v1/query", self.0.url);
        let response = self.0.http.post(url).form(&form).send().await?;
        let status = response.status().as_u16();
        Ok((status, serde_json::from_str(&response.text().await?)?))
    }
}

fn in_seconds(milliseconds: i64) -> String {
    format!("{}.{:03}", milliseconds / 1_000, milliseconds % 1_000)
}

/// Milliseconds since the Unix epoch.
fn now() -> i64 {
    wva_supervise::Clock::real().now().wall.0
}

/// Fails if the two servers do not answer the same; says how many samples the answer has.
async fn compare(real: &Real, ours: &Prometheus, promql: &str, at: i64) -> Result<usize> {
    let (wanted_status, wanted) = real.ask(promql, at).await?;
    let (status, found) = ours.document(promql, WallTime(at));
    let differ = |what: &str| {
        let text = format!("{what} of {promql} at {at}:\n real: {wanted}\n ours: {found}");
        Err(Fault::new(text))
    };
    if (wanted_status, &wanted["errorType"]) != (status, &found["errorType"]) {
        return differ("the status");
    }
    if wanted_status != 200 {
        let start = |document: &Value| {
            let text = document["error"].as_str().unwrap_or_default();
            text.split('{').next().unwrap_or_default().to_owned()
        };
        // Which of several series is named depends on their order.
        if wanted_status == 422 && start(&wanted) != start(&found) {
            return differ("the refusal");
        }
        return Ok(0);
    }
    if wanted["data"]["resultType"] != found["data"]["resultType"] {
        return differ("the type");
    }
    let (wanted_samples, found_samples) = (samples(&wanted)?, samples(&found)?);
    let labels = |samples: &Samples| -> Vec<String> { samples.keys().cloned().collect() };
    if labels(&wanted_samples) != labels(&found_samples) {
        return differ("the series");
    }
    for (wanted, found) in wanted_samples.values().zip(found_samples.values()) {
        let pairs = wanted.iter().zip(found);
        let mut pairs =
            pairs.map(|(wanted, found)| wanted.0 == found.0 && is_same(wanted.1, found.1));
        if wanted.len() != found.len() || !pairs.all(|is_same| is_same) {
            return differ("a value");
        }
    }
    Ok(found_samples.len())
}

/// Times and values by labels, which are shown in order.
type Samples = BTreeMap<String, Vec<(String, f64)>>;

fn samples(document: &Value) -> Result<Samples> {
    let result = &document["data"]["result"];
    let read = |pair: &Value| -> Result<(String, f64)> {
        let text = pair[1].as_str().unwrap_or_default();
        let time = pair[0].as_f64().map(|seconds| format!("{seconds:.3}"));
        Ok((time.unwrap_or_default(), text.parse()?))
    };
    let samples: Vec<&Value> = result.as_array().into_iter().flatten().collect();
    let read: BTreeMap<_, _> = samples
        .iter()
        .map(|sample| {
            let several = sample["values"].as_array().map(Vec::as_slice);
            let values = several.unwrap_or_else(|| std::slice::from_ref(&sample["value"]));
            let values = values.iter().map(read).collect::<Result<_>>()?;
            Ok((sample["metric"].to_string(), values))
        })
        .collect::<Result<_>>()?;
    if read.len() == samples.len() {
        Ok(read)
    } else {
        Err(Fault::new(format!("a series comes twice: {document}")))
    }
}

fn is_same(left: f64, right: f64) -> bool {
    let both_nan = left.is_nan() && right.is_nan();
    let size = left.abs().max(right.abs());
    both_nan || left.total_cmp(&right).is_eq() || (left - right).abs() <= TOLERANCE * size
}

/// Ours, having scraped these pages.
fn scraped(courses: &[Course]) -> Prometheus {
    let mut ours = Prometheus::new(Duration::from_hours(1));
    let targets = courses.iter().map(|course| course.target.clone()).collect();
    ours.set_targets(targets, WallTime(0));
    // They come in the order of the targets.
    let due = ours.due(WallTime(60_000));
    for (course, (id, _)) in courses.iter().zip(due) {
        assert_eq!(ours.target(id), Some(&course.target));
        for scrape in &course.scrapes {
            let text = scrape.page.as_deref().map(history::text);
            let what = text.as_deref().map_or(Scraped::Failed, Scraped::Text);
            ours.scraped(id, WallTime(scrape.time), what);
        }
    }
    ours
}

/// Times of interest: anywhere, and exactly where ranges, look-back and series begin and end.
fn times(luck: &mut Luck, courses: &[Course], start: i64) -> Vec<i64> {
    let mut times = vec![start + MINUTES * 60_000];
    while times.len() < TIMES {
        let scrapes = &luck.pick(courses).scrapes;
        let edge = match scrapes.as_slice() {
            [] => start,
            some => luck.pick(some).time,
        };
        let shift = *luck.pick(&[0, 0, 1, 60_000, 300_000, 300_001, 315_000]);
        let anywhere = start + luck.below(MINUTES * 60_000);
        times.push(if luck.once_in(3) { anywhere } else { edge + shift });
    }
    times
}

async fn answers_are_the_same(cx: &Cx) -> Result {
    let (mut answered, mut count) = (0, 0);
    for seed in 0..SEEDS {
        let name = format!("compared-{seed}");
        let real = Real::start(cx, &name, "global: {}\n").await?;
        let start = now() - (MINUTES + 6) * 60_000;
        let courses = history::courses(seed, start, MINUTES);
        remote_write::send(&real.0.http, &real.0.url, &remote_write::stored(&courses)).await?;
        let ours = scraped(&courses);
        let mut luck = Luck(SeedTree::new(seed).child("questions"));
        let mut questions = expressions::sent().await;
        questions.extend(expressions::variations(&mut luck));
        for question in &questions {
            for at in times(&mut luck, &courses, start) {
                let found = compare(&real, &ours, question, at).await?;
                answered += usize::from(found > 0);
                count += 1;
            }
        }
    }
    // Nothing would be found out about answers that are empty.
    assert!(answered * 5 > count * 2, "{answered} of {count} answers have samples");
    Ok(())
}
