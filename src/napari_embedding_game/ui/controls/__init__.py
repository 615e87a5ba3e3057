"""The controls of the main dock: data, method, run, display, selection."""
