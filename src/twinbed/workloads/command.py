"""Workload ``command``: programs of the user, declared in the study file alone."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from twinbed.contracts.params import WorkloadParams

PackageName = Annotated[str, Field(pattern="^[a-z0-9][a-z0-9+.-]+$", max_length=100)]
"""A name as Debian's policy allows it (5.6.7)."""


class CommandParams(WorkloadParams):
    """Settings of the user's programs."""

    packages: tuple[PackageName, ...] = Field(
        (),
        max_length=50,
        examples=[["redis-server", "redis-tools"]],
        description="Debian packages to add to the image of all testbeds",
    )
    image: str | None = Field(
        None,
        min_length=1,
        max_length=1000,
        examples=["oci-archive:./app.tar"],
        description="container image whose programs run: oci-archive:FILE, docker-archive:FILE, or a folder; null: twinbed's",
    )
