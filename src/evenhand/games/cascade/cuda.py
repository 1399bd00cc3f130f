"""Influence in a network, simulated on an NVIDIA GPU."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.checks import check_orders, check_rng
from evenhand.games.cascade.gpu import ArmType, Gpu, find_gpu
from evenhand.games.cascade.graph import Arcs
from evenhand.games.cascade.independent import IndependentCascade
from evenhand.games.cascade.skips import LONGEST
from evenhand.games.game import chunks
from evenhand.typing import Floats, Ints, Words, compiled

ALWAYS = 2**64 - 1  # a coin that needs no toss
MAX_BITMAP = 1024  # largest graph, in nodes, for one thread per cascade
CHUNK = 2**24  # queries in one launch: bounds the memory
BY_HAND = 2**13  # up to so many bytes the GPU reads and writes in the memory of the host itself
BY_WARP = 2**18  # a launch of up to so many queries gives each cascade a warp


class CudaCascade(IndependentCascade):
    """Independent cascade on an NVIDIA GPU: the same law, many cascades at once.

    Takes what :class:`IndependentCascade` takes and can stand in its place, with any graph that
    fits into the GPU's memory.

    Parameters
    ----------
    edges, m, p
        As for :class:`IndependentCascade`.

    Notes
    -----
    Needs CuPy, the extra ``gpu``. Each row of a pull draws one 64-bit key from the generator; all
    other random numbers are functions of key, column and node. So rewards depend neither on the
    GPU nor on how a batch is cut, but they are not those of :class:`IndependentCascade` with the
    same generator.

    Examples
    --------
    >>> game = CudaCascade([(0, 1), (1, 2)], 3, p=1.0)  # doctest: +SKIP
    >>> orders, sizes = np.array([[1, 0]]), np.array([[1, 2]])  # doctest: +SKIP
    >>> game.pull(orders, sizes, np.random.default_rng(1)).round(3)  # doctest: +SKIP
    array([[0.667, 1.   ]])
    """

    trajectory = 1
    needs_gpu = True

    def __init__(self, edges: Any, m: int | None = None, p: Any = None) -> None:
        super().__init__(edges, m, p)
        self._forward = _GpuArcs(find_gpu(), self.arcs)

    @cached_property
    def _backward(self) -> "_GpuArcs":
        return _GpuArcs(self._forward.gpu, self.reversed_arcs)

    def pull(self, orders: Ints, sizes: Ints, rng: np.random.Generator) -> Floats:
        """Rewards (n, s) of the sets ``orders[i, :sizes[i, j]]``, each from a fresh cascade."""
        return self._pull(orders, sizes, rng, coupled=False)

    def pull_coupled(self, orders: Ints, sizes: Ints, rng: np.random.Generator) -> Floats:
        """Rewards (n, s) of the sets ``orders[i, :sizes[i, j]]``, arcs decided once per row."""
        return self._pull(orders, sizes, rng, coupled=True)

    def _pull(
        self, orders: Ints, sizes: Ints, rng: np.random.Generator, *, coupled: bool
    ) -> Floats:
        orders, sizes = check_orders(orders, sizes, self.m)
        keys = draw_keys(len(orders), rng)
        rewards = np.empty(sizes.shape)
        for part in chunks(len(orders), max(orders.shape[1], sizes.shape[1]), CHUNK):
            counts = self._forward.spread(orders[part], sizes[part], keys[part], coupled)
            as_shares(counts, self.m, rewards[part].reshape(-1))
        return rewards

    def reverse_rounds(
        self,
        shares: Floats,
        n_rounds: int,
        rng: np.random.Generator,
        roots: Ints | None = None,
    ) -> tuple[Floats, Floats]:
        """Mean credits (m,) over rounds of reverse-reachable sets, and their standard errors.

        A round draws one set from each of its roots: all nodes, or those of ``roots``, of which
        there is one row for every round or one for all. With n roots, each member of a set of r
        nodes gets ``shares[r] / n``. Shares are rounded to multiples of about 2^-62 m, so that sums
        are exact in whatever order they are formed.
        """
        return self._backward.average_credits(shares, draw_keys(n_rounds, rng), roots)


class _GpuArcs:
    """Arcs sorted by source in the GPU's memory, and the launches that walk them."""

    def __init__(self, gpu: Gpu, arcs: Arcs) -> None:
        self.gpu, self.cupy = gpu, gpu.cupy
        self.m, self.n_arcs = len(arcs.starts) - 1, len(arcs.targets)
        self.arm = arm_type(self.m)
        entries, ties = halves(arcs.skips)
        send = self.cupy.asarray
        self.graph = (
            np.uint32(self.m),
            send(arcs.starts.astype(np.uint32)),
            send(arcs.targets.astype(self.arm)),
            np.uint64(0) if arcs.alike else send(kept(arcs.chances, arcs.top)),
            send(entries),
            send(ties),
        )

    def spread(self, orders: Ints, sizes: Ints, keys: Words, coupled: bool) -> NDArray[Any]:
        """How many nodes each prefix reaches (n * s): one copy in, one launch, one copy out.

        Where they are few, a copy takes longer than for the GPU to read and write them in place.
        """
        (n, k), s = orders.shape, sizes.shape[1]
        if n * s == 0:
            return np.empty(0, self.arm)
        size = self.arm().itemsize
        # keys, orders, sizes and the counts lie one behind the other
        starts = 0, 8 * n, 8 * n + size * n * k, 8 * n + size * n * (k + s)
        end = starts[3] + size * n * s
        host, address, device = self.gpu.staging_buffers(end)
        arms = host[8 * n : end].view(self.arm)
        pack(keys, orders, sizes, host[: 8 * n].view(np.uint64), arms)
        copied = end > BY_HAND
        base = device.ptr if copied else address  # pinned memory has the same address on the GPU
        parts = [np.uint64(base + start) for start in starts]
        if copied:
            device.copy_from_host_async(address, starts[3])
        self._launch("pull", n * s, *parts, np.uint32(k), np.uint32(s), np.bool_(coupled))
        if copied:
            (device + starts[3]).copy_to_host_async(address + starts[3], size * n * s)
        self.cupy.cuda.get_current_stream().synchronize()
        return arms[n * (k + s) :]

    def average_credits(
        self, shares: Floats, keys: Words, roots: Ints | None
    ) -> tuple[Floats, Floats]:
        """Mean over rounds of the credits of each node, and its standard error."""
        scale = 62 - self.m.bit_length()  # a round's credits add up to less than 2^63
        units = self.cupy.asarray(np.rint(np.ldexp(shares, scale)).astype(np.uint64))
        mean, squares = self.cupy.zeros(self.m), self.cupy.zeros(self.m)
        fold = self.gpu.kernel("fold", self.arm)
        width = self.m if roots is None else roots.shape[1]
        unit = np.float64(np.ldexp(1.0 / width, -scale))
        for part in chunks(len(keys), self.m, CHUNK):
            rows = len(keys[part])
            credits = self.cupy.zeros((rows, self.m), np.uint64)
            places = (self.cupy.asarray(keys[part]), units, credits, *self._roots(roots, part))
            self._launch("reverse", rows * width, *places)
            sums = (np.uint32(self.m), unit, np.float64(part.start), mean, squares)
            fold((-(-self.m // 128),), (128,), (credits, np.uint32(rows), *sums))
        n = len(keys)
        # where all rounds are alike, rounding may leave a sum of squares below 0
        return mean.get(), np.sqrt(np.maximum(squares.get(), 0.0) / (n - 1) / n)

    def _roots(self, roots: Ints | None, part: slice) -> tuple[Any, np.uint32, np.uint32]:
        """Roots of some rounds, how many a round has, and how far apart those of two rounds are."""
        if roots is None:
            return np.uint64(0), np.uint32(self.m), np.uint32(0)
        same, width = len(roots) == 1, np.uint32(roots.shape[1])
        kept = self.cupy.asarray((roots if same else roots[part]).astype(np.uint32))
        return kept, width, np.uint32(0) if same else width

    def _launch(self, work: str, n: int, *arguments: Any) -> None:
        """Walk n cascades by the kernel that suits their number and the size of the graph."""
        threads = self._threads_per_block
        if n > BY_WARP and threads:
            self._launch_by_thread(work, n, threads, *arguments)
        else:
            self._launch_by_warp(work, n, *arguments)

    def _launch_by_thread(self, work: str, n: int, threads: int, *arguments: Any) -> None:
        blocks = self.gpu.multiprocessors
        threads = min(threads, max(128, -(-n // (32 * blocks)) * 32))
        shared = self._shared_graph + threads * self._bytes_per_thread
        kernel = self.gpu.kernel(f"{work}_by_thread", self.arm)
        every = (*self.graph, *arguments, np.uint32(self.n_arcs), np.uint32(n))
        kernel((blocks,), (threads,), every, shared_mem=shared)

    def _launch_by_warp(self, work: str, n: int, *arguments: Any) -> None:
        warps, own = 4, 4 * (-(-self.m // 32) + self.m)  # bytes: one warp's bitmap and queue
        blocks = min(-(-n // warps), 16 * self.gpu.multiprocessors)
        shared, state = 1024 + warps * own, np.uint64(0)
        if shared > self.gpu.shared:
            blocks = max(1, min(blocks, self.gpu.free_bytes // 2 // (warps * own)))
            shared, state = 1024, self.cupy.empty(blocks * warps * own, np.uint8)
        kernel = self.gpu.kernel(f"{work}_by_warp", self.arm)
        every = (*self.graph, *arguments, state, np.uint32(n))
        kernel((blocks,), (32 * warps,), every, shared_mem=shared)

    @property
    def _shared_graph(self) -> int:
        """Bytes of the graph in shared memory: table of skips, starts and targets."""
        return 4 * (256 + self.m + 1) + self.arm().itemsize * self.n_arcs

    @property
    def _bytes_per_thread(self) -> int:
        """Bytes of the two bitmaps of a thread."""
        return 8 * (-(-self.m // 32))

    @cached_property
    def _threads_per_block(self) -> int:
        """Threads per block where each walks a cascade; 0 where fewer than 128 would fit."""
        left = self.gpu.shared_on_demand - self._shared_graph
        threads = min(1024, left // self._bytes_per_thread // 32 * 32)
        return threads if self.m <= MAX_BITMAP and threads >= 128 else 0


def halves(skips: Words) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Split each entry of a table of skips into two 32-bit words.

    The first holds the upper 24 bits of the chance and the 8 bits of the other skip, the second
    the lower 32 bits of the chance.
    """
    upper = skips >> np.uint64(40) << np.uint64(8) | skips & np.uint64(LONGEST)
    return upper.astype(np.uint32), (skips >> np.uint64(8)).astype(np.uint32)


def kept(chances: Floats, top: float) -> Words:
    """Chance to keep a success at the largest probability, times 2^64; all ones means always."""
    scaled = np.ldexp(chances / top, 64)
    keep = np.full(len(chances), ALWAYS, np.uint64)
    below = scaled < 2.0**64
    keep[below] = scaled[below].astype(np.uint64)
    return keep


def draw_keys(n: int, rng: np.random.Generator) -> Words:
    """Draw one 64-bit key per row, the same in one call or in several."""
    bits = check_rng(rng).bit_generator
    if isinstance(bits, np.random.PCG64):  # numpy's usual one: the same words, sooner
        return bits.random_raw(n)
    return rng.integers(0, 2**64, size=n, dtype=np.uint64)


@compiled
def pack(keys: Words, orders: Ints, sizes: Ints, words: Words, arms: NDArray[Any]) -> None:
    """Write keys, and orders and then sizes as short integers, to where the GPU is sent from."""
    for i in range(len(keys)):
        words[i] = keys[i]
    members, counts, behind = orders.reshape(-1), sizes.reshape(-1), arms[orders.size :]
    for i in range(len(members)):
        arms[i] = members[i]
    for i in range(len(counts)):
        behind[i] = counts[i]


@compiled
def as_shares(counts: NDArray[Any], m: int, shares: Floats) -> None:
    """Divide counts by the number of nodes."""
    for i in range(len(counts)):
        shares[i] = counts[i] / float(m)


def arm_type(m: int) -> ArmType:
    """Smallest integer type that holds nodes and counts of them: 16 bits keep transfers small."""
    return np.uint16 if m < 2**16 else np.uint32
