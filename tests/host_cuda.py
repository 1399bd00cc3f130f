"""The GPU's code on a processor: ``cascade.cu`` compiled as C++, behind as much of CuPy as we use.

Threads and warps run one after another, a warp having one lane. What it computes is what a GPU
computes; that a GPU's lanes do not get into each other's way is left to tests on a GPU.
"""

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from evenhand.games import CudaCascade
from evenhand.games.cascade import cuda as cascade_cuda
from evenhand.games.cascade.gpu import Gpu

SHIM = Path(__file__).with_name("host_cuda.h")
EXPOSED = """
extern "C" void philox_of(const u32* counter, u64 key, u32* out) {
  Words words = philox(counter[0], counter[1], counter[2], counter[3], key);
  for (int i = 0; i < 4; ++i) out[i] = words.word[i];
}
"""


class HostArray(np.ndarray):
    """An array as if it were on a GPU."""

    def get(self):
        return np.array(self)


class HostPointer:
    """An address as if it were on a GPU."""

    def __init__(self, memory, offset=0):
        self.memory, self.offset = memory, offset
        self.ptr = memory.ctypes.data + offset

    def __add__(self, offset):
        return HostPointer(self.memory, self.offset + offset)

    def copy_from_host_async(self, address, size):
        ctypes.memmove(self.ptr, address, size)

    def copy_to_host_async(self, address, size):
        ctypes.memmove(address, self.ptr, size)


@cache
def build(code):
    """Compile a source and load it."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("needs a C++ compiler to run the GPU's code on the processor")
    folder = Path(tempfile.mkdtemp())
    (folder / "cascade.cpp").write_text(f'#include "{SHIM}"\n{code}\n{EXPOSED}')
    command = [compiler, "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "cascade.cpp", "-o", "c.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "c.so"))


class HostModule:
    """A compiled source and its kernels."""

    def __init__(self, code):
        self.library = build(code)

    def get_function(self, name):
        return HostKernel(self.library, name)


class HostKernel:
    """Runs the threads or warps of a launch one after another."""

    def __init__(self, library, name):
        self.library, self.name = library, name

    def __call__(self, grid, block, arguments, shared_mem=0):
        n = grid[0] * block[0] // (32 if self.name.endswith("by_warp") else 1)
        for number in range(n):
            self.library.set_block(ctypes.c_uint(number), ctypes.c_uint(n))
            self.library[self.name](*map(as_c, arguments))


def as_c(argument):
    """An argument of a launch, for ctypes."""
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.ctypes.data)
    kinds = {
        np.uint32: ctypes.c_uint32,
        np.uint64: ctypes.c_uint64,
        np.float64: ctypes.c_double,
        np.bool_: ctypes.c_bool,
    }
    return kinds[type(argument)](argument.item())


def host_cupy(multiprocessors=2):
    numbers = {
        "MultiProcessorCount": multiprocessors,
        "MaxSharedMemoryPerBlock": 48 * 1024,
        "MaxSharedMemoryPerBlockOptin": 227 * 1024,
    }
    return SimpleNamespace(
        asarray=lambda values: np.array(values).view(HostArray),
        empty=lambda n, dtype: np.full(n, 0xA5, dtype).view(HostArray),  # as it comes: not 0
        zeros=lambda shape, dtype=np.float64: np.zeros(shape, dtype).view(HostArray),
        RawModule=HostModule,
        get_default_memory_pool=lambda: SimpleNamespace(free_bytes=lambda: 0),
        cuda=SimpleNamespace(
            Device=lambda: SimpleNamespace(attributes=numbers),
            alloc=lambda n: HostPointer(np.full(n, 0xA5, np.uint8)),  # as it comes: not 0
            alloc_pinned_memory=bytearray,
            get_current_stream=lambda: SimpleNamespace(synchronize=lambda: None),
            runtime=SimpleNamespace(memGetInfo=lambda: (2**26, 2**26)),
        ),
    )


def host_cascade(edges, m=None, p=None, multiprocessors=2):
    """Make a cascade whose GPU is this processor."""
    gpu = Gpu(host_cupy(multiprocessors))
    with mock.patch.object(cascade_cuda, "find_gpu", return_value=gpu):
        return CudaCascade(edges, m, p)
