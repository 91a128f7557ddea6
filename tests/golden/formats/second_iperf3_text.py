"""iperf3's lines read a second time: of either end, of both directions, of TCP and of UDP.

As docs/formats.md has it: an end knows its own side by its intervals and the other side by the summaries (a server: not at
all), or by the server's intervals where the client prints them.  Sizes have three digits, and so have rates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

Sums = dict[str, str]
SIZES = {"Bytes": "", "KBytes": "*1024", "MBytes": "*1048576", "GBytes": "*1073741824"}
RATES = {"bits": "", "Kbits": "*1e3", "Mbits": "*1e6", "Gbits": "*1e9", "MBytes": "*8*1048576"}
LINE = re.compile(
    r"\[ *(?P<stream>\w+)\](?:\[(?P<role>[TR]X)-[CS]\])? +(?P<start>[\d.]+)-(?P<end>[\d.]+) +sec +"
    r"(?P<size>[\d.]+) (?P<of>\w*Bytes) +(?P<rate>[\d.]+) (?P<per>\w+)/sec +"
    r"(?:(?P<jitter>[\d.]+) ms +(?P<lost>\d+)/(?P<total>\d+) \(\S+\)|"
    r"(?P<count>\d+)(?: +(?P<window>[\d.]+) (?P<unit>\w*Bytes))?)?"
    r" *(?P<mark>\(omitted\)|sender|receiver)? *$"
)
ROUNDING = 0.005
"""Of three digits: a deviation below it is not seen."""


@dataclass(frozen=True)
class Line:
    cells: dict[str, str | None]
    summary: bool

    def __getattr__(self, name: str) -> str:
        return self.cells[name] or ""

    @property
    def bytes(self) -> str:
        return self.size + SIZES[self.of]

    @property
    def bits_s(self) -> str:
        return self.rate + RATES[self.per]

    @property
    def lasted(self) -> float:
        return float(self.end) - float(self.start)


def iperf3_text(case: Path) -> Iterator[Sums]:
    (file,) = case.glob("input*")
    whole = re.sub(r"^\w{3} \w{3} .\d \d\d:\d\d:\d\d \d{4} ", "", file.read_text().replace("\r", ""), flags=re.M)
    client = "Accepted connection from" not in whole.partition("Server output:")[0]
    begins = r"^Connecting to host " if client else r"^Accepted connection from "
    starts = [found.start() for found in re.finditer(begins, whole, re.M)] or [0]
    for start, end in pairwise([*starts, len(whole)]):
        yield run(whole[start:end], client)


def run(part: str, client: bool) -> Sums:
    here, _, there = part.partition("Server output:")
    own, far = list(lines(here)), list(lines(there))
    if not own:
        return {}
    # Of the other end: after an interruption zeros are printed of it.
    heard = client and "iperf Done." in part
    udp = "Datagrams" in part
    if not any(line.role for line in own):
        first_heading = here.partition("[ ID]")[2].partition("\n")[0]
        sends = "Reverse mode" not in here if client else "Retr" in first_heading
        return one_way(own, far, sends, udp, heard)
    answer: Sums = {}
    for role, way in (("TX", "client_to_server"), ("RX", "server_to_client")):
        of_role = [line for line in own if line.role == role]
        answer |= {f"{name}>{way}": each for name, each in one_way(of_role, [], role == "TX", udp, heard).items()}
    return answer


def lines(text: str) -> Iterator[Line]:
    """From the second heading on they are summaries."""
    headings = 0
    for line in text.splitlines():
        headings += line.startswith("[ ID]")
        if found := LINE.match(line):
            yield Line(found.groupdict(), headings > 1)


def one_way(own: Sequence[Line], far: Sequence[Line], sends: bool, udp: bool, heard: bool) -> Sums:
    answer: Sums = {}
    mine, streams = intervals(own)
    theirs, _ = intervals(far)
    of_sender, of_receiver = summary(own, "sender", heard or sends), summary(own, "receiver", heard or not sends)
    if missing(mine, of_sender if sends else of_receiver):
        mine, streams = [], []
    sent, received = (mine, theirs) if sends else (theirs, mine)
    if sent:
        answer |= {"sent_bytes": total(sent), "send_rate": f"8*({total(sent)})/({seconds(sent)})"}
    elif of_sender:
        answer |= {"sent_bytes": of_sender.bytes, "send_rate": of_sender.bits_s}
    if received:
        answer["received_bytes"] = total(received)
        answer["goodput"] = f"8*({total(received)})/({seconds(received)})"
        answer["time_taken"] = seconds(received)
        answer |= deviation([line for line in received if line.lasted > 0.5])
    elif of_receiver:
        answer |= {"received_bytes": of_receiver.bytes, "goodput": of_receiver.bits_s}
        answer["time_taken"] = f"{of_receiver.end}-{of_receiver.start}"
    if udp:
        answer |= datagrams(sent, received, streams, of_sender, of_receiver, answer.get("send_rate"))
    elif sent:
        if all(line.count for line in sent):
            answer["tcp_retransmissions"] = "+".join(line.count for line in sent)
        windows = [line.window + SIZES[line.unit] for line in streams if line.window and line.lasted >= 0.5]
        if windows:
            answer["tcp_cwnd_mean"] = f"({'+'.join(windows)})/{len(windows)}"
    elif of_sender and of_sender.count:
        answer["tcp_retransmissions"] = of_sender.count
    return answer


def intervals(of_end: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """Of all streams together, and of each."""
    live = [line for line in of_end if not line.summary and not line.mark]
    sums = [line for line in live if line.stream == "SUM"]
    streams = [line for line in live if line.stream != "SUM"]
    return sums or streams, streams


def summary(own: Sequence[Line], mark: str, heard: bool) -> Line | None:
    marked = [line for line in own if line.summary and line.mark == mark]
    return ([line for line in marked if line.stream == "SUM"] or marked)[-1] if marked and heard else None


def missing(mine: Sequence[Line], whole: Line | None) -> bool:
    """With less than 98 % of the summary's seconds and bytes it is the summary that counts."""
    if not whole or not mine:
        return False
    lasted = sum(line.lasted for line in mine)
    size, size_of_all = eval(total(mine)), eval(whole.bytes)
    return bool(lasted < 0.98 * whole.lasted and size < 0.98 * size_of_all)


