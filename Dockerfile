# The controller's image: one binary, not root.
FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
# A layer of dependencies that is built again only when the manifests change.
COPY Cargo.toml Cargo.lock rust-toolchain.toml ./
COPY tests/allocations tests/allocations
RUN mkdir -p src benches tests/cluster tests/fuzz \
    && echo 'fn main() {}' | tee src/main.rs benches/plan.rs benches/cycle.rs tests/tidy.rs tests/fuzz/main.rs tests/cluster/main.rs \
    && touch src/lib.rs \
    && cargo build --release --locked --no-default-features \
    && rm -rf src
COPY src src
# The placeholder is as new as the sources, and cargo compares times.
RUN touch src/lib.rs src/main.rs && cargo build --release --locked --no-default-features

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
LABEL org.opencontainers.image.title="workload-variant-autoscaler" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /src/target/release/wva /wva
USER 65532:65532
ENTRYPOINT ["/wva", "controller"]
