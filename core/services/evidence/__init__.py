"""What goes along with a release, for who must judge it."""
