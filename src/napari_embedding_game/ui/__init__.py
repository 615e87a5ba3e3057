"""The window: the only room that knows napari and Qt."""
