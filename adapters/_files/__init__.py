"""Reading and writing of files of weights."""
