#!/usr/bin/env bash
# Build the wheel for aarch64 on another machine, where rustup has no standard library for it: Debian sid has one.
# It is built in a fresh sid, in a folder that goes with this script, from the files that git knows. Needs root and mmdebstrap.
set -eu -o pipefail
cd "$(dirname "$0")/.."
. packaging/fresh.sh

fresh cargo,gcc,libc6-dev,python3-venv,libstd-rust-dev:arm64 sid --architectures="$(dpkg --print-architecture),arm64"
mkdir "$root/src"
git ls-files -z | tar -c --null --files-from=- | tar -x -C "$root/src"
inside env TARGET=aarch64-unknown-linux-gnu /src/packaging/wheel.sh
rm -rf dist
cp -r "$root/src/dist" .
