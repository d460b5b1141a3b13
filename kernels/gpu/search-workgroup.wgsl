// Search through workgroup memory, for devices without subgroups (docs: pow.md, "Hash"): as search-shuffle.wgsl with eight
// invocations a hash, but the word that names the next page travels through a two-slot exchange. One barrier a step is enough:
// a slot is written again only two steps later, and the barrier between proves that everybody has read it.

//@include blake3
//@include job
//@include pages
//@include stash

override EXCHANGE: u32 = 128u; // words of the exchange: WORKGROUP / 8 * FLIGHT * 2
var<workgroup> exchange: array<u32, EXCHANGE>;

@compute @workgroup_size(WORKGROUP)
fn search(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
          @builtin(local_invocation_index) local: u32) {
  let lane = local & 7u;
  let first = local - lane;
  let mine = (local >> 3u) * ${FLIGHT}u;
  let half = (WORKGROUP >> 3u) * ${FLIGHT}u;
  let index = (group.y * groups.x + group.x) * WORKGROUP + local;
  put_seed(local, seed_of(nonce_at(index)));
  workgroupBarrier();
  for (var owner = 0u; owner < 8u; owner += ${FLIGHT}u) {
    //@each h FLIGHT
    let salt${h} = stash[15u * WORKGROUP + first + owner + ${h}u];
    var mix${h} = get_row(lane & 3u, first + owner + ${h}u);
    var g${h}: u32;
    var page${h}: vec4<u32>;
    //@end
    //@if LOPSIDED == 1
    var highest: u32;
    //@end
    for (var quad = 0u; quad < job.quads; quad++) {
      let source = lane == (quad & 7u);
      //@each c 4
      if (source) {
        //@each h FLIGHT
        exchange[${PARITY[c]}u * half + mine + ${h}u] = mix${h}.${COMPONENT[c]};
        //@end
      }
      workgroupBarrier();
      //@each h FLIGHT
      g${h} = fnv((quad * 4u + ${c}u) ^ salt${h}, exchange[${PARITY[c]}u * half + mine + ${h}u]);
      //@end
      //@each h FLIGHT
      page${h} = read_row(g${h} >> PAGE_SHIFT, lane ^ (g${h} & 7u));
      //@end
      //@if LOPSIDED == 1
      highest = g0;
      //@each h FLIGHT
      highest = max(highest, g${h});
      //@end
      if (highest >= TAIL_WORDS) {
        //@each h FLIGHT
        if (g${h} >= TAIL_WORDS) {
          page${h} = tail_row(g${h} >> PAGE_SHIFT, lane ^ (g${h} & 7u));
        }
        //@end
      }
      //@end
      //@each h FLIGHT
      mix${h} = fnv_row(mix${h}, page${h}.${ROTATION[c]});
      //@end
      //@end
    }
    // Everybody has long read the seeds of this pass: their last two rows take the folds.
    //@each h FLIGHT
    stash[(8u + lane) * WORKGROUP + first + owner + ${h}u] = fold(mix${h});
    //@end
  }
  workgroupBarrier();
  judge(index, get_row(0u, local), get_row(1u, local), get_row(2u, local), get_row(3u, local));
}
