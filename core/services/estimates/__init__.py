"""What a run may come to before it starts: accuracy and time, from benchmark runs."""
