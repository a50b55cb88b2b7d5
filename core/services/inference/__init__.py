"""Questions that synthetic tables answer, and how far the answers may be off."""
