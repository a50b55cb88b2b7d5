"""Pages: widgets in, services called, figures shown. Each file only defines `render()`."""
