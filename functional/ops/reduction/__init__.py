"""Ops that combine the elements along dimensions."""
