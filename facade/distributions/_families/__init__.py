"""Bases and checks that distributions share."""
