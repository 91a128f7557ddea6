"""A link's capture as a security monitor sees it: its connections by class, and the logs of engines."""
