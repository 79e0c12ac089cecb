//! Frames as text: a picture that is drawn in place, or a line for each thing that changes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use super::comparison::{Comparison, FixedState, RivalFrame};
use crate::world::{Frame, ModelFrame, VariantFrame};
use wva_base::text::bounded;

#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) title: String,
    pub(super) kubeconfig: String,
    pub(super) namespace: String,
    pub(super) page: Option<SocketAddr>,
}

impl Header {
    pub(super) fn first_line(&self) -> String {
        let page = self.page.map(|page| format!("   http://{page}"));
        format!("{}{}", self.title, page.unwrap_or_default())
    }

    pub(super) fn command(&self) -> String {
        let Self { kubeconfig, namespace, .. } = self;
        format!("kubectl --kubeconfig {kubeconfig} -n {namespace} get va,hpa,pods")
    }
}

pub(super) fn clock(seconds: f64) -> String {
    let seconds = Duration::try_from_secs_f64(seconds).unwrap_or_default().as_secs();
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}")
}

fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "–".to_owned())
}

fn percent(share: Option<f64>) -> String {
    or_dash(share.map(|share| format!("{:.1} %", share * 100.0)))
}

fn millis(value: Option<f64>) -> String {
    or_dash(value.map(|value| format!("{value:.0}")))
}

const COLUMNS: &str = "    VARIANT            GPU       COST/H  DESIRED  SCALED  READY  PENDING";

/// Columns of a terminal.
const WIDTH: usize = 80;

/// A picture for a terminal of 80 columns and 24 lines; of its lines only the command may be longer.
pub(super) fn picture(header: &Header, frame: &Frame, compared: &Comparison) -> Vec<String> {
    let totals = &frame.totals;
    let mut lines = vec![
        format!("{}   {}", header.first_line(), clock(frame.seconds)),
        header.command(),
        format!(
            "GPUs {} of {}   {:.2} per hour   SLO {}   scalings {}   Ctrl-C ends",
            frame.gpus_used,
            frame.gpus_total,
            frame.cost_per_hour,
            percent(totals.attainment()),
            totals.scalings,
        ),
        format!("cost {:.2} so far{}", totals.cost, fixed_line(frame.seconds, compared)),
    ];
    lines.extend(frame.faults.last().map(|(at, fault)| fault_line(*at, fault)));
    lines.extend(compared.rival.as_ref().map(|rival| {
        format!(
            "{} under the same load: SLO {}   cost {:.2} so far   scalings {}",
            rival.name,
            percent(rival.totals.attainment()),
            rival.totals.cost,
            rival.totals.scalings,
        )
    }));
    lines.push(COLUMNS.to_owned());
    for model in &frame.models {
        lines.push(load_line(model));
        lines.push(format!("    {}", latency_line(model)));
        lines.extend(model.broken.iter().map(|why| format!("    load ended: {why}")));
        lines.extend(model.variants.iter().flat_map(variant_lines));
    }
    let command = header.command();
    let fitted = lines.into_iter().map(|line| {
        let fits = line == command || line.chars().count() <= WIDTH;
        if fits { line } else { bounded(&line, WIDTH - 1) }
    });
    fitted.collect()
}

fn fault_line(at: f64, fault: &str) -> String {
    format!("{} fault: {fault}", clock(at))
}

fn fixed_line(seconds: f64, compared: &Comparison) -> String {
    match (compared.fixed, compared.fixed_cost(seconds)) {
        (_, Some(cost)) => {
            format!(", {cost:.2} with the smallest fixed fleet that keeps the SLO")
        }
        (FixedState::Impossible, None) => "; no fixed fleet within bounds keeps the SLO".to_owned(),
        (_, None) => "; searching the smallest fixed fleet that keeps the SLO".to_owned(),
    }
}

fn load_line(model: &ModelFrame) -> String {
    format!(
        "{}  {:.1} req/s   held {}   queue {:.1}   KV {:.0} %",
        model.name,
        model.rate,
        model.held,
        model.queue,
        model.kv_usage * 100.0,
    )
}

fn latency_line(model: &ModelFrame) -> String {
    let (first, gap) = model.slo_ms;
    format!(
        "TTFT p95 {} ms (≤ {first:.0})   TPOT p95 {} ms (≤ {gap:.0})   SLO {}",
        millis(model.first_token_p95_ms),
        millis(model.per_token_p95_ms),
        percent(model.attainment),
    )
}

