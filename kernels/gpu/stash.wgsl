// Sixteen words of workgroup memory an invocation: the seed of its nonce, whose last two rows make room for the folded mix.
// Kept here and not in registers, because every register less is another hash in flight on the same processor.
// Word-major, so that neighbours use different banks.

override STASH: u32 = 2048u; // words: WORKGROUP * 16

var<workgroup> stash: array<u32, STASH>;

fn put_row(row: u32, local: u32, value: vec4<u32>) {
  let at = row * 4u * WORKGROUP + local;
  stash[at] = value.x;
  stash[at + WORKGROUP] = value.y;
  stash[at + 2u * WORKGROUP] = value.z;
  stash[at + 3u * WORKGROUP] = value.w;
}

fn get_row(row: u32, local: u32) -> vec4<u32> {
  let at = row * 4u * WORKGROUP + local;
  return vec4<u32>(stash[at], stash[at + WORKGROUP], stash[at + 2u * WORKGROUP], stash[at + 3u * WORKGROUP]);
}

fn put_seed(local: u32, seed: Block) {
  put_row(0u, local, seed.a);
  put_row(1u, local, seed.b);
  put_row(2u, local, seed.c);
  put_row(3u, local, seed.d);
}
