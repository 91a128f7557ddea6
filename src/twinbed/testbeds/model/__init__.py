"""Driver ``model``: a third fidelity, for nothing (docs/model.md)."""

from twinbed.testbeds.model.driver import model

__all__ = ["model"]
