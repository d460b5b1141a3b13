// The dataset as the adapter's limits allow it: 1, 2, 4 or 8 bindings ("shards") of whole pages. WGSL cannot index bindings
// dynamically, so the read branches on the page number. Shards are equal powers of two, or one big one with a small tail
// (LOPSIDED), where nearly every read of a subgroup takes the same branch.

override PAGE_SHIFT: u32; // 32 - log2 of the pages

//@each k SHARDS
@group(1) @binding(${k}) var<storage, read> shard${k}: array<vec4<u32>${EXTENT[k]}>;
//@end

// The 16-byte row `row` of page `page`.
fn read_row(page: u32, row: u32) -> vec4<u32> {
  //@if SHARDS == 1
  return shard0[page * 8u + row];
  //@end
  //@if LOPSIDED == 1
  var value: vec4<u32>;
  if (page < ${START[1]}u) {
    value = shard0[page * 8u + row];
  } else {
    value = shard1[(page - ${START[1]}u) * 8u + row];
  }
  return value;
  //@end
  //@if EVEN == 1
  var value: vec4<u32>;
  let index = (page & ${SHARD_MASK}u) * 8u + row;
  //@if CHAIN == 0
  switch (page >> ${SHARD_BITS}u) {
    //@each k LAST
    case ${k}u: {
      value = shard${k}[index];
    }
    //@end
    default: {
      value = shard${LAST}[index];
    }
  }
  //@end
  //@if CHAIN == 1
  // The same for compilers that take minutes over many switches (software adapters); graphics cards lose half their rate.
  let part = page >> ${SHARD_BITS}u;
  //@each k SHARDS
  if (part == ${k}u) {
    value = shard${k}[index];
  }
  //@end
  //@end
  return value;
  //@end
}
