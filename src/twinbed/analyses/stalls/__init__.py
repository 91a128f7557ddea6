"""Stalls: when connections stood still, for how long, and what happened then."""
