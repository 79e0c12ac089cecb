//! Made-up pages over time: fleets that grow, fail, restart and vanish, the same for the same seed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use wva_sim::prometheus::{Conflicts, ScrapeTarget};
use wva_supervise::{Generator, SeedTree};

/// One series of a page.
pub(super) type Sample = (String, BTreeMap<String, String>, f64);

/// What a scrape at a time found: a page, or none.
pub(super) struct Scrape {
    pub(super) time: i64,
    pub(super) page: Option<Vec<Sample>>,
}

/// A target and its scrapes, the oldest first.
pub(super) struct Course {
    pub(super) target: ScrapeTarget,
    pub(super) scrapes: Vec<Scrape>,
}

const BOUNDS: [&str; 4] = ["0.1", "0.5", "2.0", "+Inf"];

/// What a page shows besides its histogram: names and kinds.
struct Exposed {
    gauges: &'static [&'static str],
    counters: &'static [&'static str],
    histogram: Option<&'static str>,
}

const VLLM: Exposed = Exposed {
    gauges: &["vllm:kv_cache_usage_perc", "vllm:num_requests_waiting", "vllm:num_requests_running"],
    counters: &[
        "vllm:request_success_total",
        "vllm:request_prompt_tokens_sum",
        "vllm:request_prompt_tokens_count",
    ],
    histogram: Some("vllm:time_to_first_token_seconds"),
};
const SGLANG: Exposed = Exposed {
    gauges: &["sglang:token_usage", "sglang:num_queue_reqs", "vllm:num_requests_waiting"],
    counters: &["sglang:e2e_request_latency_seconds_count"],
    histogram: None,
};
const ROUTER: Exposed = Exposed {
    gauges: &["inference_extension_flow_control_queue_size", "llm_d_epp_flow_control_queue_size"],
    counters: &["inference_objective_request_total", "llm_d_epp_scheduler_attempts_total"],
    histogram: None,
};
const CONTROLLER: Exposed =
    Exposed { gauges: &["wva_desired_replicas"], counters: &[], histogram: None };

/// The fleet of a seed, scraped for `minutes` from `start` on.
pub(super) fn courses(seed: u64, start: i64, minutes: i64) -> Vec<Course> {
    let seeds = SeedTree::new(seed);
    let fleet: [(&str, &str, &Exposed, &[&str]); 6] = [
        ("ns-a", "llama-0", &VLLM, &["0"]),
        ("ns-a", "llama-1", &VLLM, &["0", "1"]),
        ("ns-b", "llama-0", &VLLM, &["0"]),
        ("ns-b", "sgl-0", &SGLANG, &["0", "1"]),
        ("ns-a", "epp-0", &ROUTER, &["success", "failure"]),
        ("system", "wva-0", &CONTROLLER, &["a", "b"]),
    ];
    let course = |(namespace, pod, exposed, shards): (&str, &str, &Exposed, &[&str])| {
        let mut luck = Luck(seeds.child(&format!("{namespace}/{pod}")));
        let target = target(namespace, pod, luck.once_in(3));
        let fresh = |shard: &&str| Shard::new(pod, shard);
        let mut shards: Vec<Shard> = shards.iter().map(fresh).collect();
        let interval = 15_000;
        let mut scrapes = Vec::new();
        let (first, last) = (luck.below(minutes * 15_000), minutes * 60_000);
        let mut ends = last;
        if luck.once_in(4) {
            ends -= luck.below(minutes * 30_000);
        }
        let mut after = first;
        while after < ends {
            let time = start + after + luck.below(40);
            let page = (!luck.once_in(12)).then(|| {
                let parts = shards.iter_mut().flat_map(|shard| shard.show(exposed, &mut luck));
                parts.collect()
            });
            scrapes.push(Scrape { time, page });
            after += interval * (1 + i64::from(luck.once_in(30)) * luck.below(8));
        }
        if ends < last {
            scrapes.push(Scrape { time: start + after, page: None });
        }
        Course { target, scrapes }
    };
    fleet.into_iter().map(course).collect()
}

