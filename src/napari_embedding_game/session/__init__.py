"""The state of the application, without Qt: settings, run, clusters, files.

No Qt and no napari in here: a notebook can drive a session, and a test needs
no window.
"""
