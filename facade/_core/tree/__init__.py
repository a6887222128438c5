"""Trees of containers: their leaves, their structure and the classes that take part."""
