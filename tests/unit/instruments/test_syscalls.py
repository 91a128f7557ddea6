"""The instrument ``syscalls``: its plan, and what it makes of a real count file, judged by strace's counts of the same calls
(tests/golden/syscalls/README.md)."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from pydantic import ValidationError

from twinbed._core import Transitions
from twinbed.contracts.command import Ready
from twinbed.contracts.extracted import Extracted
from twinbed.contracts.place import MACHINE, Target
from twinbed.instruments.syscalls import SyscallsParams, syscalls
from twinbed.metrics.syscalls import KINDS, kind_of
from twinbed.model.caution import Kind

GOLDEN = Path(__file__).parents[2] / "golden" / "syscalls"
CONTAINER, GUEST = Target("client", {"eth0": "client"}), Target("client", {"eth0": "client"}, own_kernel=True)
LAB = Target(MACHINE, {"p.client": "client"})


def strace_counts() -> dict[str, int]:
    """What ``strace -c`` printed: call -> calls."""
    rows = [line.split() for line in (GOLDEN / "strace.txt").read_text().splitlines()[2:-2]]
    return {row[-1]: int(row[3]) for row in rows}


def program(extracted: Extracted, name: str, table: str = "system_calls") -> list[dict[str, object]]:
    return [row for row in extracted.tables[table].to_pylist() if row["program"] == name]


@pytest.fixture(scope="module")
def extracted() -> Extracted:
    return syscalls.extract(SyscallsParams(skip=100), GOLDEN)


def test_the_calls_of_a_program_are_those_that_strace_counted(extracted: Extracted) -> None:
    counted = {row["call"]: row["calls"] for row in program(extracted, "dd")}
    expected = strace_counts()
    assert expected.pop("execve") == 1 and counted.pop("exit_group") == 1
    assert counted == expected
    rows = {row["call"]: row for row in program(extracted, "dd")}
    assert rows["openat"]["errors"] == 16 and rows["access"]["errors"] == 1


def test_bytes_are_those_that_dd_was_told_to_copy(extracted: Extracted) -> None:
    rows = {row["call"]: row for row in program(extracted, "dd")}
    # Beside the 50 blocks: what dd reads to start, and the 91 bytes that it reports on standard error.
    assert rows["write"]["bytes"] == 50 * 1000 + 91
    assert rows["read"]["bytes"] > 50 * 1000
    assert rows["openat"]["bytes"] is None and rows["exit_group"]["seconds"] is None


def test_values_are_sums_over_the_programs_of_a_host(extracted: Extracted) -> None:
    values = {value.metric: value.value for value in extracted.values}
    assert {value.host for value in extracted.values} == {"client"}
    calls: Counter[str] = Counter()
    for row in extracted.tables["system_calls"].to_pylist():
        calls[row["call"]] += row["calls"]
    assert values["system_calls"] == calls.total()
    for kind, of_kind in KINDS.items():
        assert values[f"{kind}_calls"] == sum(calls[call] for call in of_kind)
    assert values["read_bytes_per_call"] == values["read_bytes"] / values["read_calls"]
    assert values["system_calls_lost"] == 0


def test_the_cut_is_of_the_chains_and_not_of_the_metrics(extracted: Extracted) -> None:
    rows = program(extracted, "dd", "transitions")
    gram = ("before_3", "before_2", "before_1", "call", "count")
    after = Transitions([tuple(row[name] for name in gram) for row in rows])
    # 225 calls under the name dd; the first 100 of the thread are cut off, 40 of which it made while it was called strace.
    whole = syscalls.extract(SyscallsParams(), GOLDEN)
    gone = Transitions([tuple(row[name] for name in gram) for row in program(whole, "dd", "transitions")])
    assert gone.calls == 225
    assert 0 < after.calls < gone.calls
    assert program(extracted, "dd") == program(whole, "dd")


def test_programs_of_ours_are_left_out(tmp_path: Path) -> None:
    text = (GOLDEN / "client" / "system-calls.count").read_text()
    for host, remains in (("client", {"sh", "strace"}), (MACHINE, {"sh", "strace", "init"})):
        (tmp_path / host).mkdir()
        (tmp_path / host / "system-calls.count").write_text(text.replace(" dd\n", " init\n"))
        found = syscalls.extract(SyscallsParams(), tmp_path)
        assert {row["program"] for row in found.tables["system_calls"].to_pylist()} == remains
        shutil.rmtree(tmp_path / host)


@pytest.mark.parametrize("host", ["client", MACHINE])
@pytest.mark.parametrize("name", ["irtt", "tcpdump", "owping", "owampd"])
def test_calls_of_instruments_are_a_cost_of_their_own_and_none_of_the_workload(tmp_path: Path, host: str, name: str) -> None:
    def values(of: str, lines: str) -> dict[str, float | None]:
        folder = tmp_path / of / host
        folder.mkdir(parents=True)
        head = "twinbed-syscalls-count 2\nmethod bpf\ntimes none\ntimed_share 0\n\n@ 0 0\n"
        (folder / "system-calls.count").write_text(head + lines)
        found = syscalls.extract(SyscallsParams(), folder.parent)
        assert {row["program"] for table in ("system_calls", "transitions") for row in found.tables[table].to_pylist()} == {
            "ab"
        }
        return {value.metric: value.value for value in found.values}

    workload = "s 1 7 7 ab\nt 1 b - - - 0 215\nc 1 b 0 215 215 3 9000 0 - -\n"
    instrument = f"s 2 9 9 {name}\nt 2 b - - - 0 183\nc 2 b 0 183 183 90 7000 0 - -\n"
    alone = values("alone", f"{workload}end 9 215 0\n")
    beside = values("beside", f"{workload}{instrument}end 9 398 0\n")
    assert (alone.pop("instrument_calls"), beside.pop("instrument_calls")) == (0, 183)
    assert alone == beside and beside["read_calls"] == 215


def test_times_of_a_sample_are_estimates_with_an_error(tmp_path: Path) -> None:
    # 10 sleeps, of which 1, 2, 3 and 4 s were timed: 25 s with a standard error of 10 sqrt((5/3) / 4 (1 - 4/10)) = 5 s.
    lines = """t 1 b - - - 35 10
        t 1 b - - 35 39 30
        t 1 b - 35 39 231 1
        c 1 b 35 10 10 0 - SLEPT
        c 1 b 39 30 30 0 - 0 0 0
        c 1 b 231 1 0 0 - 0 0 0"""

    def found(times: str, share: str, slept: str) -> Extracted:
        folder = tmp_path / times / "client"
        folder.mkdir(parents=True)
        head = f"twinbed-syscalls-count 2\nmethod bpf\ntimes {times}\ntimed_share {share}\n\n@ 0 0\ns 1 7 7 a\n"
        text = head + "".join(line.strip() + "\n" for line in lines.replace("SLEPT", slept).splitlines()) + "end 9 41 0\n"
        (folder / "system-calls.count").write_text(text)
        return syscalls.extract(SyscallsParams(), folder.parent)

    sampled = found("sampled", "0.0625", "4 10000000000 30000000000000000000")
    rows = {row["call"]: row for row in program(sampled, "a")}
    sleep, other = rows["nanosleep"], rows["getpid"]
    assert (sleep["timed_calls"], sleep["seconds"], sleep["seconds_standard_error"]) == (4, 25.0, 5.0)
    assert (other["calls"], other["timed_calls"], other["seconds"], other["seconds_standard_error"]) == (30, 0, None, None)
    values = {value.metric: value.value for value in sampled.values}
    assert (values["wait_seconds"], values["system_call_seconds"], values["system_calls"]) == (25.0, None, 41)
    (row,) = sampled.tables["system_call_probes"].to_pylist()
    assert (row["times"], row["timed_share"]) == ("sampled", 0.0625)
    assert not sampled.cautions
    none = {value.metric: value.value for value in found("none", "0", "0 - -").values}
    assert (none["wait_seconds"], none["system_call_seconds"], none["wait_calls"]) == (None, None, 10)


def test_lost_calls_and_slower_methods_and_files_cut_off_are_cautions(extracted: Extracted, tmp_path: Path) -> None:
    assert not extracted.cautions
    lines = (GOLDEN / "client" / "system-calls.count").read_text().splitlines(keepends=True)
    end = lines[-1].split()
    lost = [*lines[:-1], f"lost 7\nend {end[1]} {end[2]} 7\n"]
    slow = [line.replace("method bpf", "method tracefs\nrefused bpf: not permitted") for line in lines]
    expected = {Kind.CALLS_LOST: lost, Kind.SLOW_TRACING: slow, Kind.UNREADABLE: lines[:-1]}
    for kind, content in expected.items():
        folder = tmp_path / kind.name / "server"
        folder.mkdir(parents=True)
        (folder / "system-calls.count").write_text("".join(content))
        found = syscalls.extract(SyscallsParams(), folder.parent)
        assert [caution.kind for caution in found.cautions] == [kind]
        assert "server" in found.cautions[0].detail
    row = syscalls.extract(SyscallsParams(), tmp_path / "SLOW_TRACING").tables["system_call_probes"].to_pylist()[0]
    assert (row["method"], row["refused"]) == ("tracefs", "bpf: not permitted")


def test_hosts_are_seen_from_inside_and_the_machine_on_request() -> None:
    (command,) = syscalls.plan(SyscallsParams(), CONTAINER)
    assert command.argv[:5] == ("twinbed-probe", "syscalls", "count", "--out", "{artifacts}/system-calls.count")
    assert command.ready == Ready(says=b"ready") and command.stop == 2 and "--system-wide" not in command.argv
    assert syscalls.plan(SyscallsParams(), GUEST) == [command]
    assert not syscalls.plan(SyscallsParams(), LAB)
    (wide,) = syscalls.plan(SyscallsParams(system_wide=True), LAB)
    assert wide.argv[-1] == "--system-wide"
    (inside,) = syscalls.plan(SyscallsParams(system_wide=True), CONTAINER)
    assert "--system-wide" not in inside.argv


def test_each_mode_has_its_own_options() -> None:
    (count,) = syscalls.plan(SyscallsParams(skip=1_000_000, slice="500ms", states=4096), CONTAINER)
    assert count.argv[5:] == ("--skip", "1000000", "--states", "4096", "--times", "sampled", "--slice", "0.5")
    (exact,) = syscalls.plan(SyscallsParams(times="all"), CONTAINER)
    assert exact.argv[-2:] == ("--times", "all")
    (trace,) = syscalls.plan(SyscallsParams(mode="trace", buffer="16MiB", skip=5), CONTAINER)
    assert trace.argv[2:] == ("trace", "--out", "{artifacts}/system-calls.trace", "--buffer", "16384")


@pytest.mark.parametrize(
    "setting", [{"mode": "strace"}, {"skip": -1}, {"slice": "1ms"}, {"times": "some"}, {"states": 0}, {"buffer": "1B"}]
)
def test_settings_that_the_probe_would_refuse(setting: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SyscallsParams(**setting)


def test_every_call_has_one_kind() -> None:
    calls = [call for of_kind in KINDS.values() for call in of_kind]
    assert len(calls) == len(set(calls))
    assert kind_of("recvfrom") == "read" and kind_of("getpid") == "other"
