#!/usr/bin/env bash
# Makes the traces of this folder anew (strace 6.1, perf 6.1, trace-cmd 3.1.6; root; tracefs mounted at $TRACEFS).
# perf.data holds the name of the host: run it in `unshare --uts` with one that may be seen.
set -eu
cc -O1 -Wall -o traced traced.c -lpthread
strace -f -ttt -T -o strace-f-ttt-T.txt ./traced
strace -f -ttt -T ./traced 2>strace-stderr.txt
strace -f -Y -o strace-f-Y.txt ./traced
strace -f -tt -o strace-f-tt.txt ./traced
strace -f -y -n -r ./traced 2>strace-f-y-n-r.txt
strace ./traced 2>strace.txt
strace -c -f -o strace-c.summary ./traced
events=(-e raw_syscalls:sys_enter -e raw_syscalls:sys_exit)
perf record -q -o perf.data "${events[@]}" -- ./traced
perf record -q -g -o perf-g.data "${events[@]}" -- ./traced
perf record -q -z -o perf-z.data "${events[@]}" -- ./traced
perf record -q -o - "${events[@]}" -- ./traced >perf-pipe.data
perf script -i perf.data >perf-script.txt
# trace-cmd record needs ftrace_enabled; a private instance does not, and trace-cmd report reads what it recorded.
instance=$TRACEFS/instances/golden$$
mkdir "$instance"
(
  cd "$instance"
  echo 1 >options/event-fork
  echo $BASHPID >set_event_pid
  echo 1 >events/raw_syscalls/enable
  cd "$OLDPWD"
  exec ./traced
)
echo 0 >"$instance/tracing_on"
cat "$instance/trace" >tracefs.txt
raw=()
for cpu in "$instance"/per_cpu/cpu*; do
  raw+=("raw.${cpu##*cpu}")
  dd if="$cpu/trace_pipe_raw" of="${raw[-1]}" bs=4096 iflag=nonblock 2>/dev/null || true
done
rmdir "$instance"
trace-cmd restore -c -t "$TRACEFS" -o head.dat >/dev/null
trace-cmd restore -i head.dat -o whole.dat "${raw[@]}" >/dev/null
trace-cmd report -i whole.dat >trace-cmd.txt 2>/dev/null
rm -f traced head.dat whole.dat "${raw[@]}"
