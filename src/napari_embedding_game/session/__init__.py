"""What the application is doing: settings, selection, run control, reports.

No Qt and no napari in here: a notebook can drive a session, and a test needs
no window.
"""
