//! The right to write, as a claim without end grants it.

use wva::cluster::permit::WritePermit;
use wva::state::claim::{Claim, ClaimDuration, ClaimReader};
use wva_supervise::Writer;

/// A permit of this term.
pub(crate) fn permit_of_term(term: u64) -> WritePermit {
    let hold = ClaimDuration::Unlimited;
    let claim = Writer::new(Claim { term, hold });
    ClaimReader::of(&claim).permit_about_itself()
}
