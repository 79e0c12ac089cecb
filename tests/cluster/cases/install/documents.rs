//! The documentation, followed to the letter.

use std::fs;
use std::path::Path;

use crate::harness::fault::{Fault, Result};
use crate::harness::manifest;
use crate::harness::shipping::Shipping;
use crate::harness::suite::Cx;
use crate::harness::tools::repository;

/// What a page has a reader do.
struct Block {
    kind: String,
    text: String,
}

/// The blocks of a page that name a language; what is indented belongs to a list.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        let Some(kind) = line.trim_start().strip_prefix("```") else {
            if let Some(block) = &mut open {
                block.text.push_str(line);
                block.text.push('\n');
            }
            continue;
        };
        match open.take() {
            Some(block) => blocks.push(block),
            None => {
                open = Some(Block { kind: kind.to_owned(), text: String::new() });
            }
        }
    }
    blocks
}

/// Every page, from its first block to its last: commands are run, objects judged by the server.
/// Blocks of plain text are illustrations.
pub(super) async fn can_be_followed(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let mut followed = 0;
    for page in fs::read_to_string(repository().join("tests/documents"))?.lines() {
        for block in blocks(&fs::read_to_string(repository().join(page))?) {
            match block.kind.as_str() {
                "sh" => {
                    let arguments = ["-euo", "pipefail", "-c", &block.text].map(str::to_owned);
                    let ended = shipping.try_run(Path::new("bash"), &arguments, &[]).await?;
                    if !ended.well {
                        return Err(Fault::new(format!("{page}:\n{}{}", block.text, ended.text)));
                    }
                }
                "yaml" => {
                    for mut object in manifest::parse(&block.text, page)? {
                        // A file of `wva plan`, which its own tests read.
                        if object["apiVersion"].is_null() {
                            assert!(page.ends_with("/plan.md"), "{page}");
                            continue;
                        }
                        // Its own namespace may not be there yet.
                        object["metadata"]["namespace"] = cx.namespace.name.clone().into();
                        manifest::dry_run(&cx.world.client, object, None)
                            .await
                            .map_err(|fault| Fault::new(format!("{page}: {}", fault.text())))?;
                    }
                }
                _ => continue,
            }
            followed += 1;
        }
    }
    assert!(followed > 15, "only {followed} blocks");
    Ok(())
}
