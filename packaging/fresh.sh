# For scripts beside it: a machine that is a folder with a fresh system, in namespaces of its own. Needs root and mmdebstrap.
#   fresh PACKAGES SUITE ...   makes it in $root; what follows the release is given to mmdebstrap. It goes when the script ends.
#   inside COMMAND ...         runs a command there
# shellcheck shell=bash
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root" "$root.apt"' EXIT

fresh() {
  local packages=$1 suite=$2
  shift 2
  # How this machine reaches servers holds for the new one too.
  apt-config dump --format '%F "%v";%n' Acquire | grep -E '^Acquire::(http|https|Check-|Retries)' >"$root.apt" || true
  mmdebstrap --quiet --variant=minbase --include="apt,ca-certificates,$packages" --aptopt="$root.apt" "$suite" "$root" "$@"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
}

inside() {
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --kill-child --mount-proc bash -eu -c '
    root=$1
    shift
    mount --bind "$root" "$root" # a mount point, as / is on a machine: the image is built among mounts made private from there
    for folder in proc sys dev; do mount --rbind /$folder "$root/$folder"; done
    mount -t tmpfs tmpfs "$root/tmp"
    exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      PIP_DEFAULT_TIMEOUT=180 PIP_CERT=/etc/ssl/certs/ca-certificates.crt "$@"
  ' bash "$root" "$@"
}
