"""Compares crates/core's statistics with tcptrace's output, column by column, on captures given or made at random.

python3 compare.py PROGRAM FILE...           PROGRAM is crates/core/examples/flows.rs, built
python3 compare.py PROGRAM --seeds 0 1000    random captures of these seeds
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

import captures

# tcptrace's name: ours, how it is printed (docs/flows.md has what is not followed)
COUNTS = [
    "total_packets",
    "resets_sent",
    "ack_pkts_sent",
    "pure_acks_sent",
    "sack_pkts_sent",
    "dsack_pkts_sent",
    "max_sack_blks/ack",
    "unique_bytes_sent",
    "actual_data_pkts",
    "actual_data_bytes",
    "rexmt_data_pkts",
    "rexmt_data_bytes",
    "zwnd_probe_pkts",
    "zwnd_probe_bytes",
    "outoforder_pkts",
    "pushed_data_pkts",
    "adv_wind_scale",
    "sacks_sent",
    "urgent_data_pkts",
    "urgent_data_bytes",
    "zero_win_adv",
    "truncated_data",
    "truncated_packets",
    "hardware_dups",
    "RTT_samples",
    "RTT_full_sz_smpls",
    "post-loss_acks",
    "ambiguous_acks",
    "segs_cum_acked",
    "duplicate_acks",
    "triple_dupacks",
    "max_#_retrans",
    "mss_requested",
    "max_segm_size",
    "min_segm_size",
    "max_win_adv",
    "min_win_adv",
    "initial_window_bytes",
    "initial_window_pkts",
    "ttl_stream_length",
    "missed_data",
    "max_owin",
    "min_non-zero_owin",
]
CUT = [
    "avg_segm_size",
    "avg_win_adv",
    "avg_owin",
]
MILLISECONDS = [
    "idletime_max",
    "RTT_min",
    "RTT_max",
    "RTT_avg",
    "RTT_stdev",
    "RTT_from_3WHS",
    "RTT_full_sz_min",
    "RTT_full_sz_max",
    "RTT_full_sz_avg",
    "RTT_full_sz_stdev",
    "RTT_min_(last)",
    "RTT_max_(last)",
    "RTT_avg_(last)",
    "RTT_sdv_(last)",
    "min_retr_time",
    "max_retr_time",
    "avg_retr_time",
    "sdv_retr_time",
]
OTHERS = {"data_xmit_time": 3, "throughput": 0}


def own_name(column):
    name = column.lower().replace("blks/ack", "blks_per_ack").replace("-", "_").replace("#_", "")
    return name.replace("(", "").replace(")", "")


def number(text):
    return None if text in ("NA", "None", None) else float(text)


def agrees(column, ours, theirs):
    one, two = number(ours), number(theirs)
    if one is None:
        below = column in ("ttl_stream_length", "missed_data") and two is not None and two >= 2**31
        return two in (None, 0.0) or below
    if two is None:
        return False
    if column in COUNTS:
        return one == two or int(ours) % 2**64 == int(theirs)
    if column in CUT:
        return abs(int(one) - two) < 1e-6 * max(1, two)
    digits, unit = (1, 1e3) if column in MILLISECONDS else (OTHERS[column], 1)
    return abs(one * unit - two) <= 0.5 / 10**digits + 1e-5


RARE_COUNTS = (
    *("resets_sent", "sack_pkts_sent", "dsack_pkts_sent", "max_sack_blks_per_ack", "sacks_sent", "rexmt_data_pkts"),
    *("rexmt_data_bytes", "zwnd_probe_pkts", "zwnd_probe_bytes", "outoforder_pkts", "urgent_data_pkts"),
    *("urgent_data_bytes", "hardware_dups", "post_loss_acks", "ambiguous_acks", "triple_dupacks", "max_retrans"),
)
RARE_TIMES = (
    *("rtt_min_last", "rtt_max_last", "rtt_avg_last", "rtt_sdv_last"),
    *("min_retr_time", "max_retr_time", "avg_retr_time", "sdv_retr_time"),
)


def fields(text):
    # A record of its own, where a side has any of it.
    text = text.replace("rare: Some(Rare {", "")
    own = {name: some or plain for name, some, plain in re.findall(r"(\w+): (?:Some\(([^)]*)\)|([^,{} ]+))", text)}
    if own.pop("rare", None) == "None":
        own |= dict.fromkeys(RARE_COUNTS, "0") | dict.fromkeys(RARE_TIMES, "None")
    return own


def own_rows(program, path):
    text = subprocess.run([program, str(path)], capture_output=True, text=True, check=True).stdout
    rows = []
    for line in text.splitlines():
        a, b = line.index(", a: Side {"), line.index(", b: Side {")
        rows.append((fields(line[a + 11 : b]), fields(line[b + 11 :])))
    return rows


def their_rows(path):
    argv = ["tcptrace", "-n", "-l", "-r", "-W", "--csv", str(path)]
    text = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False).stdout
    lines = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if "," in line and line[0] != "#"]
    head = [name.replace("RTT full_sz", "RTT_full_sz") for name in lines[0]] if lines else []
    return [dict(zip(head, line, strict=False)) for line in lines[1:] if len(line) > 10]


def differences(program, path):
    ours, theirs = own_rows(program, path), their_rows(path)
    if len(ours) != len(theirs):
        yield "connections", len(ours), len(theirs)
        return
    for sides, row in zip(ours, theirs, strict=True):
        for side, way in zip(sides, ("a2b", "b2a"), strict=True):
            wrapped = any(int(row[f"{name}_{way}"]) > 2**31 for name in ("max_owin", "min_non-zero_owin", "avg_owin"))
            for column in [*COUNTS, *CUT, *MILLISECONDS, *OTHERS]:
                if "owin" in column and wrapped:
                    continue
                own, their = side[own_name(column)], row[f"{column}_{way}"]
                if not agrees(column, own, their):
                    yield column, own, their
            yes = {"true": "Y", "false": "N"}
            texts = {
                "SYN/FIN_pkts_sent": f"{side['syn_pkts_sent']}/{side['fin_pkts_sent']}",
                "req_1323_ws/ts": f"{yes[side['req_1323_ws']]}/{yes[side['req_1323_ts']]}",
                "req_sack": yes[side["req_sack"]],
            }
            for column, own in texts.items():
                if row[f"{column}_{way}"] != own:
                    yield column, own, row[f"{column}_{way}"]


def main(program, *arguments):
    wrong, files, agreeing = collections.defaultdict(list), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        paths = arguments
        if arguments[0] == "--seeds":
            paths = []
            for seed in range(int(arguments[1]), int(arguments[2])):
                paths.append(pathlib.Path(folder) / f"{seed}.pcap")
                captures.write(seed, paths[-1])
        for path in paths:
            found = list(differences(program, path))
            files, agreeing = files + 1, agreeing + (not found)
            for column, own, their in found:
                wrong[column].append((str(path), own, their))
    sys.stdout.write(f"{agreeing} of {files} captures agree in every column\n")
    for column, found in sorted(wrong.items(), key=lambda item: -len(item[1])):
        sys.stdout.write(f"  {column}: {len(found)}, first {found[0]}\n")
    return 0 if agreeing == files else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
