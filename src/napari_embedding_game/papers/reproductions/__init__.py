"""Reproduce figures and tables of the papers, with criteria."""
