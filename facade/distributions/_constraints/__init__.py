"""Regions of values, by what an event is: a number, a vector, a matrix, or several of them."""
