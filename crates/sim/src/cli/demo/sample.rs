//! The picture in the documentation.

use std::time::Duration;

use super::comparison::{FixedSearch, Rivals};
use super::title;
use super::view::{Header, picture};
use crate::documents::check_block;
use crate::world::pace::Speed;
use crate::world::{World, scenario};
use wva_base::moment::WallTime;

const COLUMNS: usize = 80;

/// A line as a terminal shows it that does not wrap.
fn cut(line: &str) -> String {
    if line.chars().count() <= COLUMNS {
        return line.to_owned();
    }
    line.chars().take(COLUMNS - 1).chain(['…']).collect()
}

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
    let compared = Rivals {
        fixed,
        policy: None,
    };
    let lines = picture(&header, &frame, &compared.now());
    // Of the models the first.
    let blank = |line: &&String| line.is_empty();
    let others = lines.iter().filter(blank).count();
    assert_eq!(others, 3);
    let end = lines.iter().skip(5).position(String::is_empty).unwrap() + 5;
    let shown: Vec<String> = lines[..end].iter().map(|line| cut(line)).collect();
    check_block("README.md", "25 minutes in", &shown.join("\n"));
}
