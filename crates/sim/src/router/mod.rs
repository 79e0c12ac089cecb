//! The way to the model servers of one pool: an endpoint picker, the queue in which it holds
//! requests while no server can take them, and the series it shows.

mod binding;
mod generation;
mod page;
mod picker;
mod pool;
mod served;
#[cfg(test)]
mod tests;

pub use binding::Binding;
pub use generation::RouterMetricNames;
pub use picker::Weights;
pub(crate) use pool::PoolReading;
pub(crate) use pool::least;
pub use pool::{FlowControl, PoolSpec, RouterPool};
pub(crate) use served::{Rejection, RequestVerdict, Served};
