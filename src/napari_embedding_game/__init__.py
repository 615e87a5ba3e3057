"""napari-embedding-game: a live, steerable map of single cells, images or texts."""
