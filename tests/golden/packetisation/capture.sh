#!/bin/bash
# Real traffic between two network namespaces joined by a bridge in a third: capture.sh OUT NAME OFFLOAD SNAP COMMAND...
# OFFLOAD is on or off: segmentation and receive offload of both ends. The bridge's ports never have any, so what the
# server's end hands over as a super-packet is cut there by the kernel, and what the client's end joins was apart there.
# COMMAND runs in the client's namespace against nginx at 10.9.0.2: /500 (500 bytes), /20k, /300k, /1m, /chunked.txt (gzip, so
# chunked), /put (answers uploads), /slow (100 KB/s).
# Writes NAME-client.pcap, NAME-server.pcap (captures at the two ends), NAME-wire.pcap (the bridge's port to the client),
# NAME.report (what COMMAND printed), NAME.access (nginx: connection, request time, bytes sent, body bytes sent, method,
# status, request length) and NAME.nstat (server kernel's counters) to OUT.
# Needs root, iproute2, nginx, tcpdump, ethtool. Everything is in namespaces of its own and ends with it.
set -eu
if [ "${INSIDE:-}" != 1 ]; then INSIDE=1 exec unshare -n -m -p -f --mount-proc "$0" "$@"; fi
out=$(realpath "$1") name=$2 offload=$3 snap=$4; shift 4
run=$(mktemp -d); chmod 755 "$run"
mkdir -p /run/netns; mount -t tmpfs tmpfs /run/netns
for place in client middle server; do ip netns add $place; ip -n $place link set lo up; done
ip -n middle link add bridge type bridge
ip -n middle link set bridge up
attach() { # namespace address
    ip link add end netns "$1" type veth peer name "to-$1" netns middle
    ip -n middle link set "to-$1" master bridge up
    ip netns exec middle ethtool -K "to-$1" tso off gso off gro off tx off >/dev/null
    ip -n "$1" addr add "$2/24" dev end
    ip -n "$1" link set end up
    ip -n "$1" route replace 10.9.0.0/24 dev end congctl cubic
    ip netns exec "$1" ethtool -K end tx "$offload" >/dev/null
    ip netns exec "$1" ethtool -K end tso "$offload" gso "$offload" gro "$offload" >/dev/null
}
attach client 10.9.0.1
attach server 10.9.0.2
mkdir -p "$run/www"
head -c 500 /dev/zero | tr '\0' x > "$run/www/500"
head -c 307200 /dev/urandom > "$run/www/300k"
head -c 20000 /dev/urandom > "$run/www/20k"
head -c 1048576 /dev/urandom > "$run/www/1m"
seq 20000 > "$run/www/chunked.txt"
cat > "$run/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $run/nginx.pid; error_log $run/error.log; user root;
events { worker_connections 512; }
http {
    log_format short '\$connection \$request_time \$bytes_sent \$body_bytes_sent \$request_method \$status \$request_length';
    access_log $out/$name.access short;
    sendfile on; tcp_nopush ${NOPUSH:-off}; keepalive_requests 100000; client_body_temp_path $run;
    gzip on; gzip_types text/plain;
    server { listen 10.9.0.2:80; root $run/www; client_max_body_size 10m;
        location /put { return 200 "taken\n"; }
        location /slow { limit_rate 100k; alias $run/www/300k; } }
}
CONF
ip netns exec server nginx -c "$run/nginx.conf" & nginx=$!
dump() { # namespace device file
    : > "$run/$3.err"
    ip netns exec "$1" tcpdump -Z root --immediate-mode -B 65536 -s "$snap" -i "$2" -w "$out/$name-$3.pcap" tcp 2> "$run/$3.err" &
    dumps="${dumps:-} $!"
    until grep -q listening "$run/$3.err"; do :; done
}
dump client end client; dump server end server; dump middle to-client wire
until ip netns exec server ss -Hltn | grep -q :80; do :; done
ip netns exec client "$@" > "$out/$name.report" 2>&1 || true
ip netns exec server nstat -az > "$out/$name.nstat"
kill -INT $dumps
wait $dumps || true
grep -h dropped "$run"/*.err | grep -v '^0 ' >&2 || true
kill "$nginx"; wait "$nginx" || true
rm -r "$run"
