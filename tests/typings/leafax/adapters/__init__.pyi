from adapters import summary as summary