fn variant_lines(variant: &VariantFrame) -> Vec<String> {
    let gpu = format!("{}x{}", variant.accelerator, variant.gpus);
    let desired = or_dash(variant.desired.map(|desired| desired.to_string()));
    let row = format!(
        "    {:<18} {gpu:<8} {:>7.2} {desired:>8} {:>7} {:>6} {:>8}",
        variant.name, variant.cost, variant.scaled_to, variant.ready, variant.pending,
    );
    let decided = !variant.action.is_empty();
    let why = decided.then(|| format!("      {}: {}", variant.action, variant.why));
    [row].into_iter().chain(why).collect()
}

#[derive(Debug, Default)]
pub(super) struct Lines {
    known: BTreeMap<String, (Option<u32>, u32, u32)>,
    summarized: f64,
    ended: BTreeSet<String>,
    faults: usize,
}

const EVERY: f64 = 300.0;

impl Lines {
    pub(super) fn of(&mut self, frame: &Frame) -> Vec<String> {
        let mut lines = Vec::new();
        let time = clock(frame.seconds);
        let faults = frame.faults.iter().skip(self.faults);
        lines.extend(faults.map(|(at, fault)| fault_line(*at, fault)));
        self.faults = frame.faults.len();
        for variant in frame.models.iter().flat_map(|model| &model.variants) {
            let state = (variant.desired, variant.scaled_to, variant.ready);
            let known = self.known.insert(variant.name.clone(), state);
            if known == Some(state) {
                continue;
            }
            let desired = or_dash(variant.desired.map(|desired| desired.to_string()));
            let mut line = format!(
                "{time} {}: desired {desired}, scaled to {}, ready {}, pending {}",
                variant.name, variant.scaled_to, variant.ready, variant.pending
            );
            if known.is_some_and(|known| known.0 != variant.desired) {
                line += &["; ", &*variant.action, ": ", &*variant.why].concat();
            }
            lines.push(line);
        }
        if frame.seconds >= self.summarized + EVERY {
            self.summarized = frame.seconds;
            for model in &frame.models {
                let (load, latency) = (load_line(model), latency_line(model));
                lines.push(format!("{time} {load}   {latency}"));
            }
        }
        for model in &frame.models {
            if let Some(why) = &model.broken
                && self.ended.insert(model.name.clone())
            {
                lines.push(format!("{time} {}: load ended: {why}", model.name));
            }
        }
        lines
    }
}

