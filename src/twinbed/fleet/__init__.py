"""A study's runs spread over machines: workers of a dask scheduler that offer the resource ``lab`` (docs/scale.md)."""
