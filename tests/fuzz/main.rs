//! Mutated input for every parser that faces text from outside: none may panic, and none may hold
//! more memory than its input accounts for. One test for each parser.
//!
//! `cargo test --test fuzz` is the short run. `FUZZ_INPUTS` sets the number of inputs of each parser,
//! `FUZZ_SEED` another seed; `docs/development/fuzzing.md` has the rest.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    missing_docs,
    reason = "test code; it reads its own environment, and times nothing but its report"
)]

mod campaign;
mod cluster;
mod engine;
mod mutate;
mod prometheus;
mod router;
mod seeds;
mod serve;
mod settings;
mod snapshot;
mod values;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting(std::alloc::System);
