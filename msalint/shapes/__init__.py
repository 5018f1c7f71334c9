"""Pure algebra of axes: sizes, identities, memory order, notation. No libcst, no torch, no I/O."""
