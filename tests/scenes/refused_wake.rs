//! A model at zero that gets a request while every GPU is taken.

use std::io::{self, Write};
use std::sync::Mutex;

use super::*;

/// Lines of the log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn count(&self, word: &str) -> usize {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(word)).count()
    }
}

/// A model that holds both GPUs of the node until minute 12, and one at zero that is asked for from
/// minute 3 on.
fn occupied() -> Scenario {
    let holder = ScenarioVariant { replicas: 2, bounds: (1, 2), ..variant("holder") };
    let sleeper = ScenarioVariant { replicas: 0, bounds: (0, 2), ..variant("sleeper") };
    let holding = posed(&[(Duration::ZERO, 0.6, 0.0), (MINUTE * 12, 0.05, 0.0)]);
    let asked = rates(&[(Duration::ZERO, 0.0), (MINUTE * 3, 1.0)]);
    let mut config = policy("enableLimiter: true");
    config.push(to_zero("asked"));
    Scenario {
        nodes: vec![node("h100", 2, H100)],
        models: vec![
            model("holding", holding.clone(), vec![holder]),
            model("asked", asked, vec![sleeper]),
        ],
        config,
        ..small(holding)
    }
}

#[tokio::test(start_paused = true)]
async fn a_wake_without_gpus_is_refused_with_its_reason_until_some_are_free() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let world = begin(&occupied()).await;
    until(&world, MINUTE, |frame| desired(frame, "sleeper") == Some(0)).await;
    tokio::time::sleep(MINUTE).await;
    assert!(!decision(&world, "sleeper").is_refused_wake(), "no request yet");
    assert_eq!(lines.count("wake-refused"), 0);

    until(&world, MINUTE * 3, |frame| frame.models[1].held > 0).await;
    tokio::time::sleep(CYCLE * 3).await;
    stays(&world, MINUTE * 6, "sleeper", 0).await;
    let refused = decision(&world, "sleeper");
    assert!(refused.is_refused_wake(), "{refused:#?}");
    let reason = refused.reason();
    assert!(
        reason.starts_with(
            "wake refused: H100 has 0 free GPUs in inventory[type=H100], one replica takes 1; "
        ),
        "{reason}"
    );
    assert_eq!(lines.count("wake-refused"), 1, "said once, not every cycle");
    let stored = Insider::new(world.server.clone(), "reader");
    let object = stored.get("variantautoscalings.llmd.ai", "llm-d", "sleeper");
    let conditions = object.unwrap()["status"]["conditions"].to_string();
    assert!(conditions.contains("GPUs or quotas refuse a start from zero"), "{conditions}");

    until(&world, MINUTE * 10, |frame| desired(frame, "holder") == Some(1)).await;
    until(&world, MINUTE * 5, |frame| desired(frame, "sleeper") == Some(1)).await;
    until(&world, MINUTE * 2, |frame| frame.totals.answered > 0).await;
    assert_eq!(lines.count("wake-refused"), 1);
    world.end().await;
}
