r"""The normal posterior of the model's parameters: information that is known only in part, solved.

The information A of larger sets, :math:`\sum g g' / v`, is a matrix of all pairs of arms. Kept are
its blocks D, one per arm (less what arms share, see :func:`taken_apart`), and its products AW with
four directions W: all worths together, worths in the proportions of a reference, all extra losses
together, and the curvature. Pairs of arms meet as chance has it, so the rest of the matrix carries
little. The matrix of this form that is right along W and like D elsewhere,

.. math:: \hat A = D - D W (W' D W)^{-1} W' D + A W (W' A W)^{-1} W' A,

is that of a block BFGS step, and never indefinite. All products cost O(M). Directions may be
parallel, and early on there is nothing along some of them: both middle matrices are taken apart
direction by direction, each less what those before it say, so that what is to cancel is small from
the start. The inverse of this matrix plus a diagonal is of the same form, a :class:`Matrix`.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from evenhand.learners.model import DIRECTIONS, Merits, Sums, times
from evenhand.products import product
from evenhand.typing import Floats, Ints, compiled, part

TINY = 1e-300
RIDGE = 1e-10  # relative: a combination of directions with less than this along it counts as none
SIDES = 2 * DIRECTIONS
SIGNS = np.diag(np.repeat([-1.0, 1.0], DIRECTIONS))


class Matrix(NamedTuple):
    """A symmetric matrix over (x, eta, gamma): D + Z C Z'.

    Attributes
    ----------
    blocks, curve
        D: blocks (3, m) of the arms, of x with x, of x with eta and of eta with eta, and the
        entry of the curvature.
    sides, core
        Z (2m + 1, 8) and C (8, 8).
    """

    blocks: Floats
    curve: float
    sides: Floats
    core: Floats

    def times(self, vector: Floats) -> Floats:
        """Product with a vector."""
        result = np.zeros(len(vector))
        multiply(self, vector, result)
        return result


NOTHING = Matrix(np.empty((3, 0)), 0.0, np.empty((0, SIDES)), SIGNS)


class Information:
    """What larger sets say about the parameters (x, eta, gamma), as far as it is kept."""

    def __init__(self, sums: Sums, reference: Floats) -> None:
        self.sums, self.reference, self.up = sums, reference, sums.up
        self.m, curve = len(reference), self.up * float(sums.curve[0])
        blocks, sides = taken_apart(sums.cells, self.up, curve, reference)
        self.matrix = Matrix(blocks, curve, sides, SIGNS)

    @property
    def score(self) -> Floats:
        """Its product with how far the parameters are off (2m + 1,)."""
        cells, curve = self.sums.cells, self.sums.curve
        return self.up * np.concatenate([cells[:, 3], cells[:, 4], curve[1:]])

    @property
    def directions(self) -> Floats:
        """W' (4, 2m + 1); like its products below, seldom asked for."""
        m, directions = self.m, np.zeros((DIRECTIONS, 2 * self.m + 1))
        directions[0, :m] = directions[2, m:-1] = directions[3, -1] = 1.0
        directions[1, :m] = self.reference
        return directions

    @property
    def along(self) -> Floats:
        """Its products with them (4, 2m + 1)."""
        cells, m, along = self.sums.cells, self.m, np.empty((DIRECTIONS, 2 * self.m + 1))
        along[:, :m], along[:, m:-1] = self.up * cells[:, 5::2].T, self.up * cells[:, 6::2].T
        along[:, -1] = product(self.directions[:, :-1], along[3, :-1])
        along[3, -1] = self.matrix.curve
        return along

    def without(self, arms: Ints) -> Floats:
        """Products with the directions (m, 8), as in :class:`Sums`, of what is left without arms.

        Their rows and columns of the matrix become 0, and so it stays one that is never indefinite.
        """
        m, directions = self.m, self.directions
        places = np.append(arms, m + arms)
        theirs = np.zeros_like(directions)
        theirs[:, places] = directions[:, places]
        along = self.along - np.stack([self.matrix.times(row) for row in theirs])
        along[:, places] = 0.0
        products: Floats = np.stack([along[:, :m], along[:, m:-1]]).reshape(2, DIRECTIONS, m)
        return products.transpose(2, 1, 0).reshape(m, -1) / self.up


