//! The boundary between no replicas and some: an idle model goes to zero, a model at zero wakes for
//! a request, and a model that must not be at zero keeps a serving set.

mod activity;
mod idle;
mod load;
mod serving_set;
mod wake;
mod wake_log;

pub use activity::{ActivityLog, LOOK, Look};
pub use idle::{ZeroBlock, ZeroMember, ZeroRule, to_zero};
pub use load::{ModelActivity, ModelLoad};
pub use serving_set::{ServingMember, ServingSet, cheapest, cheapest_fitting};
pub(super) use wake::wake_refused;
pub use wake::{Wake, WakeCause, WakeMember, WakeObstacle, wake};
pub use wake_log::{Kept, WakeLog};
