"""The graph of gradient nodes and the engine that walks it.

Packages import from those before them: `graph`, `forward_mode`, `engine`, `memo`; then what PyTorch
shows beside values, and adds itself to the engine, which does not know of it: `formulas` (nodes of
second derivatives), `data_writes` (`.data`), `saved` (`grad_fn._saved_*`) and `saved_hooks`.
`backward.py` is on top.
"""
