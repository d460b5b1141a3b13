/** How module/assembly is compiled: one home for the build and for the test that looks into what it makes. */
export const MODULE_COMPILE_OPTIONS = [
  '-O3',
  '--noAssert',
  '--runtime',
  'stub',
  '--enable',
  'simd',
  '--memoryBase',
  '1024',
];
