//! One panel of a chart: its axes, their ticks and labels.

use std::ops::Range;

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters::element::Text;
use plotters::series::LineSeries;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::super::number;
use super::canvas::{Ink, SvgCanvas, invisible};

/// The space for the labels of a vertical axis, in pixels.
const SIDE: u32 = 56;

/// The space for the title above a panel, in pixels.
const TITLE: u32 = 18;

/// The space below a panel, in pixels: half of the lowest label stands in it.
const GAP: u32 = 6;

/// The space for the labels of the horizontal axis, in pixels.
const FOOT: u32 = 18;

pub(super) type Area<'a> = DrawingArea<SvgCanvas<'a>, Shift>;

pub(super) type Coordinates = Cartesian2d<TickedRange, TickedRange>;

pub(super) type Panel<'a, 'b> = ChartContext<'a, SvgCanvas<'b>, Coordinates>;

pub(super) struct TickedRange {
    inner: RangedCoordf64,
    ticks: Vec<f64>,
}

impl Ranged for TickedRange {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.inner.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.inner.range()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Scale {
    pub range: Range<f64>,
    pub ticks: Vec<f64>,
    pub label: fn(f64) -> String,
}

impl Scale {
    /// From 0 to the first tick at or above `highest`.
    pub(super) fn from_zero(highest: f64, about: usize, label: fn(f64) -> String) -> Self {
        let highest = if highest > 0.0 { highest } else { 1.0 };
        let step = step(highest, about);
        let ticks = ticks(0.0..highest + step * 0.999, step);
        let top = ticks.last().copied().unwrap_or(highest).max(step);
        Self { range: 0.0..top * 1.04, ticks, label }
    }

    /// From 0, with whole ticks.
    pub(super) fn of_counts(highest: f64) -> Self {
        let highest = highest.max(1.0);
        let step = step(highest, 5).max(1.0);
        let ticks = ticks(0.0..highest + step * 0.999, step);
        let top = ticks.last().copied().unwrap_or(highest);
        Self { range: 0.0..top * 1.08, ticks, label: super::text::tick }
    }

    /// Around these values, with a margin.
    pub(super) fn around(lowest: f64, highest: f64, label: fn(f64) -> String) -> Self {
        let margin = ((highest - lowest) * 0.06).max(highest.abs() * 0.02).max(0.05);
        let range = (lowest - margin).max(0.0)..highest + margin;
        let step = step(range.end - range.start, 8);
        Self { ticks: ticks(range.clone(), step), range, label }
    }

    fn coordinate(&self) -> TickedRange {
        TickedRange { inner: self.range.clone().into(), ticks: self.ticks.clone() }
    }
}

/// A step of 1, 2 or 5 times a power of ten, for about so many ticks.
fn step(length: f64, about: usize) -> f64 {
    let raw = length / number::length(about.max(1));
    let power = 10_f64.powf(raw.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let enough = steps.into_iter().find(|step| *step >= raw * 0.999);
    enough.unwrap_or(raw)
}

/// The multiples of a step within a range.
pub(super) fn ticks(range: Range<f64>, step: f64) -> Vec<f64> {
    let first = (range.start / step).ceil();
    let all = (0..200_u32).map(|number| (first + f64::from(number)) * step);
    all.take_while(|tick| *tick <= range.end).collect()
}

pub(super) fn plotted<T>(
    result: Result<T, DrawingAreaErrorKind<std::fmt::Error>>,
) -> Result<T, String> {
    result.map_err(|error| format!("cannot draw a chart: {error}"))
}

/// A panel with its grid; the horizontal axis has labels where `has_foot`.
pub(super) fn panel<'a, 'b>(
    area: &'a Area<'b>,
    x: &Scale,
    y: &Scale,
    has_foot: bool,
) -> Result<Panel<'a, 'b>, String> {
    let mut builder = ChartBuilder::on(area);
    builder.margin_top(TITLE).margin_right(SIDE).margin_bottom(GAP);
    builder.y_label_area_size(SIDE);
    builder.x_label_area_size(if has_foot { FOOT } else { 0 });
    let mut panel = plotted(builder.build_cartesian_2d(x.coordinate(), y.coordinate()))?;
    let x_label = |value: &f64| (x.label)(*value);
    let y_label = |value: &f64| (y.label)(*value);
    let mut mesh = panel.configure_mesh();
    mesh.bold_line_style(Ink::Grid.line())
        .light_line_style(invisible())
        .axis_style(Ink::Grid.line())
        .label_style(Ink::Label.text())
        .set_all_tick_mark_size(4)
        .x_label_formatter(&x_label)
        .y_label_formatter(&y_label);
    if !has_foot {
        mesh.x_labels(0);
    }
    plotted(mesh.draw())?;
    Ok(panel)
}

pub(super) fn title(area: &Area<'_>, text: &str, ink: Ink, is_left: bool) -> Result<(), String> {
    let (width, _) = area.dim_in_pixel();
    let right = i32::try_from(width).unwrap_or(0);
    let (x, h_pos) = if is_left { (4, HPos::Left) } else { (right - 4, HPos::Right) };
    let style = ink.text().pos(Pos::new(h_pos, VPos::Top));
    plotted(area.draw(&Text::new(text.to_owned(), (x, 2), style)))
}

/// A line that breaks where a value is absent.
pub(super) fn broken_line(
    panel: &mut Panel<'_, '_>,
    points: impl IntoIterator<Item = (f64, Option<f64>)>,
    ink: Ink,
) -> Result<(), String> {
    let mut part: Vec<(f64, f64)> = Vec::new();
    let mut parts = Vec::new();
    for (x, y) in points {
        match y {
            Some(y) => part.push((x, y)),
            None => parts.push(std::mem::take(&mut part)),
        }
    }
    parts.push(part);
    for part in parts.into_iter().filter(|part| part.len() > 1) {
        plotted(panel.draw_series(LineSeries::new(part, ink.line())))?;
    }
    Ok(())
}
