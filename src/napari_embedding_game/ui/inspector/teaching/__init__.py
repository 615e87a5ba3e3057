"""Teach by example: points in named boxes, and what is learned from them."""
