"""Scan and focus: cheap private looks at all small sets of columns, then counts where they pay."""
