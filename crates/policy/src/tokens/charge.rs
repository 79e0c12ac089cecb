//! What waiting requests will hold once they are served.

use super::input::ABSURD;
use crate::capacity::ServingRole;
use crate::engine_args::KvTokens;

/// Tokens that the requests waiting in an engine will hold: their prompts, and their answers where
/// the engine writes them. A mean that is not known adds nothing. Rounded down once.
pub(super) fn waiting_charge(
    role: ServingRole,
    waiting: f64,
    input_tokens: Option<f64>,
    output_tokens: Option<f64>,
) -> KvTokens {
    let written = match role {
        ServingRole::Prefill => 0.0,
        ServingRole::Decode | ServingRole::Both => output_tokens.unwrap_or(0.0),
    };
    let tokens = waiting * (input_tokens.unwrap_or(0.0) + written);
    if waiting > 0.0 && tokens > 0.0 && tokens < ABSURD {
        KvTokens(tokens.floor())
    } else {
        KvTokens::ZERO
    }
}
