//! Snapshots of `wva plan` from a number.

use std::fmt::Write as _;

/// Draws numbers: splitmix64.
struct Dice(u64);

impl Dice {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        let count = u64::try_from(choices.len()).unwrap();
        choices[usize::try_from(self.draw() % count).unwrap()]
    }

    /// Returns true once in so many draws.
    fn once_in(&mut self, draws: u64) -> bool {
        self.draw().is_multiple_of(draws)
    }
}

/// What the replicas of a variant have in common.
#[derive(Clone, Copy)]
struct Load {
    share: f64,
    queue: f64,
    output: f64,
    rate: f64,
}

fn load(dice: &mut Dice) -> Load {
    if dice.once_in(4) {
        return Load { share: 0.0, queue: 0.0, output: 60.0, rate: 0.0 };
    }
    Load {
        share: dice.one_of(&[0.05, 0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.95, 1.0]),
        queue: dice.one_of(&[0.0, 0.0, 1.0, 4.0, 6.0, 30.0]),
        output: dice.one_of(&[0.0, 60.0, 200.0, 400.0]),
        rate: dice.one_of(&[0.0, 0.2, 1.0, 4.0]),
    }
}

/// Returns the fields of a pod's signals, one of which may be missing, stale or failed.
fn signals(dice: &mut Dice, load: Load) -> String {
    let Load { share, queue, output, rate } = load;
    let values = [
        ("kvUsage", share),
        ("kvUsageNow", share),
        ("queueLength", queue),
        ("running", if share > 0.0 { 3.0 } else { 0.0 }),
        ("kvCapacity", 16_000.0),
        ("inputTokens", 200.0),
        ("outputTokens", output),
        ("prefixHitRate", 0.2),
        ("timeToFirstToken", 0.045),
        ("interTokenLatency", 0.006 + 0.073 * share),
        ("arrivalRate", rate),
        ("completionRate", rate),
        ("generationRate", rate * output),
    ];
    let damaged = dice.once_in(6).then(|| dice.one_of(&values).0);
    let how = dice.one_of(&["missing", "stale", "failed"]);
    let mut fields = Vec::new();
    for (name, value) in values {
        match how {
            _ if damaged != Some(name) => fields.push(format!("{name}: {value}")),
            "stale" => fields.push(format!("{name}: {{value: {value}, age: 90s}}")),
            "failed" => fields.push(format!("{name}: {{state: failed, why: tooOld}}")),
            _ => {}
        }
    }
    fields.join(", ")
}

/// Writes a variant; returns its model.
fn variant(text: &mut String, dice: &mut Dice, number: u64) -> &'static str {
    let model = dice.one_of(&["m", "m", "n"]);
    let role = dice.one_of(&["both", "both", "both", "prefill", "decode"]);
    let accelerator = dice.one_of(&["H100", "H100", "H100", "A100"]);
    let cost = 10 * dice.one_of(&[1, 2, 3]);
    let ready = dice.one_of(&[0, 1, 1, 2, 2, 2, 3, 3]);
    let loading = dice.one_of(&[0, 0, 0, 0, 1, 2]);
    let current = ready + loading;
    write!(
        text,
        "- {{namespace: ns, name: v{number}, model: {model}, role: {role}, cost: {cost}, accelerator: {accelerator}, "
    )
    .unwrap();
    let min = dice.one_of(&["", "", "", "min: 0", "min: 1", "min: 2"]);
    let max = dice.one_of(&["", "", "max: 3", "max: 8", "max: 8"]);
    let bounds: Vec<&str> = [min, max].into_iter().filter(|bound| !bound.is_empty()).collect();
    if !bounds.is_empty() {
        write!(text, "bounds: {{{}}}, ", bounds.join(", ")).unwrap();
    }
    match dice.one_of(&["none", "as it is", "as it is", "other"]) {
        "as it is" => write!(text, "desired: {current}, ").unwrap(),
        "other" => write!(text, "desired: {}, ", dice.one_of(&[0, 1, 2, 3, 5])).unwrap(),
        _ => {}
    }
    writeln!(text, "target: {{current: {current}, ready: {ready}}}, pods: [").unwrap();
    let common = load(dice);
    for pod in 0..ready {
        let is_silent = dice.once_in(20);
        let load = if dice.once_in(4) { load(dice) } else { common };
        let signals = signals(dice, load);
        let signals = if is_silent { "" } else { &signals };
        writeln!(text, "  {{name: v{number}-{pod}, signals: {{{signals}}}}},").unwrap();
    }
    text.push_str("  ]}\n");
    model
}

/// Writes the router of the model `m`, where there is one.
fn router(text: &mut String, dice: &mut Dice) {
    let queue = dice.one_of(&[None, Some(0.0), Some(0.0), Some(2.0), Some(60.0)]);
    let bytes = dice.one_of(&[None, Some(0.0), Some(450.0), Some(200_000.0)]);
    let arrivals = dice.one_of(&[None, Some(0.0), Some(0.4), Some(4.0), Some(12.0)]);
    let mut fields = Vec::new();
    if let Some(queue) = queue {
        fields.push(format!("queueRequests: {queue}"));
        fields.extend(bytes.map(|bytes| format!("queueBytes: {}", bytes * queue)));
    }
    fields.extend(arrivals.map(|rate| format!("arrivalRate: {rate}")));
    if !fields.is_empty() {
        let fields = fields.join(", ");
        writeln!(text, "models: [{{namespace: ns, model: m, router: {{{fields}}}}}]").unwrap();
    }
}

/// Returns the fleet of a number.
pub(super) fn fleet(number: u64) -> String {
    let mut dice = Dice(number);
    let mut text = String::from("version: 1\nvariants:\n");
    let variants = dice.one_of(&[1, 1, 2, 2, 2, 3]);
    let mut models = Vec::new();
    for number in 0..variants {
        models.push(variant(&mut text, &mut dice, number));
    }
    if models.contains(&"m") {
        router(&mut text, &mut dice);
    }
    if dice.once_in(2) {
        let total = dice.one_of(&[0, 2, 4, 8, 20]);
        let used = dice.one_of(&[0, 2, 4, 8]);
        writeln!(
            text,
            "inventory: {{types: {{H100: {{total: {total}, used: {used}}}, A100: {{total: 4, used: 1}}}}}}"
        )
        .unwrap();
    }
    text
}
