"""Neighbours, the weights of their edges, and where the points start."""
