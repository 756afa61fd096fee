"""Choosing the penalty: a level from the rows alone, or the best point of a path.

path        a model per penalty, each run warm from the one before; its EBIC, and how much its edges
            change with the rows (StARS)
held_out    what rows outside the fit say: of a graph that is given, and of a grid in folds
"""
