/*
 * The yardstick of `npm run bench -- pow-cpu`: SVC_POW_V1 in C with prefetch, one core. Never shipped.
 * Build: cc -O3 -march=native -o pow-cpu pow-cpu.c
 *
 *   pow-cpu CACHE_LOG2 PAGES_LOG2 SEED_HEX   then one command a line on standard input, one answer a line:
 *     check HEADER_HEX         hash of a header from the cache, in hex
 *     build COUNT              processor seconds for that many dataset items, 32 interleaved
 *     fill                     builds nothing: fills the dataset with noise, which costs a search the same reads
 *     search NONCES WIDTH      processor seconds for that many nonces, WIDTH (8, 16, 32) interleaved
 *     single HASHES            processor seconds for that many, one after the other
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef u32 v4 __attribute__((vector_size(16)));

#define PRIME 0x01000193u
static const u32 IV[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
static const uint8_t SCHEDULE[7][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8},
    {3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1}, {10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6},
    {12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4}, {9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7},
    {11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13}};

static int cacheLog2, pagesLog2;
static u32 *cache, *dataset;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

#define ROTR(x, n) (((x) >> (n)) | ((x) << (32 - (n))))
#define G(a, b, c, d, x, y) \
  a = a + b + (x); d = ROTR(d ^ a, 16); c = c + d; b = ROTR(b ^ c, 12); \
  a = a + b + (y); d = ROTR(d ^ a, 8); c = c + d; b = ROTR(b ^ c, 7);
#define ROUNDS(m) \
  _Pragma("GCC unroll 7") for (int r = 0; r < 7; r++) { \
    const uint8_t *s = SCHEDULE[r]; \
    G(v[0], v[4], v[8], v[12], m[s[0]], m[s[1]]) G(v[1], v[5], v[9], v[13], m[s[2]], m[s[3]]) \
    G(v[2], v[6], v[10], v[14], m[s[4]], m[s[5]]) G(v[3], v[7], v[11], v[15], m[s[6]], m[s[7]]) \
    G(v[0], v[5], v[10], v[15], m[s[8]], m[s[9]]) G(v[1], v[6], v[11], v[12], m[s[10]], m[s[11]]) \
    G(v[2], v[7], v[8], v[13], m[s[12]], m[s[13]]) G(v[3], v[4], v[9], v[14], m[s[14]], m[s[15]]) \
  }

static void compress(const u32 m[16], const u32 cv[8], u32 length, u32 flags, u32 out[16]) {
  u32 v[16] = {cv[0], cv[1], cv[2], cv[3], cv[4], cv[5], cv[6], cv[7], IV[0], IV[1], IV[2], IV[3], 0, 0, length, flags};
  ROUNDS(m)
  for (int i = 0; i < 8; i++) out[i] = v[i] ^ v[i + 8], out[i + 8] = v[i + 8] ^ cv[i];
}

/* Four messages at once, word w of message h in lane h of m[w]. */
static inline void compress4(const v4 m[16], u32 length, v4 out[16]) {
  v4 v[16];
  for (int i = 0; i < 8; i++) v[i] = (v4){IV[i], IV[i], IV[i], IV[i]};
  for (int i = 0; i < 4; i++) v[i + 8] = v[i];
  v[12] = v[13] = (v4){0, 0, 0, 0};
  v[14] = (v4){length, length, length, length};
  v[15] = (v4){11, 11, 11, 11};
  ROUNDS(m)
  for (int i = 0; i < 8; i++) out[i] = v[i] ^ v[i + 8], out[i + 8] = v[i + 8] ^ IV[i];
}

static void xof64(const u32 in[16], u32 length, u32 out[16]) {
  u32 m[16];
  memcpy(m, in, 64);
  compress(m, IV, length, 11, out);
}

static void buildCache(const u32 seed[8]) {
  u64 n = 1ull << cacheLog2;
  u32 m[16] = {0};
  memcpy(m, seed, 32);
  xof64(m, 32, cache);
  for (u64 i = 1; i < n; i++) xof64(cache + 16 * (i - 1), 64, cache + 16 * i);
  for (int pass = 0; pass < 3; pass++)
    for (u64 i = 0; i < n; i++) {
      const u32 *a = cache + 16 * ((i - 1) & (n - 1)), *b = cache + 16 * (u64)(cache[16 * i] >> (32 - cacheLog2));
      for (int j = 0; j < 16; j++) m[j] = a[j] ^ b[j];
      xof64(m, 64, cache + 16 * i);
    }
}

static inline void hashFour(u32 in[4][16], u32 out[4][16]) {
  v4 m[16], o[16];
  for (int w = 0; w < 16; w++) m[w] = (v4){in[0][w], in[1][w], in[2][w], in[3][w]};
  compress4(m, 64, o);
  for (int w = 0; w < 16; w++)
    for (int h = 0; h < 4; h++) out[h][w] = o[w][h];
}

