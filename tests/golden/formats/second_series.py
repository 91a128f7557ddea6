"""Values of samples worked out a second time: as the file has them, by the definitions of docs/metrics.md."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import second_delays

Sums = dict[str, str]


def moments(name: str, cells: list[str], unit: str) -> Sums:
    """Quantiles between order statistics (type 7 of R), and the standard deviation of all, as ping's mdev."""
    ordered = sorted(cells, key=float)
    count, place = len(cells), 0.95 * (len(cells) - 1)
    low, above = int(place), place - int(place)
    mean = math.fsum(map(float, cells)) / count
    return {
        f"{name}_min": f"{ordered[0]}*{unit}",
        f"{name}_max": f"{ordered[-1]}*{unit}",
        f"{name}_mean": f"({'+'.join(ordered)})/{count}*{unit}",
        f"{name}_median": f"({ordered[(count - 1) // 2]}+{ordered[count // 2]})/2*{unit}",
        f"{name}_p95": f"({ordered[low]}+{above!r}*({ordered[min(low + 1, count - 1)]}-{ordered[low]}))*{unit}",
        f"{name}_sd": "sqrt((" + "+".join(f"({cell}-{mean!r})**2" for cell in ordered) + f")/{count})*{unit}",
    }


def flent(case: Path) -> Iterator[Sums]:
    """Pings in milliseconds; of streams the bits of all samples by their time."""
    (file,) = case.glob("input*")
    whole = file.read_bytes()
    data = json.loads(gzip.decompress(whole) if file.suffix == ".gz" else whole, parse_float=str)
    raw, meta = data.get("raw_values", {}), data["metadata"]["SERIES_META"]
    sums: Sums = {}
    pings: dict[str, list[str]] = {}
    for series, values in data["results"].items():
        if series.endswith((" avg", " sum")):
            continue
        if series.startswith("Ping"):
            cells = (
                [str(sample["val"]) for sample in raw[series]] if series in raw else [str(v) for v in values if v is not None]
            )
            pings[series] = cells
            about = meta.get(series, {})
            if "PACKETS_SENT" in about:
                sent, received = about["PACKETS_SENT"], about["PACKETS_RECEIVED"]
                sums |= {f"probes_sent@{series}": f"{sent}", f"probes_received@{series}": f"{received}"}
                sums[f"probe_loss@{series}"] = f"1-{received}/{sent}"
        elif series in raw:
            way = "client_to_server" if "upload" in series else "server_to_client"
            bits = "+".join(f"{sample['val']}*{sample['dur']}" for sample in raw[series])
            sums[f"goodput@{series}>{way}"] = f"({bits})/({'+'.join(sample['dur'] for sample in raw[series])})*1e6"
    sums |= moments("probe_rtt", [cell for cells in pings.values() for cell in cells], "1e-3")
    for series, cells in pings.items():
        sums |= {f"{name}@{series}": each for name, each in moments("probe_rtt", cells, "1e-3").items()}
    yield sums


def documents(whole: str) -> Iterator[dict[str, Any]]:
    """iperf3's documents: whole, as events line by line, in a list, or cut; of one that is cut its intervals that are whole."""
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    at, events = 0, None
    while (found := re.compile(r"^\s*\[?\s*\{", re.M).search(whole, at)) is not None:
        at = found.end() - 1
        try:
            document, at = decoder.raw_decode(whole, at)
        except json.JSONDecodeError:
            intervals = []
            if whole[at:].startswith('{"event"'):
                break
            place = whole.index('"intervals"', at)
            place = whole.index("[", place) + 1
            while True:
                place += len(re.match(r"[\s,]*", whole[place:])[0])  # type: ignore[index]
                try:
                    one, place = decoder.raw_decode(whole, place)
                except json.JSONDecodeError:
                    break
                intervals.append(one)
            start = re.search(r'"start":\s*', whole[at:])
            assert start
            yield {"start": decoder.raw_decode(whole, at + start.end())[0], "intervals": intervals, "end": {}}
            at = whole.find("\n{", place)
            if at < 0:
                return
            continue
        if at < len(whole) and whole[at] == ",":
            at += 1
            whole = whole[:at] + "\n" + whole[at:]
        if "event" in document:
            if document["event"] == "start":
                if events:
                    yield events
                events = {"start": document["data"], "intervals": [], "end": {}}
            elif events and document["event"] == "interval":
                events["intervals"].append(document["data"])
            elif events and document["event"] == "end":
                events["end"] = document["data"]
        else:
            events = None
            yield document
    if events:
        yield events


