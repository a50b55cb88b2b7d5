"""What the command line does, one module a command; imported when the command is called."""