@compiled
def taken_apart(cells: Floats, up: float, curve: float, reference: Floats) -> tuple[Floats, Floats]:
    """Blocks (3, m) of the arms, and sides (2m + 1, 8), such that A^ is both with SIGNS.

    The sides are first the products of D and of A with the directions, then their roots.

    The blocks are those of the arms without what they share with all others. If arms meet as
    chance has it, that is f f' with row sums f_a (F - f_a): it is in the directions already, and
    taken off the blocks, up to a share that keeps them positive.
    """
    m, total, squares = len(cells), 0.0, 0.0
    blocks, sides = np.empty((3, m)), np.zeros((2 * m + 1, SIDES))
    for a in range(m):
        fx = up * (cells[a, 5] - cells[a, 0])
        total += fx
        squares += fx * fx
    square = total
    for _ in range(8 if total > 0.0 else 0):
        square = total + squares / square
    for a in range(m):
        xx, xe, ee = up * cells[a, 0], up * cells[a, 1], up * cells[a, 2]
        fx, fe, taken = up * cells[a, 5] - xx, up * cells[a, 6] - xe, 0.0
        if total > 0.0:
            det = max(xx * ee - xe * xe, 0.0)
            share = ee * fx * fx - 2.0 * xe * fx * fe + xx * fe * fe
            most = 0.95 * det * square if det > 1e-12 * xx * ee else 0.0
            taken = most / (max(share, most) + TINY) / square
        xx, xe, ee = xx - taken * fx * fx, xe - taken * fx * fe, ee - taken * fe * fe
        blocks[0, a], blocks[1, a], blocks[2, a] = xx, xe, ee
        known, b = reference[a], m + a
        sides[a, 0], sides[a, 1], sides[a, 2] = xx, xx * known, xe
        sides[b, 0], sides[b, 1], sides[b, 2] = xe, xe * known, ee
        for d in range(DIRECTIONS):
            sides[a, DIRECTIONS + d] = up * cells[a, 5 + 2 * d]
            sides[b, DIRECTIONS + d] = up * cells[a, 6 + 2 * d]
        sides[2 * m, 4] += sides[a, 7]
        sides[2 * m, 5] += sides[a, 7] * known
        sides[2 * m, 6] += sides[b, 7]
    sides[2 * m, 3] = sides[2 * m, 7] = curve
    for first in (0, DIRECTIONS):
        take_roots(sides[:, first : first + DIRECTIONS], reference)
    return blocks, sides


@part
def take_roots(products: Floats, reference: Floats) -> None:
    """Replace products P = BW of a matrix B by Z such that Z Z' = P (W'P)^-1 P'.

    By Cholesky's decomposition of W'P, scaled to 1s on its diagonal.
    """
    m = len(reference)
    root, scale = np.zeros((DIRECTIONS, DIRECTIONS)), np.empty(DIRECTIONS)
    for j in range(DIRECTIONS):
        for a in range(m):
            root[j, 0] += products[a, j]
            root[j, 1] += reference[a] * products[a, j]
            root[j, 2] += products[m + a, j]
        root[j, 3] = products[2 * m, j]
        scale[j] = 1.0 / np.sqrt(max(root[j, j], TINY))
    for i in range(DIRECTIONS):
        for j in range(i + 1):
            entry = root[i, j] * scale[i] * scale[j]
            for d in range(j):
                entry -= root[i, d] * root[j, d]
            root[i, j] = entry / root[j, j] if j < i else np.sqrt(max(entry, 0.0) + RIDGE)
    for a in range(2 * m + 1):
        for i in range(DIRECTIONS):
            entry = products[a, i] * scale[i]
            for d in range(i):
                entry -= root[i, d] * products[a, d]
            products[a, i] = entry / root[i, i]


