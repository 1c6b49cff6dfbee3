"""Files that claim to be large are refused by their headers, before anything is decoded."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
import zlib

import matplotlib.image  # noqa: F401  (its import takes memory that is no picture's)
import numpy as np
import pytest
import scipy.sparse

import saddleslide as ss
from saddleslide.arrays.arguments import MOST_BYTES
from saddleslide.cli import main as cli
from saddleslide.errors import InputError
from saddleslide.gallery.files import read_archive, read_array, read_dense, read_matrix
from saddleslide.gallery.pictures import MOST_PIXELS, read_picture


def png(width, height):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


def npy(shape, content=b"", descr="<f8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue() + content


def bomb(count, size=2**20):
    """Members of zeros, each of 8 MB and 8 kB on the disk."""
    file, zeros = io.BytesIO(), npy((size,), bytes(8 * size))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(count):
            archive.writestr(f"a{i}.npy", zeros)
    return file.getvalue()


def archived(member):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", member)
    return file.getvalue()


MARKET = "%%MatrixMarket matrix {} real {}\n{}\n"
FILES = {
    "picture.png": (png(30000, 30000), "900000000 pixels.* expected at most 49,000,000"),
    "wide.png": (png(100_000, 1_000), "100000 x 1000 pixels; expected at most 49,000,000"),
    "entries.mtx": (MARKET.format("coordinate", "general", "10 10 1000000000000"), "1000000000000 entries"),
    "sides.mtx": (MARKET.format("coordinate", "general", "1000000000 1000000000 0"), "32,000 MB"),
    "sides_one.mtx": (MARKET.format("coordinate", "general", "1000000000 1000000000 1\n1 1 1.0"), "32,000 MB"),
    "array.mtx": (MARKET.format("array", "general", "1000000000 1000000000"), "entries, and"),
    "symmetric.mtx": (MARKET.format("array", "symmetric", "100000 100000"), "entries, and"),
    "huge.npy": (npy((10**12,)), "8000000000000 bytes in the shape"),
    "short.npy": (npy((4,), bytes(8)), "32 bytes in the shape .*, and 8 follow"),
    "negative.npy": (npy((-1, -8), bytes(64)), "in the shape"),
    "overflow.npy": (npy((2**62, 2**62)), "in the shape"),
    "huge.npz": (archived(npy((10**12,))), "8000000000000 bytes in the shape"),
    "objects.npy": (npy((1,), bytes(8), "|O"), "Python objects"),
}


@pytest.mark.parametrize("name", FILES)
def test_what_a_header_claims_is_looked_at_first(name, tmp_path):
    content, says = FILES[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=says):
            read_array(path)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def test_an_archive_that_grows_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "bomb.npz"
    path.write_bytes(bomb(3))
    assert path.stat().st_size < 1e5 and MOST_BYTES == 2**30
    assert read_array(f"{path}:a0").size == 2**20
    monkeypatch.setattr("saddleslide.arrays.arguments.MOST_BYTES", 20_000_000)
    for read in (lambda: read_array(f"{path}:a0"), lambda: read_archive(path)):
        with pytest.raises(InputError, match="25 MB of memory; expected at most 20 MB"):
            read()
    with pytest.raises(InputError, match=r"Shard: .* 25 MB of memory"):
        ss.distributed.Shard(str(path), ss.functions.LeastSquares)()


def test_a_sparse_file_is_not_written_out_where_it_is_too_large(tmp_path):
    path = tmp_path / "costs.mtx"
    path.write_text(MARKET.format("coordinate", "general", "100000 100000 1\n1 1 1.0"), encoding="utf-8")
    assert read_matrix(path).shape == (100000, 100000)
    with pytest.raises(InputError, match="80,000 MB"):
        read_dense(path)


def test_the_command_line_says_so_too(tmp_path, capsys):
    (tmp_path / "picture.png").write_bytes(png(30000, 30000))
    assert cli.main(["solve", "denoise", "--picture", str(tmp_path / "picture.png")]) == cli.EXIT_USAGE
    assert "expected at most 49,000,000 pixels" in capsys.readouterr().err


def test_honest_files_are_read_as_before(tmp_path):
    matrix = np.arange(12.0).reshape(3, 4)
    np.save(tmp_path / "a.npy", matrix)
    np.save(tmp_path / "columns.npy", np.asfortranarray(matrix))
    np.savez_compressed(tmp_path / "b.npz", matrix=matrix)
    scipy.io.mmwrite(tmp_path / "c.mtx", scipy.sparse.coo_array(matrix))
    scipy.io.mmwrite(tmp_path / "d.mtx", matrix)
    scipy.io.mmwrite(tmp_path / "e.mtx", matrix[:, :3] + matrix[:, :3].T)
    for name in ("a.npy", "columns.npy", "b.npz", "c.mtx", "d.mtx"):
        assert np.array_equal(read_dense(tmp_path / name), matrix), name
    assert np.array_equal(read_dense(tmp_path / "e.mtx"), matrix[:, :3] + matrix[:, :3].T)


def test_the_limit_of_pictures_is_the_documented_one(tmp_path):
    assert f"{MOST_PIXELS:,}" in read_picture.__doc__
