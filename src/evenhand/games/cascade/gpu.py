"""The NVIDIA card, by way of CuPy."""

import threading
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

ArmType = type[np.uint16] | type[np.uint32]


class Card:
    """A card with its measures and the kernels of ``cascade.cu``, compiled at first use."""

    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        numbers = cupy.cuda.Device().attributes
        self.multiprocessors: int = numbers["MultiProcessorCount"]
        self.shared: int = numbers["MaxSharedMemoryPerBlock"]
        self.shared_on_demand: int = numbers["MaxSharedMemoryPerBlockOptin"]
        self._rooms = threading.local()
        self._kernels: dict[tuple[str, ArmType], Any] = {}

    @property
    def free(self) -> int:
        """Bytes of memory that can be had."""
        pooled: int = self.cupy.get_default_memory_pool().free_bytes()
        return int(self.cupy.cuda.runtime.memGetInfo()[0]) + pooled

    def kernel(self, name: str, arm: ArmType) -> Any:
        """Return a kernel for nodes of some type."""
        if (name, arm) not in self._kernels:
            source = files("evenhand.games.cascade").joinpath("cascade.cu").read_text()
            kind = "unsigned short" if arm is np.uint16 else "unsigned int"
            module = self.cupy.RawModule(code=f"#define ARM {kind}\n{source}")
            kernel = self._kernels[name, arm] = module.get_function(name)
            kernel.max_dynamic_shared_size_bytes = self.shared_on_demand
        return self._kernels[name, arm]

    def room(self, size: int) -> tuple[NDArray[np.uint8], Any]:
        """Return at least so many bytes on the host, pinned, and a pointer to as many on the card.

        Each thread has its own and gets the same again: making them takes longer than a small pull.
        """
        if len(getattr(self._rooms, "host", ())) < size:
            cuda, size = self.cupy.cuda, max(2 * size, 2**20)
            self._rooms.host = np.frombuffer(cuda.alloc_pinned_memory(size), np.uint8, size)
            self._rooms.card = cuda.alloc(size)
        return self._rooms.host, self._rooms.card


@cache
def find_card() -> Card:
    """Return the card in use, or say what is missing."""
    try:
        import cupy
    except ImportError:
        raise ImportError(
            "CudaCascade needs CuPy; install evenhand[gpu], or use IndependentCascade"
        ) from None
    try:
        return Card(cupy)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(
            f"CudaCascade needs an NVIDIA card, but CUDA says {error}; use IndependentCascade"
        ) from None
