"""Torch parts that models are assembled from; imported only when a fit or a sample starts."""
