"""Files that leave the building: the report as one page, and its findings in sentences."""
