#!/bin/bash
# Five requests at once on one connection, then two more, the last with "Connection: close".
exec 3<>/dev/tcp/10.9.0.2/80
get() { printf 'GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n' "$1" "${2:-}"; }
{ get /500; get /20k; get /none; get /500; get /500; } >&3
head -c 22000 <&3 | wc -c
{ get /500; get /20k $'Connection: close\r\n'; } >&3
wc -c <&3
