//! The chart of one scenario: attainment against GPU-hours, and what no policy dominates.

use plotters::drawing::IntoDrawingArea as _;
use plotters::series::LineSeries;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::canvas::{Ink, SvgCanvas, family_ink, marker, svg};
use super::panel::{Panel, Scale, panel, plotted, title};
use super::results::{PolicyLabel, PolicyOutcome, ScenarioResult, Spread};
use super::text::{escape, percent, quantity, tick};

const SIZE: (u32, u32) = (760, 430);

const TITLE: &str = "requests within SLO (a logarithm of the misses), against GPU-hours";

const LEVELS: [f64; 18] = [
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999,
    0.9995, 1.0,
];

const SMALLEST_MISS: f64 = 0.001;

/// The height of an attainment: the logarithm of its misses, since 98 % and 99 % differ as much to
/// a user as 80 % and 90 %.
fn height(attainment: f64) -> f64 {
    -(1.0 - attainment + SMALLEST_MISS).log10()
}

fn attainment_label(height: f64) -> String {
    let attainment = 1.0 + SMALLEST_MISS - 10_f64.powf(-height);
    format!("{} %", tick(attainment * 100.0))
}

struct Reference {
    name: &'static str,
    ink: Ink,
    gpu_hours: f64,
    attainment: f64,
}

fn references(scenario: &ScenarioResult) -> Vec<Reference> {
    let record = &scenario.record;
    let bound = record.clairvoyant.iter().map(|bound| Reference {
        name: "clairvoyant",
        ink: Ink::Clairvoyant,
        gpu_hours: bound.gpu_hours,
        attainment: bound.attainment,
    });
    let fleet = record.best_static.iter().map(|fleet| Reference {
        name: "best static",
        ink: Ink::Static,
        gpu_hours: fleet.gpu_hours,
        attainment: fleet.attainment,
    });
    bound.chain(fleet).collect()
}

struct Point<'a> {
    policy: &'a PolicyLabel,
    outcome: &'a PolicyOutcome,
    attainment: Spread,
}

fn points<'a>(scenario: &'a ScenarioResult, policies: &'a [PolicyLabel]) -> Vec<Point<'a>> {
    let found = policies.iter().zip(&scenario.outcomes);
    let found = found.filter_map(|(policy, outcome)| {
        let outcome = outcome.as_ref()?;
        Some(Point { policy, outcome, attainment: outcome.attainment? })
    });
    found.collect()
}

/// The chart of a scenario; `None` where no policy had a request.
pub(super) fn front_chart(
    scenario: &ScenarioResult,
    policies: &[PolicyLabel],
) -> Result<Option<String>, String> {
    let points = points(scenario, policies);
    if points.is_empty() {
        return Ok(None);
    }
    let references = references(scenario);
    let (x, y) = scales(&points, &references);
    let mut parts = String::new();
    let mut overlay = String::new();
    {
        let root = SvgCanvas::new(&mut parts, SIZE).into_drawing_area();
        let mut panel = panel(&root, &x, &y, true)?;
        title(&root, TITLE, Ink::Label, true)?;
        for (row, reference) in (0_i32..).zip(&references) {
            draw_reference(&mut panel, reference, row, &y, &mut overlay)?;
        }
        draw_front(&mut panel, scenario, &x, &y)?;
        draw_knobs(&mut panel, &points)?;
        for point in &points {
            draw_spread(&mut panel, point)?;
        }
        draw_markers(&panel, &points, &mut overlay);
        plotted(root.present())?;
    }
    parts.push_str(&overlay);
    let label = format!("attainment against GPU-hours on {}", scenario.name);
    Ok(Some(svg(SIZE, &label, &parts)))
}

