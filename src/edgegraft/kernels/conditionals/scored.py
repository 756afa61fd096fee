"""Conditionals of columns whose edges are weights of scores: a few numbers per row and neighbour.

    eta_x = sum over the neighbours' features of weight * feature,   logit_a = u_a + phi_a' eta

The states are expanded once per row, whatever the number of neighbours, and folded once: the
residual of a score is its value less its expectation. Rows go by blocks that stay in cache.
"""

import numpy as np

from edgegraft.kernels.compiler import kernel

from .lanes import exp_in_place

BLOCK = 512


@kernel(fastmath={"contract", "reassoc", "nsz", "arcp"})
def score_conditional(codes, weights, features, sources, slopes, node, phi, residuals, sums, nodes):
    """Return the summed loss of one target; write its residuals and the sums over the rows.

    The target has `codes` (the number of states for a missing cell), ``(s,)`` `node` logits and
    ``(s, k)`` scores `phi`. `sources` name the neighbours' rows of the ``(features, rows)`` array
    of all `features`, zero if a cell is missing, and `slopes` are their ``(k, m)`` weights. Rows
    are a multiple of 16. Written are weight times score less expectation (`residuals`, (k, rows)),
    its products with the sources (`sums`, (k, m)), and the expected weight of each state (`nodes`).
    """
    s, k = phi.shape
    n_rows = codes.shape[0]
    eta = np.empty((k, BLOCK), features.dtype)
    logits = np.empty(s * BLOCK, features.dtype)
    top = np.empty(BLOCK, features.dtype)
    total = np.empty(BLOCK, features.dtype)
    own = np.empty(BLOCK, features.dtype)
    loss = 0.0
    for first in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - first)
        for x in range(k):
            along = eta[x]
            along[:] = 0.0
            for m in range(sources.shape[0]):
                weight = slopes[x, m]
                source = features[sources[m], first : first + n]
                for r in range(n):
                    along[r] += weight * source[r]
        for a in range(s):
            logit = logits[a * n : (a + 1) * n]
            start = node[a]
            for r in range(n):
                logit[r] = start
            for x in range(k):
                score = phi[a, x]
                along = eta[x]
                for r in range(n):
                    logit[r] += score * along[r]
            if a == 0:
                for r in range(n):
                    top[r] = logit[r]
            else:
                for r in range(n):
                    top[r] = max(top[r], logit[r])
        for a in range(s):
            logit = logits[a * n : (a + 1) * n]
            for r in range(n):
                logit[r] -= top[r]
        for r in range(n):
            state = min(np.int64(codes[first + r]), s - 1)
            own[r] = logits[state * n + r]
        exp_in_place(logits[: s * n])
        total[:] = 0.0
        for a in range(s):
            logit = logits[a * n : (a + 1) * n]
            for r in range(n):
                total[r] += logit[r]
        for r in range(n):
            known = weights[first + r] if codes[first + r] < s else 0.0 * weights[first + r]
            loss += known * (np.log(total[r]) - own[r])
            total[r] = known / total[r]
        for x in range(k):
            expected = residuals[x, first : first + n]
            for r in range(n):
                state = np.int64(codes[first + r])
                expected[r] = weights[first + r] * phi[state, x] if state < s else 0.0
        for a in range(s):
            logit = logits[a * n : (a + 1) * n]
            shown = logit[0] * 0.0
            for r in range(n):
                logit[r] *= total[r]
                shown += logit[r]
            nodes[a] += shown
            for x in range(k):
                score = phi[a, x]
                expected = residuals[x, first : first + n]
                for r in range(n):
                    expected[r] -= score * logit[r]
        for x in range(k):
            left = residuals[x, first : first + n]
            for m in range(sources.shape[0]):
                source = features[sources[m], first : first + n]
                product = left[0] * 0.0
                for r in range(n):
                    product += left[r] * source[r]
                sums[x, m] += product
    return loss
