"""Facts that know no op: dtypes, handles, the trie, grad modes, locks and trees."""
