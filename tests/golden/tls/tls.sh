#!/bin/sh
# Whole packets of TLS connections on loopback with Ethernet's MTU, one file a client, and what tshark 4.0 says of each hello:
# fields.tsv has file, source port or destination port of the client, type, JA3, JA3S, and the fields that JA4 is made of.
# Needs root, openssl, curl, ab, wrk, tcpdump, tshark: sh tls.sh
cd "$(dirname "$0")" || exit 1
folder=$(mktemp -d)
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$folder/key" -out "$folder/cert" -days 2 \
    -subj /CN=x 2>"$folder/made"
cat >"$folder/run.sh" <<'P'
folder=$1
ip link set lo up mtu 1500
# Segments as a wire has them.
ethtool -K lo tso off gso off gro off >"$folder/ethtool" 2>&1
serve() { openssl s_server -quiet -key "$folder/key" -cert "$folder/cert" -port "$1" -www -alpn http/1.1 $2 >"$folder/served" 2>&1 &
    servers="$servers $!"; }
serve 443 ""
serve 444 "-groups X448"
until openssl s_client -connect 127.0.0.1:444 </dev/null >"$folder/tried" 2>&1; do sleep 0.1; done
until openssl s_client -connect 127.0.0.1:443 </dev/null >"$folder/tried" 2>&1; do sleep 0.1; done
record() {
    name=$1
    shift
    tcpdump -i lo --immediate-mode -s 0 -c 60 -w "$name.pcap" -U tcp 2>"$folder/tcpdump" & capture=$!
    until grep -q listening "$folder/tcpdump"; do sleep 0.1; done
    "$@" </dev/null >"$folder/said" 2>&1
    sleep 0.5
    kill -INT $capture 2>"$folder/killed"
    wait $capture
}
record curl curl -sk --connect-to a.example:443:127.0.0.1:443 https://a.example/
record curl-1.2 curl -sk --tls-max 1.2 --http1.0 https://127.0.0.1/
record s-client-1.2 openssl s_client -tls1_2 -cipher ECDHE-ECDSA-AES128-GCM-SHA256 -connect 127.0.0.1:443
record retry openssl s_client -groups X25519:X448 -connect 127.0.0.1:444
record odd-protocol openssl s_client -alpn "$(printf '\001\002h2'),h2" -connect 127.0.0.1:443
# A hello of three segments.
record long openssl s_client -alpn "$(seq -s, 1000 1800)" -connect 127.0.0.1:443
record refused openssl s_client -no_tls1_3 -cipher AES128-SHA -connect 127.0.0.1:443
record ab ab -n 3 https://127.0.0.1/
record wrk wrk -t 1 -c 1 -d 1 https://127.0.0.1:443/
kill $servers
P
unshare -n sh "$folder/run.sh" "$folder"
for file in *.pcap; do
    tshark -r "$file" -Y 'tls.handshake.type == 1 || tls.handshake.type == 2' -T fields -e tcp.srcport -e tcp.dstport \
        -e tls.handshake.type -e tls.handshake.ja3 -e tls.handshake.ja3s -e tls.handshake.version -e tls.handshake.ciphersuite \
        -e tls.handshake.extension.type -e tls.handshake.extensions.supported_version -e tls.handshake.sig_hash_alg \
        -e tls.handshake.extensions_alpn_str | sed "s/^/${file%.pcap}\t/"
done >fields.tsv
rm -r "$folder"
