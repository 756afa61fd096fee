"""Mutual information of a batch of tables."""

import numpy as np

from edgegraft.kernels.compiler import kernel


@kernel
def mutual_information(values, shapes, offsets, out):
    """Write the mutual information (nats) of each table of counts or weights to `out`."""
    for k in range(shapes.shape[0]):
        rows = shapes[k, 0]
        columns = shapes[k, 1]
        table = values[offsets[k] : offsets[k + 1]].reshape(rows, columns)
        by_row = np.zeros(rows)
        by_column = np.zeros(columns)
        total = 0.0
        for a in range(rows):
            for b in range(columns):
                by_row[a] += table[a, b]
                by_column[b] += table[a, b]
                total += table[a, b]
        information = 0.0
        if total > 0:
            for a in range(rows):
                for b in range(columns):
                    if table[a, b] > 0:
                        ratio = table[a, b] * total / (by_row[a] * by_column[b])
                        information += table[a, b] * np.log(ratio)
            information /= total
        out[k] = max(information, 0.0)
