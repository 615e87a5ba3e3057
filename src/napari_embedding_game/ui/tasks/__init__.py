"""Reading and writing in the background: each task has a worker."""
