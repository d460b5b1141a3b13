// BLAKE3 of one block of at most 64 bytes (docs: pow.md, "Notation"). Every hash inside SVC_POW_V1 but the job's
// prefix is exactly one compression with the same flags, so nothing more of BLAKE3 is needed on the device.
// The seven rounds stay rolled: drivers unroll them where it pays, and slow compilers are not drowned.

const IV0 = vec4<u32>(0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au);
const IV1 = vec4<u32>(0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u);
const FLAGS = 11u; // chunk start, chunk end, root

struct Block {
  a: vec4<u32>,
  b: vec4<u32>,
  c: vec4<u32>,
  d: vec4<u32>,
}

fn rotate_right(v: vec4<u32>, bits: u32) -> vec4<u32> {
  return (v >> vec4<u32>(bits)) | (v << vec4<u32>(32u - bits));
}

// The first 64 bytes of BLAKE3 over `length` bytes of `block`.
fn blake3(block: Block, length: u32) -> Block {
  var m0 = block.a;
  var m1 = block.b;
  var m2 = block.c;
  var m3 = block.d;
  var a = IV0;
  var b = IV1;
  var c = IV0;
  var d = vec4<u32>(0u, 0u, length, FLAGS);
  for (var round = 0u; round < 7u; round++) {
    a += b + vec4<u32>(m0.x, m0.z, m1.x, m1.z);
    d = rotate_right(d ^ a, 16u);
    c += d;
    b = rotate_right(b ^ c, 12u);
    a += b + vec4<u32>(m0.y, m0.w, m1.y, m1.w);
    d = rotate_right(d ^ a, 8u);
    c += d;
    b = rotate_right(b ^ c, 7u);
    b = b.yzwx;
    c = c.zwxy;
    d = d.wxyz;
    a += b + vec4<u32>(m2.x, m2.z, m3.x, m3.z);
    d = rotate_right(d ^ a, 16u);
    c += d;
    b = rotate_right(b ^ c, 12u);
    a += b + vec4<u32>(m2.y, m2.w, m3.y, m3.w);
    d = rotate_right(d ^ a, 8u);
    c += d;
    b = rotate_right(b ^ c, 7u);
    b = b.wxyz;
    c = c.zwxy;
    d = d.yzwx;
    // The message permutation 2 6 3 10 7 0 4 13 1 11 12 5 9 14 15 8.
    let n0 = vec4<u32>(m0.z, m1.z, m0.w, m2.z);
    let n1 = vec4<u32>(m1.w, m0.x, m1.x, m3.y);
    let n2 = vec4<u32>(m0.y, m2.w, m3.x, m1.y);
    let n3 = vec4<u32>(m2.y, m3.z, m3.w, m2.x);
    m0 = n0;
    m1 = n1;
    m2 = n2;
    m3 = n3;
  }
  return Block(a ^ c, b ^ d, c ^ IV0, d ^ IV1);
}

const PRIME = 0x01000193u;

fn fnv(a: u32, b: u32) -> u32 {
  return (a * PRIME) ^ b;
}

fn fnv_row(a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
  return (a * vec4<u32>(PRIME)) ^ b;
}
