"""α-LMDP: telling whether released columns follow the real ones, and making sure they do not."""
