//! The page that shows counts and decisions over time in a browser: one document that needs nothing from outside.

pub(crate) mod film;

use std::fmt::Display;
use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

use crate::policy::plan::Step;
use crate::policy::pod_autoscaler::AutoscalerStep;
use wva_base::moment::WallTime;
use wva_recording::RecordingReader;

const DOCUMENT: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = concat!(include_str!("plot.js"), include_str!("page.js"));

/// The document that asks `/frames` for what it shows.
pub fn live(title: &str) -> String {
    filled(title).replace("<!-- policy -->\n", "").replace("<!-- film -->\n", "")
}

/// A recording as a document.
///
/// # Errors
/// It cannot be read, or has no cycle.
pub(crate) fn document<R: Read>(reader: &mut RecordingReader<R>) -> Result<String, String> {
    let film = film::film(reader)?;
    let shown = serde_json::to_string(&film);
    let shown = shown.map_err(|error| format!("the recording cannot be shown: {error}"))?;
    Ok(recorded("Decisions", &shown))
}

/// The document that shows a film, which is JSON, without asking anything.
pub(crate) fn recorded(title: &str, film: &str) -> String {
    let policy = policy("");
    let policy = format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">");
    // Nothing in it ends the element.
    let film = film.replace('<', "\\u003c");
    let film = format!("<script type=\"application/json\" id=\"film\">{film}</script>");
    filled(title).replacen("<!-- policy -->", &policy, 1).replacen("<!-- film -->", &film, 1)
}

fn filled(title: &str) -> String {
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    DOCUMENT
        .replace("/* title */", &title)
        .replace("/* style */", STYLE)
        .replace("/* script */", SCRIPT)
}

/// The content security policy of [`live`]: only its own script and style, and requests to where it came from.
pub fn live_policy() -> String {
    policy(" connect-src 'self'; frame-ancestors 'none';")
}

fn policy(more: &str) -> String {
    let source = |text: &str| {
        let hash = digest(&SHA256, text.as_bytes());
        format!("'sha256-{}'", STANDARD.encode(hash))
    };
    format!(
        "default-src 'none'; script-src {}; style-src {};{more} img-src data:; base-uri 'none'; form-action 'none'",
        source(SCRIPT),
        source(STYLE),
    )
}

/// A time as pages and commands show it.
pub(crate) fn time(at: WallTime) -> String {
    jiff::Timestamp::from_millisecond(at.0)
        .map_or_else(|_| format!("{} ms", at.0), |at| at.to_string())
}

/// A step of a decision in words.
pub fn step(step: &Step) -> String {
    in_words(step.stage.as_str(), step.from, step.to, &step.why)
}

/// A step of a decision on a `PodAutoscaler` in words.
pub(crate) fn autoscaler_step(step: &AutoscalerStep) -> String {
    in_words(step.stage.as_str(), step.from, step.to, &step.why)
}

fn in_words(stage: &str, from: impl Display, to: impl Display, why: &impl Display) -> String {
    format!("{stage}: {from} → {to}, {why}")
}
