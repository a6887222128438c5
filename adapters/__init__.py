"""Adapters to other libraries: one module a library, which alone imports it."""
