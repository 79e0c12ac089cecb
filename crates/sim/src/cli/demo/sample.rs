//! The picture and the comparison in the documentation.

use std::time::Duration;

use clap::Parser;

use super::comparison::{FixedSearch, Rivals};
use super::view::{Header, picture};
use super::{DemoFlags, play, title};
use crate::documents::check_block;
use crate::pace::Speed;
use crate::world::{World, scenario};
use wva_base::moment::WallTime;

#[tokio::test(start_paused = true)]
async fn the_picture_in_the_docs_is_what_seed_1_shows() {
    let scenario = scenario("fleet").unwrap().with_shipped_settings();
    let header = Header {
        title: title(&scenario, 1, Speed::Times(60.0)),
        kubeconfig: "/tmp/wva-demo-23201.kubeconfig".to_owned(),
        namespace: scenario.namespace.to_owned(),
        page: Some(([127, 0, 0, 1], 38211).into()),
    };
    // An hour, as every play begins at one.
    let world = World::begin(&scenario, 1, WallTime(0)).await.unwrap();
    // Between two frames, once the first model has grown and may shrink.
    tokio::time::sleep(Duration::from_mins(25) + Duration::from_millis(500)).await;
    let frame = world.frame();
    world.end().await;
    let mut fixed = FixedSearch::begin(scenario, 1, WallTime(0));
    fixed.finish();
    let compared = Rivals { fixed, policy: None };
    let lines = picture(&header, &frame, &compared.now());
    // With the line of a rival it has one more.
    assert!(lines.len() < 24, "{}", lines.join("\n"));
    let command = header.command();
    let is_wide = |line: &&String| line.chars().count() > 80 && **line != command;
    assert_eq!(lines.iter().find(is_wide), None);
    // Of the models the first.
    let heads = frame.models.iter().filter_map(|model| {
        let head = format!("{}  ", model.name);
        lines.iter().position(|line| line.starts_with(&head))
    });
    let [_, second, _] = heads.collect::<Vec<usize>>()[..] else {
        panic!("{}", lines.join("\n"));
    };
    let shown = &lines[..second];
    check_block("README.md", "25 minutes in", &shown.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_comparison_in_the_docs_is_what_the_command_prints() {
    let flags = "demo --against keda --duration 1h --speed max --no-page";
    let flags = DemoFlags::try_parse_from(flags.split(' ')).unwrap();
    let summary = play(flags.arguments()).await.unwrap();
    // The others say how fast this machine is.
    let is_lasting = |line: &&str| !line.starts_with("played") && !line.starts_with("scalings");
    let lines: Vec<&str> = summary.lines().filter(is_lasting).collect();
    check_block("docs/demo.md", "seed 1 of `fleet`:", &lines.join("\n"));
}
