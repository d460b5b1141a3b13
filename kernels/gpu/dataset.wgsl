// Dataset items from the cache (docs: pow.md, "Dataset", step 3): one invocation an item, a slice of one shard a dispatch.

//@include blake3

override WORKGROUP: u32 = 64u;
override CACHE_SHIFT: u32; // 32 - log2 of the cache items

struct Slice {
  first_item: u32, // number of the first item of this dispatch
  first_row: u32, // where it goes in the shard, in rows of 16 bytes
  count: u32,
  reserved: u32,
}

@group(0) @binding(0) var<uniform> slice: Slice;
@group(0) @binding(1) var<storage, read> cache: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> shard: array<vec4<u32>>;

@compute @workgroup_size(WORKGROUP)
fn build(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
         @builtin(local_invocation_index) local: u32) {
  let offset = (group.y * groups.x + group.x) * WORKGROUP + local;
  if (offset >= slice.count) {
    return;
  }
  let item = slice.first_item + offset;
  let start = (item & (0xffffffffu >> CACHE_SHIFT)) * 4u;
  var m = blake3(Block(cache[start] ^ vec4<u32>(item, 0u, 0u, 0u), cache[start + 1u], cache[start + 2u], cache[start + 3u]), 64u);
  var parent: u32;
  for (var k = 0u; k < 64u; k += 16u) {
    //@each w 16
    parent = (fnv(item ^ (k + ${w}u), m.${WORD[w]}) >> CACHE_SHIFT) * 4u;
    m.a = fnv_row(m.a, cache[parent]);
    m.b = fnv_row(m.b, cache[parent + 1u]);
    m.c = fnv_row(m.c, cache[parent + 2u]);
    m.d = fnv_row(m.d, cache[parent + 3u]);
    //@end
  }
  m = blake3(m, 64u);
  let row = slice.first_row + offset * 4u;
  shard[row] = m.a;
  shard[row + 1u] = m.b;
  shard[row + 2u] = m.c;
  shard[row + 3u] = m.d;
}
