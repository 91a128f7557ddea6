"""Metrics that users declare: in the manifest of an import, or for their own programs in a study file."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from twinbed.metrics.metric import Layer, Metric, Scale
from twinbed.model.units import SIZE_UNITS

NAME = "^[a-z][a-z0-9_]*$"


class Declaration(BaseModel):
    """The declaration of a metric, without its name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unit: str = Field("1", examples=["s"], description="a base unit: s, bytes, bit/s, 1/s, 1; or count, of events")
    layer: Layer = Field(Layer.APPLICATION, description="which layer it describes")
    scale: Scale = Field(Scale.RATIO, description="nominal, ordinal, interval or ratio")
    description: str = Field("", examples=["time of a request"], description="what it means")
    extensive: bool = Field(False, description="whether it grows with the work done")
    headline: bool = Field(True, description="whether the summary shows it")
    margin: float | None = Field(
        None, examples=[2.0], description="for an interval scale: the largest difference that counts as equivalent"
    )

    def declared(self, name: str, unit: str, description: str) -> Metric:
        """Return the metric under its name."""
        scale, extensive, margin = self.scale, self.extensive, self.margin
        return Metric(name, unit, self.layer, description, scale, extensive, self.headline, margin)


class OwnMetric(Declaration):
    """A metric that a manifest declares, of a file of its own making."""

    name: str = Field(pattern=NAME, description="in lower case, words joined by underscores")

    def metric(self) -> Metric:
        return self.declared(self.name, self.unit, self.description)


UNITS: Mapping[str, tuple[str, float, float]] = {
    **{base: (base, 1.0, 1.0) for base in ("s", "bytes", "bit/s", "bytes/s", "1/s", "1", "count")},
    "ms": ("s", 1.0, 1e3),
    "us": ("s", 1.0, 1e6),
    "ns": ("s", 1.0, 1e9),
    "min": ("s", 60.0, 1.0),
    "h": ("s", 3600.0, 1.0),
    **{name: ("bytes", float(size), 1.0) for name, size in SIZE_UNITS.items()},
    **{f"{name}/s": ("bytes/s", float(size), 1.0) for name, size in SIZE_UNITS.items()},
    **{f"{name}/s": ("bit/s", 1000.0**power, 1.0) for power, name in enumerate(("bit", "kbit", "Mbit", "Gbit"))},
    "%": ("1", 1.0, 100.0),
}
"""A unit that a program prints -> the base unit, and what a number is multiplied with and divided by."""
_OTHER_WORDS = {"sec": "s", "seconds": "s", "msec": "ms", "usec": "us", "µs": "us", "μs": "us", "byte": "bytes", "percent": "%"}


def unit_meant(unit: str) -> str | None:
    """Return the unit that was probably meant; None for one that is known, or of a kind of its own (``frames``)."""
    alike = [known for known in UNITS if known.lower() == unit.lower().replace("bps", "bit/s")]
    return None if unit in UNITS else _OTHER_WORDS.get(unit.lower()) or next(iter(alike), None)


def base_unit(unit: str) -> str:
    """Return the base unit; a unit of a kind of its own is one."""
    return UNITS[unit][0] if unit in UNITS else unit
