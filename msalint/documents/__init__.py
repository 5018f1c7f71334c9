"""Files that hold Python: a document is its pieces of Python text, each with the way back to a place in the file."""
