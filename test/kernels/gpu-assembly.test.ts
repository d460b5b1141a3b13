/** The pure parts of kernels/gpu: template, layout, steering. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { noncesPerHit } from '../../kernels/backend.ts';
import { assemble } from '../../kernels/gpu/assemble.ts';
import { chooseLayout, evenLayout, layoutParameters, layoutsFor, PAGE_BYTES } from '../../kernels/gpu/layout.ts';
import { loadSources } from '../../kernels/gpu/sources.ts';
import { grid, nonceBound, SEARCH_BAND, shortForBlocks, steer } from '../../kernels/gpu/steer.ts';
import { count, seed } from '../level.ts';

const GIB = 2 ** 30;

/** A place to fill in, spelt so that no linter takes it for a forgotten template string. */
const hole = (inside: string): string => ['$', '{', inside, '}'].join('');

test('a template repeats, chooses, includes and fills in', () => {
  const sources = {
    main: `//@include part\n//@each k N\na${hole('k')} = ${hole('LIST[k]')};\n//@if N == 2\nboth${hole('N')}\n//@end\n//@end\nend`,
    part: 'first',
  };
  expect(assemble('main', { N: 2, LIST: ['x', 'y'] }, sources)).toBe('first\na0 = x;\nboth2\na1 = y;\nboth2\nend');
  expect(assemble('main', { N: 1, LIST: ['x'] }, sources)).toBe('first\na0 = x;\nend');
});

test.each([
  ['a name that is not known', { main: hole('NOT') }],
  ['an element that is not there', { main: hole('LIST[7]') }],
  ['a block without end', { main: '//@each k 2\nx' }],
  ['an end without block', { main: '//@end' }],
  ['a file that is not there', { main: '//@include other' }],
])('%s is a defect', (_, sources) => {
  expect(() => assemble('main', { LIST: [1] }, sources)).toThrow('wgsl template');
});

