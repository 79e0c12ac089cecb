//! A drawing backend of plotters that writes SVG whose colours are classes of a style sheet.
//!
//! The backend of plotters itself writes fixed colours, which suit either a light or a dark page, and
//! one element a line, which makes a report of hundreds of charts too large.

use std::fmt;

use plotters::style::{BLACK, Color, IntoFont as _, ShapeStyle, TextStyle};
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

use super::text::escape;

/// The height of all text, in pixels. The style sheet sets the same.
pub(super) const TEXT: u32 = 11;

#[derive(Clone, Copy, Debug)]
pub(super) enum Ink {
    Label,
    Grid,
    Unscored,
    Arrivals,
    ArrivalsLabel,
    Held,
    Waiting,
    Latency,
    Slo,
    Front,
    Clairvoyant,
    Static,
    Family(u8),
    Desired(u8),
    Scale(u8),
    Ready(u8),
}

impl Ink {
    /// Its class in the style sheet: two letters, or a letter and a digit.
    fn code(self) -> [u8; 2] {
        match self {
            Self::Label => *b"lb",
            Self::Grid => *b"gr",
            Self::Unscored => *b"un",
            Self::Arrivals => *b"ar",
            Self::ArrivalsLabel => *b"al",
            Self::Held => *b"he",
            Self::Waiting => *b"wa",
            Self::Latency => *b"la",
            Self::Slo => *b"sl",
            Self::Front => *b"fr",
            Self::Clairvoyant => *b"cl",
            Self::Static => *b"st",
            Self::Family(number) => [b'f', b'0' + number],
            Self::Desired(number) => [b'd', b'0' + number],
            Self::Scale(number) => [b's', b'0' + number],
            Self::Ready(number) => [b'r', b'0' + number],
        }
    }

    pub(super) fn class(self) -> String {
        class(self.code())
    }

    pub(super) fn text(self) -> TextStyle<'static> {
        let mut style = TextStyle::from(("sans-serif", TEXT).into_font());
        style.color = self.to_backend_color();
        style
    }

    pub(super) fn line(self) -> ShapeStyle {
        ShapeStyle::from(&self)
    }

    pub(super) fn area(self) -> ShapeStyle {
        self.filled()
    }
}

/// Carries the ink through plotters, which knows colours alone.
impl Color for Ink {
    fn to_backend_color(&self) -> BackendColor {
        let [first, second] = self.code();
        BackendColor { alpha: 1.0, rgb: (first, second, INK) }
    }
}

/// The third part of the colour of an ink; other colours are drawn as labels.
const INK: u8 = 7;

fn class(code: [u8; 2]) -> String {
    code.map(char::from).iter().collect()
}

fn class_of(color: BackendColor) -> String {
    match color.rgb {
        (first, second, INK) => class([first, second]),
        _ => Ink::Label.class(),
    }
}

#[derive(Debug)]
pub(super) struct SvgCanvas<'a> {
    out: &'a mut String,
    size: (u32, u32),
    /// The class and the data of the lines that are not yet written: neighbours of one class share
    /// an element.
    lines: (String, String),
}

type Drawn = Result<(), DrawingErrorKind<fmt::Error>>;

impl<'a> SvgCanvas<'a> {
    pub(super) fn new(out: &'a mut String, size: (u32, u32)) -> Self {
        let lines = (String::new(), String::new());
        Self { out, size, lines }
    }

    fn flush(&mut self) {
        let (class, data) = std::mem::take(&mut self.lines);
        if !data.is_empty() {
            self.element(&format!("<path class=\"l {class}\" d=\"{data}\"/>"));
        }
    }

    fn element(&mut self, element: &str) {
        self.out.push_str(element);
    }

    fn stroke(&mut self, points: impl IntoIterator<Item = BackendCoord>, color: BackendColor) {
        if color.alpha == 0.0 {
            return;
        }
        let class = class_of(color);
        if self.lines.0 != class {
            self.flush();
            self.lines.0 = class;
        }
        self.lines.1.push_str(&trace(points));
    }

    fn fill(&mut self, points: impl IntoIterator<Item = BackendCoord>, color: BackendColor) {
        if color.alpha == 0.0 {
            return;
        }
        self.flush();
        let (class, data) = (class_of(color), trace(points));
        self.element(&format!("<path class=\"a {class}\" d=\"{data}z\"/>"));
    }
}

