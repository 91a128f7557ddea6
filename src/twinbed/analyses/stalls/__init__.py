"""Stalls of connections: when, for how long, and what happened then."""
