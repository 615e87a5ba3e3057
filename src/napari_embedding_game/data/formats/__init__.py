"""The file formats that are read, one module each."""
