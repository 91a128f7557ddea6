"""Results in a bucket of objects: published there, and opened without a walk over runs.

Objects ``objects/<hash>`` hold the content (records, tables, the study, raw artifacts), each named by the hash of its own
bytes, and never change.  Objects ``snapshots/<number>.json`` list the objects that results are made of; the highest number
counts.  A snapshot is put last, on the condition that its number does not exist yet: that put is the commit, and the only place
where writers meet.
"""
