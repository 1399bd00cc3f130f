import gzip
import hashlib
import http.client
import io
import os
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from evenhand.datasets import facebook
from evenhand.datasets.facebook import facebook_graph, facebook_stand_in

SUBGRAPH_SHA256 = "fc28164cc3087e8e352a6b0a7642175dd51a47b7417e76406d335490f3f85b82"
HERE = [Path(d) for d in [os.environ.get("EVENHAND_DATA", "")] if d]
FOUND = [folder / name for folder in HERE for name in facebook.NAMES if (folder / name).is_file()]
needs_data = pytest.mark.skipif(not FOUND, reason="EVENHAND_DATA holds no facebook_combined.txt")


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """No data directory, an empty cache and no network."""
    monkeypatch.delenv("EVENHAND_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def offline(*args, **kwargs):
        raise urllib.error.URLError("offline")

    monkeypatch.setattr(urllib.request, "urlopen", offline)
    return tmp_path


def real_text():
    raw = FOUND[0].read_bytes()
    return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw


@needs_data
def test_the_subgraph_is_the_papers():
    graph = facebook_graph()
    assert graph.m == 534
    assert graph.edges.shape == (8158, 2)
    assert np.all(graph.edges[:, 0] < graph.edges[:, 1])  # as listed: low id to high id
    lines = "".join(f"{u} {v}\n" for u, v in graph.edges)
    assert hashlib.sha256(lines.encode()).hexdigest() == SUBGRAPH_SHA256
    degree = np.bincount(graph.edges.ravel(), minlength=534)
    assert np.sum(degree == 0) == 5
    assert degree.max() == 121
    both = graph.both_ways()
    assert both.edges.shape == (16316, 2)
    assert "both ways" in both.name


@needs_data
@pytest.mark.parametrize("name", facebook.NAMES)
def test_it_is_found_in_the_data_directory_packed_or_not(name, elsewhere, monkeypatch):
    raw = real_text()
    (elsewhere / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    monkeypatch.setenv("EVENHAND_DATA", str(elsewhere))
    assert facebook_graph().edges.shape == (8158, 2)


@needs_data
def test_it_is_downloaded_once_and_kept_in_the_cache(elsewhere, monkeypatch):
    calls = []

    def answer(url, timeout):
        calls.append(url)
        return io.BytesIO(gzip.compress(real_text()))

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    first, second = facebook_graph(), facebook_graph()
    np.testing.assert_array_equal(first.edges, second.edges)
    assert calls == [facebook.SOURCE]
    assert [p.name for p in (elsewhere / "cache" / "evenhand").iterdir()] == [facebook.NAMES[1]]


@needs_data
def test_a_cache_that_cannot_be_written_is_not_needed(elsewhere, monkeypatch):
    (elsewhere / "cache").write_text("a file where the folder should be")
    packed = gzip.compress(real_text())
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: io.BytesIO(packed))
    assert facebook_graph().edges.shape == (8158, 2)


def test_a_download_that_breaks_off_is_a_missing_file(elsewhere, monkeypatch):
    def broken(url, timeout):
        raise http.client.IncompleteRead(b"half")

    monkeypatch.setattr(urllib.request, "urlopen", broken)
    with pytest.raises(FileNotFoundError, match="IncompleteRead"):
        facebook_graph()


def test_without_the_file_the_error_says_where_and_how(elsewhere):
    with pytest.raises(FileNotFoundError) as caught:
        facebook_graph()
    for words in (str(elsewhere / "cache"), "EVENHAND_DATA", facebook.SOURCE, "facebook_stand_in"):
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"0 1\n", "must be SNAP's facebook_combined.txt with sha256 f41c026e"),
        (b"\x1f\x8bnot gzip", "is not SNAP's edge list"),
        (gzip.compress(b"0 1\n" * 99, mtime=0)[:15] + b"x" * 30, "is not SNAP's edge list"),
        (gzip.compress(b"0 1\n", mtime=0)[:-9], "is not SNAP's edge list"),
        (b"\xff\xfe", "must be SNAP's facebook_combined.txt with sha256 f41c026e"),
    ],
)
def test_a_wrong_file_is_refused(raw, message, elsewhere, monkeypatch):
    (elsewhere / facebook.NAMES[0]).write_bytes(raw)
    monkeypatch.setenv("EVENHAND_DATA", str(elsewhere))
    with pytest.raises(ValueError, match=message):
        facebook_graph()


def test_the_stand_in_has_the_size_and_says_what_it_is():
    graph = facebook_stand_in()
    assert (graph.m, len(graph.edges)) == (534, 8158)
    assert "stand-in" in graph.name
    assert len(np.unique(graph.edges, axis=0)) == 8158
    degree = np.bincount(graph.edges.ravel(), minlength=534)
    np.testing.assert_allclose(np.percentile(degree, [25, 50, 75]), [11, 21, 45], atol=6)
    np.testing.assert_array_equal(graph.edges, facebook_stand_in(0).edges)
    assert not np.array_equal(graph.edges, facebook_stand_in(1).edges)
