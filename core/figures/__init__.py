"""Plain dicts → Plotly figures, one file a picture."""
