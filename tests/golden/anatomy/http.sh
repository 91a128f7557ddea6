#!/bin/sh
# What tshark 4.0 makes of the requests and answers in Zeek's captures, whole, in the folder given: sh http.sh FOLDER
# Of each packet that ends one: time, stream, ports, whether it is a request, the answer's status, http.time, tcp.analysis.initial_rtt.
cd "$(dirname "$0")" || exit 1
for file in 206_example_a.pcap bro.org.pcap content-range-gap.pcap cooper-grill-dvwa.pcapng get.pcap handshake-reorder.pcap \
    missing-syn.pcap retransmit-timeout.pcapng; do
    tshark -n -r "$1/$file" -o tcp.reassemble_out_of_order:TRUE -Y "http.request or http.response" -T fields -E separator=/t \
        -E occurrence=f -e frame.time_epoch -e tcp.stream -e tcp.srcport -e tcp.dstport -e http.request -e http.response.code \
        -e http.time -e tcp.analysis.initial_rtt >"${file%.pcap*}.http.tsv"
done
