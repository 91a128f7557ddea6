"""Expected values worked out a second time: regular expressions over a case's input and arithmetic, and nothing of twinbed's.

    python tests/golden/formats/second_reading.py FORMAT

writes into each ``expected.json`` of the format the values of ``others`` that it can work out, and how each came about into
``how.md``.  It reads only what the tools' own manuals say that they print, and knows only whole lines; what it cannot read
stays among the ``others``.  It names the numbers that are expected already and that it reads otherwise, and at its end how many
are left.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import second_calls
import second_captures
import second_delays
import second_flows
import second_hosts
import second_iperf3_text
import second_series

HERE = Path(__file__).parent
Sums = dict[str, str]
"""Metric -> arithmetic on numbers as the input has them, such as ``8*200000/0.025``."""
BYTES = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}
SECONDS = {"us": "1e-6", "ms": "1e-3", "s": "1", "m": "60"}


def text(case: Path) -> str:
    (file,) = case.glob("input*")
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.read_text(encoding="utf-8")).replace("\r", "")


def parts(whole: str, begins: str) -> list[str]:
    """From each line that begins a report to the next."""
    starts = [found.start() for found in re.finditer(begins, whole, re.M)]
    return [whole[start:end] for start, end in pairwise([*starts, len(whole)])]


def first(pattern: str, part: str) -> str | None:
    found = re.search(pattern, part, re.M)
    return found[1] if found else None


def ab_text(whole: str) -> Iterator[Sums]:
    for part in parts(
        re.sub(r"^(?:bench_1  \| ?|> ?|    (?=\S|  ))", "", whole, flags=re.M),
        r"^(?:Server Software|Total of .* requests completed)",
    ):
        label = {
            "requests": r"^Complete requests: +(\d+)$",
            "requests_per_second": r"^Requests per second: +(\S+) \[#/sec\] \(mean\)$",
            "time_taken": r"^Time taken for tests: +(\S+) seconds$",
            "transferred_bytes": r"^Total transferred: +(\d+) bytes$",
            "document_transferred_bytes": r"^HTML transferred: +(\d+) bytes$",
            "document_bytes": r"^Document Length: +(\d+) bytes$",
            "concurrency": r"^Concurrency Level: +(\d+)$",
            "failed_requests": r"^Failed requests: +(\d+)$",
            "keep_alive_requests": r"^Keep-Alive requests: +(\d+)$",
            "non_2xx": r"^Non-2xx responses: +(\d+)$",
        }
        sums = {name: found for name, pattern in label.items() if (found := first(pattern, part)) is not None}
        if rate := first(r"^Transfer rate: +(\S+) \[Kbytes/sec\] received$", part):
            sums["transfer_rate"] = f"{rate}*1024"
        requests, taken, at_once = (sums.get(name) for name in ("requests", "time_taken", "concurrency"))
        if requests and taken and at_once:
            sums["time_per_request"] = f"{at_once}*{taken}/{requests}"
            sums["time_between_requests"] = f"{taken}/{requests}"
        if taken and "document_transferred_bytes" in sums:
            sums["goodput"] = f"8*{sums['document_transferred_bytes']}/{taken}"
        # ab leaves out what is 0.
        ended = "Transfer rate:" in part
        if ended:
            sums.setdefault("non_2xx", "0")
            sums["failed_write"] = first(r"^Write errors: +(\d+)$", part) or "0"
        reasons = re.search(r"^   \(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)$", part, re.M)
        for place, name in enumerate(("connect", "receive", "length", "exceptions"), start=1):
            if reasons:
                sums[f"failed_{name}"] = reasons[place]
            elif sums.get("failed_requests") == "0":
                sums[f"failed_{name}"] = "0"
        for stage in ("connect", "processing", "waiting", "total"):
            row = re.search(rf"^ *{stage.title()}: +(\d+) +(\d+) +([\d.]+) +(\d+) +(\d+)$", part, re.M)
            for place, moment in enumerate(("min", "mean", "sd", "median", "max"), start=1):
                if row:
                    sums[f"{stage}_time_{moment}"] = f"{row[place]}*1e-3"
        for percent, ms in re.findall(r"^ +(\d+)% +(\d+)(?: \(longest request\))?$", part, re.M):
            sums[f"total_time_p{percent}"] = f"{ms}*1e-3"
        yield sums


def ab_tsv(whole: str) -> Iterator[Sums]:
    """The columns of ab -g: starttime, seconds, ctime, dtime, ttime, wait, in milliseconds."""
    rows = [[int(cell) for cell in found] for found in re.findall(r"^[^\t\n]+\t\d+\t(\d+)\t(\d+)\t(\d+)\t(\d+)$", whole, re.M)]
    sums: Sums = {}
    for stage, column in (("connect", 0), ("processing", 1), ("total", 2), ("waiting", 3)):
        sums |= moments(f"{stage}_time", [row[column] for row in rows], "1e-3")
    yield sums


def moments(name: str, numbers: list[int], unit: str) -> Sums:
    """Shown as the sums that they are; the standard deviation is the sample's."""
    if not numbers:
        return {}
    total, squares, count = sum(numbers), sum(number**2 for number in numbers), len(numbers)
    ordered = sorted(numbers)
    return {
        f"{name}_min": f"{ordered[0]}*{unit}",
        f"{name}_max": f"{ordered[-1]}*{unit}",
        f"{name}_mean": f"{total}/{count}*{unit}",
        f"{name}_sd": f"sqrt(({squares}-{total}**2/{count})/{count - 1})*{unit}" if count > 1 else "0",
        f"{name}_median": f"({ordered[(count - 1) // 2]}+{ordered[count // 2]})/2*{unit}",
    }


