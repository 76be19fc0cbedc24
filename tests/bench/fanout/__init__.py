"""One writer, many readers: the same load on our kernel and on the servers of others."""
