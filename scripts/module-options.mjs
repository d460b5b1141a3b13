/** Compiler options of module/assembly, shared by the build and the test that inspects its output. */
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
