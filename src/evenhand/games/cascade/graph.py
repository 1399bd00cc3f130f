"""Graphs as users have them: an edge array, a scipy sparse matrix or a networkx graph."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.checks import as_integers, as_reals, check_entries, check_integer
from evenhand.games.cascade.skips import skip_table
from evenhand.typing import Floats, Ints, Words

MAX_NODES = 2**31 - 1  # arcs hold their targets as 32-bit integers


class Graph(NamedTuple):
    """Directed edges (n, 2) among the nodes 0..m-1, with a name that says where they come from.

    Examples
    --------
    >>> chain = Graph(np.array([[0, 1], [1, 2]]), m=3, name="a chain").both_ways()
    >>> chain
    Graph(m=3, edges=4, name='a chain, both ways')
    >>> chain.edges.tolist()
    [[0, 1], [1, 2], [1, 0], [2, 1]]
    """

    edges: Ints
    m: int
    name: str

    def __repr__(self) -> str:
        return f"Graph(m={self.m}, edges={len(self.edges)}, name={self.name!r})"

    def both_ways(self) -> "Graph":
        """Return the graph with the reverse of every edge added."""
        edges = np.concatenate([self.edges, np.flip(self.edges, axis=1)])
        return Graph(edges, self.m, f"{self.name}, both ways")


class Arcs(NamedTuple):
    """Outgoing arcs sorted by source: node v has targets[starts[v]:starts[v + 1]]."""

    starts: Ints
    targets: NDArray[np.int32]
    chances: Floats
    top: float  # the largest of the chances
    alike: bool  # whether all arcs have that chance
    skips: Words  # table of the number of failures before a success at the largest chance

    @classmethod
    def sort(cls, edges: Ints, chances: Floats, m: int) -> "Arcs":
        """Sort edges by their source; those that never succeed are left out."""
        edges, chances = edges[chances > 0], chances[chances > 0]
        order = np.argsort(edges[:, 0], kind="stable")
        starts = np.searchsorted(edges[order, 0], np.arange(m + 1))
        targets = edges[order, 1].astype(np.int32)  # 32 bits: twice as many in the cache
        top = float(chances.max(initial=0.0)) or 1.0
        alike = bool(np.all(chances == top))
        return cls(starts, targets, chances[order], top, alike, skip_table(top))


def read_graph(graph: Any, m: int | None, p: Any) -> tuple[Ints, int, Floats]:
    """Return edges (n, 2), the number of nodes and one probability per edge."""
    nodes = None
    if isinstance(graph, Graph):
        edges, nodes = as_integers("edges", graph.edges), graph.m
    elif hasattr(graph, "tocsr"):
        edges, nodes, p = _from_sparse(graph, p)
    elif hasattr(graph, "nodes") and hasattr(graph, "edges"):
        edges, nodes, p = _from_networkx(graph, p)
    else:
        edges = as_integers("edges", graph)
        edges = edges if edges.size else edges.reshape(0, 2)
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise ValueError(f"edges must have shape (n, 2), got {edges.shape}")
    chances = _chances(p, len(edges))
    return edges, _n_nodes(m, nodes, edges), chances


def _n_nodes(m: int | None, nodes: int | None, edges: Ints) -> int:
    """Return the number of nodes, given or of the graph, which must include all ends of edges."""
    if m is None and nodes is None:
        raise TypeError("m, the number of nodes, must be given with an edge array")
    number = check_integer("m", nodes if m is None else m, 1)
    if nodes not in (None, number):
        raise ValueError(f"m must equal the graph's number of nodes {nodes}, got m={m}")
    if number > MAX_NODES:
        raise ValueError(f"m must be at most 2^31 - 1, got m={number}")
    outside = (edges < 0) | (edges >= number)
    if outside.any():
        row = int(np.argmax(outside.any(axis=1)))
        raise ValueError(
            f"edges must join nodes in 0..{number - 1}, got edges[{row}]={edges[row].tolist()}"
        )
    return number


def _chances(p: Any, n_edges: int) -> Floats:
    """Return one activation probability per edge, from one number or one per edge."""
    if p is None:
        raise TypeError("p, the activation probability, must be given: a number or one per edge")
    chances = as_reals("p", p, "be a number or one per edge", kinds="iufO")
    if chances.ndim > 0 and chances.shape != (n_edges,):
        raise ValueError(f"p must be a number or have shape ({n_edges},), got {chances.shape}")
    check_entries("p", np.atleast_1d(chances), 0.0, 1.0)
    return np.ascontiguousarray(np.broadcast_to(chances, n_edges))


def _from_sparse(matrix: Any, p: Any) -> tuple[Ints, int, Any]:
    """Read edges row by row: entry (u, v) is the arc u -> v, its value the chance if p is None."""
    rows, columns = matrix.shape
    if rows != columns:
        raise ValueError(f"edges must be a square matrix, got shape {matrix.shape}")
    compressed = matrix.tocsr(copy=True)
    compressed.sum_duplicates()
    compressed.eliminate_zeros()
    arcs = compressed.tocoo()
    edges = np.stack([arcs.row, arcs.col], axis=1).astype(np.int64)
    return edges, rows, arcs.data if p is None else p


def _from_networkx(graph: Any, p: Any) -> tuple[Ints, int, Any]:
    """Read edges among the nodes in the graph's own order; an undirected one goes both ways.

    p may name an edge attribute.
    """
    index = {node: i for i, node in enumerate(graph.nodes)}
    edges = np.array([(index[u], index[v]) for u, v in graph.edges()], np.int64).reshape(-1, 2)
    if isinstance(p, str):
        chances = [chance for _, _, chance in graph.edges(data=p)]
        if None in chances:
            raise ValueError(f"p must name an attribute of every edge, got p={p!r}")
        p = chances
    if not graph.is_directed():
        p = np.tile(p, 2) if np.ndim(p) == 1 else p
        edges = np.concatenate([edges, edges[:, ::-1]])
    return edges, len(index), p
