"""Which NICs guests really have here: a client and a server with each, booted, their links up, everything read back.

Booting takes seconds, so it is done only when asked for, and remembered.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

from twinbed.contracts.check import Check
from twinbed.contracts.site import Installed, Site
from twinbed.hosts import scratch
from twinbed.hosts.cache import cache_root, keep, recall
from twinbed.hosts.error import HostError
from twinbed.links.lab_bed import LabDriver
from twinbed.model.json import Document
from twinbed.model.nic import NIC_MODELS
from twinbed.model.topology import Topology
from twinbed.testbeds.qemu import memory
from twinbed.testbeds.qemu.settings import QemuSettings

GROUP = "NIC"
AT_ONCE = 2
"""Pairs that boot side by side: more of them only share the same CPUs."""


def nics(driver: LabDriver[QemuSettings], installed: Installed, *, boot: bool) -> list[Check]:
    """Every NIC model that a study can ask for. Without ``boot``, those that have not booted yet are reported as not tried."""
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        return list(pool.map(lambda model: _nic(driver, model, installed, boot), NIC_MODELS))


def _nic(driver: LabDriver[QemuSettings], model: str, installed: Installed, boot: bool) -> Check:
    settings = QemuSettings(nic=model, boot="fresh")
    refused = next((check for check in driver.check(settings) if not check.works), None)
    if refused is not None:
        return Check(model, False, refused.found, refused.mend, required=False, group=GROUP)
    file = memory.place(cache_root() / "nics", installed.image, model)
    known = recall(file)
    if known is None and boot:
        known = _boot(driver, settings, installed)
        keep(file, known)
    if known is None:
        return Check(
            *(model, False, "no guest has booted with it since this machine did"),
            "twinbed check --boot boots two with each",
            required=False,
            group=GROUP,
            tried=False,
        )
    mend = "" if known["works"] else "leave this NIC out of the study, or try another QEMU"
    return Check(model, bool(known["works"]), str(known["found"]), mend, required=False, group=GROUP)


def _boot(driver: LabDriver[QemuSettings], settings: QemuSettings, installed: Installed) -> Document:
    began = time.monotonic()
    with scratch.folder() as folder:
        site = Site("check", installed.probe, installed.image, folder, tuple(sorted(os.sched_getaffinity(0))))
        try:
            with driver.up(settings, Topology(), site) as bed:
                wrong = [item for item in bed.applied if not item.agrees]
        except HostError as error:
            return {"works": False, "found": " ".join(str(error).split())}
    if wrong:
        differences = "; ".join(f"{item.subject}: {item.setting} is {item.found!r}, not {item.asked!r}" for item in wrong)
        return {"works": False, "found": differences}
    return {"works": True, "found": f"two guests booted with it and had a link after {time.monotonic() - began:.1f} s"}
