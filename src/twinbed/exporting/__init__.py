"""Results as files for papers and notebooks: tables, LaTeX, figures, chains, flent's files.

Each kind is a part of the exported folder, which is always written as a whole; ``folder`` checks which folders may be used.
"""
