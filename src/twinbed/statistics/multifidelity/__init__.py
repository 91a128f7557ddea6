"""Estimates that mix runs of an expensive model with runs of cheaper ones that had the same draws of uncertain inputs."""
