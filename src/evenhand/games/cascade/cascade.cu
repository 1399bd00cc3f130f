/* Independent cascades on a GPU.

Which arcs are live is a function of the query alone: node u of query (row, column) draws from
Philox words numbered by (u, block, column) under the row's key. A cascade is then what the seeds
reach, in whatever order nodes are taken. So the two ways to walk below, one thread or one warp
per cascade, any launch shape and any cut of a batch give the same numbers.

The live arcs of a node are found by skips: the number of failures before the next success, from
an alias table of the geometric law. Cell i of its 256 cells means i failures and a success or,
with the rest of the cell's chance, another such outcome; cell 255 means 255 failures and no
success, after which another draw goes on, coins having no memory. One 32-bit word makes a draw: 8
bits choose the cell, 24 bits are its coin; where these tie with the 56-bit chance, another word
decides, so nothing is rounded away. Where probabilities differ, a success at the largest one is
kept with chance p / largest.

ARM, the type of a node in all large arrays, is defined by the caller: unsigned short where nodes
fit into it.  */

typedef unsigned int u32;
typedef unsigned long long u64;

#ifndef LANES
#define LANES 32  // of a warp
#endif
const u32 ALL = 0xffffffffu;
const u32 LONGEST = 255;  // the outcome of a draw that ends without a success

extern "C" {
extern __shared__ u32 pool[];
}

struct Graph {
  u32 m;
  const u32* starts;   // node v has the arcs starts[v] .. starts[v + 1] - 1
  const ARM* targets;
  const u64* keep;     // chance / largest chance, times 2^64; all ones is always; null: all equal
  const u32* table;    // 256 cells: 24 bits of its chance above 8 bits of its other outcome
  const u32* ties;     // the lower 32 bits of the chances
};

struct Words { u32 word[4]; };

