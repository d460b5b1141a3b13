// What a search is given and what it gives back (docs: pow.md, "Hash", steps 2, 5 and 6).

override WORKGROUP: u32 = 128u;

struct Job {
  prefix_a: vec4<u32>, // B3 of the label and the header without its nonce
  prefix_b: vec4<u32>,
  nonce_low: u32, // first nonce of this dispatch
  nonce_high: u32,
  count: u32, // nonces of this dispatch
  quads: u32, // the rounds of a hash in fours: 16, told here so that no compiler unrolls them
  target_high: u32, // the target's first 64 bits; the host compares the rest
  target_low: u32,
  reserved_a: u32,
  reserved_b: u32,
}

struct Hit {
  nonce_low: u32,
  nonce_high: u32,
  hash: array<u32, 8>,
}

struct Results {
  count: atomic<u32>, // hits found, also those that no slot was left for
  next: atomic<u32>, // nonces handed out, where invocations stay for more than one
  slots: array<Hit, ${SLOTS}>,
}

@group(0) @binding(0) var<uniform> job: Job;
@group(0) @binding(1) var<storage, read_write> results: Results;

struct Nonce {
  low: u32,
  high: u32,
}

fn nonce_at(index: u32) -> Nonce {
  let low = job.nonce_low + index;
  return Nonce(low, job.nonce_high + select(0u, 1u, low < index));
}

fn seed_of(nonce: Nonce) -> Block {
  return blake3(Block(job.prefix_a, job.prefix_b, vec4<u32>(nonce.low, nonce.high, 0u, 0u), vec4<u32>(0u)), 40u);
}

fn swap_bytes(v: u32) -> u32 {
  return (v << 24u) | ((v & 0xff00u) << 8u) | ((v >> 8u) & 0xff00u) | (v >> 24u);
}

fn fold(row: vec4<u32>) -> u32 {
  return fnv(fnv(fnv(row.x, row.y), row.z), row.w);
}

// The last compression, the comparison and, for the rare hit, a slot.
fn judge(index: u32, seed_a: vec4<u32>, seed_b: vec4<u32>, mix_a: vec4<u32>, mix_b: vec4<u32>) {
  let hash = blake3(Block(seed_a, seed_b, mix_a, mix_b), 64u);
  let high = swap_bytes(hash.a.x);
  if (high > job.target_high || index >= job.count) {
    return;
  }
  if (high == job.target_high && swap_bytes(hash.a.y) > job.target_low) {
    return;
  }
  let slot = atomicAdd(&results.count, 1u);
  if (slot < ${SLOTS}u) {
    let nonce = nonce_at(index);
    results.slots[slot] = Hit(nonce.low, nonce.high,
      array<u32, 8>(hash.a.x, hash.a.y, hash.a.z, hash.a.w, hash.b.x, hash.b.y, hash.b.z, hash.b.w));
  }
}
