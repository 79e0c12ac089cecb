//! The loop, closed: load decides replicas, and replicas decide load.
//!
//! The engines share a total of KV cache in equal parts. V1 reads the peak of each over the last
//! minute, takes an engine as saturated from 0.8, grows while the others have less than 0.1 left to
//! that, and shrinks when one fewer would still have it. So a total of `k` rests at the `n` for which
//! `k / n` is at most 0.7 and `k / (n - 1)` is more, as long as old peaks allow.

use std::time::Duration;

use super::servers::stands_on_pages;
use crate::harness::fault::Result;
use crate::harness::scaling_loop::{Beginning, Bound, ScalingLoop};
use crate::harness::suite::{Case, Cx, case};
use crate::harness::wait::seen;
use crate::harness::world::Setup;

/// Wants 4 replicas: 2.5 / 4 is 0.625. With 3 of them, at 0.83, all were saturated, so that their
/// peaks do not count against the fourth.
const LOAD_OF_4: f64 = 2.5;
/// Wants 10 replicas: 6.6 / 10 is 0.66, and on 9 it would be 0.73.
const LOAD_OF_10: f64 = 6.6;
/// Wants 11 replicas, and leaves 10 old peaks of 0.703 and a new one of 0.639: what is spare is
/// 0.103 in the mean. Later all have 0.639, and on 10 they would have 0.703 again.
const LOAD_OF_11_FROM_10: f64 = 7.03;
/// Wants 12 replicas, with peaks of 0.703 and 0.644 in the same way.
const LOAD_OF_12_FROM_11: f64 = 7.73;
/// Wants 11 replicas: 0.638 on 12 fits on 11, as 0.696. A peak of 0.638 that is still there when 11
/// are left does not seem to fit on 10, as it would be 0.702.
const LOAD_OF_11_FROM_12: f64 = 7.66;
/// Long enough for several cycles to see it.
const LOADING: Duration = Duration::from_secs(3);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!(shared, closed_loop::load_grows_a_variant_and_its_end_shrinks_it),
        case!(shared, closed_loop::takes_single_steps),
        case!(with_own_servers(Setup::OldestKubernetes), closed_loop::on_the_oldest_kubernetes),
    ]
}

/// 1 → 4 → 1, a replica at a time, and none while another loads.
async fn load_grows_a_variant_and_its_end_shrinks_it(cx: &Cx) -> Result {
    let scaling = ScalingLoop::start(
        cx,
        Beginning { bound: Bound::Instance, replicas: 1, kv_caches: 0.0, loading: LOADING },
    )
    .await?;
    scaling.set_load(LOAD_OF_4);
    scaling.rests_at(4).await?;
    scaling.replicas_went(&[1, 2, 3, 4]).await?;
    scaling.journal.gauge_went(&[1, 2, 3, 4])?;
    scaling.grew_from_rest()?;
    scaling.journal.takes_single_steps_from_rest(1, 4)?;
    // Each of the three loaded for three seconds, with a cycle in each second.
    seen(&(scaling.journal.cycles_with_pending_replicas() >= 3), &true)?;

    scaling.set_load(0.0);
    scaling.rests_at(1).await?;
    scaling.replicas_went(&[1, 2, 3, 4, 3, 2, 1]).await?;
    scaling.journal.gauge_went(&[1, 2, 3, 4, 3, 2, 1])?;
    scaling.journal.takes_single_steps_from_rest(1, 4)
}

/// The same on servers of the oldest Kubernetes that the pages name.
async fn on_the_oldest_kubernetes(cx: &Cx) -> Result {
    let version = cx.world.client.apiserver_version().await?;
    assert_eq!([version.major.as_str(), &version.minor], ["1", "33"]);
    stands_on_pages(&version)?;
    load_grows_a_variant_and_its_end_shrinks_it(cx).await
}

/// 10 → 11 → 12 → 11: steps of less than the tenth that an HPA ignores by default.
async fn takes_single_steps(cx: &Cx) -> Result {
    let scaling = ScalingLoop::start(
        cx,
        Beginning {
            bound: Bound::Namespace,
            replicas: 10,
            kv_caches: LOAD_OF_10,
            loading: Duration::from_secs(1),
        },
    )
    .await?;
    for (load, replicas) in
        [(LOAD_OF_11_FROM_10, 11), (LOAD_OF_12_FROM_11, 12), (LOAD_OF_11_FROM_12, 11)]
    {
        scaling.set_load(load);
        scaling.rests_at(replicas).await?;
    }
    scaling.replicas_went(&[10, 11, 12, 11]).await?;
    scaling.journal.gauge_went(&[10, 11, 12, 11])?;
    scaling.grew_from_rest()?;
    scaling.journal.takes_single_steps_from_rest(10, 12)
}
