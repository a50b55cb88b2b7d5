"""DP-GAN: a critic trained by DP-SGD, and a generator that learns from it."""
