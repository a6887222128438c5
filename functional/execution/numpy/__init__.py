"""An interpreter of small programs that computes with NumPy and compiles nothing."""
