"""pytest fixtures with an empty HBase-compatible server for each test."""
