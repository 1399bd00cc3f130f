r"""The normal posterior of the model's parameters: information that is known only in part, solved.

The information A of larger sets, :math:`\sum g g' / v`, is a matrix of all pairs of arms. Kept are
its blocks D, one per arm (less what arms share, see ``own_part``), and its products AW with four
directions W: all worths together, worths in the proportions of a reference, all extra losses
together, and the curvature. Pairs of arms meet as chance has it, so the rest of the matrix carries
little. The matrix of this form that is right along W and like D elsewhere,

.. math:: \hat A = D - D W (W' D W)^{-1} W' D + A W (W' A W)^{-1} W' A,

is that of a block BFGS step, and never indefinite. All products cost O(M). Directions may be
parallel, and early on there is nothing along some of them: each of the two middle matrices is
taken apart into its eigenvectors, so that what is to cancel is small from the start.
"""

from collections.abc import Callable

import numpy as np

from evenhand.learners.model import DIRECTIONS, Merits, Sums
from evenhand.typing import Floats, Ints, compiled

TINY = 1e-300
RIDGE = 1e-10  # relative: a combination of directions with less than this along it counts as none
SIGNS = np.repeat([-1.0, 1.0], DIRECTIONS)


class Information:
    """What larger sets say about the parameters (x, eta, gamma), as far as it is kept."""

    def __init__(self, sums: Sums, reference: Floats) -> None:
        self.up = up = sums.up
        cells = up * sums.cells
        self.m = m = len(cells)
        self.score = np.concatenate([cells[:, 3], cells[:, 4], up * sums.curve[1:]])
        self.directions = np.zeros((DIRECTIONS, 2 * m + 1))
        self.directions[0, :m] = self.directions[2, m:-1] = self.directions[3, -1] = 1.0
        self.directions[1, :m] = reference
        self.along = np.empty((DIRECTIONS, 2 * m + 1))
        self.along[:, :m], self.along[:, m:-1] = cells[:, 5::2].T, cells[:, 6::2].T
        self.along[:, -1] = self.directions[:, :-1] @ self.along[3, :-1]
        self.along[3, -1] = up * sums.curve[0]
        self.blocks = own_part(cells)
        self.curve = self.along[3, -1]
        # D + sides' SIGNS sides
        self.sides = _roots(self.directions, self._diagonal(self.directions), self.along)

    def _diagonal(self, vectors: Floats) -> Floats:
        return _blockwise(self.blocks, self.curve, vectors)

    def times(self, vector: Floats) -> Floats:
        """Product with a vector."""
        return self._diagonal(vector) + (SIGNS * (self.sides @ vector)) @ self.sides

    def without(self, arms: Ints) -> Floats:
        """Products with the directions (m, 8), as in :class:`Sums`, of what is left without arms.

        Their rows and columns of the matrix become 0, and so it stays one that is never indefinite.
        """
        m = self.m
        places = np.append(arms, m + arms)
        theirs = np.zeros_like(self.directions)
        theirs[:, places] = self.directions[:, places]
        along = self.along - self._diagonal(theirs) - (SIGNS * (theirs @ self.sides.T)) @ self.sides
        along[:, places] = 0.0
        products: Floats = np.stack([along[:, :m], along[:, m:-1]]).reshape(2, DIRECTIONS, m)
        return products.transpose(2, 1, 0).reshape(m, -1) / self.up


def _blockwise(blocks: tuple[Floats, Floats, Floats], curve: float, vectors: Floats) -> Floats:
    """Products (..., 2m + 1) of a matrix of blocks, one per arm, and of the curvature's."""
    result = np.empty_like(vectors)
    width = vectors.shape[-1]
    multiply(*blocks, curve, vectors.reshape(-1, width), result.reshape(-1, width))
    return result


@compiled
def multiply(
    xx: Floats, xe: Floats, ee: Floats, curve: float, vectors: Floats, result: Floats
) -> None:
    """Write the products of rows (n, 2m + 1) with such a matrix."""
    m = len(xx)
    for i in range(len(vectors)):
        x, eta, by_x, by_eta = vectors[i, :m], vectors[i, m:], result[i, :m], result[i, m:]
        for a in range(m):
            by_x[a] = xx[a] * x[a] + xe[a] * eta[a]
            by_eta[a] = xe[a] * x[a] + ee[a] * eta[a]
        result[i, 2 * m] = curve * vectors[i, 2 * m]


def _roots(directions: Floats, *products: Floats) -> Floats:
    """Rows Z per product P = BW of a matrix B, such that Z'Z = P' (W'P)^-1 P."""
    sides = np.stack(products)
    core = sides @ directions.T
    scale = np.sqrt(np.maximum(np.diagonal(core, axis1=1, axis2=2), TINY))
    values, vectors = np.linalg.eigh(core / (scale[:, :, None] * scale[:, None, :]))
    vectors /= scale[:, :, None] * np.sqrt(np.maximum(values, 0.0) + RIDGE)[:, None, :]
    roots: Floats = vectors.swapaxes(1, 2) @ sides
    return roots.reshape(-1, directions.shape[1])


