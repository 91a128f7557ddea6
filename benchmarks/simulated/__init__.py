"""Simulated studies: what values may be like, and the program's methods on thousands of samples at once."""
