// The yardstick of the GPU kernels: SVC_POW_V1 in hand-written CUDA, never shipped. Same division of work as
// kernels/gpu/search-shuffle.wgsl (8 lanes a hash by shuffles, FLIGHT hashes of a group at once), but free to use what WGSL
// cannot: one 2 GiB allocation, no bounds checks, cache hints, launch bounds. Every combination below is timed and the best
// one counts.
//
//   nvcc -O3 -arch=sm_90 -o pow-cuda pow.cu && ./pow-cuda CACHE_FILE [seconds] [expected-hash-hex prefix-hex nonce]
//
// CACHE_FILE holds the cache (64 MiB on mainnet); the dataset is built on the device. Prints one line a combination and, last,
// "best <MH/s> ...". With the three last arguments the hash of one nonce is computed first and compared.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                        \
  do {                                                                                     \
    cudaError_t e = (call);                                                                \
    if (e != cudaSuccess) {                                                                \
      fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e));                           \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

constexpr uint32_t PRIME = 0x01000193u;
constexpr int SLOTS = 256;

struct Hit { uint32_t nonce[2]; uint32_t hash[8]; };
struct Results { uint32_t count; Hit slots[SLOTS]; };
struct Job { uint32_t prefix[8]; uint32_t nonce_low, nonce_high, count, target_high, target_low; };

__device__ __forceinline__ uint32_t fnv(uint32_t a, uint32_t b) { return (a * PRIME) ^ b; }
__device__ __forceinline__ uint32_t rotr(uint32_t v, int n) { return __funnelshift_r(v, v, n); }

#define G(a, b, c, d, x, y)        \
  a = a + b + (x); d = rotr(d ^ a, 16); c = c + d; b = rotr(b ^ c, 12); \
  a = a + b + (y); d = rotr(d ^ a, 8);  c = c + d; b = rotr(b ^ c, 7);

// BLAKE3 of one block; `out` takes 16 words.
__device__ __forceinline__ void blake3(const uint32_t *block, uint32_t length, uint32_t *out) {
  constexpr uint32_t IV[8] = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
  constexpr int P[16] = {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};
  uint32_t m[16], v[16];
#pragma unroll
  for (int i = 0; i < 16; i++) m[i] = block[i];
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = IV[i];
#pragma unroll
  for (int i = 0; i < 4; i++) v[8 + i] = IV[i];
  v[12] = 0; v[13] = 0; v[14] = length; v[15] = 11;
#pragma unroll
  for (int r = 0; r < 7; r++) {
    G(v[0], v[4], v[8], v[12], m[0], m[1]);
    G(v[1], v[5], v[9], v[13], m[2], m[3]);
    G(v[2], v[6], v[10], v[14], m[4], m[5]);
    G(v[3], v[7], v[11], v[15], m[6], m[7]);
    G(v[0], v[5], v[10], v[15], m[8], m[9]);
    G(v[1], v[6], v[11], v[12], m[10], m[11]);
    G(v[2], v[7], v[8], v[13], m[12], m[13]);
    G(v[3], v[4], v[9], v[14], m[14], m[15]);
    uint32_t n[16];
#pragma unroll
    for (int i = 0; i < 16; i++) n[i] = m[P[i]];
#pragma unroll
    for (int i = 0; i < 16; i++) m[i] = n[i];
  }
#pragma unroll
  for (int i = 0; i < 8; i++) { out[i] = v[i] ^ v[i + 8]; out[i + 8] = v[i + 8] ^ IV[i]; }
}

__global__ void build(const uint4 *__restrict__ cache, uint4 *dataset, uint32_t first, uint32_t shift) {
  const uint32_t item = first + blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t m[16];
  const uint32_t start = (item & (0xffffffffu >> shift)) * 4;
#pragma unroll
  for (int r = 0; r < 4; r++) { uint4 q = __ldg(cache + start + r); m[4 * r] = q.x; m[4 * r + 1] = q.y; m[4 * r + 2] = q.z; m[4 * r + 3] = q.w; }
  m[0] ^= item;
  blake3(m, 64, m);
  for (uint32_t k = 0; k < 64; k += 16) {
#pragma unroll
    for (int w = 0; w < 16; w++) {
      const uint32_t parent = (fnv(item ^ (k + w), m[w]) >> shift) * 4;
#pragma unroll
      for (int r = 0; r < 4; r++) {
        uint4 q = __ldg(cache + parent + r);
        m[4 * r] = fnv(m[4 * r], q.x); m[4 * r + 1] = fnv(m[4 * r + 1], q.y);
        m[4 * r + 2] = fnv(m[4 * r + 2], q.z); m[4 * r + 3] = fnv(m[4 * r + 3], q.w);
      }
    }
  }
  blake3(m, 64, m);
#pragma unroll
  for (int r = 0; r < 4; r++) dataset[(size_t)item * 4 + r] = make_uint4(m[4 * r], m[4 * r + 1], m[4 * r + 2], m[4 * r + 3]);
}

