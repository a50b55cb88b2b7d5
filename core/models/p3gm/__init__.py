"""P3GM: private PCA and mixture, then a decoder trained by DP-SGD."""
