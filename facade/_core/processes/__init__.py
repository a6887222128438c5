"""Processes that compute together: how they find each other, groups of them, and collectives."""
