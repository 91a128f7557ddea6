"""Files in the folder of a run that keeps less. Nothing is imported here: every opening of results needs these names."""

KEPT, ROWS = "kept.json", "rows.zip"
