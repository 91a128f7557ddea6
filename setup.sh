#!/usr/bin/env bash
# Install what is missing, build, and make the image. Safe to run at any time; with nothing to do it takes a moment.
#   ./setup.sh         what `twinbed run` needs
#   ./setup.sh test    what the tests need besides
# Logs and stamps are in .setup/. Without root everything is done that needs none, and the rest is named.
set -u -o pipefail
cd "$(dirname "$0")" || exit 1
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin:$HOME/.cargo/bin" LC_ALL=C.UTF-8
export CARGO_TERM_COLOR=never UV_PYTHON=.venv/bin/python UV_LINK_MODE=copy PIP_DISABLE_PIP_VERSION_CHECK=1

# What src/twinbed/hosts/packages.py lists for these is installed.
purposes=(container image qemu build)
[[ ${1:-} == test ]] && purposes+=(openvswitch remote rootless background test)

stamps=.setup
probe=src/twinbed/bin/twinbed-probe
target=x86_64-unknown-linux-gnu
built=${CARGO_TARGET_DIR:-target}

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }

# Run a step with its output in a log; say when it starts and ends, and on failure what it said.
step() {
  local name=$1 began=$SECONDS
  shift
  say "$name ..."
  if "$@" >"$stamps/$name.log" 2>&1 </dev/null; then
    say "$name done in $((SECONDS - began)) s"
    return 0
  fi
  say "$name FAILED after $((SECONDS - began)) s; the end of $stamps/$name.log:"
  tail -n 20 "$stamps/$name.log" | sed 's/^/    /'
  return 1
}

# Is the stamp older than any of these files or folders, or missing?
stale() {
  local stamp=$stamps/$1
  shift
  [[ ! -e $stamp || -n $(find "$@" -name __pycache__ -prune -o -type f -newer "$stamp" -print -quit) ]]
}

# A stamp carries the time when its step began: what changes meanwhile makes it stale.
begin() { touch "$stamps/$1.new"; }
finish() { mv "$stamps/$1.new" "$stamps/$1"; }

python() { # the interpreter to make .venv with: 3.11 or newer, able to import what is named
  local candidate
  for candidate in python3.11 python3.12 python3.13 python3.14 python3; do
    "$candidate" -c "import sys, $1; sys.exit(sys.version_info < (3, 11))" 2>/dev/null && echo "$candidate" && return
  done
  return 1
}
able="venv, ensurepip"

# The packages that are missing, on one line.
missing() {
  local any
  any=$(python platform) || { echo python3-venv; return; }
  PYTHONPATH=src PYTHONDONTWRITEBYTECODE=1 "$any" -m twinbed.hosts.packages "${purposes[@]}"
}

