#!/bin/sh
# tls-1.2.pcap and tls-1.3.pcap: three requests of curl on one connection, then one on another; both with their keys, so that
# tshark tells which packets hold requests and answers. Needs root: sh tls.sh
cd "$(dirname "$0")" || exit 1
folder=$(mktemp -d)
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$folder/key" -out "$folder/cert" -days 2 -subj /CN=x 2>/dev/null
cat >"$folder/serve.py" <<'P'
import http.server, ssl, sys
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = b"x" * int(self.path[1:])
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 443), Answer)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1] + "/cert", sys.argv[1] + "/key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
P
cat >"$folder/run.sh" <<'P'
folder=$1; version=$2; name=$3
ip link set lo up
python3 "$folder/serve.py" "$folder" 2>/dev/null & server=$!
tcpdump -i lo -s 96 -w "$name.pcap" -U tcp port 443 2>"$folder/tcpdump" & capture=$!
until grep -q listening "$folder/tcpdump"; do sleep 0.1; done
until curl -sk -o /dev/null https://127.0.0.1/1; do sleep 0.1; done
kill -INT $capture; wait $capture
tcpdump -i lo -s 96 -w "$name.pcap" -U tcp port 443 2>"$folder/again" & capture=$!
tcpdump -i lo -w "$folder/whole.pcap" -U tcp port 443 2>"$folder/tcpdump2" & whole=$!
until grep -q listening "$folder/again" && grep -q listening "$folder/tcpdump2"; do sleep 0.1; done
export SSLKEYLOGFILE="$folder/keys"
rm -f "$folder/keys"
curl -sk "--tlsv$version" --tls-max "$version" -o /dev/null https://127.0.0.1/500 -o /dev/null https://127.0.0.1/20000 -o /dev/null https://127.0.0.1/1048576
curl -sk "--tlsv$version" --tls-max "$version" -o /dev/null https://127.0.0.1/100
sleep 1
kill -INT $capture $whole; wait $capture $whole
kill $server
P
for version in 1.2 1.3; do
    name="tls-$version"
    unshare -n sh "$folder/run.sh" "$folder" "$version" "$name"
    # Of each packet that ends a request or an answer: time, ports, raw sequence number, whether it is a request.
    tshark -r "$folder/whole.pcap" -o "tls.keylog_file:$folder/keys" -Y http -T fields -E separator=/t \
        -e frame.time_epoch -e tcp.srcport -e tcp.dstport -e tcp.seq_raw -e http.request -e http.time -e http.content_length \
        >"$name.http.tsv" 2>/dev/null
done
rm -r "$folder"
