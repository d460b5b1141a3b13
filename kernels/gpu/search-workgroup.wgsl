// Search through workgroup memory, for devices without subgroups (docs: pow.md, "Hash"): as search-shuffle.wgsl with eight
// invocations a hash, but the word that names the next page travels through a two-slot exchange. One barrier a step is enough:
// a slot is written again only two steps later, and the barrier between proves that everybody has read it.

//@include blake3
//@include job
//@include pages

override EXCHANGE: u32 = 128u; // words of the exchange: WORKGROUP / 8 * FLIGHT * 2
override SEEDS: u32 = 2048u; // words of the seeds: WORKGROUP * 16

var<workgroup> exchange: array<u32, EXCHANGE>;
var<workgroup> seeds: array<u32, SEEDS>; // word-major, so that neighbours write to different banks

fn put_row(row: u32, local: u32, value: vec4<u32>) {
  seeds[(row * 4u) * WORKGROUP + local] = value.x;
  seeds[(row * 4u + 1u) * WORKGROUP + local] = value.y;
  seeds[(row * 4u + 2u) * WORKGROUP + local] = value.z;
  seeds[(row * 4u + 3u) * WORKGROUP + local] = value.w;
}

fn get_row(row: u32, local: u32) -> vec4<u32> {
  return vec4<u32>(seeds[(row * 4u) * WORKGROUP + local], seeds[(row * 4u + 1u) * WORKGROUP + local],
    seeds[(row * 4u + 2u) * WORKGROUP + local], seeds[(row * 4u + 3u) * WORKGROUP + local]);
}

@compute @workgroup_size(WORKGROUP)
fn search(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
          @builtin(local_invocation_index) local: u32) {
  let lane = local & 7u;
  let first = local - lane;
  let mine = (local >> 3u) * ${FLIGHT}u;
  let half = (WORKGROUP >> 3u) * ${FLIGHT}u;
  let stride = groups.x * groups.y * WORKGROUP;
  var index = (group.y * groups.x + group.x) * WORKGROUP + local;
  for (var round = 0u; round < job.rounds; round++) {
    let seed = seed_of(nonce_at(index));
    workgroupBarrier();
    put_row(0u, local, seed.a);
    put_row(1u, local, seed.b);
    put_row(2u, local, seed.c);
    put_row(3u, local, seed.d);
    workgroupBarrier();
    for (var owner = 0u; owner < 8u; owner += ${FLIGHT}u) {
      //@each h FLIGHT
      let salt${h} = seeds[15u * WORKGROUP + first + owner + ${h}u];
      var mix${h} = get_row(lane & 3u, first + owner + ${h}u);
      var g${h}: u32;
      var page${h}: vec4<u32>;
      //@end
      for (var quad = 0u; quad < 16u; quad++) {
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
        //@each h FLIGHT
        mix${h} = fnv_row(mix${h}, page${h}.${ROTATION[c]});
        //@end
        //@end
      }
      // The owner's last two seed rows are spent once every hash of the pass has its salt and mix: they take the folds.
      workgroupBarrier();
      //@each h FLIGHT
      seeds[(8u + lane) * WORKGROUP + first + owner + ${h}u] = fold(mix${h});
      //@end
    }
    workgroupBarrier();
    judge(index, seed.a, seed.b, get_row(2u, local), get_row(3u, local));
    index += stride;
  }
}
