"""Files that are never seen half written."""

import pytest

from evenhand.files import replacing


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "kept.bin"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"

    def fail_half_way():
        with replacing(path) as file:
            file.write(b"ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_half_way()
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["kept.bin"]


def test_a_missing_folder_is_named_and_not_the_file_beside_it(tmp_path):
    missing = tmp_path / "nowhere"
    with (
        pytest.raises(FileNotFoundError, match=f"folder {missing} does not exist; make it first"),
        replacing(missing / "a.bin"),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_a_folder_is_named_and_not_the_file_beside_it(tmp_path):
    with (
        pytest.raises(IsADirectoryError, match=f"{tmp_path} is a folder; name a file in it"),
        replacing(tmp_path),
    ):
        pass