def wrk(whole: str) -> Iterator[Sums]:
    for part in parts(whole, r"^  \d+ threads and \d+ connections$"):
        yield wrk_run(part)


def wrk_run(part: str) -> Sums:
    sums: Sums = {}
    if found := first(r"^  \d+ threads and (\d+) connections$", part):
        sums["concurrency"] = found
    ended = re.search(r"^  (\d+) requests in (\S+?)(us|ms|s|m), (\S+?)(B|KB|MB|GB) read$", part, re.M)
    if not ended:
        return sums
    seconds = f"{ended[2]}*{SECONDS[ended[3]]}"
    sums |= {"requests": ended[1], "time_taken": seconds, "transferred_bytes": f"{ended[4]}*{BYTES[ended[5]]}"}
    if rate := first(r"^Requests/sec: +(\S+)$", part):
        sums["requests_per_second"] = rate
    if rate := re.search(r"^Transfer/sec: +(\d+\.\d+)(B|KB|MB|GB)$", part, re.M):
        sums["transfer_rate"] = f"{rate[1]}*{BYTES[rate[2]]}"
    errors = re.search(r"^  Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$", part, re.M)
    counts = errors.groups() if errors else ("0", "0", "0", "0")
    for name, count in zip(("connect", "receive", "write", "timeout"), counts, strict=True):
        sums[f"failed_{name}"] = count
    sums["failed_requests"] = "+".join(counts)
    sums["non_2xx"] = first(r"^  Non-2xx or 3xx responses: (\d+)$", part) or "0"
    if ended[1] == "0":
        return sums
    sums["time_per_request"] = f"{sums['concurrency']}*{seconds}/{ended[1]}"
    sums["time_between_requests"] = f"{seconds}/{ended[1]}"
    row = re.search(r"^    Latency +([\d.]+)(us|ms|s) +([\d.]+)(us|ms|s) +([\d.]+)(us|ms|s) +\S+%$", part, re.M)
    for place, moment in enumerate(("mean", "sd", "max")):
        if row:
            sums[f"total_time_{moment}"] = f"{row[1 + 2 * place]}*{SECONDS[row[2 + 2 * place]]}"
    for percent, time, unit in re.findall(r"^ +(50|75|90|99)% +([\d.]+)(us|ms|s)$", part, re.M):
        sums[f"total_time_p{percent}"] = f"{time}*{SECONDS[unit]}"
        if percent == "50":
            sums["total_time_median"] = f"{time}*{SECONDS[unit]}"
    return sums


