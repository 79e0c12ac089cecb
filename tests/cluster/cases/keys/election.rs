//! Who leads, and for how long.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

use super::{Proof, SOON, owned};
use crate::harness::bridge::Bridge;
use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::{Fault, Result};
use crate::harness::suite::Cx;
use crate::harness::wait::eventually;

/// Requests on the lease have half a retry period.
const RETRY: Duration = Duration::from_millis(400);

pub(super) fn proofs() -> Vec<Proof> {
    vec![
        Proof::of(&["LEADER_ELECTION_ID"], "the_lease_has_its_name", name),
        Proof::of(&["LEADER_ELECTION_RETRY_PERIOD"], "the_lease_is_renewed_at_its_pace", pace),
        Proof::of(
            &["LEADER_ELECTION_RENEW_DEADLINE"],
            "a_leader_that_cannot_renew_falls_silent",
            silence,
        ),
    ]
}

/// The only candidate, with these settings.
async fn leader(
    cx: &Cx,
    settings: &[(&'static str, &str)],
    api: Option<u16>,
) -> Result<Controller> {
    let mut environment = vec![("LEADER_ELECT", "true".to_owned())];
    environment.extend(owned(settings));
    let spec = ControllerSpec { environment, api, ..ControllerSpec::scoped(cx) };
    let controller = Controller::start(cx, &spec).await?;
    controller.readiness_has("leadership: leading", SOON).await?;
    Ok(controller)
}

async fn lease(cx: &Cx, name: &str) -> Result<Option<Lease>> {
    let leases: Api<Lease> = cx.system().await?.api();
    Ok(leases.get_opt(name).await?)
}

async fn name(cx: &Cx) -> Result {
    let (usual, own) = ("72dd1cf1.llm-d.ai", "own");
    let controller = leader(cx, &[], None).await?;
    assert!(lease(cx, usual).await?.is_some());
    assert!(lease(cx, own).await?.is_none());
    controller.crash();
    let _controller = leader(cx, &[("LEADER_ELECTION_ID", own)], None).await?;
    assert!(lease(cx, own).await?.is_some());
    Ok(())
}

/// The time from one renewal to the next, as the lease shows it.
async fn gap(cx: &Cx, name: &str) -> Result<Duration> {
    let renewed = async || -> Result<Timestamp> {
        let spec = lease(cx, name).await?.and_then(|lease| lease.spec);
        let time = spec.and_then(|spec| spec.renew_time);
        time.map(|time| time.0).ok_or_else(|| Fault::new("the lease was never renewed"))
    };
    let after = async |last: Timestamp| {
        eventually("a renewal", SOON, async || {
            let next = renewed().await?;
            if next > last { Ok(next) } else { Err(Fault::new(format!("still {next}"))) }
        })
        .await
    };
    let begin = after(renewed().await?).await?;
    let end = after(begin).await?;
    Ok(Duration::try_from(end.duration_since(begin))?)
}

/// The shortest of three times between renewals at one pace, and one at a slower pace.
async fn pace(cx: &Cx) -> Result {
    let mut found = Vec::new();
    for (id, period, number) in [("brisk", "1s", 3), ("calm", "4s", 1)] {
        let settings = [("LEADER_ELECTION_ID", id), ("LEADER_ELECTION_RETRY_PERIOD", period)];
        let controller = leader(cx, &settings, None).await?;
        let mut gaps = Vec::new();
        for _ in 0..number {
            gaps.push(gap(cx, id).await?);
        }
        found.extend(gaps.into_iter().min());
        controller.crash();
    }
    let [brisk, calm] = found[..] else {
        return Err(Fault::new(format!("two paces were measured: {found:?}")));
    };
    assert!(brisk < calm, "{brisk:?} every second, {calm:?} every 4 s");
    Ok(())
}

/// Cut off from the API server, a leader shows what it leads by for as long as its deadline says.
async fn silence(cx: &Cx) -> Result {
    let own = url_port(&cx.world.api.url)?;
    let retry = format!("{}ms", RETRY.as_millis());
    for (deadline, falls_silent) in [("2s", true), ("50s", false)] {
        let bridge = Bridge::to(own).await?;
        let settings = [
            ("LEADER_ELECTION_ID", deadline),
            ("LEADER_ELECTION_RENEW_DEADLINE", deadline),
            ("LEADER_ELECTION_RETRY_PERIOD", retry.as_str()),
        ];
        let controller = leader(cx, &settings, Some(bridge.port)).await?;
        bridge.cut();
        let page = controller.readiness_has("leadership: ", SOON).await?;
        assert!(page.contains("leadership: leading"), "{page}");
        if falls_silent {
            controller.readiness_has("leadership: following", SOON).await?;
        } else {
            // A renewal fails meanwhile.
            controller.readiness_has("[!] write/lease: ", SOON).await?;
            let page = controller.readiness().await?;
            assert!(page.contains("leadership: leading"), "{page}");
        }
        controller.crash();
    }
    Ok(())
}

fn url_port(url: &str) -> Result<u16> {
    let port = url.rsplit(':').next().unwrap_or_default();
    Ok(port.parse()?)
}
