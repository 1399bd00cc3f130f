"""Cascades on a GPU: the same code on the processor, and on a GPU where there is one."""

import sys
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from evenhand import merit
from evenhand.datasets import facebook_stand_in
from evenhand.games import CudaCascade
from evenhand.games.cascade import cuda as cascade_cuda
from evenhand.games.cascade import gpu
from evenhand.games.cascade.cuda import ALWAYS, CHUNK, arm_type, draw_keys, halves, kept
from evenhand.games.cascade.gpu import Gpu
from evenhand.games.cascade.skips import LONGEST, skip_table
from evenhand.games.game import chunks
from tests.host_cuda import as_c, host_cascade, host_cupy

EDGES = [[0, 1], [1, 2], [0, 3], [3, 2], [2, 4], [4, 0], [1, 4], [3, 0]]
CHANCES = [0.3, 0.9, 0.5, 0.2, 1.0, 0.6, 0.0, 0.05]
ORDERS = np.array([[3, 1, 4], [0, 2, 1], [4, 3, 2]])
SIZES = np.array([[0, 1, 3], [2, 1, 3], [3, 2, 0]])


def gpu_cascade(edges, m=None, p=None):
    """Make a cascade on a real GPU, or skip."""
    try:
        return CudaCascade(edges, m, p)
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"needs a GPU: {error}")


places = pytest.mark.parametrize("make", [host_cascade, gpu_cascade], ids=["host", "gpu"])


# ---- naive reference: Philox and live arcs in Python's whole numbers ----


def philox(counter, key):
    a, b, c, d = counter
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        x, y = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (y >> 32) ^ b ^ k0, y & 0xFFFFFFFF, (x >> 32) ^ d ^ k1, x & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [a, b, c, d]


@cache
def table_lists(p):
    return [table.tolist() for table in halves(skip_table(p))]


def live_arcs(node, arcs, keep, top, column, key):
    """Offsets of a node's live arcs, given the numbers of its arcs."""
    entries, ties = table_lists(top)
    at, block, live = 0, 0, []
    while at < len(arcs):
        words = philox((node, block, column, 0), key)
        block += 1
        for i, word in enumerate(words):
            if at >= len(arcs):
                break
            cell, coin = word & 255, word >> 8
            stays = coin < entries[cell] >> 8
            if coin == entries[cell] >> 8:
                stays = philox((node, 4 * block + i, column, 1), key)[0] < ties[cell]
            failures = cell if stays else entries[cell] & 255
            at += failures
            if failures < LONGEST and at < len(arcs):
                high, low, _, _ = philox((arcs[at], 0, column, 2), key)
                if keep[arcs[at]] == ALWAYS or (high << 32 | low) < keep[arcs[at]]:
                    live.append(at)
                at += 1
    return live


def reference_members(edges, chances, seeds, column, key):
    """Nodes that the seeds reach in the live-edge graph of one query."""
    edges = [(e, c) for e, c in zip(edges, chances, strict=True) if c > 0]
    edges.sort(key=lambda item: item[0][0])
    top = max(chances)
    keep = kept(np.array([c for _, c in edges]), top).tolist()
    reached, queue = set(seeds), list(seeds)
    while queue:
        node = queue.pop()
        arcs = [i for i, ((u, _), _) in enumerate(edges) if u == node]
        for offset in live_arcs(node, arcs, keep, top, column, key):
            target = edges[arcs[offset]][0][1]
            if target not in reached:
                reached.add(target)
                queue.append(target)
    return sorted(reached)


def reference_counts(edges, chances, seeds, column, key):
    return len(reference_members(edges, chances, seeds, column, key))


# ---- random numbers and tables ----

VECTORS = [  # known answers of the Random123 library
    ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0xFFFFFFFF,) * 4,
        0xFFFFFFFFFFFFFFFF,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        0x299F31D0A4093822,
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), VECTORS)
def test_philox_gives_its_known_answers(counter, key, words):
    assert philox(counter, key) == list(words)
    got, given = np.zeros(4, np.uint32), np.array(counter, np.uint32)
    library = Gpu(host_cupy()).kernel("fold", np.uint16).library
    library.philox_of(as_c(given), as_c(np.uint64(key)), as_c(got))
    assert got.tolist() == list(words)


def test_the_table_of_skips_is_cut_without_loss():
    skips = skip_table(0.1)
    entries, ties = halves(skips)
    chance = (entries.astype(np.uint64) >> np.uint64(8) << np.uint64(32)) | ties
    whole = chance << np.uint64(8) | (entries & np.uint32(255))
    np.testing.assert_array_equal(whole, skips)


def test_chances_to_keep_a_success():
    keep = kept(np.array([0.5, 0.25, 0.1, 0.5 * (1 - 2**-53)]), 0.5)
    assert keep.tolist() == [ALWAYS, 2**63, int(np.ldexp(0.2, 64)), 2**64 - 2**11]


