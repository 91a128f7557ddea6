#!/usr/bin/env bash
# Try a wheel on a new machine with nothing but Python: packaging/clean.sh bookworm dist/twinbed-*.whl
# The machine is a folder with a fresh system of that release, in namespaces of its own; it ends, and goes, with this script.
# Needs root and mmdebstrap, which is given what follows: for a release that it does not know, its archive and its keys:
#   packaging/clean.sh noble WHEEL --components=main,universe --keyring=ubuntu-archive-keyring.gpg http://archive.ubuntu.com/ubuntu
set -eu -o pipefail
suite=$1 wheel=$(realpath "$2")
here=$(realpath "$(dirname "$0")")
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root" "$root.apt"' EXIT

# How this machine reaches servers holds for the new one too.
apt-config dump --format '%F "%v";%n' Acquire | grep -E '^Acquire::(http|https|Check-|Retries)' >"$root.apt" || true
mmdebstrap --quiet --variant=minbase --include=apt,ca-certificates,python3-venv --aptopt="$root.apt" "$suite" "$root" "${@:3}"
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
mkdir -p "$root/opt/twinbed"
cp "$wheel" "$here/try.sh" "$root/opt/twinbed/"

unshare --mount --pid --fork --kill-child --mount-proc bash -eu -c '
  root=$1 wheel=$2
  mount --bind "$root" "$root" # a mount point, as / is on a machine: labs make their mounts private from there
  for folder in proc sys dev; do mount --rbind /$folder "$root/$folder"; done
  mount -t tmpfs tmpfs "$root/tmp"
  exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PIP_DEFAULT_TIMEOUT=180 PIP_CERT=/etc/ssl/certs/ca-certificates.crt /opt/twinbed/try.sh "/opt/twinbed/$wheel"
' bash "$root" "${wheel##*/}"
