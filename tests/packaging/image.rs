//! The image: what its build is given, and which steps it takes.

use std::collections::BTreeSet;

use super::{path, text};

/// Arguments of each COPY of the Dockerfile that takes from the checkout.
fn copied() -> Vec<String> {
    let dockerfile = text("Dockerfile");
    let copies = dockerfile.lines().filter_map(|line| line.strip_prefix("COPY "));
    let own = copies.filter(|copy| !copy.starts_with("--from="));
    let sources = own.flat_map(|copy| {
        let mut words: Vec<String> = copy.split_whitespace().map(str::to_owned).collect();
        let target = words.pop();
        assert!(target.is_some() && !words.is_empty(), "COPY {copy}");
        words
    });
    sources.collect()
}

/// What `.dockerignore` lets through: it refuses everything, and names what is needed.
fn let_through() -> Vec<String> {
    let ignored = text(".dockerignore");
    let mut lines = ignored.lines();
    assert_eq!(lines.next(), Some("*"));
    let kept = lines.map(|line| line.strip_prefix('!').unwrap().to_owned());
    kept.collect()
}

#[test]
fn the_build_is_given_what_it_copies() {
    let through = let_through();
    let copied = copied();
    for source in &copied {
        assert!(path(source).exists(), "{source} is copied and not there");
        let is_through =
            through.iter().any(|kept| source == kept || source.starts_with(&format!("{kept}/")));
        assert!(is_through, ".dockerignore holds {source} back");
    }
    for kept in through {
        assert!(copied.contains(&kept), "{kept} is sent and not copied");
    }
}

/// Cargo wants the manifest of every package of the workspace.
#[test]
fn the_build_is_given_every_package() {
    let crates = std::fs::read_dir(path("crates")).unwrap();
    let names = crates.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut packages: BTreeSet<String> = names.map(|name| format!("crates/{name}")).collect();
    packages.insert("tests/allocations".to_owned());
    let copied = copied();
    for package in &packages {
        assert!(
            (copied.iter())
                .any(|source| source.strip_suffix("/Cargo.toml").unwrap_or(source) == package),
            "the Dockerfile does not copy {package}"
        );
    }
}

/// One version of Rust for the image and for everybody else.
#[test]
fn the_image_is_built_with_the_rust_of_the_checkout() {
    let toolchain = text("rust-toolchain.toml");
    let version = toolchain.split_once("channel = \"").unwrap().1;
    let version = version.split('"').next().unwrap();
    assert_eq!(version.split('.').count(), 3, "{version} names no release");
    let base = format!("\nFROM rust:{version}-slim-bookworm AS build\n");
    assert!(text("Dockerfile").contains(&base), "{base}");
}

/// The image is built by the steps of `image/build`, and by no other.
#[test]
fn the_image_takes_the_steps_of_its_script() {
    let dockerfile = text("Dockerfile");
    let runs = dockerfile.lines().filter_map(|line| line.strip_prefix("RUN "));
    let mut called = BTreeSet::new();
    for run in runs {
        let mut words = run.split_whitespace();
        assert_eq!(words.next(), Some("image/build"), "RUN {run}");
        called.insert(words.next().unwrap().to_owned());
    }
    let script = text("image/build");
    let offered: BTreeSet<String> = script
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.strip_suffix(')'))
        .filter(|step| step.chars().all(|letter| letter.is_ascii_lowercase()))
        .map(str::to_owned)
        .collect();
    assert_eq!(called, offered);
    // What the script puts into its folder is what the image starts.
    let out = dockerfile.lines().find(|line| line.contains("--from=build"));
    assert_eq!(out, Some("COPY --from=build /root-of-image/ /"));
    assert!(dockerfile.contains("RUN image/build root /root-of-image\n"));
    assert!(dockerfile.contains("ENTRYPOINT [\"/wva\", \"controller\"]"));
    for file in ["\"$out/wva\"", "\"$out/manager\""] {
        assert!(script.contains(file), "{file}");
    }
    assert!(script.contains("cargo_build --bin wva\n"));
    // What is built without a target is the last stage.
    let last = dockerfile.rsplit("\nFROM ").next().unwrap();
    assert!(last.contains("ENTRYPOINT [\"/wva\", \"controller\"]"));
    assert!(!last.contains("wva-sim"), "{last}");
}
