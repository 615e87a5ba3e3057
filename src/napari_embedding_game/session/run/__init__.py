"""One run: started, steered, recorded, and repeated exactly."""
