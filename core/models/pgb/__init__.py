"""Private Post-GAN Boosting: the best mixture of all generators that a GAN went through."""