test('every .wgsl file assembles without a directive left', async () => {
  const sources = await loadSources();
  for (const shards of [1, 2, 4, 8] as const)
    for (const variant of ['search-stream', 'search-shuffle', 'search-workgroup']) {
      const parameters = {
        ...layoutParameters(evenLayout(17, shards)),
        CHAIN: 0,
        CHECKED: 1,
        SLOTS: 4,
        LANES: 8,
        LANE_MASK: 7,
        ROWS: 1,
        FLIGHT: 4,
        PARITY: [0, 1, 0, 1],
        COMPONENT: ['x', 'y', 'z', 'w'],
        ROTATION: ['xyzw', 'yzwx', 'zwxy', 'wxyz'],
      };
      const code = assemble(variant, parameters, sources);
      expect(code).not.toMatch(/\/\/@|\$\{/);
      expect(code.match(/var<storage, read> shard\d/g)).toHaveLength(shards);
    }
});

test('the dataset is cut as the limits demand', () => {
  const limits = (binding: number, storage = 16, buffer = binding) => ({
    maxStorageBufferBindingSize: binding,
    maxBufferSize: buffer,
    maxStorageBuffersPerShaderStage: storage,
  });
  expect(chooseLayout(24, limits(4 * GIB)).shards).toHaveLength(1);
  expect(chooseLayout(24, limits(2 * GIB - 4))).toMatchObject({
    lopsided: true,
    shards: [{ first: 0 }, { pages: 1 }],
  });
  expect(chooseLayout(24, limits(GIB)).shards).toHaveLength(2);
  expect(chooseLayout(24, limits(GIB - 1)).shards).toHaveLength(4);
  expect(chooseLayout(24, limits(GIB / 4, 9)).shards).toHaveLength(8);
  expect(chooseLayout(17, limits(GIB / 8, 8)).shards).toHaveLength(1);
  expect(() => chooseLayout(24, limits(GIB / 4, 8))).toThrow(expect.objectContaining({ code: 'gpu_limits' }));
  expect(() => chooseLayout(24, limits(GIB / 8))).toThrow(expect.objectContaining({ code: 'gpu_limits' }));
  expect(() => chooseLayout(24, limits(4 * GIB, 16, GIB / 8))).toThrow(expect.objectContaining({ code: 'gpu_limits' }));
});

test('every layout covers every page once', () => {
  fc.assert(
    fc.property(fc.integer({ min: 12, max: 24 }), fc.integer({ min: 20, max: 33 }), (pagesLog2, bindingLog2) => {
      const binding = 2 ** bindingLog2 - 4;
      const limits = {
        maxStorageBufferBindingSize: binding,
        maxBufferSize: binding,
        maxStorageBuffersPerShaderStage: 9,
      };
      for (const layout of layoutsFor(pagesLog2, limits)) {
        let next = 0;
        for (const { first, pages } of layout.shards) {
          expect(first).toBe(next);
          expect(pages * PAGE_BYTES).toBeLessThanOrEqual(binding);
          next += pages;
        }
        expect(next).toBe(2 ** pagesLog2);
      }
    }),
    { numRuns: count({ quick: 50, full: 300, deep: 3000 }), seed },
  );
});

test('steering finds the band of any device and stays in it', () => {
  fc.assert(
    fc.property(fc.double({ min: 0.01, max: 1e7, noNaN: true }), fc.integer({ min: 1, max: 256 }), (rate, quantum) => {
      let work = quantum;
      for (let n = 0; n < 40; n++) work = steer({ work, millis: work / rate }, SEARCH_BAND, quantum, 2 ** 31);
      const millis = work / rate;
      expect(work % quantum).toBe(0);
      // A device so slow that one quantum is too long gets one; one so fast that the bound is too short gets the bound.
      if (work > quantum && work < 2 ** 31 - quantum) {
        expect(millis).toBeLessThanOrEqual(SEARCH_BAND.high);
        expect(millis + quantum / rate).toBeGreaterThanOrEqual(SEARCH_BAND.low);
      }
    }),
    { numRuns: count({ quick: 100, full: 1000, deep: 20_000 }), seed },
  );
});

test('one odd timing moves a dispatch by a bounded factor', () => {
  expect(steer({ work: 6400, millis: 1e-9 }, SEARCH_BAND, 64, 2 ** 31)).toBe(25_600);
  expect(steer({ work: 6400, millis: 60_000 }, SEARCH_BAND, 64, 2 ** 31)).toBe(768);
  expect(steer({ work: 6400, millis: 44 }, SEARCH_BAND, 64, 2 ** 31)).toBe(6400);
});

test('an easy target shortens the dispatch so that its hits fit', () => {
  expect(nonceBound(new Uint8Array(32).fill(255), 256)).toBe(64);
  expect(nonceBound(new Uint8Array([0, 0, 1, ...new Uint8Array(29)]), 256)).toBeGreaterThan(4_000_000);
  expect(nonceBound(new Uint8Array(32), 256)).toBeGreaterThan(2 ** 31);
});

test('where blocks are easy a dispatch is no longer than one of them, and never too short to be worth it', () => {
  const full = { work: 64_000_000, millis: 45 };
  expect(shortForBlocks(full, 1e12, 256)).toBe(full.work);
  expect(shortForBlocks(full, 10_000_100, 256)).toBe(9_999_872);
  expect(shortForBlocks(full, 4_096, 256)).toBe(4_266_496);
  // A device that has not been timed yet, and one that needs long for a single workgroup.
  expect(shortForBlocks({ work: 256, millis: 0 }, 1, 256)).toBe(256);
  expect(shortForBlocks({ work: 256, millis: 40 }, 1, 256)).toBe(256);
  expect(noncesPerHit(new Uint8Array([0, 1, ...new Uint8Array(30)]))).toBeCloseTo(65_536);
});

test('the grid has room for every workgroup and hardly more', () => {
  for (const groups of [1, 65_535, 65_536, 393_217, 10_000_000]) {
    const { x, y } = grid(groups, 65_535);
    expect(x).toBeLessThanOrEqual(65_535);
    expect(x * y).toBeGreaterThanOrEqual(groups);
    expect(x * y - groups).toBeLessThan(y);
  }
});
