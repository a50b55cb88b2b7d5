"""DP-auto-GAN: an autoencoder, then a GAN in its latent space."""
