"""A map as code: notebook, script and the paragraph on methods of a paper."""
