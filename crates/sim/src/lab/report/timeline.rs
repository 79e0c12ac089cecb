//! The charts of one run: replicas over arrivals, queue, latency.

use plotters::drawing::IntoDrawingArea as _;
use plotters::element::Rectangle;
use plotters::series::{AreaSeries, LineSeries};

use super::super::record::{ModelSeries, Samples, ScenarioSummary};
use super::canvas::{Ink, SvgCanvas, svg};
use super::downsample::{DecisionMark, Timeline};
use super::panel::{Area, Panel, Scale, broken_line, panel, plotted, ticks, title};
use super::text::{escape, seconds, tick};

const WIDTH: u32 = 760;

/// The lower edges of the panels, in pixels.
const EDGES: [u32; 3] = [196, 300, 436];

const VARIANT_COLOURS: usize = 6;

/// The shortest time to the first token that has a place of its own, in seconds.
const SHORTEST: f64 = 0.01;

/// The length of a run that is labelled in minutes, in seconds.
const IN_MINUTES: f64 = 3.0 * 3600.0;

pub(super) fn variant_number(position: usize) -> u8 {
    u8::try_from(position % VARIANT_COLOURS).unwrap_or(0)
}

pub(super) fn timeline_charts(
    timeline: &Timeline,
    scenario: &ScenarioSummary,
    label: &str,
) -> Result<Vec<(String, String)>, String> {
    let models = timeline.series.models.iter();
    let charts = models.map(|(name, model)| {
        let view = View { at: &timeline.series.at, model, marks: &timeline.marks, scenario };
        let chart = view.chart(&format!("{label}, model {name}"))?;
        Ok((name.clone(), chart))
    });
    charts.collect()
}

struct View<'a> {
    at: &'a [f64],
    model: &'a ModelSeries,
    marks: &'a [DecisionMark],
    scenario: &'a ScenarioSummary,
}

fn largest<'a>(samples: impl IntoIterator<Item = &'a Samples>) -> f64 {
    let values = samples.into_iter().flatten().copied().flatten();
    values.fold(0.0, f64::max)
}

/// The values at the times, once at the start and once at the end of each interval.
fn steps<'a>(at: &'a [f64], samples: &'a Samples) -> impl Iterator<Item = (f64, Option<f64>)> + 'a {
    let ends = at.iter().skip(1).chain(at.last());
    let intervals = at.iter().zip(ends).zip(samples);
    intervals.flat_map(|((start, end), value)| [(*start, *value), (*end, *value)])
}

fn time_scale(at: &[f64]) -> Scale {
    let start = at.first().copied().unwrap_or(0.0);
    let end = at.last().copied().unwrap_or(0.0).max(start + 1.0);
    let steps = [
        10.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 14_400.0, 28_800.0,
        86_400.0, 604_800.0,
    ];
    let length = end - start;
    let step = steps.into_iter().find(|step| length / step <= 10.0);
    let step = step.unwrap_or(length / 10.0);
    let label: fn(f64) -> String = if length <= IN_MINUTES {
        |at| format!("{} min", tick(at / 60.0))
    } else {
        |at| format!("{} h", tick(at / 3600.0))
    };
    Scale { range: start..end, ticks: ticks(start..end, step), label }
}

fn in_seconds(decade: f64) -> String {
    if decade < -0.5 {
        format!("{} ms", tick(10_f64.powf(decade + 3.0)))
    } else {
        format!("{} s", tick(10_f64.powf(decade)))
    }
}

