//! The boundary between no replicas and some: an idle model goes to zero, a model at zero wakes for
//! a request, and a model that must not be at zero keeps a serving set.

mod activity;
mod idle;
mod load;
mod serving_set;
mod wake;
mod wake_log;

pub use activity::ActivityLog;

pub(crate) use activity::Look;
pub(crate) use idle::{Restart, ZeroMember, ZeroRule, to_zero};
pub(crate) use load::{ModelActivity, ModelLoad};
pub(crate) use serving_set::ServingMember;
pub(crate) use wake::{Wake, WakeMember, wake};
pub(crate) use wake_log::{Kept, WakeLog};
