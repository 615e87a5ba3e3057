"""The controls of the main dock for data, method, run, display and selection."""
