"""Functions that the top namespace gathers, and changes to other libraries."""
