//! Logs: one line per event on standard error, as JSON or for people, and panics among them.

use std::io::IsTerminal as _;

use crate::policy::snapshot::CycleId;
use crate::settings::logging::LogFormatSetting;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// The span of what a planning cycle brings about, in whichever role: every line within it carries the
/// number of the cycle.
pub fn in_cycle(cycle: Option<CycleId>) -> tracing::Span {
    cycle.map_or_else(tracing::Span::none, |cycle| tracing::info_span!("cycle", cycle = cycle.0))
}

/// Changes the level while running.
#[derive(Debug, Clone)]
pub struct LevelHandle(reload::Handle<EnvFilter, tracing_subscriber::Registry>);

impl LevelHandle {
    /// Puts `level` (`error`, `warn`, `info`, `debug`, `trace`) in force.
    pub fn set(&self, level: &str) {
        if let Err(error) = self.0.reload(filter(level)) {
            tracing::warn!(%error, level, "log level not changed");
        }
    }
}

/// ractor logs its own life at info, in spans whose field `name` collides with the span's name. The
/// client of the API server logs every request that fails as an error. Its sender logs the cause, with the
/// right severity.
fn filter(level: &str) -> EnvFilter {
    EnvFilter::new(format!(
        "{level},ractor=warn,hyper=warn,kube=warn,kube_client::client=off,tower=warn"
    ))
}

/// Installs the log for the whole process.
///
/// # Errors
/// When one is installed already.
pub fn install(format: LogFormatSetting, level: &str) -> Result<LevelHandle, TryInitError> {
    let (level, handle) = reload::Layer::new(filter(level));
    let registry = tracing_subscriber::registry().with(level);
    match format {
        LogFormatSetting::Json => {
            let layer = fmt::layer()
                .json()
                .flatten_event(true)
                .with_current_span(true)
                .with_span_list(true)
                .with_writer(std::io::stderr);
            registry.with(layer).try_init()?;
        }
        LogFormatSetting::Text => {
            let colours = std::io::stderr().is_terminal();
            registry
                .with(fmt::layer().with_ansi(colours).with_writer(std::io::stderr))
                .try_init()?;
        }
    }
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        let text = panic.payload().downcast_ref::<&str>().copied().map(str::to_owned);
        let text = text.or_else(|| panic.payload().downcast_ref::<String>().cloned());
        tracing::error!(place, text, "panic");
    }));
    Ok(LevelHandle(handle))
}
