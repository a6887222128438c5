"""Values that are read and written on the host, without a program."""