fn target(namespace: &str, pod: &str, honored: bool) -> ScrapeTarget {
    let labels = [
        ("job", "pods"),
        ("instance", &format!("{pod}.{namespace}:8000")),
        ("namespace", namespace),
        ("pod", pod),
    ];
    ScrapeTarget {
        labels: labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        address: String::new(),
        interval: Duration::from_secs(15),
        conflicts: if honored { Conflicts::Honored } else { Conflicts::Exported },
    }
}

/// Chance by seed.
pub(super) struct Luck(pub(super) Generator);

impl Luck {
    /// A number from 0 to below `end`.
    pub(super) fn below(&mut self, end: i64) -> i64 {
        i64::try_from(self.0.next_u64() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    pub(super) fn once_in(&mut self, times: i64) -> bool {
        self.below(times) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        let place = self.below(i64::try_from(among.len()).unwrap());
        &among[usize::try_from(place).unwrap()]
    }
}

/// One rank of a pod, or one outcome of a router.
struct Shard {
    labels: BTreeMap<String, String>,
    counts: BTreeMap<String, f64>,
    hidden: BTreeSet<String>,
}

impl Shard {
    fn new(pod: &str, shard: &str) -> Self {
        let name = match pod {
            "epp-0" => "status",
            "wva-0" => "variant_name",
            _ => "engine",
        };
        let mut labels = BTreeMap::from([
            ("model_name".to_owned(), "meta/\"llama\"\\8b".to_owned()),
            (name.to_owned(), shard.to_owned()),
        ]);
        if pod == "wva-0" {
            labels.insert("namespace".to_owned(), format!("ns-{shard}"));
        }
        Self { labels, counts: BTreeMap::new(), hidden: BTreeSet::new() }
    }

    fn show(&mut self, exposed: &Exposed, luck: &mut Luck) -> Vec<Sample> {
        if luck.once_in(25) {
            self.counts.clear();
        }
        let mut page = Vec::new();
        for name in exposed.gauges {
            let value = match luck.below(40) {
                0 => f64::NAN,
                1 => f64::INFINITY,
                _ => quotient(luck.below(10_000), 7),
            };
            page.push(((*name).to_owned(), self.labels.clone(), value));
        }
        for name in exposed.counters {
            let value = self.grow(name, quotient(luck.below(900), 3));
            page.push(((*name).to_owned(), self.labels.clone(), value));
        }
        if let Some(name) = exposed.histogram {
            let mut total = 0.0;
            for bound in BOUNDS {
                let grown = quotient(luck.below(9), 1);
                total += self.grow(&format!("{name}{bound}"), grown);
                let mut labels = self.labels.clone();
                labels.insert("le".to_owned(), bound.to_owned());
                page.push((format!("{name}_bucket"), labels, total));
            }
            page.push((format!("{name}_count"), self.labels.clone(), total));
        }
        page.retain(|(name, _, _)| {
            if luck.once_in(25) && !self.hidden.remove(name) {
                self.hidden.insert(name.clone());
            }
            !self.hidden.contains(name)
        });
        page
    }

    fn grow(&mut self, name: &str, by: f64) -> f64 {
        let count = self.counts.entry(name.to_owned()).or_default();
        *count += by;
        *count
    }
}

fn quotient(dividend: i64, divisor: i32) -> f64 {
    f64::from(i32::try_from(dividend).unwrap()) / f64::from(divisor)
}

/// The page as text.
pub(super) fn text(page: &[Sample]) -> String {
    let mut text = String::new();
    for (name, labels, value) in page {
        let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"");
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let value = match *value {
            value if value.is_nan() => "NaN".to_owned(),
            value if value.is_infinite() => "+Inf".to_owned(),
            value => value.to_string(),
        };
        writeln!(text, "{name}{{{}}} {value}", labels.join(",")).unwrap();
    }
    text
}
