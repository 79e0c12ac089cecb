//! Runs a parser over many inputs. What an input is follows from the seed, the parser's name and the
//! input's number alone, so that each can be made again by itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use wva_supervise::SeedTree;

use crate::mutate::Grammar;

/// Inputs of a short run.
const SHORT: u64 = 2_000;

/// What became of one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Accepted,
    Refused,
}

impl<T, E> From<&Result<T, E>> for Outcome {
    fn from(result: &Result<T, E>) -> Self {
        match result {
            Ok(_) => Self::Accepted,
            Err(_) => Self::Refused,
        }
    }
}

impl From<bool> for Outcome {
    fn from(is_accepted: bool) -> Self {
        if is_accepted { Self::Accepted } else { Self::Refused }
    }
}

/// Most bytes that may be held at once while an input is read: so many, and so many per byte of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    base: usize,
    per_byte: usize,
}

impl Memory {
    /// `base` in units of 1 024 bytes.
    pub(crate) const fn kib(base: usize, per_byte: usize) -> Self {
        let base = base * 1024;
        Self { base, per_byte }
    }
}

/// A parser with its inputs.
pub(crate) struct Campaign<'a> {
    /// Name of the test.
    name: &'a str,
    grammar: Grammar,
    memory: Memory,
    /// Reads an input and asserts what must hold of the result.
    check: &'a dyn Fn(&[u8]) -> Outcome,
}

/// What a run is asked for, by the environment.
struct Wanted {
    seed: u64,
    first: u64,
    inputs: u64,
}

impl Wanted {
    fn read() -> Self {
        let number = |name: &str, otherwise| {
            let text = std::env::var(name).ok().filter(|text| !text.is_empty());
            text.map_or(otherwise, |text| {
                text.parse()
                    .unwrap_or_else(|error| panic!("{name}={text:?}: {error}; write a number"))
            })
        };
        Self {
            seed: number("FUZZ_SEED", 1),
            first: number("FUZZ_FIRST", 0),
            inputs: number("FUZZ_INPUTS", SHORT),
        }
    }
}

#[derive(Default)]
struct Tally {
    accepted: u64,
    bytes: usize,
    peak: usize,
    slowest: (Duration, u64),
}

impl<'a> Campaign<'a> {
    /// Of a short run that is not narrowed, some inputs must be accepted and some refused: otherwise
    /// it looks at nothing.
    pub(crate) fn run(
        name: &'a str,
        grammar: Grammar,
        memory: Memory,
        check: &'a dyn Fn(&[u8]) -> Outcome,
    ) {
        let campaign = Self { name, grammar, memory, check };
        let wanted = Wanted::read();
        let tree = SeedTree::new(wanted.seed);
        let mut tally = Tally::default();
        for number in wanted.first..wanted.first + wanted.inputs {
            let mut generator = tree.child(&format!("{name}/{number}"));
            let input = campaign.grammar.input(&mut generator);
            campaign.one(&wanted, number, &input, &mut tally);
        }
        let (slowest, number) = tally.slowest;
        println!(
            "{name}: {} inputs, {} accepted, {} MB, at most {} kB held, slowest {slowest:?} (input {number})",
            wanted.inputs,
            tally.accepted,
            tally.bytes / 1_000_000,
            tally.peak / 1_000,
        );
        if wanted.inputs >= SHORT {
            assert!(tally.accepted > 0, "{name}: nothing was accepted");
            assert!(tally.accepted < wanted.inputs, "{name}: nothing was refused");
        }
    }

    fn one(&self, wanted: &Wanted, number: u64, input: &[u8], tally: &mut Tally) {
        let began = Instant::now();
        let guarded = AssertUnwindSafe(|| allocations::peak_of(|| (self.check)(input)));
        let Ok((outcome, peak)) = catch_unwind(guarded) else {
            self.fail(wanted, number, input, "it panicked");
        };
        let most = self.memory.base + self.memory.per_byte * input.len();
        if peak > most {
            let why = format!("{peak} bytes were held, where at most {most} may be");
            self.fail(wanted, number, input, &why);
        }
        tally.slowest = tally.slowest.max((began.elapsed(), number));
        tally.accepted += u64::from(outcome == Outcome::Accepted);
        tally.bytes += input.len();
        tally.peak = tally.peak.max(peak);
    }

    fn fail(&self, wanted: &Wanted, number: u64, input: &[u8], why: &str) -> ! {
        panic!(
            "{name}: input {number} of seed {seed}: {why}\n\
             input: \"{}\"\n\
             again: FUZZ_SEED={seed} FUZZ_FIRST={number} FUZZ_INPUTS=1 cargo test --test fuzz {name} -- --exact",
            input.escape_ascii(),
            name = self.name,
            seed = wanted.seed,
        )
    }
}
