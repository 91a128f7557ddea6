"""Keeping less of a run than was collected: its rows, and of captures the packets' headers."""
