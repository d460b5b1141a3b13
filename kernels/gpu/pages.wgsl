// The dataset as the adapter's limits allow it: 1, 2, 4 or 8 bindings ("shards") of whole pages. WGSL cannot index bindings
// dynamically, so the read branches on the page number. Shards are equal powers of two, or one big one with a tail of a few
// pages (LOPSIDED): there read_row() reads the big one without a branch, and the caller asks once for all its reads whether
// one of them was in the tail, which it reads again by tail_row(). An index beyond the big shard is clamped by the compiler's
// own check where it has one (CHECKED), else here.

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
  //@if CHECKED == 1
  return shard0[page * 8u + row];
  //@end
  //@if CHECKED == 0
  return shard0[min(page * 8u + row, ${MAIN_END}u)];
  //@end
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

//@if LOPSIDED == 1
// The tail's pages have the highest numbers, so a read is in the tail when its whole word is at or above this.
const TAIL_WORDS = ${TAIL_WORDS}u;

fn tail_row(page: u32, row: u32) -> vec4<u32> {
  return shard1[(page - ${START[1]}u) * 8u + row];
}
//@end
