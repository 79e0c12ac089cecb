//! Whether answers can be made from what is mirrored.

use std::time::Duration;

use crate::cluster::mirror::Mirror;
use wva_base::moment::Moment;

/// A quiet watch is opened anew every 290 s. After a longer silence the present state is unknown, and an answer
/// that is older than that of another replica would make a scaler flap.
const BLIND_AFTER: Duration = Duration::from_mins(6);

/// Objects of a kind that are not known well enough to answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} cannot be seen now: {why}")]
pub(super) struct NotVisible {
    kind: &'static str,
    why: String,
}

/// Returns `Ok` where the content of a mirror can be taken for the present state.
///
/// # Errors
/// When the kind was never listed, or the API server has been silent for long.
pub(super) fn visible<V>(
    kind: &'static str,
    mirror: &Mirror<V>,
    now: Moment,
) -> Result<(), NotVisible> {
    let not_visible = |why| Err(NotVisible { kind, why });
    if !mirror.synced() {
        return not_visible("they have not been listed yet".to_owned());
    }
    match mirror.last_contact().map(|last| now.since(last)) {
        Some(age) if age > BLIND_AFTER => not_visible(format!(
            "the API server has been silent for {} s",
            age.as_secs()
        )),
        _ => Ok(()),
    }
}
