"""``vm info``: the guests of a namespace as minimega reports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from twinbed.hosts.error import HostError
from twinbed.model.json import Document, document, documents
from twinbed.testbeds.minimega.socket import CommandSocket

SOURCE = "vm info"


@dataclass(frozen=True, slots=True)
class Machine:
    """A guest: its row of the table and its data."""

    row: Mapping[str, str]
    data: Document

    @property
    def name(self) -> str:
        return self.row["name"]

    @property
    def state(self) -> str:
        return self.row["state"]

    @property
    def uuid(self) -> str:
        return self.row["uuid"]

    @property
    def node(self) -> str:
        return self.row["host"]

    @property
    def network(self) -> Document:
        """Return its first NIC, as minimega understood it."""
        networks = documents(self.data.get("Networks") or [{}])
        return networks[0]

    @property
    def error(self) -> str:
        """Return why it is in state ERROR."""
        return str(document(self.data.get("Tags") or {}).get("error", "minimega gives no reason")).strip()


def machines(socket: CommandSocket) -> dict[str, Machine]:
    """Return the guests of all nodes by name. Raises HostError if table and data differ."""
    answer = socket.ask("vm", "info")
    try:
        data = {(item["Host"], item["Name"]): item for item in answer.data}
        machines = [Machine(row, data[row["host"], row["name"]]) for row in answer.rows]
    except (KeyError, TypeError) as error:
        raise HostError(f"minimega: `vm info`: its table and its Data list different guests: {error!r}") from None
    return {machine.name: machine for machine in machines}


def not_failed(machine: Machine, card: str | None) -> None:
    """Raise HostError for a guest whose launch failed, which minimega does not report at the launch. ``card``: the NIC model in
    the study; minimega takes a model that QEMU lacks for a network's name."""
    if machine.state not in ("ERROR", "QUIT"):
        return
    why = machine.error if machine.state == "ERROR" else "it has ended"
    driver = machine.network.get("Driver")
    hint = ""
    if card is not None and driver not in (None, card):
        hint = f"; QEMU has no card {card!r}: minimega took it for a network's name, and {driver!r} for the card"
    raise HostError(f"{machine.name}: minimega reports {machine.state}: {why}{hint}")
