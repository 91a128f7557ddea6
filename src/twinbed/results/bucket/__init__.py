"""Results that are not a folder: published to a bucket of objects, and opened there without a walk over runs.

``objects/<hash>`` hold what there is (records, tables, the study, raw artifacts), each named by the hash of its own bytes, and
are never changed.  ``snapshots/<number>.json`` lists the objects that results are made of; the one with the highest number
counts.  It is put last, on the condition that there is none of that number yet: that put is the commit, and the only place
where writers meet.
"""
