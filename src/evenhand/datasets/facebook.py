"""The Facebook graph of the paper's influence dataset, and a generated stand-in for it."""

import contextlib
import gzip
import hashlib
import http.client
import os
import urllib.request
import zlib
from importlib.resources import files
from pathlib import Path

import numpy as np

from evenhand.checks import check_integer
from evenhand.files import replacing
from evenhand.games import Graph
from evenhand.typing import Ints

SOURCE = "https://snap.stanford.edu/data/facebook_combined.txt.gz"
NAMES = ("facebook_combined.txt", "facebook_combined.txt.gz")
TEXT_SHA256 = "f41c026ed8af3cc3359f1ca5573d0605fb09ae0eefa34544b820fd8c6e2ef296"
N_NODES, N_EDGES = 534, 8158
DEGREE_QUARTILES = (0, 11, 21, 45, 121)  # of the real subgraph; the stand-in follows them


def facebook_graph() -> Graph:
    """Load the 534-node, 8158-edge subgraph of SNAP's ego-Facebook network.

    The community around user 1684 without that user (an "ego", whose friends SNAP collected), cut
    from ``facebook_combined.txt`` by the list of node ids kept in this package. An edge is one arc
    from the smaller to the larger id, as the file lists it; ``.both_ways()`` adds the reverse ones.
    Five nodes have no edge.

    Notes
    -----
    The file is looked for in the directory named by ``EVENHAND_DATA``, then in the user's cache,
    and downloaded there if it is in neither. Whatever is found is checked against its checksum.

    References
    ----------
    J. McAuley and J. Leskovec, "Learning to discover social circles in ego networks", NIPS 2012.

    Examples
    --------
    >>> graph = facebook_graph()  # doctest: +SKIP
    >>> graph.m, len(graph.edges), len(graph.both_ways().edges)  # doctest: +SKIP
    (534, 8158, 16316)
    """
    ids = np.array(files("evenhand.datasets").joinpath("facebook534.txt").read_text().split(), int)
    full = np.array(_edge_list().split(), dtype=np.int64).reshape(-1, 2)
    edges = np.searchsorted(ids, full[np.isin(full, ids).all(axis=1)])
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    return Graph(edges, N_NODES, "Facebook (SNAP), 534 nodes")


def facebook_stand_in(seed: int = 0) -> Graph:
    """Generate a random graph of the Facebook subgraph's size and similar degrees.

    It replaces the real graph where the data file is missing, and says so in its name. Nodes get
    random weights with the quartiles of the real degrees; 8158 distinct pairs are drawn, each with
    a chance that grows with the product of its weights.

    Examples
    --------
    >>> graph = facebook_stand_in()
    >>> graph.m, graph.edges.shape, graph.name
    (534, (8158, 2), 'stand-in for the Facebook graph (generated, seed 0)')
    """
    rng = np.random.default_rng(check_integer("seed", seed, 0))
    weights = np.interp(rng.random(N_NODES), np.linspace(0, 1, 5), DEGREE_QUARTILES)
    u, v = np.triu_indices(N_NODES, 1)
    # the largest of log w + Gumbel noise are a weighted draw without replacement
    keys = np.log(weights[u]) + np.log(weights[v]) + rng.gumbel(size=len(u))
    chosen = np.sort(np.argpartition(keys, -N_EDGES)[-N_EDGES:])
    edges: Ints = np.stack([u[chosen], v[chosen]], axis=1).astype(np.int64)
    return Graph(edges, N_NODES, f"stand-in for the Facebook graph (generated, seed {seed})")


def _edge_list() -> bytes:
    """Read SNAP's edge list from the data directory, the cache or the network."""
    folders = [Path(d) for d in [os.environ.get("EVENHAND_DATA")] if d] + [_cache()]
    for path in (folder / name for folder in folders for name in NAMES):
        if path.is_file():
            return _checked(path.read_bytes(), str(path))
    try:
        with urllib.request.urlopen(SOURCE, timeout=30) as answer:
            raw = answer.read()
    except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
        looked = ", ".join(str(folder) for folder in folders)
        raise FileNotFoundError(
            f"the Facebook graph was not found: looked for {' or '.join(NAMES)} in {looked}, and "
            f"downloading {SOURCE} failed ({error}); put the file into a directory and name it in "
            "EVENHAND_DATA, or use evenhand.datasets.facebook_stand_in()"
        ) from None
    unpacked = _checked(raw, SOURCE)
    with contextlib.suppress(OSError):  # a cache that cannot be written is not needed now
        _cache().mkdir(parents=True, exist_ok=True)
        with replacing(_cache() / NAMES[1]) as file:
            file.write(raw)
    return unpacked


def _cache() -> Path:
    """Return the user's cache directory of this package."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache") / "evenhand"


def _checked(raw: bytes, source: str) -> bytes:
    """Return the edge list, unpacked if needed, once its checksum is found right."""
    try:
        unpacked = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{source} is not SNAP's edge list: {error}") from None
    if (found := hashlib.sha256(unpacked).hexdigest()) != TEXT_SHA256:
        raise ValueError(
            f"{source} must be SNAP's facebook_combined.txt with sha256 {TEXT_SHA256}, "
            f"got {found}; remove it and get it again from {SOURCE}"
        )
    return unpacked
