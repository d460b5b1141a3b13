/**
 * What each release wrote is read by the present code, with the same facts (docs/formats.md). The files of a release are made once, before it is
 * tagged, with `SVC_MAKE_RELEASE=VERSION npx vitest run test/releases`, and never again.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { writeArchive } from '../../scripts/release/archive.ts';
import { compareVersions, isVersion } from '../../scripts/release/version.ts';
import { temporaryDirectory } from '../temporary.ts';
import { CHAIN_FIXTURES } from './chain-fixtures.ts';
import type { Fixture } from './fixture.ts';
import { MINER_FIXTURES } from './miner-fixtures.ts';
import { POOL_FIXTURES } from './pool-fixtures.ts';
import { STRATUM_FIXTURES } from './stratum-fixtures.ts';
import { WALLET_FIXTURES } from './wallet-fixtures.ts';

const FIXTURES = [...CHAIN_FIXTURES, ...WALLET_FIXTURES, ...POOL_FIXTURES, ...MINER_FIXTURES, ...STRATUM_FIXTURES];
const HERE = import.meta.dirname;
const made = process.env.SVC_MAKE_RELEASE;
const RELEASES = readdirSync(HERE).filter(isVersion).sort(compareVersions);
const MOST_BYTES = 1_000_000;

const archiveOf = (release: string, { name }: Fixture): string => join(HERE, release, `${name}.tgz`);
const factsOf = (release: string, { name }: Fixture): string => join(HERE, release, `${name}.json`);

function unpacked(archive: string): string {
  const folder = temporaryDirectory();
  execFileSync('tar', ['-xzf', archive, '-C', folder]);
  return join(folder, 'files');
}

if (made !== undefined)
  test.each(FIXTURES.map((fixture) => [fixture.name, fixture] as const))('%s is written', async (_name, fixture) => {
    const folder = join(temporaryDirectory(), 'files');
    mkdirSync(folder);
    await fixture.write(folder);
    mkdirSync(join(HERE, made), { recursive: true });
    writeArchive(archiveOf(made, fixture), join(folder, '..'), 'files', 1_700_000_000);
    const facts = await fixture.read(unpacked(archiveOf(made, fixture)));
    writeFileSync(factsOf(made, fixture), `${JSON.stringify(facts)}\n`);
  });

const READ = RELEASES.flatMap((release) =>
  FIXTURES.filter((fixture) => existsSync(archiveOf(release, fixture))).map(
    (fixture) => [release, fixture.name, fixture] as const,
  ),
);

test.each(READ)('what %s left behind is read: %s', async (release, _name, fixture) => {
  const facts = JSON.parse(readFileSync(factsOf(release, fixture), 'utf8')) as unknown;
  expect(facts).not.toBeNull();
  expect(await fixture.read(unpacked(archiveOf(release, fixture)))).toMatchObject(facts as object);
});

test('the newest release has files of every kind, and all of a release are small', () => {
  expect(FIXTURES.filter((fixture) => !existsSync(archiveOf(RELEASES.at(-1) as string, fixture)))).toEqual([]);
  for (const release of RELEASES) {
    const sizes = readdirSync(join(HERE, release)).map((name) => statSync(join(HERE, release, name)).size);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MOST_BYTES);
  }
});
