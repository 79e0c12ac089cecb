//! A variant by annotation of its HPA: nothing of ours but the HPA is in the cluster.

use super::*;
use wva::cluster::kinds::WatchedKind;
use wva::roles::Role;

const VARIANT: &str = "/apis/llmd.ai/v1alpha1/namespaces/llm-d/variantautoscalings/v";
const SCALER: &str = "/apis/autoscaling/v2/namespaces/llm-d/horizontalpodautoscalers/v";

/// Low, high from minute 3 to minute 12, and low again.
async fn begin_annotated() -> World {
    let load = [
        (Duration::ZERO, 0.5),
        (MINUTE * 3, 40.0),
        (MINUTE * 12, 0.5),
    ];
    let world = begin(&small(rates(&load))).await;
    let cluster = Insider::new(world.server.clone(), "test");
    cluster.delete(VARIANT, &json!({})).await.unwrap();
    let annotations = json!({"llm-d.ai/managed": "true", "llm-d.ai/model-id": "m"});
    let change = json!({"metadata": {"annotations": annotations}});
    cluster.merge(SCALER, &change).await.unwrap();
    world
}

fn stored(world: &World) -> Option<u32> {
    let cluster = Insider::new(world.server.clone(), "test");
    let scaler = cluster.get("horizontalpodautoscalers.autoscaling", "llm-d", "v")?;
    let count = &scaler["metadata"]["annotations"]["llm-d.ai/desired-replicas"];
    count.as_str()?.parse().ok()
}

/// The counts of the Deployment at each second, with roles that end at some of them.
async fn counts_with_ends(ends: &[(u64, Role)]) -> Vec<u32> {
    let world = begin_annotated().await;
    let mut frames = world.frames.clone();
    let mut counts = Vec::new();
    for second in 0..1_500 {
        frames.changed().await.unwrap();
        let frame = frames.borrow_and_update().clone();
        let variant = &frame.models[0].variants[0];
        counts.push(variant.scaled_to);
        let due = ends.iter().filter(|(at, _)| *at == second);
        for (_, role) in due {
            assert!(world.kill(role), "{role} does not run");
        }
    }
    assert_eq!(stored(&world), Some(1));
    world.end().await;
    counts
}

/// Seconds of the busy time in which the Deployment has what it needs.
const BUSY: std::ops::Range<usize> = 480..720;

#[tokio::test(start_paused = true)]
async fn an_annotated_hpa_follows_and_roles_that_end_lower_nothing() {
    let usual = counts_with_ends(&[]).await;
    let least = *usual[BUSY].iter().min().unwrap();
    assert_eq!((usual.first(), usual.last()), (Some(&1), Some(&1)));
    assert!(least >= 2, "{usual:?}");
    for role in [
        Role::Leadership,
        Role::Emitter,
        Role::StatusWriter,
        Role::Optimizer,
        Role::Variants,
        Role::Watcher(WatchedKind::HorizontalPodAutoscaler),
        Role::Watcher(WatchedKind::VariantAutoscaling),
    ] {
        // While it grows, and in the busy time.
        let ends = [250, 500, 600].map(|at| (at, role.clone()));
        let counts = counts_with_ends(&ends).await;
        let kept = counts[BUSY].iter().min().unwrap();
        assert!(*kept >= least, "{role}: {kept} of {least}");
        assert_eq!(counts.last(), Some(&1), "{role}");
    }
}