def wrk2(whole: str) -> Iterator[Sums]:
    """Its ``Latency`` and first distribution are from when a request was due, its second from when it was sent."""
    for part in parts(whole, r"^  \d+ threads and \d+ connections$"):
        sums = {name: each for name, each in wrk_run(part).items() if not name.startswith("total_time")}
        sums.pop("time_per_request", None)
        row = re.search(r"^    Latency +([\d.]+)(us|ms|s) +([\d.]+)(us|ms|s) +", part, re.M)
        if row and sums.get("requests") != "0":
            sums["scheduled_time_mean"] = f"{row[1]}*{SECONDS[row[2]]}"
            sums["scheduled_time_sd"] = f"{row[3]}*{SECONDS[row[4]]}"
        for section in re.split(r"^  Latency Distribution ", part, flags=re.M)[1:]:
            name = "scheduled_time" if "Recorded Latency" in section[:60] else "total_time"
            for percent, time, unit in re.findall(r"^ *(\d+\.\d+)% +([\d.]+)(us|ms|s)$", section, re.M):
                sums[f"{name}_p{float(percent):g}".replace(".", "_")] = f"{time}*{SECONDS[unit]}"
            if spread := re.search(r"^#\[Mean += +([\d.]+), StdDeviation += +([\d.]+)\]$", section, re.M):
                sums[f"{name}_mean"], sums[f"{name}_sd"] = f"{spread[1]}*1e-3", f"{spread[2]}*1e-3"
        yield sums


def hey(whole: str) -> Iterator[Sums]:
    for part in parts(whole, r"^Summary:$"):
        sums: Sums = {}
        for name, label in (("time_taken", "Total"), ("total_time_max", "Slowest"), ("total_time_min", "Fastest")):
            if found := first(rf"^  {label}:\s+([\d.]+) secs$", part):
                sums[name] = found
        if found := first(r"^  Average:\s+([\d.]+) secs$", part):
            sums["total_time_mean"] = found
        if found := first(r"^  Total data:\s+(\d+) bytes$", part):
            sums["document_transferred_bytes"] = found
        for percent, time in re.findall(r"^  (\d+)% in ([\d.]+) secs$", part, re.M):
            if percent != "0":
                sums[f"total_time_p{percent}"] = time
            if percent == "50":
                sums["total_time_median"] = time
        for name, label in (("connect", r"DNS\+dialup"), ("waiting", "resp wait")):
            if row := re.search(rf"^  {label}:\s+([\d.]+) secs, ([\d.]+) secs, ([\d.]+) secs$", part, re.M):
                sums[f"{name}_time_mean"] = row[1]
                sums[f"{name}_time_min"], sums[f"{name}_time_max"] = row[2], row[3]
        statuses = [(status, int(count)) for status, count in re.findall(r"^  \[(\d+)\]\s+(\d+) responses$", part, re.M)]
        errors = [
            int(count) for count in re.findall(r"^  \[(\d+)\]\s+(?!\d+ responses)\S.*$", part.partition("Error dist")[2], re.M)
        ]
        rate = first(r"^  Requests/sec:\s+([\d.]+)$", part)
        if statuses or errors:
            sums["non_2xx"] = "+".join(str(count) for status, count in statuses if status[0] != "2") or "0"
            sums["failed_requests"] = "+".join(map(str, errors)) or "0"
            answered = sum(count for _, count in statuses)
            sums["requests"] = str(answered)
            if rate and answered:
                sums["requests_per_second"] = f"{rate}*{answered}/{answered + sum(errors)}" if errors else rate
                # The rate has more digits than the time.
                if "document_transferred_bytes" in sums:
                    sums["goodput"] = f"8*{sums['document_transferred_bytes']}*{rate}/{answered + sum(errors)}"
        yield sums