pub(super) fn summary(
    frame: &Frame,
    compared: &Comparison,
    real: Duration,
    first_scaling: Option<Duration>,
) -> String {
    let totals = &frame.totals;
    let against = |other: f64| (totals.cost / other.max(f64::MIN_POSITIVE) - 1.0) * 100.0;
    let fixed = match (compared.fixed, compared.fixed_cost(frame.seconds)) {
        (_, Some(cost)) => format!(
            "{cost:.2}, least that keeps the SLO in hour one: this is {:+.0} %",
            against(cost)
        ),
        (FixedState::Impossible, None) => "none within bounds keeps the SLO".to_owned(),
        (_, None) => "not searched to the end".to_owned(),
    };
    let mut text = format!(
        "played          {} of virtual time in {:.1} s\n\
         requests        {} came, {} answered, {} refused or lost\n\
         SLO attainment  {}\n\
         GPU-hours       {:.2}, which cost {:.2}\n\
         fixed fleet     {fixed}\n\
         scalings        {}",
        clock(frame.seconds),
        real.as_secs_f64(),
        totals.requests,
        totals.answered,
        totals.failed,
        percent(totals.attainment()),
        totals.gpu_hours,
        totals.cost,
        totals.scalings,
    );
    if let (Some(first), Some(real)) = (totals.first_scaling, first_scaling) {
        // Writing to a string cannot fail.
        let _infallible = write!(
            text,
            ", the first {:.1} s after the start ({} in the world)",
            real.as_secs_f64(),
            clock(first)
        );
    }
    text.push('\n');
    if let Some(RivalFrame { name, totals, .. }) = &compared.rival {
        let _infallible = writeln!(
            text,
            "{name:<15} SLO attainment {}, GPU-hours {:.2}, which cost {:.2}",
            percent(totals.attainment()),
            totals.gpu_hours,
            totals.cost,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Totals;

    fn frame(ready: u32, desired: Option<u32>) -> Frame {
        Frame {
            seconds: 61.0,
            models: vec![ModelFrame {
                name: "m".to_owned(),
                attainment: Some(0.5),
                variants: vec![VariantFrame {
                    name: "v".to_owned(),
                    accelerator: "H100".to_owned(),
                    gpus: 4,
                    desired,
                    ready,
                    action: "up".to_owned(),
                    why: "because".to_owned(),
                    ..VariantFrame::default()
                }],
                ..ModelFrame::default()
            }],
            ..Frame::default()
        }
    }

    fn header() -> Header {
        Header {
            title: "wva-sim demo".to_owned(),
            kubeconfig: "/tmp/k".to_owned(),
            namespace: "ns".to_owned(),
            page: Some(([127, 0, 0, 1], 80).into()),
        }
    }

    #[test]
    fn a_line_comes_for_a_change_only() {
        let mut lines = Lines::default();
        assert_eq!(lines.of(&frame(1, None)).len(), 1);
        assert!(lines.of(&frame(1, None)).is_empty());
        let shown = lines.of(&frame(1, Some(2)));
        assert_eq!(shown, ["00:01:01 v: desired 2, scaled to 0, ready 1, pending 0; up: because"]);
        let mut struck = frame(1, Some(2));
        struck.faults = vec![(61.0, "node h100-0 is lost".to_owned())];
        let fault = "00:01:01 fault: node h100-0 is lost";
        assert_eq!(lines.of(&struck), [fault]);
        assert!(lines.of(&struck).is_empty());
        let compared = Comparison { fixed: FixedState::Searching, rival: None };
        assert!(!picture(&header(), &frame(1, Some(2)), &compared).contains(&fault.to_owned()));
        assert_eq!(picture(&header(), &struck, &compared)[4], fault);
        let mut ended = struck;
        ended.models[0].broken = Some("line 7: no number".to_owned());
        let end = lines.of(&ended);
        assert_eq!(end, ["00:01:01 m: load ended: line 7: no number"]);
        assert!(lines.of(&ended).is_empty());
    }

    #[test]
    fn reasons_are_cut_to_the_terminal() {
        let compared = Comparison::default();
        let last = |why: &str| {
            let mut frame = frame(1, Some(2));
            frame.models[0].variants[0].why = why.to_owned();
            picture(&header(), &frame, &compared).pop().unwrap()
        };
        let whole = format!("      up: {}", "y".repeat(70));
        assert_eq!(last(&"y".repeat(70)), whole);
        let cut = format!("      up: {}…", "y".repeat(69));
        assert_eq!(last(&"y".repeat(71)), cut);
        assert_eq!(cut.chars().count(), WIDTH);
    }

    fn totals(cost: f64) -> Totals {
        Totals {
            requests: 10,
            answered: 8,
            failed: 2,
            good: 5,
            cost,
            scalings: 3,
            first_scaling: Some(45.0),
            ..Totals::default()
        }
    }

    #[test]
    fn pictures_and_summaries_compare_with_a_fixed_fleet_and_a_rule() {
        let frame = Frame { seconds: 1_800.0, totals: totals(50.0), ..Frame::default() };
        let rival =
            RivalFrame { name: "keda-epp".to_owned(), cost_per_hour: 0.0, totals: totals(80.0) };
        let mut compared = Comparison { fixed: FixedState::Searching, rival: Some(rival) };
        for (fixed, line, part) in [
            (
                FixedState::Searching,
                "cost 50.00 so far; searching the smallest fixed fleet that keeps the SLO",
                "fixed fleet     not searched",
            ),
            (
                FixedState::Impossible,
                "cost 50.00 so far; no fixed fleet within bounds keeps the SLO",
                "fixed fleet     none within bounds",
            ),
            (
                FixedState::Found(200.0),
                "cost 50.00 so far, 100.00 with the smallest fixed fleet that keeps the SLO",
                "this is -50 %",
            ),
        ] {
            compared.fixed = fixed;
            let lines = picture(&header(), &frame, &compared);
            assert_eq!(lines[3], line);
            assert_eq!(
                lines[4],
                "keda-epp under the same load: SLO 50.0 %   cost 80.00 so far   scalings 3"
            );
            assert!(lines.iter().all(|line| line.chars().count() <= 80));
            let text = summary(&frame, &compared, Duration::from_mins(1), None);
            let rival = "keda-epp        SLO attainment 50.0 %, GPU-hours 0.00, which cost 80.00\n";
            assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
            for part in ["00:30:00", "SLO attainment  50.0 %", part, rival] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }
}
