#!/bin/sh
# A program whose calls the probe counts and strace counts at the same time: make.sh PROBE, as root.
cd "$(dirname "$0")" || exit 1
mkdir -p client
probe=$1 exec unshare -pf --mount-proc sh -c '
    mkfifo said
    "$probe" syscalls count --skip 100 --out client/system-calls.count 2>said &
    read -r _ <said
    strace -f -c -o strace.txt dd if=/dev/zero of=/dev/null bs=1000 count=50 2>/dev/null
    kill -INT $!
    wait $!
    rm said
'
