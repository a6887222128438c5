"""Programs as data: ops, calls, nodes, dtypes, symbolic lengths and paths of trees."""
