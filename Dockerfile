# The build stage runs the script that tests/run runs, nothing else.
FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN tests/stages/build.sh

# The binary and the few libraries of glibc that it names: no shell, no package manager, no root. Not a
# static binary, because a statically linked glibc cannot resolve names without its shared parts.
# Certificate authorities are compiled in.
FROM scratch
COPY --from=build /src/target/image /
USER 65532:65532
EXPOSE 15090
ENTRYPOINT ["/usr/local/bin/redrive"]
CMD ["serve", "--config", "/etc/redrive/config/redrive.yaml"]