/// Path data through these points, relative and without the points that a straight line passes.
fn trace(points: impl IntoIterator<Item = BackendCoord>) -> String {
    let mut points = points.into_iter();
    let Some((x, y)) = points.next() else {
        return String::new();
    };
    let mut data = format!("M{x} {y}");
    let mut last = (x, y);
    // The step that is not yet written.
    let mut pending = (0, 0);
    for point in points {
        let step = (point.0 - last.0, point.1 - last.1);
        last = point;
        let is_onward = |one: i32, other: i32| one.signum() == other.signum();
        let is_straight = (step.0 == 0 && pending.0 == 0 && is_onward(step.1, pending.1))
            || (step.1 == 0 && pending.1 == 0 && is_onward(step.0, pending.0));
        if is_straight {
            pending = (pending.0 + step.0, pending.1 + step.1);
        } else {
            data.push_str(&step_text(pending));
            pending = step;
        }
    }
    data + &step_text(pending)
}

fn step_text(step: BackendCoord) -> String {
    match step {
        (0, 0) => String::new(),
        (x, 0) => format!("h{x}"),
        (0, y) => format!("v{y}"),
        (x, y) => format!("l{x} {y}"),
    }
}

fn corners(upper_left: BackendCoord, bottom_right: BackendCoord) -> [BackendCoord; 5] {
    let ((left, top), (right, bottom)) = (upper_left, bottom_right);
    [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
}

impl DrawingBackend for SvgCanvas<'_> {
    type ErrorType = fmt::Error;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        self.flush();
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Drawn {
        self.fill(corners((x, y), (x + 1, y + 1)), color);
        Ok(())
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn {
        self.stroke([from, to], style.color());
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        upper_left: BackendCoord,
        bottom_right: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        let corners = corners(upper_left, bottom_right);
        if fill {
            self.fill(corners, style.color());
        } else {
            self.stroke(corners, style.color());
        }
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        self.stroke(path, style.color());
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        vertices: I,
        style: &S,
    ) -> Drawn {
        self.fill(vertices, style.color());
        Ok(())
    }

    fn draw_text<T: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &T,
        (x, y): BackendCoord,
    ) -> Drawn {
        self.flush();
        let anchor = match style.anchor().h_pos {
            HPos::Left => "",
            HPos::Center => " m",
            HPos::Right => " e",
        };
        // From the edge of the box to the base line of the letters.
        let y = match style.anchor().v_pos {
            VPos::Top => y + 9,
            VPos::Center => y + 4,
            VPos::Bottom => y - 2,
        };
        let (class, text) = (class_of(style.color()), escape(text));
        self.element(&format!("<text class=\"{class}{anchor}\" x=\"{x}\" y=\"{y}\">{text}</text>"));
        Ok(())
    }

    fn estimate_text_size<T: BackendTextStyle>(
        &self,
        text: &str,
        _style: &T,
    ) -> Result<(u32, u32), DrawingErrorKind<Self::ErrorType>> {
        let letters = u32::try_from(text.chars().count()).unwrap_or(0);
        Ok((letters * 6, TEXT))
    }
}

pub(super) fn invisible() -> ShapeStyle {
    BLACK.mix(0.0).into()
}

pub(super) fn marker(number: usize, (x, y): BackendCoord) -> String {
    let shapes = [
        format!("M{} {y}a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", x - 4),
        format!("M{} {}h8v8h-8z", x - 4, y - 4),
        format!("M{x} {}l5 9h-10z", y - 5),
        format!("M{x} {}l5 5l-5 5l-5-5z", y - 5),
        format!("M{x} {}l5-9h-10z", y + 5),
        format!("M{} {}h4v-4h3v4h4v3h-4v4h-3v-4h-4z", x - 5, y - 1),
    ];
    let shape = number % shapes.len();
    shapes.get(shape).cloned().unwrap_or_default()
}

/// The number of colours of families; shapes and colours repeat at different lengths.
pub(super) const FAMILY_COLOURS: usize = 10;

pub(super) fn family_ink(family: usize) -> Ink {
    Ink::Family(u8::try_from(family % FAMILY_COLOURS).unwrap_or(0))
}

pub(super) fn svg((width, height): (u32, u32), label: &str, parts: &str) -> String {
    let label = escape(label);
    format!(
        "<svg class=\"chart\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\" aria-label=\"{label}\">{parts}</svg>"
    )
}