def h2load(whole: str) -> Iterator[Sums]:
    for part in parts(whole, r"^finished in "):
        sums: Sums = {}
        ended = re.search(r"^finished in ([\d.]+)(us|ms|s|m), ([\d.]+) req/s, \S+/s$", part, re.M)
        counts = re.search(
            r"^requests: (\d+) total, (\d+) started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout$",
            part,
            re.M,
        )
        if not ended or not counts:
            yield sums
            continue
        sums["time_taken"] = f"{ended[1]}*{SECONDS[ended[2]]}"
        answered = int(counts[4]) + int(counts[5]) - int(counts[6])
        sums |= {"failed_requests": counts[6], "failed_timeout": counts[7]}
        if answered:
            sums |= {"requests": f"{counts[4]}+{counts[5]}-{counts[6]}", "requests_per_second": ended[3]}
        if statuses := re.search(r"^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx$", part, re.M):
            sums["non_2xx"] = "+".join(statuses.groups()[1:])
        data = re.search(
            r"^traffic: \S+ \((\d+)\) total, \S+ \(\d+\) headers .*, \S+ \((\d+)\) data$", part, re.M
        ) or re.search(r"^traffic: (\d+) bytes total, \d+ bytes headers, (\d+) bytes data$", part, re.M)
        if data:
            sums["transferred_bytes"], sums["document_transferred_bytes"] = data[1], data[2]
            # Whichever time has more digits: the one that is printed, or that of the requests by their rate.
            digits = [len(each.replace(".", "").lstrip("0")) for each in (ended[1], ended[3])]
            if answered:
                taken = f"({sums['time_taken']})" if digits[0] >= digits[1] else f"({answered}/{ended[3]})"
                sums["transfer_rate"] = f"{data[1]}/{taken}"
                sums["goodput"] = f"8*{data[2]}/{taken}"
        for name, label in (("total_time", "request"), ("connect_time", "connect")):
            sums |= h2load_times(name, rf"time for {label}", part)
        sums |= h2load_times("first_byte_time", "time to 1st byte", part)
        yield {name: each for name, each in sums.items() if answered or "_time_" not in name}


def h2load_times(name: str, label: str, part: str) -> Sums:
    row = re.search(rf"^{label}: +" + r" +".join([r"([\d.]+)(us|ms|s)"] * 4) + r" +[\d.]+%$", part, re.M)
    if not row:
        return {}
    return {
        f"{name}_{moment}": f"{row[1 + 2 * place]}*{SECONDS[row[2 + 2 * place]]}"
        for place, moment in enumerate(("min", "max", "mean", "sd"))
    }


def ping(whole: str) -> Iterator[Sums]:
    words = {"Zeit": "time", "temps": "time", "時間": "time", "时间": "time", "ミリ秒": " ms", "毫秒": "ms"}
    for word, english in words.items():
        whole = whole.replace(word, english)
    for part in parts(whole, r"^ *PING "):
        # A time of 11 digits is none that a clock shows.
        part = re.sub(r"^\[\d{11}.*$", "", part, flags=re.M)
        answers = re.findall(r"(?:icmp_)?seq=(\d+) ttl=\d+ time=([\d.]+) +ms( \(DUP!\))?$", part, re.M)
        if "=1 ttl=64 time=115ms" in part:
            return
        seen: dict[int, str] = {}
        duplicates = late = 0
        for number, time, _ in answers:
            if int(number) in seen:
                duplicates += 1
                continue
            late += bool(seen) and int(number) < max(seen)
            seen[int(number)] = time
        sums: Sums = {}
        said = re.search(r"(\d+) (?:packets transmitted|paquets transmis), (\d+) (?:packets )?(?:received|reçus)", part)
        said = said or re.search(r"送信パケット数 (\d+), 受信パケット数 (\d+)|已发送 (\d+) 个包， 已接收 (\d+) 个包", part)
        said = said or re.search(r"(\d+) Pakete übertragen, (\d+) empfangen", part)
        if said:
            sent, received = [each for each in said.groups() if each is not None]
            received = str(len(seen)) if seen else received
            sums |= {"probes_sent": sent, "probes_received": received, "probe_loss": f"1-{received}/{sent}"}
            more = first(r"\+(\d+) duplicates", part)
            sums["probe_duplicates"] = more or "0"
            if received == "0":
                # None came, so none came late.
                sums["probes_reordered"] = "0"
        if seen:
            ms = sorted((float(time), time) for time in seen.values())
            count, place = len(ms), 0.95 * (len(ms) - 1)
            low, part_above = int(place), place - int(place)
            high = min(low + 1, count - 1)
            listed = "+".join(time for _, time in ms)
            mean = math.fsum(time for time, _ in ms) / count
            sums |= {
                "probe_rtt_min": f"{ms[0][1]}*1e-3",
                "probe_rtt_max": f"{ms[-1][1]}*1e-3",
                "probe_rtt_mean": f"({listed})/{count}*1e-3",
                "probe_rtt_median": f"({ms[(count - 1) // 2][1]}+{ms[count // 2][1]})/2*1e-3",
                "probe_rtt_p95": f"({ms[low][1]}+{part_above!r}*({ms[high][1]}-{ms[low][1]}))*1e-3",
                "probe_rtt_sd": "sqrt((" + "+".join(f"({time}-{mean!r})**2" for _, time in ms) + f")/{count})*1e-3",
                "probe_duplicates": sums.get("probe_duplicates", str(duplicates)),
                "probes_reordered": str(late),
            }
        elif row := re.search(r"= ([\d.]+)/([\d.]+)/([\d.]+)(?:/([\d.]+))? ms", part):
            names = ("probe_rtt_min", "probe_rtt_mean", "probe_rtt_max", "probe_rtt_sd")
            sums |= {name: f"{time}*1e-3" for name, time in zip(names, row.groups(), strict=True) if time}
        yield sums


