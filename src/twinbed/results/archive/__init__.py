"""Archives of results as one file for artifact evaluation: packed, and opened with care.

A zip file that is an RO-Crate (version 1.1), with the checksums of all its files in ``SHA256SUMS``, for ``sha256sum --check``.
"""
