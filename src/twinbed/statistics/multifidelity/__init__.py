"""Estimates that mix runs of a dear model with those of cheaper ones that had the same draws of uncertain inputs."""
