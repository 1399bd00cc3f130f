"""The online service: which arms now, and here is what came of it, over HTTP and durable."""