fn scales(points: &[Point<'_>], references: &[Reference]) -> (Scale, Scale) {
    let spent = points.iter().map(|point| point.outcome.gpu_hours);
    let hours: Vec<f64> = spent
        .flat_map(|spread| [spread.low, spread.high])
        .chain(references.iter().map(|reference| reference.gpu_hours))
        .collect();
    let hours = Spread::of(&hours);
    let (low, high) = hours.map_or((0.0, 1.0), |hours| (hours.low, hours.high));
    let x = Scale::around(low, high, tick);
    let lows = points.iter().map(|point| point.attainment.low);
    let lowest =
        lows.chain(references.iter().map(|reference| reference.attainment)).fold(0.95, f64::min);
    let range = height(lowest) - 0.08..height(1.0) + 0.12;
    // 16 pixels apart, counted from the top.
    let apart = (range.end - range.start) * 16.0 / f64::from(SIZE.1);
    let mut ticks: Vec<f64> = Vec::new();
    for level in LEVELS.into_iter().rev().map(height) {
        let is_apart = ticks.last().is_none_or(|last| last - level >= apart);
        if range.contains(&level) && is_apart {
            ticks.push(level);
        }
    }
    let label = attainment_label;
    (x, Scale { range, ticks, label })
}

fn draw_reference(
    panel: &mut Panel<'_, '_>,
    reference: &Reference,
    row: i32,
    y: &Scale,
    overlay: &mut String,
) -> Result<(), String> {
    let x = reference.gpu_hours;
    let line = [(x, y.range.start), (x, y.range.end)];
    plotted(panel.draw_series(LineSeries::new(line, reference.ink.line())))?;
    let area = panel.plotting_area();
    let share = reference.attainment;
    let text = format!("{} {} h, {} %", reference.name, quantity(x), percent(share));
    let (left, bottom) = area.map_coordinate(&(x, y.range.start));
    let (pixels, _) = area.get_pixel_range();
    let is_left = left < i32::midpoint(pixels.start, pixels.end);
    let (at, h_pos) = if is_left { (left + 5, HPos::Left) } else { (left - 5, HPos::Right) };
    let style = reference.ink.text().pos(Pos::new(h_pos, VPos::Bottom));
    let screen = area.use_screen_coord();
    let (from_left, from_top) = area.get_base_pixel();
    let place = (at - from_left, bottom - 4 - row * 14 - from_top);
    plotted(screen.draw_text(&text, &style, place))?;
    let (x, y) = area.map_coordinate(&(x, height(share)));
    let (class, text) = (reference.ink.class(), escape(&text));
    let part = format!(
        "<path class=\"rf {class}\" d=\"M{} {}l8 8m0-8l-8 8\"><title>{text}</title></path>",
        x - 4,
        y - 4
    );
    overlay.push_str(&part);
    Ok(())
}

/// The stairs below which every policy is dominated.
fn draw_front(
    panel: &mut Panel<'_, '_>,
    scenario: &ScenarioResult,
    x: &Scale,
    y: &Scale,
) -> Result<(), String> {
    let mut stairs = Vec::new();
    let mut level = y.range.start;
    for position in &scenario.front {
        if let Some((attainment, gpu_hours)) = scenario.point(*position) {
            stairs.push((gpu_hours, level));
            level = height(attainment);
            stairs.push((gpu_hours, level));
        }
    }
    stairs.push((x.range.end, level));
    plotted(panel.draw_series(LineSeries::new(stairs, Ink::Front.line())))?;
    Ok(())
}

/// A thin line through the points of one family.
fn draw_knobs(panel: &mut Panel<'_, '_>, points: &[Point<'_>]) -> Result<(), String> {
    let families = points.chunk_by(|one, other| one.policy.family == other.policy.family);
    for family in families.filter(|family| family.len() > 1) {
        let line = family
            .iter()
            .map(|point| (point.outcome.gpu_hours.mean, height(point.attainment.mean)));
        let ink = family.first().map_or(Ink::Label, |point| family_ink(point.policy.family_index));
        plotted(panel.draw_series(LineSeries::new(line, ink.line())))?;
    }
    Ok(())
}

/// A cross from the lowest to the highest of both measures.
fn draw_spread(panel: &mut Panel<'_, '_>, point: &Point<'_>) -> Result<(), String> {
    let ink = family_ink(point.policy.family_index);
    let (hours, share) = (point.outcome.gpu_hours, point.attainment);
    let level = height(share.mean);
    let across = [(hours.low, level), (hours.high, level)];
    let along = [(hours.mean, height(share.low)), (hours.mean, height(share.high))];
    for (spread, line) in [(hours, across), (share, along)] {
        if !spread.is_point() {
            plotted(panel.draw_series(LineSeries::new(line, ink.line())))?;
        }
    }
    Ok(())
}

/// The markers with their tooltips.
fn draw_markers(panel: &Panel<'_, '_>, points: &[Point<'_>], overlay: &mut String) {
    let area = panel.plotting_area();
    for point in points {
        let place = (point.outcome.gpu_hours.mean, height(point.attainment.mean));
        let family = point.policy.family_index;
        let shape = marker(family, area.map_coordinate(&place));
        let (class, text) = (family_ink(family).class(), escape(&tooltip(point)));
        let part = format!("<path class=\"mk {class}\" d=\"{shape}\"><title>{text}</title></path>");
        overlay.push_str(&part);
    }
}

fn tooltip(point: &Point<'_>) -> String {
    let seeds = point.outcome.seeds;
    let shown = |spread: Spread, unit: &str, number: fn(f64) -> String| {
        let range = format!(" ({}–{})", number(spread.low), number(spread.high));
        let range = if seeds > 1 { &*range } else { "" };
        format!("{}{unit}{range}", number(spread.mean))
    };
    let share = shown(point.attainment, " %", percent);
    let hours = shown(point.outcome.gpu_hours, " GPU-hours", quantity);
    format!("{}: {share}, {hours}, seeds: {seeds}", point.policy.name)
}
