"""What models train with: heads, optimisers, the training loop, and the private GAN."""