impl View<'_> {
    fn chart(&self, label: &str) -> Result<String, String> {
        let [_, _, height] = EDGES;
        let size = (WIDTH, height);
        let mut parts = String::new();
        let mut overlay = String::new();
        {
            let root = SvgCanvas::new(&mut parts, size).into_drawing_area();
            let [first, second, _] = EDGES;
            let (top, rest) = root.split_vertically(first);
            let (middle, bottom) = rest.split_vertically(second - first);
            let x = time_scale(self.at);
            self.draw_replicas(&top, &x, &mut overlay)?;
            self.draw_queue(&middle, &x)?;
            self.draw_latency(&bottom, &x)?;
            plotted(root.present())?;
        }
        parts.push_str(&overlay);
        Ok(svg(size, label, &parts))
    }

    fn shade(&self, panel: &mut Panel<'_, '_>, x: &Scale, y: &Scale) -> Result<(), String> {
        let end = self.scenario.from.min(x.range.end);
        if end > x.range.start {
            let corners = [(x.range.start, y.range.start), (end, y.range.end)];
            let shade = Rectangle::new(corners, Ink::Unscored.area());
            plotted(panel.draw_series([shade]))?;
        }
        Ok(())
    }

    fn own_marks(&self) -> impl Iterator<Item = (usize, &DecisionMark)> {
        self.marks.iter().filter_map(|mark| {
            let mut names = self.model.variants.keys();
            let position = names.position(|name| *name == mark.decision.variant)?;
            Some((position, mark))
        })
    }

    fn draw_replicas(
        &self,
        area: &Area<'_>,
        x: &Scale,
        overlay: &mut String,
    ) -> Result<(), String> {
        let counts = self.model.variants.values();
        let counts =
            largest(counts.flat_map(|counts| [&counts.desired, &counts.scale, &counts.ready]));
        let targets = self.own_marks().map(|(_, mark)| f64::from(mark.decision.to));
        let y = Scale::of_counts(targets.fold(counts, f64::max));
        let rates = Scale::from_zero(largest([&self.model.arrivals]), 4, tick);
        let mut panel = panel(area, x, &y, false)?;
        self.shade(&mut panel, x, &y)?;
        self.draw_arrivals(area, &mut panel, x, (&y, &rates))?;
        title(area, "replicas", Ink::Label, true)?;
        title(area, "arrivals a second", Ink::ArrivalsLabel, false)?;
        for (position, counts) in self.model.variants.values().enumerate() {
            let number = variant_number(position);
            let lines = [
                (&counts.ready, Ink::Ready(number)),
                (&counts.scale, Ink::Scale(number)),
                (&counts.desired, Ink::Desired(number)),
            ];
            for (samples, ink) in lines {
                broken_line(&mut panel, steps(self.at, samples), ink)?;
            }
        }
        for (position, mark) in self.own_marks() {
            let decision = &mark.decision;
            let at = decision.at.clamp(x.range.start, x.range.end);
            let place = panel.plotting_area().map_coordinate(&(at, f64::from(decision.to)));
            overlay.push_str(&decision_mark(mark, position, place));
        }
        Ok(())
    }

    /// Arrivals behind the replicas, by the scale at the right.
    fn draw_arrivals(
        &self,
        area: &Area<'_>,
        panel: &mut Panel<'_, '_>,
        x: &Scale,
        (y, rates): (&Scale, &Scale),
    ) -> Result<(), String> {
        let factor = y.range.end / rates.range.end;
        let heights = self.model.arrivals.iter();
        let heights = heights.map(|rate| rate.unwrap_or(0.0) * factor);
        let points = self.at.iter().copied().zip(heights);
        let series = AreaSeries::new(points, 0.0, Ink::Arrivals.area());
        plotted(panel.draw_series(series))?;
        let plotting = panel.plotting_area();
        let (left, top) = area.get_base_pixel();
        for rate in &rates.ticks {
            let place = plotting.map_coordinate(&(x.range.end, rate * factor));
            let style = Ink::ArrivalsLabel.text();
            let place = (place.0 + 6 - left, place.1 - 5 - top);
            plotted(area.draw_text(&(rates.label)(*rate), &style, place))?;
        }
        Ok(())
    }

    /// Requests that wait at the router, and on top of them those that wait in servers.
    fn draw_queue(&self, area: &Area<'_>, x: &Scale) -> Result<(), String> {
        let held: Vec<f64> = self.model.held.iter().map(|held| held.unwrap_or(0.0)).collect();
        let total: Vec<f64> = held
            .iter()
            .zip(&self.model.queue)
            .enumerate()
            .map(|(index, (held, queue))| {
                let ready = self.model.variants.values();
                let ready = ready.filter_map(|counts| counts.ready.get(index).copied().flatten());
                held + queue.unwrap_or(0.0) * ready.sum::<f64>()
            })
            .collect();
        let y = Scale::from_zero(total.iter().copied().fold(0.0, f64::max), 3, tick);
        let mut panel = panel(area, x, &y, false)?;
        self.shade(&mut panel, x, &y)?;
        title(area, "requests that wait: held by the router, in servers", Ink::Label, true)?;
        for (values, ink) in [(total, Ink::Waiting), (held, Ink::Held)] {
            if values.iter().any(|value| *value > 0.0) {
                let points = self.at.iter().copied().zip(values);
                plotted(panel.draw_series(AreaSeries::new(points, 0.0, ink.area())))?;
            }
        }
        Ok(())
    }

    fn draw_latency(&self, area: &Area<'_>, x: &Scale) -> Result<(), String> {
        let slo = Some(self.scenario.slo_ttft_seconds).filter(|slo| *slo > 0.0);
        let measured = self.model.ttft_p95.iter().copied().flatten();
        let shown: Vec<f64> = measured.chain(slo).map(|value| value.max(SHORTEST)).collect();
        let lowest = shown.iter().copied().fold(0.1, f64::min);
        let highest = shown.iter().copied().fold(1.0, f64::max);
        let range = lowest.log10() - 0.1..highest.log10() + 0.1;
        let decades = (-2..=6).map(f64::from).filter(|decade| range.contains(decade));
        let y = Scale { range: range.clone(), ticks: decades.collect(), label: in_seconds };
        let mut panel = panel(area, x, &y, true)?;
        self.shade(&mut panel, x, &y)?;
        title(area, "TTFT p95 (logarithmic)", Ink::Label, true)?;
        if let Some(slo) = slo {
            title(area, &format!("SLO {}", seconds(slo)), Ink::Slo, false)?;
            let line = [(x.range.start, slo.log10()), (x.range.end, slo.log10())];
            plotted(panel.draw_series(LineSeries::new(line, Ink::Slo.line())))?;
        }
        let logarithm = |value: f64| value.max(SHORTEST).log10();
        let points = self.at.iter().copied().zip(&self.model.ttft_p95);
        let points = points.map(|(at, value)| (at, value.map(logarithm)));
        broken_line(&mut panel, points, Ink::Latency)
    }
}

fn decision_mark(mark: &DecisionMark, position: usize, (x, y): (i32, i32)) -> String {
    let decision = &mark.decision;
    let others = match mark.others {
        0 => String::new(),
        others => format!(" (and {others} more changes close to it)"),
    };
    let text = format!(
        "{}: {} {} → {}: {}{others}",
        moment(decision.at),
        decision.variant,
        decision.from,
        decision.to,
        decision.why
    );
    let shape = if decision.from > decision.to {
        format!("M{x} {}l-5-8h10z", y + 5)
    } else {
        format!("M{x} {}l5 8h-10z", y - 5)
    };
    let class = Ink::Ready(variant_number(position)).class();
    format!("<path class=\"dc {class}\" d=\"{shape}\"><title>{}</title></path>", escape(&text))
}

pub(super) fn moment(at: f64) -> String {
    let whole = |unit: f64| (at.max(0.0) / unit).floor();
    let (hours, minutes, seconds) = (whole(3600.0), whole(60.0) % 60.0, whole(1.0) % 60.0);
    format!("{hours:.0}:{minutes:02.0}:{seconds:02.0}")
}
