"""What pages and the command line call: tables, plans, runs, reviews, exports."""
