"""Settings of hosts over SSH in a study file."""

from __future__ import annotations

from ipaddress import IPv4Interface
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from twinbed.contracts.host_settings import HostSettings, OnOff
from twinbed.hosts.session import FOLDER
from twinbed.hosts.ssh import Address, destination
from twinbed.model.declaration import TextAlone
from twinbed.model.units import Duration


class RemoteHost(BaseModel):
    """One host. A study file may give only its ``ssh`` as text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ssh: str = Field(min_length=1, examples=["root@c1"], description="USER@HOST, HOST or a Host entry of the ssh configuration")
    nic: str | None = Field(
        None,
        min_length=1,
        max_length=15,
        examples=["eth1"],
        description="the NIC of the experiment link; null: the only possible one",
    )
    port: int | None = Field(None, ge=1, le=65535, examples=[2222], description="port of sshd; null: as in ssh's configuration")
    config: Path | None = Field(
        None,
        examples=["lab.conf"],
        description="an ssh configuration file (user, address, key) instead of your own; the command must have the same file"
        " in `--ssh-config`",
    )
    address: IPv4Interface | None = Field(
        None,
        examples=["10.0.0.2/24"],
        description="address on the experiment link, such as 10.0.0.2/24; null: twinbed's own, 10.77.PAIR.1 or .2",
    )
    folder: str = Field(
        FOLDER, pattern="^/[^\\s]+$", description="folder for the probe, the image and artifacts; only root may write there"
    )

    @model_validator(mode="before")
    @classmethod
    def _text_alone(cls, given: object) -> object:
        return {"ssh": given} if isinstance(given, str) else given

    _plain = field_validator("ssh")(destination)

    def reached(self, name: str) -> Address:
        return Address(name, self.ssh, self.port, self.config.expanduser() if self.config else None)


class RemoteSettings(HostSettings):
    """The hosts, and how they are used."""

    hosts: dict[str, Annotated[RemoteHost, TextAlone("ssh")]] = Field(
        examples=[{"client": "root@c1", "server": "root@s1"}],
        description="ssh destination of each host: client and server, or client1, server1 and so on",
    )
    image: Literal["archive", "none"] = Field(
        "archive", description="archive: the hosts run twinbed's image; none: they run their own tools"
    )
    smt: OnOff | None = Field(
        None, description="simultaneous multithreading (hyperthreading) of the hosts during a run; null: unchanged"
    )
    lease: Duration = Field(
        30.0, ge=2, le=3600, description="a host without contact to twinbed for this long puts everything back by itself"
    )

    @model_validator(mode="after")
    def _own_cpus(self) -> RemoteSettings:
        if self.cpus == "shared":
            raise ValueError("cpus: shared is for hosts on one machine; hosts over SSH have their own CPUs: set cpus: auto")
        return self

    @model_validator(mode="after")
    def _each_once(self) -> RemoteSettings:
        ways: dict[tuple[object, ...], str] = {}
        for name, host in self.hosts.items():
            first = ways.setdefault((host.ssh, host.port, host.config), name)
            if first != name:
                raise ValueError(f"hosts: {first} and {name} are the same host ({host.ssh}): give each a host of its own")
        return self

    @property
    def from_image(self) -> bool:
        return self.image == "archive"

    def estimate_seconds(self) -> float:
        """Return the seconds that a run adds to its workload."""
        return 1.5
