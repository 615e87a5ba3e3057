"""Read file formats, one module for each format."""
