"""Results as files for papers and notebooks: tables, LaTeX, figures, chains, flent's files.

Each kind is a part of the exported folder, made anew as a whole; ``folder`` says which folders may be written into.
"""
