# For analyses, and for studies of containers where Docker gives all rights:
#   docker build -t twinbed .
#   docker run --rm -v "$PWD:/work" twinbed compare results/quickstart
#   docker run --rm -v "$PWD:/work:ro" --cap-drop=all --user 1000 --network none twinbed report results/quickstart -o - >report.html
#   docker run --rm -v "$PWD:/work" -v twinbed:/var/lib/twinbed --privileged twinbed run offload
# Analyses need no rights, and write no more than tables of results that have none yet and what is asked for (-o).
# The volume keeps the image of hosts, which the first study builds.

FROM rust:1-bookworm AS tools
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3-venv \
 && rm -rf /var/lib/apt/lists/*

FROM tools AS build
WORKDIR /src
COPY . .
RUN packaging/wheel.sh

FROM debian:bookworm-slim
COPY --from=build /src/dist/ /tmp/dist/
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates python3-venv \
 && python3 -m venv /opt/twinbed \
 && /opt/twinbed/bin/pip install --no-cache-dir /tmp/dist/*.whl \
 && /opt/twinbed/bin/twinbed setup container image --yes \
 && rm -rf /tmp/dist /var/lib/apt/lists/*
ENV PATH=/opt/twinbed/bin:$PATH
WORKDIR /work
ENTRYPOINT ["twinbed"]
