"""Compiled inner loops: arrays in, arrays out.

Nothing here knows a name, a schema or a file. Every kernel has plain arrays (or NamedTuples of
arrays) as arguments, so that a second process loads it from disk and Python threads run it side by
side; :func:`~edgegraft.kernels.compiler.kernel` compiles and keeps it.
"""
