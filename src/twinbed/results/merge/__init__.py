"""Several results folders as one, testbeds side by side.

A merge makes a results folder like any other; its ``study.json`` names the ``sources``, which stay as they are.  Runs get ids
of their own, since two sources may have made the same run.  Levels of the same meaning are written the same. A factor that a
source lacks is looked up in the settings of its runs, if it has the name of a setting.  If sources disagree, each keeps its
own, and comparisons carry a caution.
"""
