"""Choosing the penalty: a level from the rows alone, or the best point of a path.

levels      what chance passes, and the ridge that weighs as some rows do
path        a model per penalty, each run warm from the one before; its EBIC
held_out    what rows outside the fit say: of a graph that is given, and of a grid in folds
stability   how much the edges of each penalty change with the rows (StARS)
"""
