"""Compute neighbour graphs, edge weights and start layouts."""