def test_nodes_take_16_bits_where_they_can():
    assert arm_type(534) is np.uint16
    assert arm_type(2**16 - 1) is np.uint16
    assert arm_type(2**16) is np.uint32  # a count may be m itself


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox])
def test_keys_are_whole_words_of_any_generator(bits):
    one, other = (np.random.Generator(bits(5)) for _ in range(2))
    for n in (3, 0, 1):
        due = other.integers(0, 2**64, size=n, dtype=np.uint64)
        np.testing.assert_array_equal(draw_keys(n, one), due, strict=True)
        assert one.integers(9, dtype=np.int32) == other.integers(9, dtype=np.int32)


@pytest.mark.parametrize(("rows", "width"), [(0, 10), (1, 10), (10**6, 10), (7, 10**9), (3, 0)])
def test_chunks_cover_every_row_once(rows, width):
    parts = chunks(rows, width, CHUNK)
    assert [i for part in parts for i in (part.start, part.stop)][:1] in ([], [0])
    assert sum(part.stop - part.start for part in parts) == rows
    assert all(a.stop == b.start for a, b in pairwise(parts))
    assert all((p.stop - p.start) * width <= CHUNK or p.stop - p.start == 1 for p in parts)


# ---- rewards ----


@places
@pytest.mark.parametrize("by_hand", [0, 10**9])
@pytest.mark.parametrize("by_warp", [0, 10**9])
@pytest.mark.parametrize("chances", [CHANCES, [0.4] * 8, [1.0] * 8, [1e-3] * 8, [0.9] * 8])
def test_every_query_is_what_the_seeds_reach_over_its_live_arcs(
    make, by_hand, by_warp, chances, monkeypatch
):
    monkeypatch.setattr(cascade_cuda, "BY_HAND", by_hand)
    monkeypatch.setattr(cascade_cuda, "BY_WARP", by_warp)
    n = 20
    orders, sizes = np.tile(ORDERS, (n, 1)), np.tile(SIZES, (n, 1))
    game = make(EDGES, 5, chances)
    keys = draw_keys(len(orders), np.random.default_rng(3)).tolist()
    fresh = game.pull(orders, sizes, np.random.default_rng(3))
    coupled = game.pull_coupled(orders, sizes, np.random.default_rng(3))
    for i in range(len(orders)):
        for j, size in enumerate(sizes[i]):
            seeds = orders[i, :size].tolist()
            assert fresh[i, j] * 5 == pytest.approx(
                reference_counts(EDGES, chances, seeds, j, keys[i])
            )
            assert coupled[i, j] * 5 == pytest.approx(
                reference_counts(EDGES, chances, seeds, 0, keys[i])
            )


@places
def test_long_rows_of_arcs_take_several_draws(make):
    """A star whose centre has more arcs than a skip holds, and more than a block of draws."""
    leaves, p = 700, 0.004
    edges = [[0, v] for v in range(1, leaves + 1)]
    game = make(edges, leaves + 1, p)
    key = int(draw_keys(1, np.random.default_rng(6))[0])
    for seed in range(6, 9):
        key = int(draw_keys(1, np.random.default_rng(seed))[0])
        got = game.pull([[0]], [[1, 1, 1]], np.random.default_rng(seed))
        due = [reference_counts(edges, [p] * leaves, [0], j, key) for j in range(3)]
        assert np.rint(got[0] * (leaves + 1)).tolist() == due


def some_queries(m, n, seed=1):
    rng = np.random.default_rng(seed)
    orders = np.array([rng.permutation(m)[:4] for _ in range(n)])
    return orders, rng.integers(0, 5, size=(n, 3))


