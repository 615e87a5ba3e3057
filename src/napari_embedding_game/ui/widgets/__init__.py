"""Separate widgets in napari's Plugins menu, each on the map of the viewer."""
