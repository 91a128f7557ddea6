"""Driver ``model``: a third fidelity at no cost (docs/model.md)."""

from twinbed.testbeds.model.driver import model

__all__ = ["model"]
