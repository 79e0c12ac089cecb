//! Replay of a request trace, read as it is played.

use std::collections::VecDeque;
use std::io::BufRead;
use std::time::Duration;

use jiff::civil::DateTime;
use serde::Deserialize;

use super::Arrival;
use super::rows::{
    AGGREGATE, AIBRIX, AZURE, beginning, fields, lines, quantity, refusal, tokens, wrong,
};
use crate::engine::Prefix;
use crate::number;
use wva_supervise::{Generator, SeedTree};

/// Requests of one time step that are held at once.
const MAX_GROUP: usize = 100_000;
/// The time step of Mooncake's traces, within which arrivals are spread.
const STEP: Duration = Duration::from_secs(3);
/// Tokens behind one id of Mooncake's traces.
const PIECE: u32 = 512;
/// How long the last rate of an aggregate counts, in seconds.
const WINDOW: f64 = 600.0;

fn format(first: &str) -> Result<Format, String> {
    match first {
        AZURE => Ok(Format::Azure(None)),
        AIBRIX => Ok(Format::Aibrix),
        AGGREGATE => Ok(Format::Aggregate),
        json if json.starts_with('{') => Ok(Format::Mooncake),
        other => Err(format!(
            "unknown format, the file begins {:?}; known are CSV files that begin \
             \"{AZURE}\", \"{AIBRIX}\" or \"{AGGREGATE}\", and JSON lines with timestamp, \
             input_length, output_length and hash_ids",
            beginning(other)
        )),
    }
}

#[derive(Debug, Clone, Copy)]
enum Format {
    /// Azure's LLM inference traces; times relative to the first request.
    Azure(Option<DateTime>),
    Aibrix,
    Mooncake,
    /// ServeGen's rates over time.
    Aggregate,
}

#[derive(Debug, Deserialize)]
struct MooncakeLine {
    timestamp: u64,
    input_length: u32,
    output_length: u32,
    #[serde(default)]
    hash_ids: Vec<u64>,
}

/// A line of an aggregate: until the next line, requests come at this rate. Their lengths are spread
/// exponentially, as the file gives means alone.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// Where the next request is drawn from, in seconds.
    at: f64,
    end: f64,
    rate: f64,
    prompt: f64,
    output: f64,
}

impl Window {
    fn draw(&mut self, generator: &mut Generator) -> Option<Arrival> {
        if self.rate <= 0.0 {
            return None;
        }
        self.at += number::exponential(generator) / self.rate;
        let mut spread = |mean: f64| number::rounded(mean * number::exponential(generator)).max(1);
        (self.at < self.end).then(|| Arrival {
            at: number::duration(self.at),
            prompt_tokens: spread(self.prompt),
            output_tokens: spread(self.output),
            prefix: None,
            within: None,
        })
    }
}

/// Requests of a trace in the order of arrival. The first error is the last item.
pub(crate) struct RequestTrace {
    lines: Box<dyn Iterator<Item = Result<(u64, String), String>> + Send>,
    format: Format,
    scale: f64,
    generator: Generator,
    /// What came from the lines read so far.
    ready: VecDeque<Arrival>,
    /// Requests of one time step, to be spread once the next step is known.
    group: Vec<Arrival>,
    window: Option<Window>,
    /// The rate read last, of which the end is not known yet.
    next_window: Option<Window>,
    last: Duration,
    ended: bool,
}

wva_base::debug_of!(RequestTrace: format);

impl RequestTrace {
    /// Finds the format by the first line. `scale` multiplies the rates of a trace that holds rates
    /// instead of requests; the others are played as they are.
    pub(crate) fn open(
        reader: impl BufRead + Send + 'static,
        scale: f64,
        seed: &SeedTree,
    ) -> Result<Self, String> {
        let mut lines: Box<dyn Iterator<Item = _> + Send> = Box::new(lines(reader));
        let (line, first) = match lines.next() {
            None => return Err(refusal(0, "the file holds no requests; give one that does")),
            Some(first) => first?,
        };
        let first = first.trim_start_matches('\u{feff}').to_owned();
        let format = format(&first).map_err(|problem| refusal(line, problem))?;
        if matches!(format, Format::Mooncake) {
            lines = Box::new(std::iter::once(Ok((line, first))).chain(lines));
        }
        Ok(Self {
            lines,
            format,
            scale: if scale.is_finite() { scale.max(0.0) } else { 1.0 },
            generator: seed.child("load/trace"),
            ready: VecDeque::new(),
            group: Vec::new(),
            window: None,
            next_window: None,
            last: Duration::ZERO,
            ended: false,
        })
    }