def iperf3_json(case: Path) -> Iterator[Sums]:
    (file,) = case.glob("input*")
    whole = file.read_bytes()
    text = whole.decode("utf-16" if whole[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8").replace("-nan", "null")
    seen: list[dict[str, Any]] = []
    for document in documents(text):
        if document.get("intervals") and not (document in seen and document["start"].get("cookie")):
            seen.append(document)
            yield iperf3_document(document)


def iperf3_document(document: dict[str, Any]) -> Sums:
    end, intervals, test = document["end"], document["intervals"], document["start"]["test_start"]
    live = [each for each in intervals if not each["sum"]["omitted"]]
    own = [each["sum"] for each in live]
    server = "accepted_connection" in document["start"]
    udp = test["protocol"] == "UDP"
    reverse, both = bool(test.get("reverse")), "sum_bidir_reverse" in intervals[0]
    receives = reverse != server
    sums: Sums = {}
    sent_end, received_end = end.get("sum_sent", {}), end.get("sum_received", {})
    cpu = end.get("cpu_utilization_percent", {})
    if cpu:
        here, there = f"{cpu['host_total']!r}/100", f"{cpu['remote_total']!r}/100"
        sums["receiver_cpu_share"], sums["sender_cpu_share"] = (here, there) if receives else (there, here)

    def total(rows: list[dict[str, Any]], name: str) -> str:
        return "(" + "+".join(repr(row[name]) for row in rows) + ")"

    def deviation(rows: list[dict[str, Any]]) -> str:
        rates = [8 * row["bytes"] / row["seconds"] for row in rows]
        mean = math.fsum(rates) / len(rates)
        squares = "+".join(f"(8*{row['bytes']}/{row['seconds']!r}-{mean!r})**2" for row in rows)
        return f"sqrt(({squares})/{len(rows) - 1})"

    far = (document.get("server_output_json") or {}).get("intervals", [])
    far = [each["sum"] for each in far if not each["sum"]["omitted"]]
    arrived = [row for row in (own if receives else far) if row["seconds"] > 0.5]
    if len(arrived) > 1:
        sums["goodput_sd"] = deviation(arrived)
    if receives:
        if sent_end:
            sums["sent_bytes"] = repr(sent_end["bytes"])
            sums["send_rate"] = f"8*{sent_end['bytes']}/{sent_end['seconds']!r}"
            if "retransmits" in sent_end:
                sums["tcp_retransmissions"] = repr(sent_end["retransmits"])
    else:
        sums["sent_bytes"] = total(own, "bytes")
        sums["send_rate"] = f"8*{total(own, 'bytes')}/{total(own, 'seconds')}"
        streams = [stream for each in live if each["sum"]["seconds"] > 0.5 for stream in each["streams"]]
        streams = [stream for stream in streams if stream.get("sender", True)]
        if "retransmits" in own[0]:
            sums["tcp_retransmissions"] = total(own, "retransmits")
        for name, field, unit in (("tcp_rtt_mean", "rtt", "*1e-6"), ("tcp_cwnd_mean", "snd_cwnd", "")):
            if streams and field in streams[0]:
                sums[name] = f"{total(streams, field)}/{len(streams)}{unit}"
    if udp:
        if receives:
            packets, lost = total(own, "packets"), total(own, "lost_packets")
            streams = [stream for each in live if each["sum"]["seconds"] > 0.5 for stream in each["streams"]]
            sums["interarrival_jitter"] = f"{total(streams, 'jitter_ms')}/{len(streams)}*1e-3"
            if sent_end:
                sums["sent_datagrams"] = repr(sent_end["packets"])
        elif far:
            packets, lost = total(far, "packets"), total(far, "lost_packets")
            sums["sent_datagrams"] = total(own, "packets")
        else:
            at_end = received_end or end["sum"]
            packets, lost = repr(at_end["packets"]), repr(at_end["lost_packets"])
            sums["sent_datagrams"] = total(own, "packets")
            if not received_end:
                packets = sums["sent_datagrams"]
        sums |= {"lost_datagrams": lost, "received_datagrams": f"{packets}-{lost}", "loss": f"{lost}/{packets}"}
        if received_end:
            sums["interarrival_jitter_last"] = f"{received_end['jitter_ms']!r}*1e-3"
        if "send_rate" in sums:
            sums["effective_throughput"] = f"(1-{lost}/{packets})*{sums['send_rate']}"
    if both:
        back = [each["sum_bidir_reverse"] for each in live]
        sent_back = end["sum_sent_bidir_reverse"]
        sums = {f"{name}>client_to_server": each for name, each in sums.items()}
        sums |= {
            "send_rate>server_to_client": f"8*{sent_back['bytes']}/{sent_back['seconds']!r}",
            "time_taken>server_to_client": total(back, "seconds"),
            "goodput_sd>server_to_client": deviation(back),
            "receiver_cpu_share>server_to_client": f"{cpu['host_total']!r}/100",
        }
    return sums


def irtt(case: Path) -> Iterator[Sums]:
    """Of the probes' own stamps, by the monotonic clocks, whose offset is constant in a run: differences need none."""
    (file,) = case.glob("input*")
    whole = file.read_bytes()
    data = json.loads(gzip.decompress(whole) if file.suffix == ".gz" else whole)
    trips = data["round_trips"]
    back = [trip for trip in trips if trip["lost"] == "false"]
    sums = dict(moments("probe_rtt", [str(t["delay"]["rtt"]) for t in back], "1e-9").items())
    sums |= {
        "probes_sent": str(len(trips)),
        "probe_loss": f"{len(trips) - len(back)}/{len(trips)}",
        "probe_duplicates": str(data["stats"]["duplicates"]),
        "probe_loss>client_to_server": f"{sum(t['lost'] == 'true_up' for t in trips)}/{len(trips)}",
        "probe_loss>server_to_client": f"{sum(t['lost'] == 'true_down' for t in trips)}/{len(trips)}",
    }
    windows: dict[str, list[float]] = {}
    for way, begin, end in (("client_to_server", "client", "server"), ("server_to_client", "server", "client")):
        stamps = [(t["timestamps"][begin]["send"]["monotonic"], t["timestamps"][end]["receive"]["monotonic"]) for t in back]
        delays = [came - went for went, came in stamps]
        least = min(delays)
        over = [delay - least for delay in delays]
        sums[f"delay_variation_p95>{way}"] = moments("d", [str(each) for each in over], "1e-9")["d_p95"]
        steps = [
            abs(two - one) for (a, one), (b, two) in pairwise(zip(back, delays, strict=True)) if b["seqno"] == a["seqno"] + 1
        ]
        sums[f"ipdv>{way}"] = f"({'+'.join(map(str, steps))})/{len(steps)}*1e-9"
        last, late = -1, 0
        for _, number in sorted((came, trip["seqno"]) for (_, came), trip in zip(stamps, back, strict=True)):
            late += number < last
            last = max(last, number)
        sums[f"probes_reordered>{way}"] = str(late)
        first = trips[0]["timestamps"]["client"]["send"]["monotonic"]
        parts: dict[int, list[int]] = {}
        for trip, each in zip(back, over, strict=True):
            parts.setdefault((trip["timestamps"]["client"]["send"]["monotonic"] - first) // 10**9, []).append(each)
        terms = []
        for part in parts.values():
            spread = moments("d", [str(each) for each in part], "1e-9")
            terms.append(f"({spread['d_p95']}-{spread['d_median']})")
        windows[way] = terms  # type: ignore[assignment]
        if len(data["round_trips"]) >= 100:
            sums[f"jitter>{way}"] = f"({'+'.join(terms)})/{len(terms)}"
            sums[f"jitter_max>{way}"] = max(terms, key=lambda term: eval(term))
    if "jitter>client_to_server" in sums:
        sums["jitter"] = f"({sums['jitter>client_to_server']}+{sums['jitter>server_to_client']})/2"
        sums["jitter_max"] = max(
            (sums["jitter_max>client_to_server"], sums["jitter_max>server_to_client"]), key=lambda term: eval(term)
        )
    yield sums | second_delays.clocks(trips)


READERS = {"flent": flent, "iperf3-json": iperf3_json, "irtt-json": irtt}
