"""Whatever a scheduler or a worker sends, nothing of it is run here, and the command ends with an error that says so."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import msgpack
import pytest

from twinbed.executor import opened
from twinbed.executor.data_only import MESSAGE_BYTES, Refused, refusing, words
from twinbed.model.error import TwinbedError
from unit.executor.hostile import WORKER, Canary, Raw, Script, answer, message, pickled, scheduler
from unit.executor.test_local import square

Put = Callable[[Script, bytes], None]


def _family(name: str, payload: bytes) -> Raw:
    return Raw({"serializer": name, "writeable": [], "type": "x.Y", "type-serialized": payload, "sub-header": {}}, payload)


def _in_list(payload: bytes) -> Raw:
    header = {"serializer": "pickle", "writeable": []}
    return Raw({"is-collection": True, "type-serialized": "list", "sub-headers": [header], "frame-lengths": [1]}, payload)


def handshake(script: Script, payload: bytes) -> None:
    script.handshake = pickled(payload)


def identity(script: Script, payload: bytes) -> None:
    script.replies["identity"] = pickled(payload)


def identity_of_a_family(script: Script, payload: bytes) -> None:
    script.replies["identity"] = {"workers": _family("pickle", payload)}


def identity_that_raises(script: Script, payload: bytes) -> None:
    script.replies["identity"] = {"status": "uncaught-error", "exception": payload, "traceback": payload}


def start(script: Script, payload: bytes) -> None:
    script.start = [pickled(payload)]


def start_that_warns_and_fails(script: Script, payload: bytes) -> None:
    script.start = [{"op": "stream-start", "warning": "\x1b[2J", "error": "another version"}]


def workers(script: Script, payload: bytes) -> None:
    script.replies["ncores"] = {WORKER: pickled(payload)}


def workers_that_are_none(script: Script, payload: bytes) -> None:
    script.replies["ncores"] = {WORKER: "many"}


def report(script: Script, payload: bytes) -> None:
    script.reports = lambda key: [{"op": "key-in-memory", "key": key, "type": pickled(payload)}]


def report_of_an_error(script: Script, payload: bytes) -> None:
    script.reports = lambda key: [{"status": "error", "exception": payload, "traceback": payload}]


def exception(script: Script, payload: bytes) -> None:
    script.reports = lambda key: [{"op": "task-erred", "key": key, "exception": payload, "traceback": None}]


def traceback(script: Script, payload: bytes) -> None:
    honest = pickle.dumps(ValueError("no"))
    script.reports = lambda key: [{"op": "task-erred", "key": key, "exception": honest, "traceback": payload}]


def exception_of_a_family(script: Script, payload: bytes) -> None:
    script.reports = lambda key: [{"op": "task-erred", "key": key, "exception": _family("dask", payload), "traceback": None}]


def result(script: Script, payload: bytes) -> None:
    script.result = pickled(payload)


def result_of_pickle(script: Script, payload: bytes) -> None:
    script.result = _family("pickle", payload)


def result_of_dask(script: Script, payload: bytes) -> None:
    script.result = _family("dask", payload)


def result_in_a_list(script: Script, payload: bytes) -> None:
    script.result = _in_list(payload)


def result_that_is_compressed(script: Script, payload: bytes) -> None:
    script.result = Raw({"serializer": "msgpack", "compression": ["zlib"]}, payload)


def result_that_is_no_answer(script: Script, payload: bytes) -> None:
    script.result = answer(msgpack.packb({"a": 1}))


def result_of_another_type(script: Script, payload: bytes) -> None:
    script.result = answer(b'["four"]')


def result_of_no_kind(script: Script, payload: bytes) -> None:
    script.result = Raw({"serializer": "msgpack"}, msgpack.packb(payload))


def result_that_is_a_text(script: Script, payload: bytes) -> None:
    script.result = "VALUE"


def result_of_too_many_bytes(script: Script, payload: bytes) -> None:
    script.raw = {"gather": struct.pack("Q", MESSAGE_BYTES + 1)}


def result_of_too_many_frames(script: Script, payload: bytes) -> None:
    prelude = struct.pack("3Q", 2, 10, 10 * MESSAGE_BYTES)
    script.raw = {"gather": struct.pack("Q", len(prelude) + 10) + prelude + b"\xc0" * 10}


def answer_to_gather(script: Script, payload: bytes) -> None:
    script.raw = {"gather": message({"status": "uncaught-error", "exception": payload, "traceback": payload})}


PLACES: list[Put] = [
    handshake,
    identity,
    identity_of_a_family,
    identity_that_raises,
    start,
    start_that_warns_and_fails,
    workers,
    workers_that_are_none,
    report,
    report_of_an_error,
    exception,
    traceback,
    exception_of_a_family,
    result,
    result_of_pickle,
    result_of_dask,
    result_in_a_list,
    result_that_is_compressed,
    result_that_is_no_answer,
    result_of_another_type,
    result_of_no_kind,
    result_that_is_a_text,
    result_of_too_many_bytes,
    result_of_too_many_frames,
    answer_to_gather,
]


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("twinbed.executor.cluster.ANSWER_S", 3.0)
    return tmp_path / "canary"


def test_an_honest_one_gets_its_task_done() -> None:
    with scheduler(Script()) as address, opened(address) as executor:
        assert list(executor.map(square, [2])) == [4]


def test_the_pickle_runs_where_it_is_unpickled(canary: Path) -> None:
    pickle.loads(pickle.dumps(Canary(canary)))
    assert canary.exists()


@pytest.mark.parametrize("put", PLACES, ids=lambda put: put.__name__)
def test_nothing_is_run_and_the_command_ends(put: Put, canary: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = Script()
    put(script, pickle.dumps(Canary(canary)))
    with pytest.raises(TwinbedError) as caught, scheduler(script) as address, opened(address) as executor:
        list(executor.map(square, [2]))
    assert caught.value.advice
    assert not canary.exists()
    assert "\x1b" not in capfd.readouterr().err


def test_events_and_types_are_thrown_away(canary: Path, capfd: pytest.CaptureFixture[str]) -> None:
    payload = pickle.dumps(Canary(canary))
    script = Script()
    script.reports = lambda key: [
        {"op": "event", "topic": "warn", "event": [0, {"message": payload, "category": payload}]},
        {"op": "event", "topic": "print", "event": [0, {"args": ["\x1b[2J"]}]},
        {"op": "error", "exception": payload},
        {"op": "key-in-memory", "key": key, "type": payload},
    ]
    with scheduler(script) as address, opened(address) as executor:
        assert list(executor.map(square, [2])) == [4]
    assert not canary.exists()
    assert capfd.readouterr() == ("", "")


def test_an_answer_to_what_all_workers_are_told_runs_nothing(canary: Path) -> None:
    payload = pickle.dumps(Canary(canary))
    script = Script()
    with scheduler(script) as address, opened(address) as executor:
        for reply in (payload, {"status": "error", "exception": payload, "traceback": payload}):
            script.replies["broadcast"] = {WORKER: reply}
            with pytest.raises(Exception, match=r"names|exec|canary"):
                executor.client.run(square, 2)  # type: ignore[attr-defined]
    assert not canary.exists()


def test_no_pickle_finds_a_name_while_a_cluster_is_used(canary: Path) -> None:
    """Also at a place that nobody thought of."""
    with refusing(), pytest.raises(Refused, match="exec"):
        pickle.loads(pickle.dumps(Canary(canary)))
    assert not canary.exists()
    assert pickle.loads(pickle.dumps(Path)) is Path


def test_the_words_of_an_exception_are_read_and_not_run(canary: Path) -> None:
    assert words(pickle.dumps(ModuleNotFoundError("No module named 'twinbed'"))).endswith(
        "ModuleNotFoundError No module named 'twinbed'"
    )
    assert "exec" in words(pickle.dumps(Canary(canary)))
    assert words(None) == words(b"\x80") == "no reason is given"
    assert not canary.exists()
