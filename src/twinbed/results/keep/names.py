"""Files in the folder of a run of which less was kept. Nothing is imported here: whoever opens results asks for these names."""

KEPT, ROWS = "kept.json", "rows.zip"
