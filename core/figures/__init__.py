"""Reports, plans and tables as Plotly figures, one file a picture.

Real and synthetic differ in more than colour: filled against outlined or hatched bars, circles
against diamonds. Shares are of all rows of a table, so that bars and "missing" add up to 100 %.
Models arrive as plain dicts (`model_dump(mode="json")`).
"""
