#!/usr/bin/env bash
# Try a wheel on a new machine with nothing but Python: packaging/clean.sh bookworm dist/twinbed-*.whl
# The machine is a folder with a fresh system of that release, in namespaces of its own; it ends, and goes, with this script.
# Needs root and mmdebstrap, which is given what follows: for a release that it does not know, its archive and its keys, and for a
# wheel of another architecture, which qemu-user-static runs here and arch-test tells mmdebstrap of, its name:
#   packaging/clean.sh noble WHEEL --components=main,universe --keyring=ubuntu-archive-keyring.gpg http://archive.ubuntu.com/ubuntu
#   packaging/clean.sh bookworm WHEEL --architectures=arm64
set -eu -o pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/fresh.sh"

fresh python3-venv "$1" "${@:3}"
mkdir -p "$root/opt/twinbed"
cp "$2" "$(dirname "$0")/try.sh" "$root/opt/twinbed/"
inside /opt/twinbed/try.sh "/opt/twinbed/${2##*/}"
