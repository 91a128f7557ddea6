"""Keeping less of a run than was collected: its rows, and the packets' headers of captures."""
