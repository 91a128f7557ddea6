#!/bin/bash
# Every way in which a response ends, on one connection: what capture.sh runs for the captures curl-*.
w='%{method} %{response_code} %{time_pretransfer} %{time_starttransfer} %{time_total} %{size_header} %{size_download} %{size_request} %{size_upload}\n'
u=http://10.9.0.2
head -c 20000 /dev/zero | tr '\0' y > /tmp/upload.$$
exec curl -s -o /dev/null -w "$w" $u/500 --next -s -I -o /dev/null -w "$w" $u/500 \
    --next -s --compressed -o /dev/null -w "$w" $u/chunked.txt \
    --next -s -H 'Expect: 100-continue' --data-binary @/tmp/upload.$$ -o /dev/null -w "$w" $u/put \
    --next -s -o /dev/null -w "$w" $u/none \
    --next -s -z '2037-01-01' -o /dev/null -w "$w" $u/500 \
    --next -s -r 0-19999 -o /dev/null -w "$w" $u/slow
