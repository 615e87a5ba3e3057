"""The window: the only package that imports napari and Qt."""