/* ITEMS items from `first` on: each step prefetches the parents of all of them, then mixes. */
#define ITEMS 32
static void items(u32 first, u32 *to) {
  u32 m[ITEMS][16] __attribute__((aligned(64)));
  const u32 *parent[ITEMS];
  int shift = 32 - cacheLog2;
  for (int h = 0; h < ITEMS; h++) {
    memcpy(m[h], cache + 16 * (u64)((first + h) & ((1u << cacheLog2) - 1)), 64);
    m[h][0] ^= first + h;
  }
  for (int h = 0; h < ITEMS; h += 4) hashFour(m + h, m + h);
  for (int h = 0; h < ITEMS; h++) {
    parent[h] = cache + 16 * (u64)((((first + h) * PRIME) ^ m[h][0]) >> shift);
  }
  for (u32 k = 0; k < 64; k++) {
    for (int h = 0; h < ITEMS; h++) __builtin_prefetch(parent[h]);
    for (int h = 0; h < ITEMS; h++) {
      v4 *s = (v4 *)m[h];
      const v4 *p = (const v4 *)parent[h];
      for (int j = 0; j < 4; j++) s[j] = (s[j] * PRIME) ^ p[j];
      parent[h] = cache + 16 * (u64)(((((first + h) ^ (k + 1)) * PRIME) ^ m[h][(k + 1) & 15]) >> shift);
    }
  }
  for (int h = 0; h < ITEMS; h += 4) hashFour(m + h, (u32(*)[16])(to + 16 * h));
}

typedef struct { u32 mix[32]; u32 seed[16]; } state;

static inline const u32 *pageOf(u32 g) { return dataset + 32 * (u64)(g >> (32 - pagesLog2)); }

static inline __attribute__((always_inline)) void step(state *s, u32 *select, u32 i, int turn) {
  u32 g = *select;
  const v4 *page = (const v4 *)pageOf(g);
  v4 *mix = (v4 *)s->mix;
  const v4 order = {turn & 3, (turn + 1) & 3, (turn + 2) & 3, (turn + 3) & 3};
  for (int k = 0; k < 8; k++) mix[k] = (mix[k] * PRIME) ^ __builtin_shuffle(page[k ^ (g & 7)], order);
  g = (((i + 1) ^ s->seed[15]) * PRIME) ^ s->mix[(i + 1) & 31];
  *select = g;
}

/* All pages of a round at once: measured, more than twice as fast as asking for each when its hash was mixed. */
static inline __attribute__((always_inline)) void prefetchAll(const u32 *select, int width) {
  for (int h = 0; h < width; h++) {
    __builtin_prefetch(pageOf(select[h]));
    __builtin_prefetch(pageOf(select[h]) + 16);
  }
}

static inline __attribute__((always_inline)) void mixAll(state *s, int width) {
  u32 select[32];
  for (int h = 0; h < width; h++) {
    memcpy(s[h].mix, s[h].seed, 64);
    memcpy(s[h].mix + 16, s[h].seed, 64);
    select[h] = (s[h].seed[15] * PRIME) ^ s[h].mix[0];
  }
  for (u32 i = 0; i < 64; i += 4) {
    prefetchAll(select, width);
    for (int h = 0; h < width; h++) step(s + h, select + h, i, 0);
    prefetchAll(select, width);
    for (int h = 0; h < width; h++) step(s + h, select + h, i + 1, 1);
    prefetchAll(select, width);
    for (int h = 0; h < width; h++) step(s + h, select + h, i + 2, 2);
    prefetchAll(select, width);
    for (int h = 0; h < width; h++) step(s + h, select + h, i + 3, 3);
  }
}

static void fold(const state *s, u32 m[16]) {
  memcpy(m, s->seed, 32);
  for (int k = 0; k < 8; k++) {
    const u32 *x = s->mix + 4 * k;
    m[8 + k] = ((((((x[0] * PRIME) ^ x[1]) * PRIME) ^ x[2]) * PRIME) ^ x[3]);
  }
}

static inline __attribute__((always_inline)) u64 searchWidth(const u32 pre[8], u64 count, u32 limit, int width) {
  state s[32] __attribute__((aligned(64)));
  u64 found = 0;
  for (u64 n = 0; n < count; n += width) {
    for (int h = 0; h < width; h += 4) {
      v4 m[16] = {{0}}, o[16];
      for (int w = 0; w < 8; w++) m[w] = (v4){pre[w], pre[w], pre[w], pre[w]};
      for (int l = 0; l < 4; l++) m[8][l] = (u32)(n + h + l), m[9][l] = (u32)((n + h + l) >> 32);
      compress4(m, 40, o);
      for (int w = 0; w < 16; w++)
        for (int l = 0; l < 4; l++) s[h + l].seed[w] = o[w][l];
    }
    mixAll(s, width);
    for (int h = 0; h < width; h += 4) {
      u32 m[4][16], o[4][16];
      for (int l = 0; l < 4; l++) fold(s + h + l, m[l]);
      hashFour(m, o);
      for (int l = 0; l < 4; l++) found += __builtin_bswap32(o[l][0]) <= limit;
    }
  }
  return found;
}

