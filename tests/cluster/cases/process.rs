//! The process itself: how it ends, how it refuses to start, and kinds that appear while it runs.

use std::time::Duration;

use tokio::time::Instant;

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::{Fault, Result};
use crate::harness::suite::{Case, Cx};
use crate::harness::wait::{eventually, seen};
use crate::harness::world::Setup;

const SOON: Duration = Duration::from_secs(30);
/// Kinds that are not served are looked for again after 2 s, then ever less often.
const DISCOVERED: Duration = Duration::from_mins(1);
/// What a kubelet grants, and a good deal less than it does by default.
const SHUTDOWN: Duration = Duration::from_secs(10);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared("process::ends_when_told_to", ends_when_told_to),
        Case::shared("process::refuses_wrong_settings", refuses_wrong_settings),
        Case::shared(
            "process::names_all_errors_at_once",
            names_all_errors_at_once,
        ),
        Case::with_own_servers(
            "process::kinds_may_appear_late",
            Setup::WithoutOptionalKinds,
            kinds_may_appear_late,
        ),
    ]
}

async fn ends_when_told_to(cx: &Cx) -> Result {
    let controller = Controller::start(cx, &ControllerSpec::scoped(cx)).await?;
    controller.ready().await?;
    let told = Instant::now();
    assert_eq!(controller.stop().await?, Some(0));
    assert!(told.elapsed() < SHUTDOWN, "{:?}", told.elapsed());
    Ok(())
}

/// Awaits the end of a process with an exit code, and returns what it wrote last.
async fn gives_up(controller: Controller, code: i32) -> Result<String> {
    eventually("the process has ended", SOON, async || {
        seen(&controller.server.pid(), &None)
    })
    .await?;
    let text = controller.server.tail(20);
    assert_eq!(controller.stop().await?, Some(code), "{text}");
    Ok(text)
}

async fn refuses_wrong_settings(cx: &Cx) -> Result {
    let spec = ControllerSpec {
        environment: vec![
            ("GLOBAL_OPT_INTERVAL", "soon".to_owned()),
            ("LEADER_ELECT", "perhaps".to_owned()),
        ],
        ..ControllerSpec::scoped(cx)
    };
    let controller = Controller::start(cx, &spec).await?;
    let text = gives_up(controller, 1).await?;
    for (key, value, remedy) in [
        ("GLOBAL_OPT_INTERVAL", "soon", "a duration"),
        ("LEADER_ELECT", "perhaps", "true or false"),
    ] {
        let line = text.lines().find(|line| line.contains(key));
        let line = line.ok_or_else(|| Fault::new(format!("{key} is not named: {text}")))?;
        for part in [value, "environment", remedy] {
            assert!(line.contains(part), "{part:?} is not in {line:?}");
        }
    }
    Ok(())
}

/// Wrong arguments, a file that is not there, a wrong environment and no cluster: what can be mended
/// at once is named at once.
async fn names_all_errors_at_once(cx: &Cx) -> Result {
    let spec = ControllerSpec {
        environment: vec![
            ("LEADER_ELECT", "perhaps".to_owned()),
            ("KUBECONFIG", "/nonexistent/kubeconfig".to_owned()),
        ],
        arguments: vec![
            "--nope".to_owned(),
            "--log-level=loud".to_owned(),
            "--config-file=/nonexistent/file".to_owned(),
        ],
        ..ControllerSpec::scoped(cx)
    };
    let controller = Controller::start(cx, &spec).await?;
    // A flag that does not exist is a matter of usage.
    let text = gives_up(controller, 2).await?;
    for part in ["--nope", "loud", "/nonexistent/file", "perhaps"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    Ok(())
}

async fn kinds_may_appear_late(cx: &Cx) -> Result {
    let kinds = [
        "InferencePool.v1",
        "InferencePool.v1alpha2",
        "ServiceMonitor",
    ];
    let controller = Controller::start(cx, &ControllerSpec::scoped(cx)).await?;
    controller.ready().await?;
    let text = controller.readiness().await?;
    for kind in kinds {
        let line = format!("[!] mirror/{kind}: ");
        assert!(text.contains(&line), "{kind} is seen already: {text}");
    }
    cx.world.define_optional_kinds().await?;
    eventually("each kind is heard from", DISCOVERED, async || {
        let text = controller.readiness().await?;
        for kind in kinds {
            if !text.contains(&format!("[+] mirror/{kind}: heard from")) {
                return Err(Fault::new(text));
            }
        }
        Ok(())
    })
    .await
}
