"""The command socket: every recorded answer is read, in whatever pieces it comes; what is wrong with one is said."""

from __future__ import annotations

import json
import shlex

import pytest

from minimega import recording
from minimega.standin import Fault, StandIn
from twinbed.hosts.error import HostError, HostLost, LimitExceeded
from twinbed.testbeds.minimega.socket import CommandSocket, Decoder, MinimegaError, _understood, quote


@pytest.mark.parametrize("number", range(len(recording.entries())))
def test_every_recorded_answer_is_read(number: int) -> None:
    command, objects = recording.entries()[number]
    said = objects[0]["Resp"][0]
    sent = b"".join(json.dumps(each).encode() for each in objects)
    for pieces in (1, 7, 4096):
        decoder = Decoder()
        found = [each for at in range(0, len(sent), pieces) for each in decoder.feed(sent[at : at + pieces])]
        assert found == objects
    if said["Error"]:
        with pytest.raises(MinimegaError) as failure:
            _understood(command, objects)
        assert said["Error"].strip() in str(failure.value)
        assert command in str(failure.value)
        assert "node1" in str(failure.value)
        return
    entry = _understood(command, objects).entries[0]
    assert entry.text == said["Response"]
    assert [list(row.values()) for row in entry.rows] == (said["Tabular"] or [])
    assert all(list(row) == said["Header"] for row in entry.rows)
    assert entry.data == said["Data"]


def test_several_objects_in_one_piece_and_braces_in_strings() -> None:
    objects = [{"a": '}"{\\'}, {"b": ["{", {"c": '\\"'}]}]
    decoder = Decoder()
    assert decoder.feed((json.dumps(objects[0]) + "\n " + json.dumps(objects[1])).encode()) == objects


@pytest.mark.parametrize("argument", ["plain", "two words", 'a "quote"', "back\\slash", "it's", "# no comment", "", "a\\ b"])
def test_arguments_come_out_as_they_went_in(argument: str) -> None:
    """minimega's manual: words are split at spaces, quoted by " or ', escaped by a backslash; # begins a comment."""
    assert shlex.split(f"cc exec echo {quote(argument)}", comments=True)[3:] == [argument]


def test_a_line_break_is_in_no_command() -> None:
    with pytest.raises(HostError, match="line break"):
        quote("a\nb")


def test_an_answer_in_small_pieces_and_several_parts(server: StandIn) -> None:
    server.chunk_bytes, server.pieces = 3, 3
    assert CommandSocket(server.base / "minimega").ask("version").entries[0].text.startswith("minimega 3.0")


@pytest.mark.parametrize(
    ("kind", "detail", "error", "says"),
    [
        ("error", "no such thing", MinimegaError, "node1: no such thing"),
        ("half", "", HostLost, "closed before the answer was complete"),
        ("closed", "", HostLost, "closed before the answer was complete\\ncheck that minimega runs"),
        ("silent", "", LimitExceeded, "no complete answer after 0.5 s"),
        ("garbage", "Segmentation fault", HostError, "unknown form"),
        ("garbage", "{]}", HostError, "unknown form"),
        ("garbage", "[1]", HostError, "unknown form"),
        ("garbage", '{"Resp": [{"Header": ["a"], "Tabular": [["1", "2"]]}]}', HostError, "unknown form"),
        ("garbage", '{"Resp": 3}', HostError, "unknown form"),
    ],
)
def test_what_goes_wrong_is_said_with_the_command(
    server: StandIn, kind: str, detail: str, error: type[HostError], says: str
) -> None:
    server.faults.append(Fault("version", kind, detail))
    with pytest.raises(error, match=says) as failure:
        CommandSocket(server.base / "minimega").ask("version", limit_s=0.5 if kind == "silent" else 30.0)
    assert "`version`" in str(failure.value)
    assert CommandSocket(server.base / "minimega").ask("version").entries, "the next command is not harmed"


def test_how_far_a_command_has_come_is_no_answer(server: StandIn) -> None:
    """The answer is longer than what is read at once, so that the two are not read together."""
    said = json.dumps({"Resp": [{"Host": "node1", "Response": "x" * 200_000}], "More": False, "Status": False})
    told = json.dumps({"Resp": None, "Rendered": "half of it", "More": False, "Status": True})
    server.faults.append(Fault("version", "garbage", told + said))
    assert CommandSocket(server.base / "minimega").ask("version").first.text == "x" * 200_000


def test_a_table_without_a_column_and_an_answer_of_nobody(server: StandIn) -> None:
    server.faults.append(Fault("host", "garbage", '{"Resp": [{"Host": "n", "Header": ["a"], "Tabular": [["1"]]}]}'))
    (row,) = CommandSocket(server.base / "minimega").ask("host").rows
    assert (row["host"], row["a"], row.get("b")) == ("n", "1", None)
    with pytest.raises(HostError, match=r"no column .b.; it has host, a$"):
        row["b"]
    server.faults.append(Fault("version", "garbage", '{"Resp": []}'))
    with pytest.raises(HostError, match="no node answered"):
        _ = CommandSocket(server.base / "minimega").ask("version").first


def test_no_socket(server: StandIn) -> None:
    with pytest.raises(HostLost, match="No such file or directory"):
        CommandSocket(server.base / "nobody").ask("version")