// HINT 0: read-only path; 1: no place in L1; 2: plain.
template <int HINT> __device__ __forceinline__ uint4 read(const uint4 *at) {
  uint4 v;
  if (HINT == 0) return __ldg(at);
  if (HINT == 1) {
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
    return v;
  }
  return *at;
}

// STASH keeps the seed in shared memory instead of registers.
template <int FLIGHT, int BLOCK, int MIN_BLOCKS, int HINT, bool STASH>
__global__ void __launch_bounds__(BLOCK, MIN_BLOCKS) search(const uint4 *__restrict__ dataset, Results *results, Job job, uint32_t shift) {
  const uint32_t index = blockIdx.x * BLOCK + threadIdx.x;
  const uint32_t lane = threadIdx.x & 7;
  const uint32_t low = job.nonce_low + index, high = job.nonce_high + (low < index);
  uint32_t block[16], seed[16], folded[8];
#pragma unroll
  for (int i = 0; i < 8; i++) block[i] = job.prefix[i];
  block[8] = low; block[9] = high;
#pragma unroll
  for (int i = 10; i < 16; i++) block[i] = 0;
  blake3(block, 40, seed);
  __shared__ uint32_t stash[STASH ? 16 * BLOCK : 1];
  if (STASH) {
#pragma unroll
    for (int i = 0; i < 16; i++) stash[i * BLOCK + threadIdx.x] = seed[i];
    __syncwarp();
  }
#pragma unroll 1
  for (int owner = 0; owner < 8; owner += FLIGHT) {
    uint32_t mix[FLIGHT][4], salt[FLIGHT];
    if (STASH) {
#pragma unroll
      for (int i = 0; i < 16; i++) seed[i] = *(volatile uint32_t *)&stash[i * BLOCK + threadIdx.x];
    }
#pragma unroll
    for (int h = 0; h < FLIGHT; h++) {
#pragma unroll
      for (int w = 0; w < 4; w++) {
        const uint32_t a = __shfl_sync(~0u, seed[w], owner + h, 8), b = __shfl_sync(~0u, seed[4 + w], owner + h, 8);
        const uint32_t c = __shfl_sync(~0u, seed[8 + w], owner + h, 8), d = __shfl_sync(~0u, seed[12 + w], owner + h, 8);
        mix[h][w] = lane & 2 ? (lane & 1 ? d : c) : (lane & 1 ? b : a);
        if (w == 3) salt[h] = d;
      }
    }
#pragma unroll 1
    for (uint32_t quad = 0; quad < 16; quad++) {
#pragma unroll
      for (int c = 0; c < 4; c++) {
        uint4 page[FLIGHT];
#pragma unroll
        for (int h = 0; h < FLIGHT; h++) {
          const uint32_t g = fnv((quad * 4 + c) ^ salt[h], __shfl_sync(~0u, mix[h][c], quad & 7, 8));
          page[h] = read<HINT>(dataset + (size_t)((g >> shift) * 8 + (lane ^ (g & 7))));
        }
#pragma unroll
        for (int h = 0; h < FLIGHT; h++) {
          const uint32_t words[4] = {page[h].x, page[h].y, page[h].z, page[h].w};
#pragma unroll
          for (int w = 0; w < 4; w++) mix[h][w] = fnv(mix[h][w], words[(w + c) & 3]);
        }
      }
    }
#pragma unroll
    for (int h = 0; h < FLIGHT; h++) {
      const uint32_t f = fnv(fnv(fnv(mix[h][0], mix[h][1]), mix[h][2]), mix[h][3]);
#pragma unroll
      for (int k = 0; k < 8; k++) {
        const uint32_t word = __shfl_sync(~0u, f, k, 8);
        if (STASH) { if (lane == owner + h) stash[(8 + k) * BLOCK + threadIdx.x] = word; }
        else if (lane == owner + h) folded[k] = word;
      }
    }
  }
  if (STASH) {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; i++) block[i] = *(volatile uint32_t *)&stash[i * BLOCK + threadIdx.x];
  } else {
#pragma unroll
    for (int i = 0; i < 8; i++) { block[i] = seed[i]; block[8 + i] = folded[i]; }
  }
  blake3(block, 64, seed);
  const uint32_t top = __byte_perm(seed[0], 0, 0x0123);
  if (top > job.target_high || index >= job.count) return;
  if (top == job.target_high && __byte_perm(seed[1], 0, 0x0123) > job.target_low) return;
  const uint32_t slot = atomicAdd(&results->count, 1u);
  if (slot >= SLOTS) return;
  results->slots[slot].nonce[0] = low;
  results->slots[slot].nonce[1] = high;
#pragma unroll
  for (int i = 0; i < 8; i++) results->slots[slot].hash[i] = seed[i];
}

struct Bench { const uint4 *dataset; Results *results; uint32_t shift; double seconds; };
static double best = 0;
static char bestName[128];