    fn read(&mut self) -> Result<(), String> {
        let Some(row) = self.lines.next() else {
            self.ended = true;
            self.flush(self.last.saturating_add(STEP));
            self.play(f64::INFINITY);
            return Ok(());
        };
        let (line, text) = row?;
        match self.format {
            Format::Azure(first) => {
                let [time, prompt, output] = fields(line, &text)?;
                let wanted = "a time like 2023-11-16 18:15:46.6805900";
                let parsed: Option<DateTime> = time.parse().ok();
                let time = parsed.ok_or_else(|| wrong(line, "TIMESTAMP", time, wanted))?;
                let origin = first.unwrap_or(time);
                self.format = Format::Azure(Some(origin));
                let at = time.duration_since(origin).try_into().unwrap_or_default();
                let prompt = tokens(line, "ContextTokens", prompt)?;
                self.request(line, at, prompt, tokens(line, "GeneratedTokens", output)?)
            }
            Format::Aibrix => {
                let [time, prompt, output] = fields(line, &text)?;
                let at = number::duration(quantity(line, "t_ms", time)? / 1e3);
                let prompt = tokens(line, "input_tokens", prompt)?;
                self.request(line, at, prompt, tokens(line, "output_tokens", output)?)
            }
            Format::Mooncake => self.mooncake(line, &text),
            Format::Aggregate => self.aggregate(line, &text),
        }
    }

    fn request(&mut self, line: u64, at: Duration, prompt: u32, output: u32) -> Result<(), String> {
        self.forward(line, at)?;
        self.ready.push_back(Arrival {
            at,
            prompt_tokens: prompt,
            output_tokens: output,
            prefix: None,
            within: None,
        });
        Ok(())
    }

    fn forward(&mut self, line: u64, at: Duration) -> Result<(), String> {
        let before = self.last;
        if at < before {
            let problem =
                format!("the time goes back from {before:?} to {at:?}; sort the file by time");
            return Err(refusal(line, problem));
        }
        self.last = at;
        Ok(())
    }

    fn mooncake(&mut self, line: u64, text: &str) -> Result<(), String> {
        let row: Result<MooncakeLine, _> = serde_json::from_str(text);
        let wanted = "an object with timestamp, input_length, output_length and hash_ids";
        let row = row.map_err(|error| refusal(line, format_args!("{error}; give {wanted}")))?;
        let at = Duration::from_millis(row.timestamp);
        if at > self.last {
            self.flush(at);
        }
        self.forward(line, at)?;
        if self.group.len() == MAX_GROUP {
            let problem = format!("more than {MAX_GROUP} requests belong together; split the file");
            return Err(refusal(line, problem));
        }
        self.group.push(Arrival {
            at,
            prompt_tokens: row.input_length.max(1),
            output_tokens: row.output_length.max(1),
            prefix: Some(Prefix { ids: row.hash_ids.into(), tokens_per_id: PIECE }),
            within: None,
        });
        Ok(())
    }

    /// Spreads the requests of one step evenly over it; order stays.
    fn flush(&mut self, next: Duration) {
        let count = u32::try_from(self.group.len().max(1)).unwrap_or(u32::MAX);
        let gap = next.saturating_sub(self.last).min(STEP) / count;
        let mut offset = Duration::ZERO;
        for mut arrival in self.group.drain(..) {
            arrival.at += offset;
            offset += gap;
            self.ready.push_back(arrival);
        }
    }

    fn aggregate(&mut self, line: u64, text: &str) -> Result<(), String> {
        let [time, rate, _, _, prompt, output] = fields(line, text)?;
        let seconds = quantity(line, "t_s", time)?;
        self.forward(line, number::duration(seconds))?;
        let window = Window {
            at: seconds,
            end: seconds + WINDOW,
            rate: quantity(line, "rate_rps", rate)? * self.scale,
            prompt: quantity(line, "mean_input_tokens", prompt)?,
            output: quantity(line, "mean_output_tokens", output)?,
        };
        self.play(seconds);
        self.next_window = Some(window);
        Ok(())
    }

    /// Plays the window read last; it ends at `end` if not earlier.
    fn play(&mut self, end: f64) {
        self.window =
            self.next_window.take().map(|window| Window { end: window.end.min(end), ..window });
    }
}

impl Iterator for RequestTrace {
    type Item = Result<Arrival, String>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let window = self.window.as_mut();
            if let Some(drawn) = window.and_then(|window| window.draw(&mut self.generator)) {
                return Some(Ok(drawn));
            }
            self.window = None;
            if let Some(arrival) = self.ready.pop_front() {
                return Some(Ok(arrival));
            }
            if self.ended {
                return None;
            }
            if let Err(error) = self.read() {
                self.ended = true;
                return Some(Err(error));
            }
        }
    }
}