def siege(whole: str) -> Iterator[Sums]:
    for part in parts(whole, r"^ *Transactions:|^\{\s*\"transactions\""):
        sums: Sums = {}
        labels = {
            "time_taken": "Elapsed time",
            "concurrency": "Concurrency",
            "failed_requests": "Failed transactions",
            "total_time_min": "Shortest transaction",
            "total_time_mean": "Response time",
            "total_time_max": "Longest transaction",
        }
        for name, label in labels.items():
            if found := first(rf"(?i)^\s*\"?{label.replace(' ', '[ _]')}\"?:\s+([\d.]+)(?: secs|,)?\s*$", part):
                sums[name] = found
        # Whichever of data by time and throughput is rounded less; 0.00 is less than can be said.
        label = r"(?i)^\s*\"?{}\"?:\s+([\d.]+)(?: MB(?:/sec)?|,)?\s*$"
        data, rate = (first(label.format(each), part) for each in ("Data[ _]transferred", "Throughput"))
        taken = sums.get("time_taken")
        if data and rate and taken and float(data) and float(rate) and float(taken):
            finer = 0.005 / float(data) + 0.005 / float(taken) < 0.005 / float(rate)
            sums["goodput"] = f"8*1048576*{data}/{taken}" if finer else f"8*1048576*{rate}"
        yield sums


def netperf(whole: str) -> Iterator[Sums]:
    """Seconds of the classic tables, of ``-k`` and of ``-o``; of UDP the messages too; the client's share of its CPUs."""
    for part in parts(whole, r"^(?:MIGRATED )?(?:TCP|UDP) |^OMNI "):
        sums: Sums = {}
        rows = re.findall(r"^ *(?:\d+ +){2,4}(\d+\.\d+) +", part, re.M)
        heading = re.search(r"^(.*Elapsed Time \(sec\).*)\n(.*)$", part, re.M)
        if found := first(r"^ELAPSED_TIME=([\d.]+)$", part):
            sums["time_taken"] = found
        elif heading:
            sums["time_taken"] = heading[2].split(",")[heading[1].split(",").index("Elapsed Time (sec)")]
        elif rows:
            sums["time_taken"] = rows[0]
        sent = re.search(r"^ *\d+ +\d+ +[\d.]+ +(\d+) +\d+ +[\d.]+", part, re.M)
        received = re.search(r"^ *\d+ +[\d.]+ +(\d+) +[\d.]+", part, re.M)
        if "UDP STREAM" in part and sent and received:
            sums |= {"sent_datagrams": sent[1], "received_datagrams": received[1]}
            sums["lost_datagrams"] = f"{sent[1]}-{received[1]}"
            sums["loss"] = f"({sent[1]}-{received[1]})/{sent[1]}"
        if share := re.search(r"^\d+ +\d+ +1 +1 +[\d.]+ +[\d.]+ +([\d.]+) +[\d.]+ +", part, re.M):
            sums["cpu_busy_share@client"] = f"{share[1]}/100"
        if found := first(r"^REMOTE_CPU_UTIL=([\d.]+)$", part):
            sums["cpu_busy_share@server"] = f"{found}/100"
        yield sums


