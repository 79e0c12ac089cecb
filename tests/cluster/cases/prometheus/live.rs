//! Both servers scrape the same pages at the same times.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use wva_base::moment::WallTime;
use wva_sim::prometheus::{Prometheus, ScrapeTarget, Scraped, TargetId};

use super::history::{self, Course};
use super::{Real, compare, now};
use crate::harness::exporter::{Exporter, Page};
use crate::harness::fault::{Fault, Result};
use crate::harness::suite::Cx;
use crate::harness::wait::eventually;

/// The fleet whose pages are shown.
const SEED: u64 = 3;
/// Scrapes until one of the targets is taken away.
const SCRAPES: usize = 15;
const SOON: Duration = Duration::from_mins(1);

const CONFIGURATION: &str = "
global: {scrape_interval: 1s, scrape_timeout: 900ms}
scrape_configs:
- job_name: exported
  honor_labels: false
  file_sd_configs: [{files: ['FOLDER/exported.json'], refresh_interval: 1s}]
  relabel_configs: [{target_label: job, replacement: pods}]
- job_name: honored
  honor_labels: true
  file_sd_configs: [{files: ['FOLDER/honored.json'], refresh_interval: 1s}]
  relabel_configs: [{target_label: job, replacement: pods}]
";

/// One page after the other, from the same place; the last one stays.
struct Shown {
    exporter: Exporter,
    scrapes: Arc<AtomicUsize>,
}

async fn show(course: &Course) -> Result<Shown> {
    let pages: Vec<Option<String>> = pages(course).collect();
    let scrapes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&scrapes);
    let exporter = Exporter::start(move || {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        match &pages[number.min(pages.len() - 1)] {
            Some(text) => Page::Text(text.clone()),
            None => Page::Unavailable,
        }
    });
    Ok(Shown { exporter: exporter.await?, scrapes })
}

fn pages(course: &Course) -> impl Iterator<Item = Option<String>> {
    let pages = course.scrapes.iter();
    pages.map(|scrape| scrape.page.as_deref().map(history::text))
}

/// Where the targets are named.
fn folder(cx: &Cx) -> Result<PathBuf> {
    let folder = cx.world.site.conf("compared");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Names the targets, all but the first `without`.
fn discover(cx: &Cx, courses: &[Course], shown: &[Shown], without: usize) -> Result {
    use wva_sim::prometheus::Conflicts;
    let files = [("exported", Conflicts::Exported), ("honored", Conflicts::Honored)];
    for (file, conflicts) in files {
        let targets = courses.iter().zip(shown).skip(without);
        let groups: Vec<Value> = targets
            .filter(|(course, _)| course.target.conflicts == conflicts)
            .map(|(course, shown)| {
                let address = shown.exporter.address.to_string();
                json!({ "targets": [address], "labels": course.target.labels })
            })
            .collect();
        let path = folder(cx)?.join(format!("{file}.json"));
        let draft = path.with_extension("draft");
        std::fs::write(&draft, json!(groups).to_string())?;
        std::fs::rename(&draft, &path)?;
    }
    Ok(())
}

pub(super) async fn scrapes_leave_the_same(cx: &Cx) -> Result {
    let courses = history::courses(SEED, 0, 14);
    let mut shown = Vec::new();
    for course in &courses {
        shown.push(show(course).await?);
    }
    discover(cx, &courses, &shown, 0)?;
    let folder = folder(cx)?.display().to_string();
    let real = Real::start(cx, "live", &CONFIGURATION.replace("FOLDER", &folder)).await?;
    eventually("enough scrapes", SOON, async || {
        let counts = shown.iter();
        let counts = counts.map(|shown| shown.scrapes.load(Ordering::Relaxed));
        let least = counts.min().unwrap_or(0);
        if least >= SCRAPES {
            return Ok(());
        }
        Err(Fault::new(format!("{least} scrapes")))
    })
    .await?;

    let before = now();
    discover(cx, &courses, &shown, 1)?;
    let gone = format!("count(up{{instance=\"{}\"}})", courses[0].target.labels["instance"]);
    eventually("the series of the target end", SOON, async || {
        let (_, answer) = real.ask(&gone, now()).await?;
        match answer["data"]["result"].as_array().map(Vec::len) {
            Some(0) => Ok(()),
            _ => Err(Fault::new(answer.to_string())),
        }
    })
    .await?;
    let after = now();

    let ours = follow(&real, &courses, after).await?;
    let names = [
        "vllm:num_requests_running",
        "vllm:request_prompt_tokens_sum",
        "vllm:time_to_first_token_seconds_bucket",
        "vllm:time_to_first_token_seconds_count",
        "sglang:token_usage",
        "sglang:e2e_request_latency_seconds_count",
        "inference_objective_request_total",
        "up",
        "scrape_samples_scraped",
        "scrape_samples_post_metric_relabeling",
    ];
    let mut compared = 0;
    let all = [before - 7_000, before - 2_345, before, after];
    // The marks of the target that is gone differ by less than a second, which finer steps show.
    let (_, while_there) = all.split_last().unwrap();
    let whole = names.map(|name| (name, &all[..]));
    let functions = [
        ("timestamp(vllm:num_requests_waiting)", &all[..]),
        ("count_over_time(vllm:kv_cache_usage_perc[10s])", &all),
        ("rate(vllm:request_success_total[12s])", &all),
        ("wva_desired_replicas", &all),
        ("max_over_time(up[10s])", &all),
        ("max_over_time(timestamp(vllm:kv_cache_usage_perc)[15s:1s])", while_there),
    ];
    for (question, times) in whole.into_iter().chain(functions) {
        for at in times {
            compared += compare(&real, &ours, question, *at).await?;
        }
    }
    assert!(compared > 200, "{compared} samples compared");
    Ok(())
}

/// Ours, scraping the same pages when the real one did.
async fn follow(real: &Real, courses: &[Course], after: i64) -> Result<Prometheus> {
    let mut ours = Prometheus::default();
    let every_second = |course: &Course| ScrapeTarget {
        interval: Duration::from_secs(1),
        ..course.target.clone()
    };
    let targets: Vec<ScrapeTarget> = courses.iter().map(every_second).collect();
    ours.set_targets(targets.clone(), WallTime(after - 60_000));
    let ids: Vec<TargetId> =
        ours.due(WallTime(after - 58_000)).into_iter().map(|due| due.0).collect();
    let mut ends = 0;
    for (course, id) in courses.iter().zip(ids).rev() {
        let instance = &course.target.labels["instance"];
        let (_, answer) = real.ask(&format!("up{{instance=\"{instance}\"}}[2m]"), after).await?;
        let pages: Vec<_> = pages(course).collect();
        let scrapes = answer["data"]["result"][0]["values"].as_array().cloned();
        for (number, scrape) in scrapes.unwrap_or_default().iter().enumerate() {
            let seconds = scrape[0].as_f64().unwrap_or_default();
            let time = Duration::from_secs_f64(seconds + 0.000_5).as_millis();
            ends = i64::try_from(time)?;
            let page = &pages[number.min(pages.len() - 1)];
            let up = if page.is_some() { "1" } else { "0" };
            assert_eq!(scrape[1], up, "scrape {number} of {instance}");
            let what = page.as_deref().map_or(Scraped::Failed, Scraped::Text);
            ours.scraped(id, WallTime(ends), what);
        }
    }
    // The first target was the last in this order: its series end with the scrape after its last.
    ours.due(WallTime(ends));
    ours.set_targets(targets[1..].to_vec(), WallTime(ends));
    ours.due(WallTime(after + 60_000));
    Ok(ours)
}