/* Philox4x32-10: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3",
SC 2011. */
__device__ Words philox(u32 a, u32 b, u32 c, u32 d, u64 key) {
  u32 k0 = (u32)key, k1 = (u32)(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 x = (u64)0xD2511F53u * a, y = (u64)0xCD9E8D57u * c;
    a = (u32)(y >> 32) ^ b ^ k0;
    b = (u32)y;
    c = (u32)(x >> 32) ^ d ^ k1;
    d = (u32)x;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return Words{{a, b, c, d}};
}

/* The walk along the arcs of a node, with the random words of its query. */
struct Walk {
  u64 key;
  u32 column, node, block, at, end;

  __device__ void enter(u32 new_node, const u32* starts) {
    node = new_node, block = 0;
    at = starts[node], end = starts[node + 1];
  }
  __device__ Words draw() { return philox(node, block++, column, 0, key); }
};

/* Go to the next success by the i-th word of a block of four. True where it found a live arc, the
one before walk.at. */
__device__ bool next_live(const Graph& g, const u32* table, Walk& walk, u32 word, u32 i) {
  const u32 cell = word & 255, coin = word >> 8, entry = table[cell];
  bool stays = coin < entry >> 8;
  if (coin == entry >> 8)
    stays = philox(walk.node, 4 * walk.block + i, walk.column, 1, walk.key).word[0] < g.ties[cell];
  const u32 failures = stays ? cell : entry & 255;
  walk.at += failures;
  if (failures == LONGEST || walk.at >= walk.end) return false;
  const u32 arc = walk.at++;
  if (!g.keep || g.keep[arc] == ~0ull) return true;
  const Words thin = philox(arc, 0, walk.column, 2, walk.key);
  return ((u64)thin.word[0] << 32 | thin.word[1]) < g.keep[arc];
}

/* Queries of prefixes: seeds are the first arms of a row, the result is the number reached. */
struct Pull {
  static const bool wants_members = false;
  const u64* keys;
  const ARM *orders, *sizes;
  ARM* counts;
  u32 k, s;
  bool coupled;  // all prefixes of a row in one live-edge graph

  __device__ Walk begin(u32 query) const {
    return Walk{keys[query / s], coupled ? 0 : query % s, 0, 0, 0, 0};
  }
  __device__ u32 seeds(u32 query) const { return sizes[query]; }
  __device__ u32 seed(u32 query, u32 i) const { return orders[(u64)(query / s) * k + i]; }
  __device__ void reached(u32 query, u32 count) const { counts[query] = (ARM)count; }
  __device__ void member(u32, u32, u32) const {}
};

/* Reverse-reachable sets: column j of a row is what reaches its j-th root. Each member of a set of r
nodes is credited with shares[r], in whole units, so that the order of the additions does not
matter. */
struct Reverse {
  static const bool wants_members = true;
  const u64 *keys, *shares;
  u64* credits;  // (rows, m)
  const u32* roots;  // null: every node in turn
  u32 width, stride, m;  // roots of a row; 0 if all rows have the same roots, else width

  __device__ Walk begin(u32 query) const {
    return Walk{keys[query / width], query % width, 0, 0, 0, 0};
  }
  __device__ u32 seeds(u32) const { return 1; }
  __device__ u32 seed(u32 query, u32) const {
    return roots ? roots[(u64)(query / width) * stride + query % width] : query % width;
  }
  __device__ void reached(u32, u32) const {}
  __device__ void member(u32 query, u32 count, u32 node) const {
    atomicAdd(&credits[(u64)(query / width) * m + node], shares[count]);
  }
};

/* One thread per cascade, graph and sets in shared memory. Sets are bitmaps of at most 32 words,
words of different threads side by side. One turn of the loop is one block of four draws at
whatever node of whatever cascade each lane of the warp has come to. After each branch the lanes
are synchronised: left alone, they would stay diverged. */
template <class Work>
__device__ void by_thread(Graph g, Work work, u32 n_arcs, u32 n) {
  const u32 width = blockDim.x, words = (g.m + 31) / 32;
  u32 *table = pool, *starts = table + 256;
  u32 *reached = starts + g.m + 1 + threadIdx.x, *waiting = reached + words * width;
  ARM* targets = (ARM*)(starts + g.m + 1 + 2 * words * width);
  for (u32 i = threadIdx.x; i < 256; i += width) table[i] = g.table[i];
  for (u32 i = threadIdx.x; i <= g.m; i += width) starts[i] = g.starts[i];
  for (u32 i = threadIdx.x; i < n_arcs; i += width) targets[i] = g.targets[i];
  for (u32 w = 0; w < words; ++w) waiting[w * width] = 0;
  __syncthreads();

  u32 query = blockIdx.x * width + threadIdx.x;
  u32 open = 0;  // words of `waiting` that are not empty
  u32 count = 0;
  bool begun = false;
  Walk walk = {0, 0, 0, 0, 0, 0};
  for (;;) {
    const bool ended = walk.at >= walk.end && !open;  // no node waits
    if (__any_sync(ALL, ended)) {
      if (ended && begun) {
        work.reached(query, count);
        if (Work::wants_members)
          for (u32 w = 0; w < words; ++w)
            for (u32 bits = reached[w * width]; bits; bits &= bits - 1)
              work.member(query, count, 32 * w + __ffs(bits) - 1);
        query += gridDim.x * width;
        begun = false;
      }
      if (!__any_sync(ALL, query < n)) return;
      if (ended && query < n) {
        begun = true, count = 0;
        walk = work.begin(query);
        for (u32 w = 0; w < words; ++w) reached[w * width] = 0;
        for (u32 i = 0; i < work.seeds(query); ++i) {
          const u32 node = work.seed(query, i), w = node >> 5;
          reached[w * width] |= 1u << (node & 31);
          waiting[w * width] |= 1u << (node & 31);
          open |= 1u << w;
        }
      }
      __syncwarp();
    }
    if (walk.at >= walk.end && open) {
      const u32 w = __ffs(open) - 1, bits = waiting[w * width], rest = bits & (bits - 1);
      waiting[w * width] = rest;
      if (!rest) open &= open - 1;
      walk.enter(32 * w + __ffs(bits) - 1, starts);
      ++count;
    }
    __syncwarp();
    const Words drawn = walk.draw();
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      if (walk.at < walk.end && next_live(g, table, walk, drawn.word[i], i)) {
        const u32 node = targets[walk.at - 1], w = node >> 5, bit = 1u << (node & 31);
        const u32 before = reached[w * width];
        if (!(before & bit)) {
          reached[w * width] = before | bit;
          waiting[w * width] |= bit;
          open |= 1u << w;
        }
      }
      __syncwarp();
    }
  }
}

