//! A model whose prompts are read by some servers and answered by others, at zero.

use serde_json::Value;

use super::*;

const PREFILL: &str = "reads";
const DECODE: &str = "writes";

fn sleeping_pair() -> Scenario {
    let half = |name, role| ScenarioVariant { role, replicas: 0, bounds: (0, 4), ..variant(name) };
    let load = rates(&[(Duration::ZERO, 0.0), (MINUTE * 3, 1.0)]);
    let halves = vec![half(PREFILL, ServingRole::Prefill), half(DECODE, ServingRole::Decode)];
    Scenario {
        models: vec![model("m", load.clone(), halves)],
        config: vec![to_zero("default")],
        ..small(load)
    }
}

#[tokio::test(start_paused = true)]
async fn decode_wakes_first_and_prefill_never_alone() {
    let world = begin(&sleeping_pair()).await;
    until(&world, MINUTE, |frame| desired(frame, DECODE) == Some(0)).await;
    throughout(&world, MINUTE, |frame| {
        assert_eq!((scaled_to(frame, PREFILL), scaled_to(frame, DECODE)), (0, 0));
    })
    .await;
    let mut began = None;
    let mut frames = world.frames.clone();
    while world.frame().totals.answered == 0 {
        frames.changed().await.unwrap();
        let frame = frames.borrow_and_update().clone();
        assert!(frame.seconds < 360.0, "{frame:#?}");
        let (reads, writes) = (desired(&frame, PREFILL), desired(&frame, DECODE));
        if reads > Some(0) {
            assert!(
                ready(&frame, DECODE) > 0,
                "prefill follows a decode that is ready: {frame:#?}"
            );
        }
        if writes > Some(0) {
            began.get_or_insert(reads);
        }
    }
    assert_eq!(began, Some(Some(0)), "decode came first, alone");
    assert_eq!(
        (desired(&world.frame(), PREFILL), desired(&world.frame(), DECODE)),
        (Some(1), Some(1))
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_half_that_is_discovered_later_completes_its_pair() {
    let world = begin(&sleeping_pair()).await;
    let person = Insider::new(world.server.clone(), "person");
    let collection = "/apis/llmd.ai/v1alpha1/namespaces/llm-d/variantautoscalings";
    let object = person.get("variantautoscalings.llmd.ai", "llm-d", PREFILL).unwrap();
    let object: Value = serde_json::json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"], "spec": object["spec"],
        "metadata": {"name": PREFILL, "labels": object["metadata"]["labels"]},
    });
    let path = format!("{collection}/{PREFILL}");
    person.delete(&path, &serde_json::json!({})).await.unwrap();
    until(&world, MINUTE * 5, |frame| ready(frame, DECODE) == 1).await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!((scaled_to(&world.frame(), PREFILL), world.frame().totals.answered), (0, 0));

    person.create(collection, &object).await.unwrap();
    until(&world, MINUTE * 2, |frame| frame.totals.answered > 0).await;
    assert_eq!(desired(&world.frame(), PREFILL), Some(1));
    world.end().await;
}
