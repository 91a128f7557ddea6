"""Forms of output: HTML, LaTeX, Markdown, text of a terminal, tables, plots, numbers in words.  It knows no analysis."""
