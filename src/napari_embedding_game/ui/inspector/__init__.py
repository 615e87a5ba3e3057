"""The views of clusters, of the selection and of plots."""