def sockperf(whole: str) -> Iterator[Sums]:
    """Half round trips are doubled; microseconds."""
    sums: Sums = {}
    if ended := re.search(r"^sockperf: Total of (\d+) messages sent in ([\d.]+) sec$", whole, re.M):
        sums |= {"sent_messages": ended[1], "time_taken": ended[2]}
    if found := first(r"^sockperf: Summary: Message Rate is (\d+) \[msg/sec\]$", whole):
        sums["messages_per_second"] = found
    valid = re.search(
        r"^sockperf: \[Valid Duration\] RunTime=([\d.]+) sec; SentMessages=(\d+); ReceivedMessages=(\d+)$", whole, re.M
    )
    if not valid:
        yield sums
        return
    sums |= {"time_taken": valid[1], "probes_sent": valid[2], "probes_received": valid[3]}
    lost = re.search(r"dropped messages = (\d+); # duplicated messages = (\d+); # out-of-order messages = (\d+)", whole)
    if lost:
        sums |= {"probe_loss": f"{lost[1]}/{valid[2]}", "probe_duplicates": lost[2], "probes_reordered": lost[3]}
    times = "1e-6" if "avg-rtt" in whole else "2e-6"
    if spread := first(r"\(std-dev= *([\d.]+)\)", whole):
        sums["probe_rtt_sd"] = f"{spread}*{times}"
    for name, end in (("max", "MAX"), ("min", "MIN")):
        if found := first(rf"^sockperf: ---> <{end}> observation = +([\d.]+)$", whole):
            sums[f"probe_rtt_{name}"] = f"{found}*{times}"
    for percent, found in re.findall(r"^sockperf: ---> percentile ([\d.]+) = +([\d.]+)$", whole, re.M):
        sums["probe_rtt_p" + f"{float(percent):g}".replace(".", "_")] = f"{found}*{times}"
    yield sums


def strace_summary(whole: str) -> Iterator[Sums]:
    """Calls of the kinds that the cases have or lack, by their names in docs/metrics.md; ``other`` is the rest of the total."""
    calls: dict[str, int] = {}
    for line in whole.splitlines():
        words = line.split()
        if re.match(r" *\d+\.\d\d +\d+\.\d+ +\d+ +\d+ ", line) and words[-1] != "total":
            calls[words[-1]] = int(words[3])
        elif re.match(r" +\d+ [a-z0-9_]+ ", line) and words[1] != "total":
            calls[words[1]] = int(words[0])
    kinds = {
        "read": ("read", "pread64", "recv"),
        "write": ("write", "send"),
        "wait": ("futex", "wait4", "clock_nanosleep", "_newselect"),
        "open": ("openat",),
        "close": ("close",),
        "stat": ("newfstatat", "access", "statx", "fstat64", "lstat64"),
        "fcntl": ("ioctl", "fcntl64"),
        **dict.fromkeys(("sendfile", "epoll_ctl", "accept", "connect", "socket"), ()),
    }
    counts = {kind: [str(calls[name]) for name in names if name in calls] for kind, names in kinds.items()}
    sums = {f"{kind}_calls": "+".join(each) or "0" for kind, each in counts.items()}
    known = {name for names in kinds.values() for name in names}
    sums["other_calls"] = "+".join(str(count) for name, count in calls.items() if name not in known) or "0"
    yield sums


def zeek_tsv(whole: str) -> Iterator[Sums]:
    """By the names in the line ``#fields`` of the first log."""
    names = ("proto", "conn_state", "orig_pkts", "orig_ip_bytes", "resp_pkts", "resp_ip_bytes")
    log = whole.partition("#fields\t")[2].partition("#close")[0].splitlines()
    fields = log[0].split("\t") if log else []
    lines = [line.split("\t") for line in log[1:] if not line.startswith("#")]
    yield zeek_sums([tuple(cells[fields.index(name)] for name in names) for cells in lines if len(cells) == len(fields)])


def zeek_json(whole: str) -> Iterator[Sums]:
    rows = []
    for line in whole.splitlines():
        names = ("proto", "conn_state", "orig_pkts", "orig_ip_bytes", "resp_pkts", "resp_ip_bytes")
        cells = [first(rf'"{name}": ?"?(\w+)"?[,}}]', line) for name in names]
        if line.endswith("}"):
            rows.append(tuple(cell or "0" for cell in cells))
    yield zeek_sums(rows)


def zeek_sums(rows: list[tuple[str, ...]]) -> Sums:
    if not rows:
        return {}
    there, back = "+".join(row[2] for row in rows), "+".join(row[4] for row in rows)
    bytes_there, bytes_back = "+".join(row[3] for row in rows), "+".join(row[5] for row in rows)
    return {
        "packets>client_to_server": there,
        "packets>server_to_client": back,
        "packets": f"{there}+{back}",
        "bytes>client_to_server": bytes_there,
        "bytes>server_to_client": bytes_back,
        "bytes": f"{bytes_there}+{bytes_back}",
        "incomplete_connections": "+".join("1" for row in rows if row[0] == "tcp" and row[1] != "SF") or "0",
    }