class Posterior:
    """Inverse of the information plus a diagonal prior."""

    def __init__(self, information: Information, prior: Floats) -> None:
        m, (blocks, curve, sides, core) = information.m, information.matrix
        x, xe, eta = blocks[0] + prior[:m], blocks[1], blocks[2] + prior[m:-1]
        own = np.array([eta, -xe, x]) / (x * eta - xe * xe)
        self.m, alone, base = m, 1.0 / (curve + float(prior[-1])), np.empty_like(sides)
        base[:m] = own[0, :, None] * sides[:m] + own[1, :, None] * sides[m:-1]
        base[m:-1] = own[1, :, None] * sides[:m] + own[2, :, None] * sides[m:-1]
        base[-1] = alone * sides[-1]
        together: Floats = core + product(sides.T, base)
        self.matrix = Matrix(own, alone, base, -np.linalg.inv(together).astype(np.float64))

    @cached_property
    def variances(self) -> Floats:
        """Of the arms (3, m): of x, of x with eta, and of eta."""
        m, (blocks, _, sides, core) = self.m, self.matrix
        x, eta = sides[:m], sides[m:-1]
        by_x, by_eta = product(x, core), product(eta, core)
        pairs = (by_x, x), (by_x, eta), (by_eta, eta)
        # einsum, as a sum over a short axis takes three times as long
        return blocks + np.array([np.einsum("ij,ij->i", one, other) for one, other in pairs])

    def given_curve(self) -> tuple[Floats, Floats]:
        """How all parameters (2m + 1,) go with the curvature, and what is left if it is known.

        The latter are variances (3, m): of x, of x with eta, of eta.
        """
        m, (_, curve, sides, core) = self.m, self.matrix
        ridge = product(sides, core @ sides[-1])
        ridge[-1] += curve
        x, eta, all = ridge[:m], ridge[m:-1], ridge[-1]
        left = self.variances - np.array([x * x, x * eta, eta * eta]) / all
        return ridge / all, left

    def of_merits(self, merits: Merits) -> tuple[Floats, Floats]:
        """Variances (m,) of the model's merits, and their covariances with the sum of all."""
        m, ((xx, xe, ee), curve, sides, core) = self.m, self.matrix
        _, dx, de, ux, ue, bend = merits
        sx, se = sides[:m].T, sides[m:-1].T
        low = dx * sx + de * se + bend * sides[-1:].T
        low += sx.sum(axis=1)[:, None] * ux + se.sum(axis=1)[:, None] * ue
        jx, je = dx * xx + de * xe, dx * xe + de * ee
        square = dx * jx + de * je + 2.0 * (ux * jx + ue * je) + bend * bend * curve
        square += ux * ux * xx.sum() + 2.0 * ux * ue * xe.sum() + ue * ue * ee.sum()
        inner = product(core, low)
        tx, te = dx + ux.sum(), de + ue.sum()
        vx, ve = xx * tx + xe * te, xe * tx + ee * te
        shared = dx * vx + de * ve + ux * vx.sum() + ue * ve.sum() + bend * curve * bend.sum()
        return square + (low * inner).sum(axis=0), shared + product(low.sum(axis=1), inner)


@compiled
def refine(
    inverse: Matrix,
    rest: Matrix,
    prior: Floats,
    orders: Ints,
    looks: Floats,
    right: Floats,
    turns: int,
) -> Floats:
    """Solve with the exact information, by conjugate gradients from what is kept of it.

    That is of kept sets, and with it ``rest`` and a prior. Always so many turns, unless nothing is
    left: where to stop would hang on the last digits, and with it on the order in which rewards
    were told.
    """
    n, left, first = len(right), 0.0, 0.0
    found, residual, direction = np.zeros(n), right.copy(), np.zeros(n)
    product, better = np.empty(n), np.empty(n)
    for turn in range(turns + 1):  # the first is the whole step by what is kept
        for i in range(n):
            better[i] = 0.0
        multiply(inverse, residual, better)
        left, before = dot(residual, better), left
        first = left if turn == 1 else first
        if turn and left <= 1e-20 * first:
            break
        back = left / before if turn > 1 else 0.0
        for i in range(n):
            direction[i] = better[i] + back * direction[i]
            product[i] = prior[i] * direction[i]
        times(orders, looks, direction, product)
        if len(rest.sides):
            multiply(rest, direction, product)
        length = left / dot(direction, product) if turn else 1.0
        for i in range(n):
            found[i] += length * direction[i]
            residual[i] -= length * product[i]
    return found


@compiled
def multiply(matrix: Matrix, vector: Floats, result: Floats) -> None:
    """Add the product of a matrix with a vector (2m + 1,)."""
    blocks, curve, sides, core = matrix
    xx, xe, ee = blocks[0], blocks[1], blocks[2]
    m, along, inner = len(xx), np.zeros(SIDES), np.zeros(SIDES)
    for i in range(2 * m + 1):
        for d in range(SIDES):
            along[d] += sides[i, d] * vector[i]
    for d in range(SIDES):
        for e in range(SIDES):
            inner[d] += core[d, e] * along[e]
    for i in range(2 * m + 1):
        for d in range(SIDES):
            result[i] += sides[i, d] * inner[d]
    for a in range(m):
        x, eta = vector[a], vector[m + a]
        result[a] += xx[a] * x + xe[a] * eta
        result[m + a] += xe[a] * x + ee[a] * eta
    result[2 * m] += curve * vector[2 * m]


@part
def dot(one: Floats, other: Floats) -> float:
    """Inner product."""
    total = 0.0
    for i in range(len(one)):
        total += one[i] * other[i]
    return total
