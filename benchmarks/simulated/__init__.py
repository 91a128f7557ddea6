"""Simulated studies: possible distributions of values, and the program's methods on thousands of samples at once."""
