/**
 * A release after this one, as a test makes it: the npm package of the present code under another version, whose pool migrates the database
 * further. The release before it is the present code, or the one unpacked in SVC_TEST_OLDER_RELEASE, with its packages.
 */
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stageNpmPackage } from '../../scripts/release/npm-package.ts';
import { ROOT } from '../guards/project-files.ts';
import { temporaryDirectory } from '../temporary.ts';

export const OLDER_RELEASE = process.env.SVC_TEST_OLDER_RELEASE ?? ROOT;

/** The folder of its programs. `migrations`: how many it has that the present code lacks. */
export function nextRelease(version: string, migrations: number): string {
  const folder = temporaryDirectory();
  const home = join(folder, 'package');
  mkdirSync(home);
  stageNpmPackage(ROOT, home, version);
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const database = join(home, 'pool/database/migrations');
  const newest = readdirSync(database).filter((name) => name.endsWith('.sql')).length;
  for (let i = 1; i <= migrations; i++)
    writeFileSync(
      join(database, `${String(newest + i).padStart(4, '0')}-of-a-later-release.sql`),
      `alter table settings add column of_a_later_release_${i} text;\n`,
    );
  return home;
}
