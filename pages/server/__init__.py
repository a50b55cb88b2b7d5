"""The server around the pages: sign-in, requests, uploads, downloads, addresses."""
