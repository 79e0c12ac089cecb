//! The simulated server against published measurements of a real one: users who each wait for their
//! answer and then ask again. The table in docs/development/simulator.md comes from here.

use std::fmt::Write;
use std::fs;
use std::time::Duration;

use super::request;
use crate::engine::timing::Picoseconds;
use crate::engine::{Engine, Limits, Profile};

/// Output tokens per second and median inter-token latency in milliseconds.
#[derive(Clone, Copy)]
struct Figures(f64, f64);

const USERS: [u32; 7] = [1, 16, 32, 64, 128, 256, 512];

struct Load {
    name: &'static str,
    profile: Profile,
    prompt: u32,
    output: u32,
    /// By [`USERS`].
    published: &'static [Figures],
    /// From so many users on the server is saturated: the published throughput is within a tenth of
    /// the best one.
    saturated_from: u32,
}

/// Qwen3-8B on one H100-80GB with vLLM, silybench-data (tgarg01), September 2026.
const LOADS: [Load; 6] = [
    Load {
        name: "chat 128/128 FP8",
        profile: Profile::QWEN3_8B_FP8_H100,
        prompt: 128,
        output: 128,
        published: &[
            Figures(213.0, 4.6),
            Figures(3_088.0, 4.9),
            Figures(5_413.0, 5.3),
            Figures(9_170.0, 5.9),
            Figures(13_377.0, 7.6),
            Figures(15_704.0, 10.9),
            Figures(16_542.0, 19.7),
        ],
        saturated_from: 256,
    },
    Load {
        name: "chat 128/128 BF16",
        profile: Profile::QWEN3_8B_BF16_H100,
        prompt: 128,
        output: 128,
        published: &[
            Figures(145.0, 6.8),
            Figures(2_156.0, 7.1),
            Figures(4_030.0, 7.4),
            Figures(6_958.0, 8.1),
            Figures(11_194.0, 9.3),
            Figures(13_093.0, 12.8),
            Figures(14_540.0, 21.6),
        ],
        saturated_from: 256,
    },
    Load {
        name: "decode 128/1024 BF16",
        profile: Profile::QWEN3_8B_BF16_H100,
        prompt: 128,
        output: 1_024,
        published: &[
            Figures(146.0, 6.9),
            Figures(2_117.0, 7.5),
            Figures(3_910.0, 8.1),
            Figures(6_597.0, 9.5),
            Figures(10_301.0, 12.0),
            Figures(13_567.0, 18.1),
            Figures(13_523.0, 30.4),
        ],
        saturated_from: 256,
    },
    Load {
        name: "balanced 2048/2048 FP8",
        profile: Profile::QWEN3_8B_FP8_H100,
        prompt: 2_048,
        output: 2_048,
        published: &[
            Figures(208.0, 4.8),
            Figures(2_136.0, 7.2),
            Figures(3_086.0, 9.8),
            Figures(4_033.0, 14.8),
            Figures(4_428.0, 24.6),
            Figures(4_311.0, 28.3),
        ],
        saturated_from: 64,
    },
    Load {
        name: "balanced 2048/2048 BF16",
        profile: Profile::QWEN3_8B_BF16_H100,
        prompt: 2_048,
        output: 2_048,
        published: &[
            Figures(142.0, 7.0),
            Figures(1_625.0, 9.5),
            Figures(2_529.0, 11.9),
            Figures(3_463.0, 17.1),
            Figures(3_917.0, 25.5),
            Figures(3_881.0, 26.3),
            Figures(3_901.0, 26.3),
        ],
        saturated_from: 128,
    },
    Load {
        name: "long 8192/512 BF16",
        profile: Profile::QWEN3_8B_BF16_H100,
        prompt: 8_192,
        output: 512,
        published: &[
            Figures(129.0, 7.3),
            Figures(784.0, 13.8),
            Figures(951.0, 20.3),
            Figures(982.0, 25.3),
            Figures(994.0, 25.3),
            Figures(994.0, 25.3),
            Figures(997.0, 25.3),
        ],
        saturated_from: 32,
    },
];

/// Rows below saturation whose throughput is off by more than a tenth: load, users, error in percent.
/// The published one leaves half the time for short prompts that they take alone on the server.
const SLOW: [(&str, u32, f64); 2] =
    [("chat 128/128 FP8", 128, -11.1), ("chat 128/128 BF16", 128, -15.5)];

