"""What a security monitor would make of a link's capture: its connections by class, and what engines wrote of it."""
