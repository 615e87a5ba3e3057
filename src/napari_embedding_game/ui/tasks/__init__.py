"""What is read and written in the background: each task has its own worker."""