/* One warp per cascade: its lanes take nodes from one queue. Graph in global memory; bitmap and
queue of a warp, m bits and m nodes, in shared memory (state null) or in global memory. In the end
the queue holds all nodes of the cascade, and tells which bits to clear. */
template <class Work>
__device__ void by_warp(Graph g, Work work, u32* state, u32 n) {
  const u32 warps = blockDim.x / LANES, lane = threadIdx.x % LANES, words = (g.m + 31) / 32;
  const u32 warp = threadIdx.x / LANES, number = blockIdx.x * warps + warp, size = words + g.m;
  u32* table = pool;
  for (u32 i = threadIdx.x; i < 256; i += blockDim.x) table[i] = g.table[i];
  u32* reached = state ? state + (u64)number * size : pool + 256 + warp * size;
  u32* queue = reached + words;
  for (u32 i = lane; i < words; i += LANES) reached[i] = 0;
  __syncthreads();

  const u32 before_me = (1u << lane) - 1;
  for (u32 query = number; query < n; query += gridDim.x * warps) {
    Walk walk = work.begin(query);
    const u32 n_seeds = work.seeds(query);
    u32 head = 0, tail = n_seeds;
    for (u32 i = lane; i < n_seeds; i += LANES) {
      const u32 node = work.seed(query, i);
      queue[i] = node;
      atomicOr(&reached[node >> 5], 1u << (node & 31));
    }
    __syncwarp();
    for (;;) {
      const u32 idle = __ballot_sync(ALL, walk.at >= walk.end);
      const u32 mine = head + __popc(idle & before_me);
      if (walk.at >= walk.end && mine < tail) walk.enter(queue[mine], g.starts);
      head = min(head + __popc(idle), tail);
      if (!__any_sync(ALL, walk.at < walk.end)) {
        if (head == tail) break;
        continue;  // nodes without arcs
      }
      const Words drawn = walk.draw();
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        bool fresh = false;
        u32 node = 0;
        if (walk.at < walk.end && next_live(g, table, walk, drawn.word[i], i)) {
          node = g.targets[walk.at - 1];
          const u32 bit = 1u << (node & 31);
          fresh = !(atomicOr(&reached[node >> 5], bit) & bit);
        }
        const u32 found = __ballot_sync(ALL, fresh);
        if (fresh) queue[tail + __popc(found & before_me)] = node;
        tail += __popc(found);
      }
      __syncwarp();
    }
    if (lane == 0) work.reached(query, tail);
    for (u32 i = lane; i < tail; i += LANES) {
      if (Work::wants_members) work.member(query, tail, queue[i]);
      reached[queue[i] >> 5] = 0;
    }
    __syncwarp();
  }
}

#define GRAPH                                                                             \
  u32 m, const u32 *starts, const ARM *targets, const u64 *keep, const u32 *table, const u32 *ties
#define THE_GRAPH Graph{m, starts, targets, keep, table, ties}
#define PULL                                                                              \
  const u64 *keys, const ARM *orders, const ARM *sizes, ARM *counts, u32 k, u32 s, bool coupled
#define THE_PULL Pull{keys, orders, sizes, counts, k, s, coupled}
#define REVERSE                                                                           \
  const u64 *keys, const u64 *shares, u64 *credits, const u32 *roots, u32 width, u32 stride
#define THE_REVERSE Reverse{keys, shares, credits, roots, width, stride, m}

extern "C" {

__global__ void __launch_bounds__(1024) pull_by_thread(GRAPH, PULL, u32 n_arcs, u32 n) {
  by_thread(THE_GRAPH, THE_PULL, n_arcs, n);
}

__global__ void pull_by_warp(GRAPH, PULL, u32* state, u32 n) {
  by_warp(THE_GRAPH, THE_PULL, state, n);
}

__global__ void __launch_bounds__(1024) reverse_by_thread(GRAPH, REVERSE, u32 n_arcs, u32 n) {
  by_thread(THE_GRAPH, THE_REVERSE, n_arcs, n);
}

__global__ void reverse_by_warp(GRAPH, REVERSE, u32* state, u32 n) {
  by_warp(THE_GRAPH, THE_REVERSE, state, n);
}

/* Add rows of credits to the mean and the sum of squared deviations of each node (Welford), after
`before` rows. One thread per node, rows in their order: the same bits however rows are cut. */
__global__ void fold(const u64* credits, u32 rows, u32 m, double unit, double before,
                     double* mean, double* squares) {
  const u32 node = blockIdx.x * blockDim.x + threadIdx.x;
  if (node >= m) return;
  double middle = mean[node], spread = squares[node];
  for (u32 row = 0; row < rows; ++row) {
    const double value = (double)credits[(u64)row * m + node] * unit, step = value - middle;
    middle += step / (before + row + 1);
    spread += step * (value - middle);
  }
  mean[node] = middle;
  squares[node] = spread;
}
}
