"""A catalogue of made-up plugins, so that tests of study files do not change when a real plugin does; and pages without
pictures, for tests of other things."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field, model_validator

from twinbed.contracts.params import DriverParams, InstrumentParams, WorkloadParams
from twinbed.instruments.packets import PacketsParams
from twinbed.model.units import Duration, Rate, Size
from twinbed.render import plots
from twinbed.study.catalogue import Catalogue

UNDRAWN = (
    "cli/",
    "imports/",
    "results/",
    "analyses/compare/test_interim.py",
    "analyses/compare/test_levels.py",
    "analyses/compare/test_scales.py",
    "analyses/multifidelity/",
)
"""Tests whose pages have no picture in them, since Vega takes 90 ms for each. Every kind of figure is drawn by the tests of the
page (``report/``), of Python's figures (``api/``), of exports, and of each analysis' own pictures."""


class Container(DriverParams):
    offload: Literal["on", "off"] | None = None

    def estimate_seconds(self) -> float:
        return 0.5


class Qemu(DriverParams):
    nic: Literal["e1000", "rtl8139", "virtio-net-pci"] = "e1000"
    vcpus: int = Field(1, ge=1, le=16)
    memory: Size = Field(256 * 2**20, ge=64 * 2**20)
    offload: Literal["on", "off"] | None = None


class Remote(DriverParams):
    hosts: dict[str, str] = Field(description="role -> user@address")
    offload: Literal["on", "off"] | None = None


class Http(WorkloadParams):
    tool: Literal["ab", "wrk"] = "ab"
    threads: int = Field(1, ge=1)
    payload: Size = 500
    duration: Duration = Field(10.0, gt=0)
    max_requests: int = Field(500_000, ge=1)
    keep_alive: bool = False

    @model_validator(mode="after")
    def _keep_alive(self) -> Http:
        if self.tool == "wrk" and not self.keep_alive:
            raise ValueError("wrk always keeps connections alive")
        return self

    def estimate_seconds(self) -> float:
        return self.duration


class Stream(WorkloadParams):
    rate: Rate = Field(description="bit/s to send")
    duration: Duration = 10.0

    def estimate_seconds(self) -> float:
        return self.duration


class Packets(InstrumentParams):
    snaplen: int = Field(128, ge=64, le=65535)

    def estimate_bytes(self, link_rate: int) -> float:
        return PacketsParams(snaplen=self.snaplen).estimate_bytes(link_rate)


class Counters(InstrumentParams):
    interval: Duration = Field(1.0, gt=0)


@pytest.fixture
def catalogue() -> Catalogue:
    return Catalogue(
        drivers={"container": Container, "qemu": Qemu, "remote": Remote},
        workloads={"http": Http, "stream": Stream},
        instruments={"packets": Packets, "counters": Counters},
    )


@pytest.fixture(scope="module", autouse=True)
def _undrawn(request: pytest.FixtureRequest) -> Iterator[None]:
    if not request.path.relative_to(Path(__file__).parent).as_posix().startswith(UNDRAWN):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "_drawn", lambda spec: f'<svg viewBox="0 0 {len(json.loads(spec))} 1"></svg>')
        yield
