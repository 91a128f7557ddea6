#!/usr/bin/env bash
# Build the wheel into dist/, for systems with glibc 2.28 or newer: the extension, the probe and the preload library.
# Needs cargo, a C compiler, libc.a and Python 3.11 with venv; what else it needs comes into .setup/wheel, pinned by hash.
# The probe knows x86_64 alone. Elsewhere the wheel is for analyses: it has no programs for hosts.
# TARGET is the system that it is for, as Rust names it, where that is not this machine's (packaging/cross.sh).
set -eu -o pipefail
cd "$(dirname "$0")/.."
export PATH="$PATH:$HOME/.cargo/bin" PIP_DISABLE_PIP_VERSION_CHECK=1
GLIBC=2.28
target=${TARGET:-$(uname -m)-unknown-linux-gnu}
built=${CARGO_TARGET_DIR:-target}/$target
programs=src/twinbed/bin
tools=.setup/wheel

if ! cmp -s packaging/constraints.txt $tools/constraints.txt; then
  rm -rf $tools
  python3 -m venv $tools
  $tools/bin/pip install -q --require-hashes -r packaging/constraints.txt
  cp packaging/constraints.txt $tools/
fi
export PATH="$PWD/$tools/bin:$PATH"

rm -rf dist
if [[ $target == x86_64-* ]]; then
  mkdir -p $programs
  RUSTFLAGS="-C target-feature=+crt-static" cargo build --locked --profile probe -p twinbed-probe --target "$target"
  cargo zigbuild --locked --release -p twinbed-preload --target "$target.$GLIBC"
  # Renamed into place: a running lab may be executing the old ones. The probe is left alone where nothing changed.
  put() { cmp -s "$1" "$2" || { cp "$1" "$2.new" && mv "$2.new" "$2"; }; }
  put "$built/probe/twinbed-probe" $programs/twinbed-probe
  put "$built/release/libtwinbed_preload.so" $programs/libtwinbed_preload.so
fi
maturin build --release --locked --zig --compatibility "manylinux_${GLIBC/./_}" --target "$target" --out dist

# maturin looks at the extension alone; this is of every library in the wheel.
auditwheel show dist/*.whl >$tools/audit.txt
grep -q "platform tag: \"manylinux_${GLIBC/./_}_" $tools/audit.txt || { cat $tools/audit.txt; exit 1; }
ls -sh dist
