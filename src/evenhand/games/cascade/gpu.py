"""The NVIDIA GPU, by way of CuPy."""

import threading
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

ArmType = type[np.uint16] | type[np.uint32]


class Gpu:
    """A GPU, its limits and the kernels of ``cascade.cu``, compiled at first use."""

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        numbers = cupy.cuda.Device().attributes
        self.multiprocessors: int = numbers["MultiProcessorCount"]
        self.shared: int = numbers["MaxSharedMemoryPerBlock"]
        self.shared_on_demand: int = numbers["MaxSharedMemoryPerBlockOptin"]
        self._buffers = threading.local()
        self._kernels: dict[tuple[str, ArmType], Any] = {}

    @property
    def free_bytes(self) -> int:
        """Bytes that can still be allocated."""
        pool = self.cupy.get_default_memory_pool()
        return int(self.cupy.cuda.runtime.memGetInfo()[0] + pool.free_bytes())

    def kernel(self, name: str, arm: ArmType) -> Any:
        """Return a kernel for nodes of one integer type."""
        if (name, arm) not in self._kernels:
            source = files("evenhand.games.cascade").joinpath("cascade.cu").read_text()
            kind = "unsigned short" if arm is np.uint16 else "unsigned int"
            module = self.cupy.RawModule(code=f"#define ARM {kind}\n{source}")
            kernel = self._kernels[name, arm] = module.get_function(name)
            kernel.max_dynamic_shared_size_bytes = self.shared_on_demand
        return self._kernels[name, arm]

    def staging_buffers(self, size: int) -> tuple[NDArray[np.uint8], int, Any]:
        """At least ``size`` pinned bytes on the host, their address, and as many on the GPU.

        They are kept, one pair per thread: to allocate them takes longer than a small pull.
        """
        kept = self._buffers
        if len(getattr(kept, "host", ())) < size:
            cuda, size = self.cupy.cuda, max(2 * size, 2**20)
            kept.host = np.frombuffer(cuda.alloc_pinned_memory(size), np.uint8, size)
            kept.address, kept.device = kept.host.ctypes.data, cuda.alloc(size)
        return kept.host, kept.address, kept.device


@cache
def find_gpu() -> Gpu:
    """Return the GPU in use, or say what is missing."""
    try:
        import cupy
    except ImportError:
        raise ImportError(
            "CudaCascade needs CuPy; install evenhand[gpu], or use IndependentCascade"
        ) from None
    try:
        return Gpu(cupy)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(
            f"CudaCascade needs an NVIDIA GPU, but CUDA says {error}; use IndependentCascade"
        ) from None