def total(of_end: Sequence[Line]) -> str:
    return "+".join(line.bytes for line in of_end)


def seconds(of_end: Sequence[Line]) -> str:
    if all(one.end == two.start for one, two in pairwise(of_end)):
        return f"{of_end[-1].end}-{of_end[0].start}"
    return "+".join(f"{line.end}-{line.start}" for line in of_end)


def deviation(of_seconds: Sequence[Line]) -> Sums:
    if len(of_seconds) < 2:
        return {}
    rates = [f"8*{line.bytes}/({line.end}-{line.start})" for line in of_seconds]
    numbers = [eval(rate) for rate in rates]
    mean = sum(numbers) / len(numbers)
    sum_ = "sqrt((" + "+".join(f"({rate}-{mean!r})**2" for rate in rates) + f")/{len(rates) - 1})"
    spread = (sum((number - mean) ** 2 for number in numbers) / (len(numbers) - 1)) ** 0.5
    return {"goodput_sd": sum_} if spread >= ROUNDING * mean else {}


def datagrams(
    sent: Sequence[Line],
    received: Sequence[Line],
    streams: Sequence[Line],
    of_sender: Line | None,
    of_receiver: Line | None,
    send_rate: str | None,
) -> Sums:
    answer: Sums = {}
    if sent:
        answer["sent_datagrams"] = "+".join(line.count for line in sent)
    elif of_sender:
        answer["sent_datagrams"] = of_sender.total
    if received:
        lost, all_ = "+".join(line.lost for line in received), "+".join(line.total for line in received)
        jitters = [line.jitter for line in streams if line.lasted > 0.5 and line.total != "0"]
        answer["interarrival_jitter"] = f"({'+'.join(jitters)})/{len(jitters)}*1e-3"
    elif of_receiver:
        lost, all_ = of_receiver.lost, of_receiver.total
    else:
        return answer
    answer |= {"lost_datagrams": lost, "received_datagrams": f"{all_}-({lost})", "loss": f"({lost})/({all_})"}
    if send_rate:
        answer["effective_throughput"] = f"(1-({lost})/({all_}))*{send_rate}"
    if of_receiver:
        answer["interarrival_jitter_last"] = f"{of_receiver.jitter}*1e-3"
    return answer


READERS = {"iperf3-text": iperf3_text}
