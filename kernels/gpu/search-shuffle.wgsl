enable subgroups;
diagnostic(off, subgroup_uniformity);
// Search with subgroup shuffles (docs: pow.md, "Hash"): LANES invocations share a hash, each holding ROWS = 8 / LANES rows of
// four mix words, so that a page is one coalesced read of 128 bytes; FLIGHT hashes of the group are mixed at once, because the
// reads of one hash depend on each other and memory is kept busy only by others. Every invocation owns one nonce: it derives
// the seed, takes part in the mixing of its group's LANES hashes, and judges its own.
// LANES is 8 wherever the subgroup has 8 invocations, 4 where it has only 4.

//@include blake3
//@include job
//@include pages
//@include stash

@compute @workgroup_size(WORKGROUP)
fn search(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
          @builtin(local_invocation_index) local: u32, @builtin(subgroup_invocation_id) invocation: u32) {
  let lane = invocation & ${LANE_MASK}u;
  let first = invocation - lane;
  let index = (group.y * groups.x + group.x) * WORKGROUP + local;
  // Every invocation reads its own words only, so the stash needs no barrier.
  put_seed(local, seed_of(nonce_at(index)));
  for (var owner = 0u; owner < ${LANES}u; owner += ${FLIGHT}u) {
    let own_a = get_row(0u, local);
    let own_b = get_row(1u, local);
    let own_c = get_row(2u, local);
    let own_d = get_row(3u, local);
    //@each h FLIGHT
    let from${h} = first + owner + ${h}u;
    let seed${h}a = subgroupShuffle(own_a, from${h});
    let seed${h}b = subgroupShuffle(own_b, from${h});
    let seed${h}c = subgroupShuffle(own_c, from${h});
    let seed${h}d = subgroupShuffle(own_d, from${h});
    let salt${h} = seed${h}d.w;
    var g${h}: u32;
    var mix${h}x0 = select(select(seed${h}a, seed${h}b, (lane & 1u) == 1u), select(seed${h}c, seed${h}d, (lane & 1u) == 1u), (lane & 2u) == 2u);
    var page${h}x0: vec4<u32>;
    //@if ROWS == 2
    var mix${h}x1 = mix${h}x0;
    var page${h}x1: vec4<u32>;
    //@end
    //@end
    //@include shuffle-rounds
    //@each h FLIGHT
    //@include shuffle-fold
    if (lane == owner + ${h}u) {
      put_row(2u, local, all${h}a);
      put_row(3u, local, all${h}b);
    }
    //@end
  }
  // Keeps compilers from holding the seed in registers after all.
  workgroupBarrier();
  judge(index, get_row(0u, local), get_row(1u, local), get_row(2u, local), get_row(3u, local));
}
