#!/usr/bin/env bash
# Install a wheel where there is nothing of this checkout, and use it: packaging/try.sh dist/twinbed-*.whl
# Nothing is compiled: every dependency must come as a wheel. As root, on x86_64, a small study of containers is run too.
set -eu -o pipefail
wheel=$(realpath "$1")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
unset PYTHONPATH VIRTUAL_ENV
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }
trap 'say "FAILED with $?: $BASH_COMMAND"' ERR

# The first lines of what a command says. Nobody may stop reading before it has ended: that would be an error of the command's.
first() {
  local lines=$1
  shift
  "$@" >said.txt
  head -n "$lines" said.txt
}

say "pip install ${wheel##*/}"
python3 -m venv env
env/bin/pip install -q --only-binary :all: "$wheel"
PATH="$place/env/bin:$PATH"

say "import"
python - <<'CHECK'
import sys
from pathlib import Path

import twinbed
import twinbed._core
from twinbed.study import shipped

place = Path(sys.prefix)
assert Path(twinbed.__file__).is_relative_to(place), twinbed.__file__
assert Path(twinbed._core.__file__).is_relative_to(place), twinbed._core.__file__
assert len(shipped.names()) > 10, shipped.names()
CHECK
twinbed --version
first 1 twinbed plan offload --profile quick
twinbed published audit >audit.txt || [[ $? == 4 ]] # it has findings
tail -n 1 audit.txt

if [[ $EUID -ne 0 || $(uname -m) != x86_64 ]]; then
  say "the wheel is fit for analyses; no study was run, which needs root and x86_64"
  exit 0
fi

say "twinbed setup"
twinbed setup container image --yes
say "twinbed run"
twinbed run offload --profile quick
say "the first verdict"
say "twinbed check"
twinbed check >check.txt || { cat check.txt; exit 1; }
tail -n 2 check.txt
code=0
twinbed compare results/offload-quick -q || code=$?
[[ $code == 0 || $code == 4 || $code == 5 ]] || exit "$code" # equivalent, different, inconclusive
pcap=$(find results/offload-quick -name '*.pcap*' | head -n 1)
first 3 twinbed flows "$pcap"
say "it works"