template <int FLIGHT, int BLOCK, int MIN_BLOCKS, int HINT, bool STASH> void time_search(const Bench &b) {
  Job job = {};
  job.target_high = 0;
  job.target_low = 0xffff;
  cudaEvent_t from, to;
  CHECK(cudaEventCreate(&from));
  CHECK(cudaEventCreate(&to));
  auto launch = [&](uint32_t n) {
    job.count = n;
    search<FLIGHT, BLOCK, MIN_BLOCKS, HINT, STASH><<<n / BLOCK, BLOCK>>>(b.dataset, b.results, job, b.shift);
    job.nonce_low += n;
    if (job.nonce_low < n) job.nonce_high++;
  };
  launch(1 << 22);
  const uint32_t n = 1 << 24; // about 30 ms on an H200
  launch(n);
  CHECK(cudaDeviceSynchronize());
  double total = 0, hashes = 0;
  while (total < b.seconds) {
    CHECK(cudaEventRecord(from));
    for (int k = 0; k < 8; k++) launch(n);
    CHECK(cudaEventRecord(to));
    CHECK(cudaEventSynchronize(to));
    CHECK(cudaGetLastError());
    float ms;
    CHECK(cudaEventElapsedTime(&ms, from, to));
    total += ms / 1000;
    hashes += 8.0 * n;
  }
  const double rate = hashes / total / 1e6;
  char name[128];
  snprintf(name, sizeof name, "flight %d block %d min-blocks %d hint %d stash %d", FLIGHT, BLOCK, MIN_BLOCKS, HINT, STASH);
  printf("%.1f MH/s %.2f TB/s %s\n", rate, rate * 64 * 128 / 1e6, name);
  fflush(stdout);
  if (rate > best) { best = rate; strcpy(bestName, name); }
}

static void from_hex(const char *hex, uint8_t *out, int n) {
  for (int i = 0; i < n; i++) { unsigned v; sscanf(hex + 2 * i, "%2x", &v); out[i] = (uint8_t)v; }
}

int main(int argc, char **argv) {
  if (argc < 2) { fprintf(stderr, "usage: pow-cuda CACHE_FILE [seconds] [hash prefix nonce]\n"); return 2; }
  FILE *f = fopen(argv[1], "rb");
  if (!f) { perror(argv[1]); return 1; }
  fseek(f, 0, SEEK_END);
  const size_t bytes = ftell(f);
  rewind(f);
  std::vector<uint8_t> cache(bytes);
  if (fread(cache.data(), 1, bytes, f) != bytes) { perror(argv[1]); return 1; }
  int cacheLog2 = 0;
  while ((64ull << cacheLog2) < bytes) cacheLog2++;
  const int pagesLog2 = cacheLog2 + 4;
  uint4 *deviceCache, *dataset;
  Results *results;
  CHECK(cudaMalloc(&deviceCache, bytes));
  CHECK(cudaMalloc(&dataset, 128ull << pagesLog2));
  CHECK(cudaMalloc(&results, sizeof(Results)));
  CHECK(cudaMemset(results, 0, sizeof(Results)));
  CHECK(cudaMemcpy(deviceCache, cache.data(), bytes, cudaMemcpyHostToDevice));
  cudaEvent_t from, to;
  CHECK(cudaEventCreate(&from));
  CHECK(cudaEventCreate(&to));
  CHECK(cudaEventRecord(from));
  build<<<(2u << pagesLog2) / 128, 128>>>(deviceCache, dataset, 0, 32 - cacheLog2);
  CHECK(cudaEventRecord(to));
  CHECK(cudaEventSynchronize(to));
  CHECK(cudaGetLastError());
  float ms;
  CHECK(cudaEventElapsedTime(&ms, from, to));
  cudaDeviceProp p;
  CHECK(cudaGetDeviceProperties(&p, 0));
  printf("%s, dataset %d MiB built in %.0f ms\n", p.name, (int)((128ull << pagesLog2) >> 20), ms);
  Bench b = {dataset, results, (uint32_t)(32 - pagesLog2), argc > 2 ? atof(argv[2]) : 2.0};
  if (argc > 5) {
    Job job = {};
    from_hex(argv[4], (uint8_t *)job.prefix, 32);
    const unsigned long long nonce = strtoull(argv[5], nullptr, 10);
    job.nonce_low = (uint32_t)nonce;
    job.nonce_high = (uint32_t)(nonce >> 32);
    job.count = 1;
    job.target_high = job.target_low = ~0u;
    search<4, 128, 1, 1, true><<<1, 128>>>(dataset, results, job, b.shift);
    Results *host = new Results;
    CHECK(cudaMemcpy(host, results, sizeof(Results), cudaMemcpyDeviceToHost));
    uint8_t expected[32];
    from_hex(argv[3], expected, 32);
    if (host->count != 1 || memcmp(host->slots[0].hash, expected, 32) != 0) { fprintf(stderr, "the hash is wrong\n"); return 1; }
    printf("the hash of the vector is right\n");
  }
  time_search<4, 128, 1, 1, false>(b);
  time_search<2, 128, 10, 1, true>(b);
  time_search<4, 128, 8, 1, true>(b);
  time_search<8, 128, 4, 1, false>(b);
  time_search<8, 128, 5, 1, true>(b);
  time_search<8, 64, 10, 1, true>(b);
  printf("best %.1f MH/s %s\n", best, bestName);
  return 0;
}
