//! The decisions of a `PodAutoscaler`: one object, one target, one count.
//!
//! A manifest ([`object`]) is checked as a whole ([`check`]); annotations tune it ([`tuning`]) and schedules
//! move its bounds ([`schedule`]). What pods report becomes the demand of all of them ([`demand`]), which is
//! averaged over two windows ([`state`]). From the means the strategies derive a count ([`formula`]);
//! [`decide()`] puts it together, and [`hpa`] describes the object that the strategy `HPA` generates. What is
//! shown of it are a [`status`] with its conditions ([`condition`]) and events ([`event`]).

pub mod amounts;
pub mod check;
pub mod claims;
pub mod condition;
pub mod decide;
pub mod demand;
mod draft;
pub mod event;
pub(crate) mod forecast;
pub(crate) mod formula;
pub(crate) mod hpa;
pub mod metric_name;
mod metric_table;
pub mod object;
pub mod page_value;
pub(crate) mod reason;
pub mod record;
pub mod resource_quantity;
pub mod samples;
pub mod schedule;
pub mod source;
pub mod state;
pub mod status;
pub mod storm_service;
pub mod tuning;
mod unread;

pub use decide::{AutoscalerDecision, AutoscalerView, decide};
pub use hpa::GeneratedHpa;
pub use object::PodAutoscalerObject;
pub use reason::AutoscalerStep;
pub use state::AutoscalerState;

#[cfg(test)]
mod tests;
