//! Why an installation is blind or inert: facts that are read from a cluster or from files, checks that judge them,
//! and findings with a code, an object, a cause and a remedy.

pub(crate) mod checks;
pub(crate) mod facts;
pub(crate) mod finding;
pub mod look;
pub(crate) mod object;
pub(crate) mod observed;
pub mod probe;
pub(crate) mod report;

#[cfg(test)]
mod tests;

pub use self::checks::examine;
pub use self::facts::{Facts, Reading, SeriesFact};
pub use self::finding::{Finding, FindingCode};
pub use self::report::Diagnosis;