install_system() {
  export DEBIAN_FRONTEND=noninteractive
  local apt=(apt-get -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
  "${apt[@]}" update && "${apt[@]}" install --no-install-recommends "$@"
}

install_python() {
  local interpreter
  begin python
  if [[ ! -x .venv/bin/python ]]; then
    interpreter=$(python "$able") || { echo "no Python of 3.11 or newer that can make an environment"; return 1; }
    "$interpreter" -m venv .venv || return 1
  fi
  sed -n '/^uv==/,/[^\\]$/p' constraints.txt >$stamps/uv.txt
  [[ -x .venv/bin/uv ]] || .venv/bin/python -m pip install -q -r $stamps/uv.txt || return 1
  .venv/bin/uv pip install -q --require-hashes --compile-bytecode -r constraints.txt && finish python
}

build_probe() {
  begin probe
  RUSTFLAGS="-C target-feature=+crt-static" cargo build --locked --profile probe -p twinbed-probe --target $target || return 1
  mkdir -p "${probe%/*}"
  # Renamed into place: a running lab may be executing the old one. Left alone where nothing changed: images depend on it.
  if ! cmp -s "$built/$target/probe/twinbed-probe" "$probe"; then
    cp "$built/$target/probe/twinbed-probe" "$probe.new" && mv "$probe.new" "$probe" || return 1
  fi
  finish probe
}

build_preload() {
  begin preload
  cargo build --locked --release -p twinbed-preload && mkdir -p "${probe%/*}" &&
    cp "$built/release/libtwinbed_preload.so" "${probe%/*}/preload.new" &&
    mv "${probe%/*}/preload.new" "${probe%/*}/libtwinbed_preload.so" && finish preload
}

build_extension() {
  begin extension
  MATURIN_PEP517_ARGS="--locked" .venv/bin/uv pip install -q --no-deps --no-build-isolation -e . && finish extension
}

build_image() {
  begin image
  PYTHONPATH=src .venv/bin/python -m twinbed.image >"$stamps/image.path" || return 1
  echo "${TWINBED_CACHE:-}:${XDG_CACHE_HOME:-}:$HOME" >$stamps/image.cache
  finish image
}

image_stale() {
  stale image $probe src/twinbed/image src/twinbed/model/nic.py src/twinbed/hosts/cache.py || [[ ! -e $(<"$stamps/image.path")/manifest.json ]] ||
    [[ $(<"$stamps/image.cache") != "${TWINBED_CACHE:-}:${XDG_CACHE_HOME:-}:$HOME" ]]
}

# The YAML language server that tests ask what editors show of a study, and axe-core, which judges pages.
install_editor() {
  begin editor
  npm install --prefix tests/editor --no-audit --no-fund --no-package-lock && finish editor
}

failed=()
mkdir -p $stamps

command -v cargo >/dev/null || { say "no cargo: install a Rust toolchain (https://rustup.rs), then run this again"; exit 1; }
if ! python platform >/dev/null && [[ $EUID -eq 0 ]] && command -v apt-get >/dev/null; then
  step system install_system python3-venv # without a Python nothing tells what else is missing
fi
packages=$(missing) || { say "src/twinbed/hosts/packages.py cannot be asked what is missing"; exit 1; }
[[ -x .venv/bin/python ]] || python "$able" >/dev/null || packages="${packages:+$packages }python3-venv"

system=
if [[ -n $packages ]]; then
  if [[ $EUID -eq 0 ]] && command -v apt-get >/dev/null; then
    # shellcheck disable=SC2086
    step system install_system $packages &
    system=$!
    command -v cc >/dev/null && [[ -e /usr/lib/x86_64-linux-gnu/libc.a ]] || { wait $system || failed+=(system); system=; }
  else
    say "missing, and only root can install it: apt-get install --no-install-recommends $packages"
    failed+=(system)
  fi
fi

building_probe=
if [[ ! -x $probe ]] || stale probe crates/probe crates/core/src/syscall/probe_files.rs Cargo.toml Cargo.lock; then
  step probe build_probe &
  building_probe=$!
fi
if [[ -n $system ]] && ! { [[ -x .venv/bin/python ]] || python "$able" >/dev/null; }; then
  wait $system || failed+=(system)
  system=
fi
if [[ ! -x .venv/bin/python ]] || stale python pyproject.toml constraints.txt; then
  step python install_python || failed+=(python)
fi
if [[ -n $building_probe ]]; then wait $building_probe || failed+=(probe); fi
if [[ -n $system ]]; then wait $system || failed+=(system); fi

building_image=
if [[ -x $probe && ( ${#failed[@]} -eq 0 || $EUID -ne 0 ) ]] && image_stale; then
  step image build_image &
  building_image=$!
fi
if [[ ! -x .venv/bin/twinbed ]] || stale extension crates/core crates/python Cargo.toml Cargo.lock pyproject.toml; then
  step extension build_extension || failed+=(extension)
fi
if stale preload crates/preload Cargo.toml Cargo.lock || [[ ! -e ${probe%/*}/libtwinbed_preload.so ]]; then
  step preload build_preload || failed+=(preload)
fi
if [[ ${1:-} == test ]] && { stale editor tests/editor/package.json || [[ ! -d tests/editor/node_modules ]]; }; then
  step editor install_editor || failed+=(editor)
fi
if [[ -n $building_image ]]; then wait $building_image || failed+=(image); fi

if [[ ${#failed[@]} -gt 0 ]]; then
  say "not ready: ${failed[*]}. Mend what is said above and run this again; what is done stays done."
  exit 1
fi
