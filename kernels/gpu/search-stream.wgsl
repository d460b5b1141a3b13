enable subgroups;
diagnostic(off, subgroup_uniformity);
// Search with subgroup shuffles that keeps its invocations for the whole dispatch (docs: pow.md, "Hash"). LANES invocations
// share a hash, each holding ROWS = 8 / LANES rows of four mix words, so that a page is one coalesced read of 128 bytes; FLIGHT
// hashes of the group are mixed at once, because the reads of one hash depend on each other. A subgroup fetches its next
// nonces from a counter until none are left: no workgroup has to end before work goes on, so a workgroup may be as large as
// it takes to bound the compiler's registers (1,024 invocations leave 64 each on many cards), and a dispatch ends within the
// time of one hash. Nothing but the mix lives through the rounds: the seed is derived again for the last compression.

//@include blake3
//@include job
//@include pages

// The row of the seed that this lane's mix starts with, of the invocation `source`.
fn row_of(seed: Block, source: u32, lane: u32) -> vec4<u32> {
  let a = subgroupShuffle(seed.a, source);
  let b = subgroupShuffle(seed.b, source);
  let c = subgroupShuffle(seed.c, source);
  let d = subgroupShuffle(seed.d, source);
  return select(select(a, b, (lane & 1u) == 1u), select(c, d, (lane & 1u) == 1u), (lane & 2u) == 2u);
}

@compute @workgroup_size(WORKGROUP)
fn search(@builtin(subgroup_invocation_id) invocation: u32, @builtin(subgroup_size) size: u32) {
  let lane = invocation & ${LANE_MASK}u;
  let first = invocation - lane;
  let own = lane % ${FLIGHT}u;
  loop {
    var base = 0u;
    if (invocation == 0u) {
      base = atomicAdd(&results.next, size / ${LANES}u * ${FLIGHT}u);
    }
    base = subgroupShuffle(base, 0u);
    if (base >= job.count) {
      break;
    }
    let index = base + first / ${LANES}u * ${FLIGHT}u + own;
    let seed = seed_of(nonce_at(index));
    //@each h FLIGHT
    let salt${h} = subgroupShuffle(seed.d.w, first + ${h}u);
    var g${h}: u32;
    var mix${h}x0 = row_of(seed, first + ${h}u, lane);
    var page${h}x0: vec4<u32>;
    //@if ROWS == 2
    var mix${h}x1 = mix${h}x0;
    var page${h}x1: vec4<u32>;
    //@end
    //@end
    //@include shuffle-rounds
    var own_a: vec4<u32>;
    var own_b: vec4<u32>;
    //@each h FLIGHT
    //@include shuffle-fold
    own_a = select(own_a, all${h}a, own == ${h}u);
    own_b = select(own_b, all${h}b, own == ${h}u);
    //@end
    // The same number, by a way that no compiler sees through: it would keep the first seed in registers instead.
    let again = subgroupShuffle(index, first + own);
    if (lane < ${FLIGHT}u) {
      let same = seed_of(nonce_at(again));
      judge(again, same.a, same.b, own_a, own_b);
    }
  }
}