@places
def test_rewards_depend_neither_on_the_launch_nor_on_the_cut(make, monkeypatch):
    graph = facebook_stand_in()
    game = make(graph, p=0.1)
    orders, sizes = some_queries(graph.m, 60)
    pulled = lambda g: g.pull(orders, sizes, np.random.default_rng(2))  # noqa: E731
    whole = pulled(game)
    monkeypatch.setattr(cascade_cuda, "BY_WARP", 0)
    np.testing.assert_array_equal(pulled(game), whole)
    monkeypatch.setattr(cascade_cuda, "CHUNK", 28)
    np.testing.assert_array_equal(pulled(game), whole)
    rng = np.random.default_rng(2)
    parts = [game.pull(orders[i : i + 7], sizes[i : i + 7], rng) for i in range(0, 60, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    assert len(np.unique(whole)) > 10
    if make is host_cascade:
        np.testing.assert_array_equal(pulled(make(graph, p=0.1, multiprocessors=3)), whole)


@places
def test_a_graph_beyond_shared_memory_and_16_bits(make):
    """Nodes beyond 65535 on a cycle and chords; the same graph, cut small, by another kernel."""
    m = 70_000
    edges = np.stack([np.arange(m), (np.arange(m) + 1) % m], axis=1)
    orders = np.array([[m - 1, 5], [69_998, 12]])
    sizes = np.array([[1, 2], [2, 0]])
    game = make(edges[: m - 10], m, 0.9)
    assert game._forward.arm is np.uint32
    got = np.rint(game.pull(orders, sizes, np.random.default_rng(4)) * m).astype(int)
    keys = draw_keys(2, np.random.default_rng(4)).tolist()

    def run_length(node, column, key):
        length = 1
        while node < m - 10 and live_arcs(node, [node], {node: ALWAYS}, 0.9, column, key):
            node, length = node + 1, length + 1
        return length

    due = [
        [1, 1 + run_length(5, 1, keys[0])],
        [1 + run_length(12, 0, keys[1]), 0],
    ]
    assert got.tolist() == due


@places
@pytest.mark.parametrize("p", [0.0, 1.0])
def test_certain_arcs(make, p):
    game = make([[0, 1], [1, 2], [2, 3]], 4, p)
    rewards = game.pull([[0, 3], [2, 0]], [[1, 2], [1, 2]], np.random.default_rng(0))
    assert rewards.tolist() == ([[1, 1], [0.5, 1]] if p else [[0.25, 0.5], [0.25, 0.5]])


@places
def test_no_edges_and_no_rows(make):
    game = make(np.empty((0, 2), int), m=4, p=0.5)
    assert game.pull([[1, 2]], [[2, 0]], np.random.default_rng(0)).tolist() == [[0.5, 0.0]]
    empty = game.pull(np.empty((0, 2), int), np.empty((0, 3), int), np.random.default_rng(0))
    assert empty.shape == (0, 3)


# ---- merits ----


@places
@pytest.mark.parametrize("by_warp", [0, 10**9])
def test_reverse_reachable_credits_are_those_of_the_live_edge_graphs(make, by_warp, monkeypatch):
    monkeypatch.setattr(cascade_cuda, "BY_WARP", by_warp)
    game, rounds, m = make(EDGES, 5, CHANCES), 6, 5
    shares = np.linspace(1.0, 0.3, m + 1)
    mean, stderr = game.reverse_rounds(shares, rounds, np.random.default_rng(8))
    keys = draw_keys(rounds, np.random.default_rng(8)).tolist()
    turned = [edge[::-1] for edge in EDGES]
    credits = np.zeros((rounds, m))
    for i, key in enumerate(keys):
        for root in range(m):
            members = reference_members(turned, CHANCES, [root], root, key)
            credits[i, members] += shares[len(members)] / m
    np.testing.assert_allclose(mean, credits.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(stderr, credits.std(axis=0, ddof=1) / rounds**0.5, atol=1e-15)


@places
@pytest.mark.parametrize("roots", [[[4, 0]], [[1, 3, 3], [2, 0, 4], [0, 0, 1]]])
def test_reverse_reachable_sets_of_given_roots(make, roots, monkeypatch):
    monkeypatch.setattr(cascade_cuda, "CHUNK", 10)  # two rounds at a time
    game, rounds, m = make(EDGES, 5, CHANCES), 3, 5
    shares = np.linspace(1.0, 0.3, m + 1)
    mean, stderr = game.reverse_rounds(shares, rounds, np.random.default_rng(8), np.array(roots))
    credits = np.zeros((rounds, m))
    for i, key in enumerate(draw_keys(rounds, np.random.default_rng(8)).tolist()):
        row = roots[i % len(roots)]
        for column, root in enumerate(row):
            turned = [edge[::-1] for edge in EDGES]
            members = reference_members(turned, CHANCES, [root], column, key)
            credits[i, members] += shares[len(members)] / len(row)
    np.testing.assert_allclose(mean, credits.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(stderr, credits.std(axis=0, ddof=1) / rounds**0.5, atol=1e-15)


@places
def test_merits_do_not_depend_on_how_rounds_are_cut(make, monkeypatch):
    game = make(EDGES, 5, CHANCES)
    whole = merit.reverse_reachable(game, 3, 500, np.random.default_rng(8))
    monkeypatch.setattr(cascade_cuda, "CHUNK", 35)
    cut = merit.reverse_reachable(game, 3, 500, np.random.default_rng(8))
    np.testing.assert_array_equal(whole.merit, cut.merit)
    np.testing.assert_array_equal(whole.stderr, cut.stderr)
    assert whole.queries == 500


# ---- without a GPU ----


def test_without_cupy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    gpu.find_gpu.cache_clear()
    with pytest.raises(ImportError, match=r"needs CuPy; install evenhand\[gpu\], or use Indep"):
        CudaCascade([[0, 1]], 2, 0.5)


def test_without_a_gpu_cuda_is_quoted(monkeypatch):
    cupy = host_cupy()

    class NoDeviceError(Exception):
        pass

    def device():
        raise NoDeviceError("no CUDA-capable device is detected")

    cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.Device = NoDeviceError, device
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    gpu.find_gpu.cache_clear()
    with pytest.raises(RuntimeError, match=r"needs an NVIDIA GPU, but CUDA says no CUDA-capable"):
        CudaCascade([[0, 1]], 2, 0.5)


def test_bad_graphs_are_refused_before_a_gpu_is_sought():
    with pytest.raises(ValueError, match=r"edges must join nodes in 0..2"):
        CudaCascade([[0, 5]], m=3, p=0.1)