TEXT_READERS: dict[str, Callable[[str], Iterator[Sums]]] = {
    "ab-text": ab_text,
    "ab-tsv": ab_tsv,
    "wrk": wrk,
    "wrk2": wrk2,
    "hey": hey,
    "h2load": h2load,
    "ping": ping,
    "siege": siege,
    "netperf": netperf,
    "sockperf": sockperf,
    "strace-summary": strace_summary,
    "zeek-conn-tsv": zeek_tsv,
    "zeek-conn-json": zeek_json,
}


OF_CASES: dict[str, Callable[[Path], Iterator[Sums]]] = {
    **second_calls.READERS,
    **second_series.READERS,
    **second_captures.READERS,
    **second_delays.READERS,
    **second_flows.READERS,
    **second_hosts.READERS,
    **second_iperf3_text.READERS,
}


def worked_out(expression: str) -> float:
    assert re.fullmatch(r"[\d.e+\-*/() ]|(?:sqrt|[\d.e+\-*/() ])+", expression), expression
    return float(eval(expression, {"sqrt": math.sqrt, "__builtins__": {}}))


def second(format: str, case: Path) -> list[Sums]:
    return list(OF_CASES[format](case) if format in OF_CASES else TEXT_READERS[format](text(case)))


def differing(sums: Sums, values: dict[str, float | None]) -> Iterator[str]:
    """The numbers that are expected and read otherwise. Whether a number counts as known is a decision of docs/formats.md, and
    not compared."""
    for name in sorted(sums.keys() & values.keys()):
        expected = values[name]
        if expected is not None and not math.isclose(worked_out(sums[name]), expected, rel_tol=1e-9, abs_tol=1e-15):
            yield f"{name} is expected as {expected}, and read as {sums[name]}"


def main(format: str) -> None:
    for case in sorted((HERE / format).iterdir()):
        file = case / "expected.json"
        expected = json.loads(file.read_text())
        if isinstance(expected, dict):
            continue
        found = second(format, case)
        if len(found) != len(expected):
            sys.stdout.write(f"{case}: {len(found)} parts, {len(expected)} measurements\n")
            continue
        lines = []
        for place, (sums, one) in enumerate(zip(found, expected, strict=True)):
            sys.stdout.writelines(f"{case.name}: {each}\n" for each in differing(sums, one.get("values", {})))
            added = [name for name in one.get("others", ()) if name in sums]
            for name in added:
                number = worked_out(sums[name])
                one.setdefault("values", {})[name] = int(number) if number == int(number) else number
                of = f" of measurement {place + 1}" if len(expected) > 1 else ""
                shown = sums[name] if len(sums[name]) < 200 else f"{sums[name][:60]} ... {sums[name][-60:]}"
                lines.append(f"- `{name}`{of}: {shown}")
            one["others"] = [name for name in one.get("others", ()) if name not in added]
            if not one["others"]:
                del one["others"]
        if lines:
            file.write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")
            how = case / "how.md"
            source = f"{OF_CASES[format].__module__}.py" if format in OF_CASES else "second_reading.py"
            about = f"Worked out a second time from the input, by `{source}`, which shares no code with twinbed:"
            how.write_text(how.read_text().rstrip("\n") + f"\n\n{about}\n\n" + "\n".join(lines) + "\n")
        sys.stdout.write(f"{case.name}: {len(lines)} worked out, left: {[one.get('others') for one in expected]}\n")


def left() -> str:
    """How many of all the values that cases name as numbers have a number of which nobody but twinbed has worked out."""
    held = others = 0
    for file in sorted(HERE.glob("*/*/expected.json")):
        expected = json.loads(file.read_text())
        for one in expected if isinstance(expected, list) else ():
            held += sum(number is not None for number in one.get("values", {}).values())
            others += len(one.get("others", ()))
    return f"{others} of {held + others} numbers are not worked out ({others / (held + others):.1%})\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        main(name)
    sys.stdout.write(left())
