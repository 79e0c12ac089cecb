//! Whether answers can be made from what is mirrored.

use std::time::Duration;

use crate::cluster::mirror::Mirror;
use crate::cluster::project::variant::VariantRecord;
use crate::policy::scaler::ScalerKind;
use crate::state::mirrors::Mirrors;
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
        Some(age) if age > BLIND_AFTER => {
            not_visible(format!("the API server has been silent for {} s", age.as_secs()))
        }
        _ => Ok(()),
    }
}

/// Whether VariantAutoscalings are seen, with what says which of them are ours.
pub(super) fn variants_visible(mirrors: &Mirrors, now: Moment) -> Result<(), NotVisible> {
    visible("VariantAutoscalings", &mirrors.variants, now)?;
    if mirrors.scope().watch_namespace.is_none() {
        visible("Namespaces", &mirrors.namespaces, now)?;
    }
    Ok(())
}

/// Whether the object that stands for a variant is seen, of the kinds whose annotations declare variants.
pub(super) fn scaler_visible(
    mirrors: &Mirrors,
    record: &VariantRecord,
    now: Moment,
) -> Result<(), NotVisible> {
    match record.declared_by {
        None => Ok(()),
        Some(ScalerKind::HorizontalPodAutoscaler) => {
            let mirror = &mirrors.horizontal_pod_autoscalers;
            visible("HorizontalPodAutoscalers", mirror, now)
        }
        Some(ScalerKind::ScaledObject) => visible("ScaledObjects", &mirrors.scaled_objects, now),
    }
}
