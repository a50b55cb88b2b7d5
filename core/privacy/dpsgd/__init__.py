"""DP-SGD: batches, clipped gradients, noise."""
