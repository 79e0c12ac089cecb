//! The analyzers that vote: which of them look at a model, what they are told of it, and what they
//! say.

mod inputs;
mod load;
mod opinions;
mod selection;
mod throughput_input;

pub(super) use inputs::{Told, occupancy_of, queued_at, told};
pub(super) use load::{load_of, waiting_of};
pub(super) use opinions::{Opinions, liveness, opinions};
pub(super) use selection::{Approach, Chair, approach};

use super::saturation::Listener;
use super::snapshot::{ResolvedTarget, VariantView};
use super::startup::StartOutlook;

/// One model as the analyzers see it: its variants with a resolved target.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) members: &'a [(&'a VariantView, &'a ResolvedTarget)],
    pub(super) listener: Listener<'a>,
    pub(super) outlook: StartOutlook<'a>,
}