@compiled
def own_part(cells: Floats) -> tuple[Floats, Floats, Floats]:
    """Blocks of the arms without what they share with all others.

    If arms meet as chance has it, what they share is f f' with row sums f_a (F - f_a): it is in
    the directions already, and taken off the blocks, up to a share that keeps them positive.
    """
    m, total, squares = len(cells), 0.0, 0.0
    blocks = np.empty((3, m))
    for a in range(m):
        fx = cells[a, 5] - cells[a, 0]
        total += fx
        squares += fx * fx
    square = total
    for _ in range(8 if total > 0.0 else 0):
        square = total + squares / square
    for a in range(m):
        xx, xe, ee = cells[a, 0], cells[a, 1], cells[a, 2]
        fx, fe, part = cells[a, 5] - xx, cells[a, 6] - xe, 0.0
        if total > 0.0:
            det = max(xx * ee - xe * xe, 0.0)
            share = ee * fx * fx - 2.0 * xe * fx * fe + xx * fe * fe
            most = 0.95 * det * square if det > 1e-12 * xx * ee else 0.0
            part = most / (max(share, most) + TINY) / square
        blocks[0, a] = xx - part * fx * fx
        blocks[1, a] = xe - part * fx * fe
        blocks[2, a] = ee - part * fe * fe
    return blocks[0], blocks[1], blocks[2]


class Posterior:
    """Inverse of the information plus a diagonal prior."""

    def __init__(self, information: Information, prior: Floats) -> None:
        m = self.m = information.m
        xx, xe, ee = information.blocks
        xx, ee = xx + prior[:m], ee + prior[m:-1]
        det = xx * ee - xe * xe
        self.blocks = ee / det, -xe / det, xx / det
        self.curve = 1.0 / (information.curve + prior[-1])
        self.sides = self._base(information.sides)
        core = information.sides @ self.sides.T
        core.flat[:: 2 * DIRECTIONS + 1] += SIGNS
        self.core = np.linalg.inv(core)

    def _base(self, vectors: Floats) -> Floats:
        return _blockwise(self.blocks, self.curve, vectors)

    def solve(self, right: Floats) -> Floats:
        """Product with a vector."""
        return self._base(right) - (self.core @ (self.sides @ right)) @ self.sides

    def variances(self) -> Floats:
        """Diagonal (2m + 1,)."""
        xx, _, ee = self.blocks
        base = np.concatenate([xx, ee, [self.curve]])
        return base - ((self.core @ self.sides) * self.sides).sum(axis=0)

    def given_curve(self) -> tuple[Floats, Floats]:
        """How all parameters (2m + 1,) go with the curvature, and what is left if it is known.

        The latter are variances (3, m): of x, of x with eta, of eta.
        """
        m, (xx, xe, ee) = self.m, self.blocks
        ridge = self.solve(np.append(np.zeros(2 * m), 1.0))
        part = self.core @ self.sides
        px, (sx, se) = part[:, :m], (self.sides[:, :m], self.sides[:, m:-1])
        pe = part[:, m:-1]
        blocks = np.array([xx - (px * sx).sum(0), xe - (px * se).sum(0), ee - (pe * se).sum(0)])
        x, eta, all = ridge[:m], ridge[m:-1], ridge[-1]
        blocks -= np.array([x * x, x * eta, eta * eta]) / all
        return ridge / all, blocks

    def of_merits(self, merits: Merits) -> tuple[Floats, Floats]:
        """Variances (m,) of the model's merits, and their covariances with the sum of all."""
        m, (xx, xe, ee) = self.m, self.blocks
        _, dx, de, ux, ue, bend = merits
        sx, se = self.sides[:, :m], self.sides[:, m:-1]
        low = dx * sx + de * se + bend * self.sides[:, -1:]
        low += sx.sum(axis=1)[:, None] * ux + se.sum(axis=1)[:, None] * ue
        jx, je = dx * xx + de * xe, dx * xe + de * ee
        square = dx * jx + de * je + 2.0 * (ux * jx + ue * je) + bend * bend * self.curve
        square += ux * ux * xx.sum() + 2.0 * ux * ue * xe.sum() + ue * ue * ee.sum()
        inner = self.core @ low
        tx, te = dx + ux.sum(), de + ue.sum()
        vx, ve = xx * tx + xe * te, xe * tx + ee * te
        shared = dx * vx + de * ve + ux * vx.sum() + ue * ve.sum() + bend * self.curve * bend.sum()
        return square - (low * inner).sum(axis=0), shared - low.sum(axis=1) @ inner


def refine(
    posterior: Posterior, exact: Callable[[Floats], Floats], right: Floats, turns: int
) -> Floats:
    """Solve with the exact information, by conjugate gradients from what is kept of it.

    Always so many turns, unless nothing is left: where to stop would hang on the last digits, and
    with it on the order in which rewards were told.
    """
    found = posterior.solve(right)
    residual = right - exact(found)
    direction = better = posterior.solve(residual)
    left = first = float(residual @ better)
    for _ in range(turns):
        if left <= 1e-20 * first:
            break
        product = exact(direction)
        length = left / float(direction @ product)
        found, residual = found + length * direction, residual - length * product
        better = posterior.solve(residual)
        left, before = float(residual @ better), left
        direction = better + left / before * direction
    return found
