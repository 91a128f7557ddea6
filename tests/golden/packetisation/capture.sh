#!/bin/bash
# Real traffic between two network namespaces, captured at both ends: capture.sh OUT NAME OFFLOAD SNAP COMMAND...
# OFFLOAD is on or off (segmentation and receive offloads of both ends). COMMAND runs in the client's namespace against
# nginx at 10.9.0.2: /500 (500 bytes), /1m (1 MiB), /chunked (gzip of text, so no length), /300k.
# Writes OUT/NAME-client.pcap, OUT/NAME-server.pcap, OUT/NAME.report (what COMMAND printed), OUT/NAME.access
# (nginx: request time, bytes sent, body bytes sent, method, status), OUT/NAME.nstat (server kernel's counters).
# Needs root, iproute2, nginx, tcpdump, ethtool. Everything is in namespaces of its own and ends with it.
set -eu
if [ "${INSIDE:-}" != 1 ]; then INSIDE=1 exec unshare -n -m -p -f --mount-proc "$0" "$@"; fi
out=$(realpath "$1") name=$2 offload=$3 snap=$4; shift 4
run=$(mktemp -d); chmod 755 "$run"
mkdir -p /run/netns; mount -t tmpfs tmpfs /run/netns
ip netns add client; ip netns add server
ip link add vc0 netns client type veth peer name vs0 netns server
for end in "client vc0 10.9.0.1" "server vs0 10.9.0.2"; do
    set -- $end -- "$@"
    ip -n "$1" addr add "$3/24" dev "$2"; ip -n "$1" link set lo up; ip -n "$1" link set "$2" up
    ip netns exec "$1" ethtool -K "$2" tso "$offload" gso "$offload" gro "$offload" tx off >/dev/null
    [ "$offload" = off ] || ip netns exec "$1" ethtool -K "$2" tx on tso on gso on gro on >/dev/null
    ip -n "$1" route replace 10.9.0.0/24 dev "$2" congctl cubic
    shift 4
done
mkdir -p "$run/www"
head -c 500 /dev/zero | tr '\0' x > "$run/www/500"
head -c 307200 /dev/urandom > "$run/www/300k"
head -c 1048576 /dev/urandom > "$run/www/1m"
seq 20000 > "$run/www/chunked.txt"
cat > "$run/nginx.conf" <<CONF
daemon off; worker_processes 1; pid $run/nginx.pid; error_log $run/error.log; user root;
events { worker_connections 512; }
http {
    log_format short '\$connection \$request_time \$bytes_sent \$body_bytes_sent \$request_method \$status \$request_length';
    access_log $out/$name.access short;
    sendfile on; keepalive_requests 100000; client_body_temp_path $run; gzip on; gzip_types text/plain;
    server { listen 10.9.0.2:80; root $run/www; client_max_body_size 10m;
        location /put { return 200 "taken\n"; }
        location /slow { limit_rate 100k; alias $run/www/300k; } }
}
CONF
ip netns exec server nginx -c "$run/nginx.conf" & nginx=$!
for end in "client vc0" "server vs0"; do
    set -- $end -- "$@"
    ip netns exec "$1" tcpdump -Z root --immediate-mode -B 65536 -s "$snap" -i "$2" -w "$out/$name-$1.pcap" tcp 2> "$run/$1.err" &
    echo $! > "$run/$1.id"
    shift 3
done
until grep -q listening "$run/client.err" && grep -q listening "$run/server.err" && ip netns exec server ss -Hltn | grep -q :80; do :; done
ip netns exec client "$@" > "$out/$name.report" 2>&1 || true
ip netns exec server nstat -az > "$out/$name.nstat"
kill -INT "$(cat "$run/client.id")" "$(cat "$run/server.id")"
wait "$(cat "$run/client.id")" "$(cat "$run/server.id")" || true
grep -h dropped "$run"/*.err >&2
kill "$nginx"; wait "$nginx" || true
rm -r "$run"
