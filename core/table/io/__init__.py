"""Files and cells to typed frames, and frames to files."""
