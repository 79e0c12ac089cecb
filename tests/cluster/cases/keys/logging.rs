//! What is logged, and how.

use std::fs;

use serde_json::Value;

use super::{Proof, SOON};
use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::{Fault, Result};
use crate::harness::suite::Cx;
use crate::harness::wait::eventually;

pub(super) fn proofs() -> Vec<Proof> {
    vec![
        Proof::of(&["LOG_FORMAT"], "a_log_line_has_its_form", form),
        Proof::of(&["LOG_LEVEL", "V"], "the_log_is_filtered", level),
        Proof::of(
            &["DECISION_HISTORY_BYTES", "DECISION_RECORD_FILE", "DECISION_RECORD_FILE_BYTES"],
            "decisions_are_recorded_in_a_file",
            record,
        ),
    ]
}

/// The log of a controller with this setting once it leads, and has decided.
async fn log(cx: &Cx, setting: Option<(&'static str, &str)>) -> Result<Vec<String>> {
    // Logs are kept under the controller's name.
    let name = setting.map_or_else(
        || "usual".to_owned(),
        |(key, value)| format!("{key}-{value}").to_lowercase().replace('_', "-"),
    );
    let setting = setting.map(|(key, value)| (key, value.to_owned()));
    let spec = ControllerSpec {
        name: &name,
        environment: setting.into_iter().collect(),
        ..ControllerSpec::scoped(cx)
    };
    let controller = Controller::start_ready(cx, &spec).await?;
    eventually("a decision", SOON, async || {
        let plan = controller.debug("decisions").await?;
        let cycle = plan["cycle"].as_u64().unwrap_or_default();
        if cycle > 1 { Ok(()) } else { Err(Fault::new(format!("{plan}"))) }
    })
    .await?;
    let text = fs::read_to_string(controller.server.log())?;
    controller.crash();
    Ok(text.lines().map(ToOwned::to_owned).collect())
}

fn is_json(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_ok_and(|value| value.is_object())
}

async fn form(cx: &Cx) -> Result {
    for format in [None, Some("json")] {
        let lines = log(cx, format.map(|format| ("LOG_FORMAT", format))).await?;
        assert!(!lines.is_empty() && lines.iter().all(|line| is_json(line)), "{lines:?}");
        let first = lines.first().map_or("", String::as_str);
        for part in ["controller starts", "version", "prometheus", "settings"] {
            assert!(first.contains(part), "{first}");
        }
    }
    let lines = log(cx, Some(("LOG_FORMAT", "text"))).await?;
    assert!(lines.iter().any(|line| line.contains("controller starts")));
    assert!(!lines.iter().any(|line| is_json(line)), "{lines:?}");
    Ok(())
}

async fn level(cx: &Cx) -> Result {
    let levels = async |setting| -> Result<[bool; 2]> {
        let lines = log(cx, setting).await?;
        let level = |name: &str| {
            let field = format!("\"level\":\"{name}\"");
            lines.iter().any(|line| line.contains(&field))
        };
        Ok([level("INFO"), level("DEBUG")])
    };
    assert_eq!(levels(None).await?, [true, false]);
    assert_eq!(levels(Some(("LOG_LEVEL", "error"))).await?, [false, false]);
    assert_eq!(levels(Some(("LOG_LEVEL", "debug"))).await?, [true, true]);
    assert_eq!(levels(Some(("V", "2"))).await?, [true, true]);
    Ok(())
}

/// Decisions are in the file, whose older files are within their bytes, and not in memory.
async fn record(cx: &Cx) -> Result {
    let file = cx.conf("decisions");
    let spec = ControllerSpec {
        name: "recorded",
        environment: vec![
            ("DECISION_HISTORY_BYTES", "0".to_owned()),
            ("DECISION_RECORD_FILE", file.display().to_string()),
            ("DECISION_RECORD_FILE_BYTES", "1048576".to_owned()),
        ],
        ..ControllerSpec::scoped(cx)
    };
    let controller = Controller::start_ready(cx, &spec).await?;
    eventually("a recorded decision", SOON, async || {
        let bytes = fs::read(&file)?;
        let mut reader = wva_recording::RecordingReader::new(&*bytes);
        match reader.next_cycle() {
            Ok(Some(_)) => Ok(()),
            other => Err(Fault::new(format!("{other:?}"))),
        }
    })
    .await?;
    controller.crash();
    Ok(())
}
