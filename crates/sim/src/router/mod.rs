//! The way to the model servers of one pool: an endpoint picker, the queue in which it holds
//! requests while no server can take them, and the series it shows.

mod binding;
mod handover;
mod page;
mod pool;
mod reading;
mod served;
#[cfg(test)]
mod tests;

pub use binding::Binding;
pub(crate) use binding::QueueOrder;
pub use pool::FlowControl;
pub(crate) use pool::{PoolSpec, RouterPool};
pub(crate) use reading::{PoolReading, least};
pub(crate) use served::{Rejection, RequestVerdict, Served};
