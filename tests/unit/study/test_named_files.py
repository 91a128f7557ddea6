"""Files and programs of this machine that a study names: none is run, and no other than it should be is read or hashed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.command import twinbed

from twinbed.contracts.place import MACHINE, Target
from twinbed.instruments.monitor import MonitorParams, monitor
from twinbed.model.error import TwinbedError
from twinbed.readers.replay import sample
from twinbed.testbeds.minimega.head import open_head
from twinbed.workloads.replay import ReplayParams

SECRET = "root:$6$secret:19000:0:99999:7:::\n"


def pipe(file: Path) -> None:
    os.mkfifo(file)


def secret(file: Path) -> None:
    file.write_text(SECRET)


def zeros(file: Path) -> None:
    file.symlink_to("/dev/zero")


def folder(file: Path) -> None:
    file.mkdir()


def large(file: Path) -> None:
    with file.open("wb") as sparse:
        sparse.truncate(2**40)


OTHERS = pytest.mark.parametrize(
    "make", [pipe, secret, zeros, folder, large, lambda file: None], ids=lambda make: make.__name__
)


@OTHERS
def test_only_a_capture_is_replayed(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "file")
    with pytest.raises(ValidationError) as caught:
        ReplayParams(capture=str(tmp_path / "file"))
    assert "$6$" not in str(caught.value)
    told = ReplayParams(capture=str(tmp_path / "file"), capture_sha256=hashlib.sha256(SECRET.encode()).hexdigest())
    with pytest.raises(ValueError, match=str(tmp_path)):
        told.content()


def test_a_capture_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(sample.capture())
    assert ReplayParams(capture=str(tmp_path / "file")).content() == sample.capture()


@OTHERS
def test_only_rules_are_rules(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "file")
    with pytest.raises(ValidationError) as caught:
        MonitorParams(engine="suricata", rules=str(tmp_path / "file"))
    assert "$6$" not in str(caught.value)
    told = MonitorParams(
        engine="suricata", rules=str(tmp_path / "file"), rules_sha256=hashlib.sha256(SECRET.encode()).hexdigest()
    )
    with pytest.raises(TwinbedError, match=str(tmp_path)):
        told.trials()
    with pytest.raises(TwinbedError, match=str(tmp_path)):
        monitor.after(told, Target(MACHINE, {"tap0": "client"}, own_kernel=False, captures=True))


RULE = 'alert tcp any any -> any any (msg:"a"; sid:1;{})\n'


@pytest.mark.parametrize(
    "more",
    ["lua:x.lua;", "dataset:set,a,type string,save /etc/x;", "datarep:x;", "LuaJIT : x.lua;", "filestore;", "iprep:src,a,>,1;"],
)
def test_rules_name_no_further_file(more: str, tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("# of ours\n\n" + RULE.format(more))
    with pytest.raises(ValidationError, match="line 3: a rule that runs Lua, or reads or writes a file"):
        MonitorParams(engine="suricata", rules=str(tmp_path / "rules"))


def test_rules_are_held_to_their_hash(tmp_path: Path) -> None:
    file = tmp_path / "rules"
    file.write_text("# of ours\n\n" + RULE.format(""))
    params = MonitorParams(engine="suricata", rules=str(file))
    assert params.trials()
    file.write_text(RULE.format(" rev:2;"))
    with pytest.raises(TwinbedError, match="is not the file that it was"):
        params.trials()


@pytest.mark.parametrize(
    "program",
    ["/home/somebody/suricata", "/usr/../tmp/suricata", "/usr/bin/rm", "/opt/zeek/bin/zeek", "/usr//bin/suricata", "suricata"],
)
def test_an_engine_is_one_that_root_installed(program: str) -> None:
    with pytest.raises(ValidationError):
        MonitorParams(engine="suricata", program=program)


def test_an_engine_may_be_elsewhere_than_in_usr_bin() -> None:
    assert MonitorParams(engine="zeek", program="/opt/zeek/bin/zeek").trials()[0].argv[0] == "/opt/zeek/bin/zeek"


@pytest.mark.parametrize("command", ["check", "plan"])
def test_no_program_that_came_with_a_study_is_run(command: str, tmp_path: Path) -> None:
    program = tmp_path / "suricata"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/canary\n")
    program.chmod(0o755)
    study = {
        "study": "s",
        "testbeds": {"c": {"driver": "container"}},
        "workload": {"kind": "http"},
        "instruments": {"monitor": {"engine": "suricata", "program": str(program)}},
    }
    (tmp_path / "study.yaml").write_text(json.dumps(study))
    done = twinbed(command, "study.yaml", cwd=tmp_path)
    assert done.returncode == 2 and "program must be suricata below /usr or /opt" in done.stderr, done
    assert not (tmp_path / "canary").exists()


@pytest.mark.privileged
def test_a_socket_that_another_user_may_have_made_is_not_minimega_s(tmp_path: Path) -> None:
    os.chown(tmp_path, 61234, 61234)
    with pytest.raises(TwinbedError, match="belongs to user 61234"), open_head(str(tmp_path), None):
        pass


@pytest.mark.parametrize("make", [pipe, zeros, folder], ids=lambda make: make.__name__)
def test_only_a_regular_file_is_hashed_on_the_head_node(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "kernel")
    with open_head(str(tmp_path), None) as head:
        assert head.digest(str(tmp_path / "kernel")) is None
