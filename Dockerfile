# The controller's image: one binary under two names, not root, no shell. The steps are those of
# image/build. For several platforms: docker buildx build --platform linux/amd64,linux/arm64
# The target `world` is another image, with the controller in a simulated cluster:
#   docker build --target world --tag wva-sim .
#   docker run --rm --interactive --tty wva-sim
# The version of rust-toolchain.toml, which stays outside: it would have rustup fetch clippy and rustfmt.
FROM rust:1.95.0-slim-bookworm AS build
WORKDIR /src
# A layer of dependencies that is built again only when the manifests change.
COPY Cargo.toml Cargo.lock ./
COPY crates/base/Cargo.toml crates/base/
COPY crates/policy/Cargo.toml crates/policy/
COPY crates/recording/Cargo.toml crates/recording/
COPY crates/settings/Cargo.toml crates/settings/
COPY crates/sim/Cargo.toml crates/sim/
COPY crates/supervise/Cargo.toml crates/supervise/
COPY tests/allocations tests/allocations
COPY image/build image/build
RUN image/build dependencies
COPY crates crates
COPY src src
# The definitions of custom resources are compiled in.
COPY config/crd config/crd
# The commit that `wva --version` shows after the version, if it is given.
ARG WVA_COMMIT
RUN image/build root /root-of-image

# The simulated cluster.
FROM build AS simulation
RUN image/build world /root-of-world

FROM gcr.io/distroless/cc-debian12:nonroot AS world
COPY --from=simulation /root-of-world/ /
USER 65532:65532
ENTRYPOINT ["/wva-sim"]
CMD ["demo"]

# The controller: the C library, certificates, and nothing else.
FROM gcr.io/distroless/cc-debian12:nonroot
ARG VERSION=v0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="workload-variant-autoscaler" \
      org.opencontainers.image.description="Decides how many replicas of which variant serve a large language model" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /root-of-image/ /
USER 65532:65532
# Metrics, probes, external metrics.
EXPOSE 8443 8081 6443
ENTRYPOINT ["/wva", "controller"]