static u64 search(const u32 pre[8], u64 count, u32 limit, int width) {
  if (width == 8) return searchWidth(pre, count, limit, 8);
  if (width == 16) return searchWidth(pre, count, limit, 16);
  return searchWidth(pre, count, limit, 32);
}

static u64 single(const u32 pre[8], u64 count, u32 limit) {
  u64 found = 0;
  for (u64 n = 0; n < count; n++) {
    state s;
    u32 m[16] = {0}, o[16];
    memcpy(m, pre, 32);
    m[8] = (u32)n, m[9] = (u32)(n >> 32);
    compress(m, IV, 40, 11, s.seed);
    mixAll(&s, 1);
    fold(&s, m);
    compress(m, IV, 64, 11, o);
    found += __builtin_bswap32(o[0]) <= limit;
  }
  return found;
}

static void check(const uint8_t header[312]) {
  uint8_t padded[320] = "SVC_POW_V1";
  u32 cv[8], out[16], m[16], pre[16] = {0};
  memcpy(padded + 10, header, 304);
  memset(padded + 314, 0, 6);
  memcpy(cv, IV, 32);
  for (int b = 0; b < 5; b++) {
    memcpy(m, padded + 64 * b, 64);
    compress(m, cv, b == 4 ? 58 : 64, (b == 0) | (b == 4 ? 10 : 0), out);
    memcpy(cv, out, 32);
  }
  state s;
  memcpy(pre, cv, 32);
  memcpy(pre + 8, header + 304, 8);
  compress(pre, IV, 40, 11, s.seed);
  memcpy(s.mix, s.seed, 64);
  memcpy(s.mix + 16, s.seed, 64);
  for (u32 i = 0; i < 64; i++) {
    u32 g = ((i ^ s.seed[15]) * PRIME) ^ s.mix[i & 31], block[16 * ITEMS];
    u32 first = 2 * (g >> (32 - pagesLog2));
    items(first & ~(u32)(ITEMS - 1), block);
    const u32 *page = block + 16 * (first & (ITEMS - 1));
    for (u32 j = 0; j < 32; j++) s.mix[j] = (s.mix[j] * PRIME) ^ page[4 * ((j >> 2) ^ (g & 7)) + ((j + i) & 3)];
  }
  fold(&s, m);
  compress(m, IV, 64, 11, out);
  for (int i = 0; i < 32; i++) printf("%02x", ((uint8_t *)out)[i]);
  printf("\n");
}

static void *small(size_t bytes) {
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) exit(3);
  madvise(at, bytes, MADV_NOHUGEPAGE); /* a WebAssembly memory has 4 KiB pages too */
  return at;
}

static void unhex(const char *text, uint8_t *to, int bytes) {
  for (int i = 0; i < bytes; i++) {
    unsigned x = 0;
    sscanf(text + 2 * i, "%2x", &x);
    to[i] = x;
  }
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  cacheLog2 = atoi(argv[1]), pagesLog2 = atoi(argv[2]);
  u32 seed[8], pre[8];
  unhex(argv[3], (uint8_t *)seed, 32);
  memcpy(pre, seed, 32);
  u64 words = 32ull << pagesLog2;
  cache = small(64ull << cacheLog2), dataset = small(4 * words);
  double t = now();
  buildCache(seed);
  printf("%.6f\n", now() - t);
  fflush(stdout);
  char line[1024], word[16], text[700];
  while (fgets(line, sizeof line, stdin)) {
    unsigned long long count = 0;
    int width = 8;
    u64 found = 0;
    if (sscanf(line, "%15s %699s", word, text) == 2 && !strcmp(word, "check")) {
      uint8_t header[312];
      unhex(text, header, 312);
      check(header);
    } else {
      sscanf(line, "%15s %llu %d", word, &count, &width);
      t = now();
      if (!strcmp(word, "build"))
        for (u32 i = 0; i < count; i += ITEMS) items(i, dataset + 16 * (u64)i);
      else if (!strcmp(word, "fill"))
        for (u64 i = 0, x = 1; i < words; i++) x = x * 6364136223846793005ull + 1442695040888963407ull, dataset[i] = x >> 32;
      else if (!strcmp(word, "search")) found = search(pre, count, 0xffff, width);
      else if (!strcmp(word, "single")) found = single(pre, count, 0xffff);
      printf("%.6f %llu\n", now() - t, (unsigned long long)found);
    }
    fflush(stdout);
  }
  return 0;
}