fn measure(load: &Load, users: u32) -> Figures {
    let mut engine = Engine::new(load.profile, Limits::default(), Duration::ZERO);
    let mut asked = 0;
    let mut ask = |engine: &mut Engine| {
        asked += 1;
        let at = engine.now.duration();
        let request = request(asked, load.prompt, load.output);
        engine.submit(request, at).unwrap();
    };
    (0..users).for_each(|_| ask(&mut engine));
    let warm = users.min(128) * 2;
    let mut begun = None;
    let mut steps = Vec::new();
    let mut answered = 0;
    while answered < warm * 3 {
        // Into the next step, then to its end, so that every step is seen.
        engine.advance(engine.now.duration() + Duration::from_nanos(2));
        if let Some(step) = engine.step {
            if begun.is_some() {
                steps.push((step.end.since(engine.now), step.decoding));
            }
            engine.advance(step.end.duration() + Duration::from_nanos(1));
        }
        for _ in engine.take_completions() {
            answered += 1;
            ask(&mut engine);
        }
        if answered >= warm {
            begun.get_or_insert((engine.statistics.generation_tokens, engine.now));
        }
    }
    let (tokens, since) = begun.unwrap();
    let tokens = engine.statistics.generation_tokens - tokens;
    let seconds = engine.now.since(since).seconds();
    Figures(crate::number::real(tokens) / seconds, median(steps) * 1e3)
}

/// In seconds, over the tokens of all steps.
fn median(mut steps: Vec<(Picoseconds, u64)>) -> f64 {
    steps.sort_unstable();
    let all: u64 = steps.iter().map(|(_, tokens)| tokens).sum();
    let mut below = 0;
    let middle = steps.iter().find(|(_, tokens)| {
        below += tokens;
        below * 2 >= all
    });
    middle.unwrap().0.seconds()
}

struct Row {
    load: &'static str,
    users: u32,
    saturated: bool,
    simulated: Figures,
    /// In percent of what was published.
    errors: Figures,
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for load in &LOADS {
        for (users, published) in USERS.into_iter().zip(load.published) {
            let simulated = measure(load, users);
            let percent = |simulated: f64, published: f64| (simulated / published - 1.0) * 100.0;
            rows.push(Row {
                load: load.name,
                users,
                saturated: users >= load.saturated_from,
                simulated,
                errors: Figures(
                    percent(simulated.0, published.0),
                    percent(simulated.1, published.1),
                ),
            });
        }
    }
    rows
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| load (in/out) | users | output tok/s | error | ITL ms | error |\n\
         |---|---|---|---|---|---|\n",
    );
    for row in rows {
        let Row { load, users, .. } = row;
        let (simulated, errors) = (row.simulated, row.errors);
        let mark = if row.saturated { "*" } else { "" };
        writeln!(
            text,
            "| {load} | {users}{mark} | {:.0} | {:+.1} % | {:.1} | {:+.1} % |",
            simulated.0, errors.0, simulated.1, errors.1
        )
        .unwrap();
    }
    text
}

fn listed(row: &Row) -> Option<f64> {
    let mut slow = SLOW.iter();
    let same = slow.find(|(load, users, _)| *load == row.load && *users == row.users);
    same.map(|(_, _, error)| *error)
}

#[test]
fn simulated_figures_are_near_the_published_ones() {
    let rows = rows();
    assert_eq!(rows.len(), 41);
    let mut latency_errors = Vec::new();
    for row in &rows {
        let Figures(throughput, latency) = row.errors;
        let what =
            format!("{} with {} users: {throughput:+.1} % {latency:+.1} %", row.load, row.users);
        match listed(row) {
            Some(error) => {
                assert!(!row.saturated, "no goal is missed: {what}");
                assert!((throughput - error).abs() < 0.06, "{what}");
            }
            None => assert!(throughput.abs() <= 10.0, "{what}"),
        }
        assert!(latency.abs() <= 10.0, "{what}");
        latency_errors.push(latency.abs());
    }
    let count = crate::number::length(latency_errors.len());
    let mean = latency_errors.iter().sum::<f64>() / count;
    assert!(mean <= 5.0, "mean error of the inter-token latency: {mean:.1} %");

    let page = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/development/simulator.md"
    ));
    let table = table(&rows);
    assert!(
        page.unwrap().contains(&table),
        "docs/development/simulator.md shows another table than\n{table}"
    );
}
