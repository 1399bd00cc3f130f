/* Enough of CUDA to run cascade.cu on a processor, one thread and a warp of one lane at a time. */
#include <algorithm>
#include <cstddef>
#define LANES 1
#define __device__
#define __global__
#define __shared__
#define __launch_bounds__(n)
#define __syncthreads()
#define __syncwarp()
#define __ballot_sync(mask, x) ((x) ? 1u : 0u)
#define __any_sync(mask, x) (x)
#define __popc(x) __builtin_popcount(x)
#define __ffs(x) __builtin_ffs(x)
using std::min;
struct Index { unsigned int x; };
static Index threadIdx = {0}, blockIdx = {0}, blockDim = {1}, gridDim = {1};
template <class T> static T atomicAdd(T* at, T x) { T old = *at; *at += x; return old; }
template <class T> static T atomicOr(T* at, T x) { T old = *at; *at |= x; return old; }
extern "C" { unsigned int pool[1 << 22]; }
extern "C" void set_block(unsigned int block, unsigned int grid) { blockIdx.x = block, gridDim.x = grid; }
