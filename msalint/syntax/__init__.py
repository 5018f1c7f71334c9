"""The only folder that knows libcst: source text to the reader's tree, names, positions."""
