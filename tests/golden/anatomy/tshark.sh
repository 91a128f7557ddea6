#!/bin/sh
# Every TCP segment of the captures of ../packetisation as tshark 4.0 sees it: sh tshark.sh
cd "$(dirname "$0")" || exit 1
for name in close curl-full curl-cut keep-bare offload-on-client small-on; do
    tshark -r "../packetisation/$name.pcap" -Y tcp -T fields -E separator=/t \
        -e frame.number -e frame.time_epoch -e tcp.stream -e tcp.srcport -e tcp.dstport -e tcp.flags -e tcp.len \
        -e tcp.seq_raw -e tcp.ack_raw -e tcp.analysis.acks_frame -e tcp.analysis.retransmission >"$name.tsv"
done
