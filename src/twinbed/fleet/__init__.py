"""Spreads a study's runs over machines: workers of a dask scheduler that offer the resource ``lab`` (docs/scale.md)."""
