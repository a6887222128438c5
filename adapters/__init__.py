"""Adapters to other libraries: one module a library, which alone imports it."""

from ._summary import summary as summary
