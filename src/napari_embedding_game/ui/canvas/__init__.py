"""The map on napari's canvas: layers, mouse, hover, cluster labels."""
