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
    //@if LOPSIDED == 1
    var highest: u32;
    //@end
    for (var quad = 0u; quad < job.quads; quad++) {
      let source = first + (quad & ${LANE_MASK}u);
      //@each c 4
      //@each h FLIGHT
      //@if ROWS == 1
      g${h} = fnv((quad * 4u + ${c}u) ^ salt${h}, subgroupShuffle(mix${h}x0.${COMPONENT[c]}, source));
      //@end
      //@if ROWS == 2
      g${h} = fnv((quad * 4u + ${c}u) ^ salt${h}, subgroupShuffle(select(mix${h}x0.${COMPONENT[c]}, mix${h}x1.${COMPONENT[c]}, (quad & 4u) == 4u), source));
      //@end
      //@end
      //@each h FLIGHT
      page${h}x0 = read_row(g${h} >> PAGE_SHIFT, lane ^ (g${h} & 7u));
      //@if ROWS == 2
      page${h}x1 = read_row(g${h} >> PAGE_SHIFT, (lane + 4u) ^ (g${h} & 7u));
      //@end
      //@end
      //@if LOPSIDED == 1
      highest = g0;
      //@each h FLIGHT
      highest = max(highest, g${h});
      //@end
      if (highest >= TAIL_WORDS) {
        //@each h FLIGHT
        if (g${h} >= TAIL_WORDS) {
          page${h}x0 = tail_row(g${h} >> PAGE_SHIFT, lane ^ (g${h} & 7u));
          //@if ROWS == 2
          page${h}x1 = tail_row(g${h} >> PAGE_SHIFT, (lane + 4u) ^ (g${h} & 7u));
          //@end
        }
        //@end
      }
      //@end
      //@each h FLIGHT
      mix${h}x0 = fnv_row(mix${h}x0, page${h}x0.${ROTATION[c]});
      //@if ROWS == 2
      mix${h}x1 = fnv_row(mix${h}x1, page${h}x1.${ROTATION[c]});
      //@end
      //@end
      //@end
    }
    //@each h FLIGHT
    let fold${h}x0 = fold(mix${h}x0);
    //@if ROWS == 1
    let all${h}a = vec4<u32>(subgroupShuffle(fold${h}x0, first), subgroupShuffle(fold${h}x0, first + 1u),
      subgroupShuffle(fold${h}x0, first + 2u), subgroupShuffle(fold${h}x0, first + 3u));
    let all${h}b = vec4<u32>(subgroupShuffle(fold${h}x0, first + 4u), subgroupShuffle(fold${h}x0, first + 5u),
      subgroupShuffle(fold${h}x0, first + 6u), subgroupShuffle(fold${h}x0, first + 7u));
    //@end
    //@if ROWS == 2
    let fold${h}x1 = fold(mix${h}x1);
    let all${h}a = vec4<u32>(subgroupShuffle(fold${h}x0, first), subgroupShuffle(fold${h}x0, first + 1u),
      subgroupShuffle(fold${h}x0, first + 2u), subgroupShuffle(fold${h}x0, first + 3u));
    let all${h}b = vec4<u32>(subgroupShuffle(fold${h}x1, first), subgroupShuffle(fold${h}x1, first + 1u),
      subgroupShuffle(fold${h}x1, first + 2u), subgroupShuffle(fold${h}x1, first + 3u));
    //@end
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
