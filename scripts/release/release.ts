/**
 * `npm run release -- VERSION [--out DIR] [--only npm]`: makes a release and builds it into dist/. Where package.json does not name the version yet, it
 * is written there and the changelog's section is made, committed and tagged; nothing is pushed. Then everything is built from a clean clone of
 * that commit, so that whoever has the commit gets the same bytes.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { BUILD_ENVIRONMENT, bringBuilds } from '../ready/build-steps.mjs';
import { runChild } from '../ready/carried-node.mjs';
import { bringNodeModules } from '../ready/node-modules.mjs';
import { writeArchive } from './archive.ts';
import { buildDebianPackages, DEBIAN_ARCHITECTURES } from './debian-packages.ts';
import { readManifest, stageNpmPackage } from './npm-package.ts';
import { compareVersions, hasSection, isVersion, releasedChangelog } from './version.ts';

const root = join(import.meta.dirname, '../..');

/** Lines as of sha256sum: 64 digits, two blanks, the name. */
const SUMS = 'SHA256SUMS';
const SUM_WIDTH = 66;

class Refused extends Error {}

const run = (folder: string, command: string, ...words: readonly string[]): string =>
  execFileSync(command, words, { cwd: folder, encoding: 'utf8', maxBuffer: Number.POSITIVE_INFINITY }).trim();
const git = (folder: string, ...words: readonly string[]): string => run(folder, 'git', ...words);
const say = (text: string): void => void process.stdout.write(`release: ${text}\n`);

function insistOnClean(): void {
  const changed = git(root, 'status', '--porcelain');
  if (changed !== '') throw new Refused(`the tree has changes that are not committed:\n${changed}`);
}

type Versioned = { version: string; packages?: Record<string, { version?: string }> };

/** Of the project itself; a lock file names it twice. */
function setVersion(path: string, version: string): void {
  const manifest = JSON.parse(readFileSync(join(root, path), 'utf8')) as Versioned;
  manifest.version = version;
  const own = manifest.packages?.[''];
  if (own !== undefined) own.version = version;
  writeJson(join(root, path), manifest);
}

/** Later releases are tested against what this one leaves behind. A prerelease promises nothing. */
function insistOnFiles(version: string): void {
  if (version.includes('-') || existsSync(join(root, 'test/releases', version))) return;
  const make = `SVC_MAKE_RELEASE=${version} npx vitest run test/releases`;
  throw new Refused(`there are no files of ${version} for the tests of later releases: run ${make}, and commit them`);
}

/** The commit and the tag of the release. */
function mark(version: string): void {
  const changelog = releasedChangelog(
    readFileSync(join(root, 'CHANGELOG.md'), 'utf8'),
    version,
    new Date().toISOString().slice(0, 10),
  );
  if (changelog === undefined) throw new Refused('CHANGELOG.md names nothing unreleased');
  if (git(root, 'tag', '--list', `v${version}`) !== '') throw new Refused(`there is a tag v${version} already`);
  for (const path of ['package.json', 'package-lock.json']) setVersion(path, version);
  writeFileSync(join(root, 'CHANGELOG.md'), changelog);
  git(root, 'commit', '--quiet', '--all', '--message', `Release ${version}`);
  git(root, 'tag', '--annotate', '--message', `Release ${version}`, `v${version}`);
  say(`committed and tagged v${version}; push both when the release is good`);
}

/** A clone of the commit with everything built. Packages come anew, with the checksums of package-lock.json: in those of this checkout anything may have been changed. */
async function cleanClone(commit: string, scratch: string): Promise<string> {
  const clone = join(scratch, 'clone');
  git(root, 'clone', '--quiet', '--shared', '--no-checkout', root, clone);
  git(clone, 'checkout', '--quiet', commit);
  await bringNodeModules(clone);
  // The tools look for their settings where they are started.
  process.chdir(clone);
  await bringBuilds(clone, (command) => runChild(clone, process.execPath, command, BUILD_ENVIRONMENT));
  return clone;
}

/** CycloneDX by npm, without what differs from one run to the next. */
function writeSbom(staged: string, file: string, about: Provenance): void {
  const words = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application', '--package-lock-only', '--silent'];
  const sbom = JSON.parse(run(staged, 'npm', ...words)) as {
    serialNumber: string;
    metadata: { timestamp: string; component: { name: string } };
  };
  const id = createHash('sha256').update(`${about.name} ${about.version} ${about.commit}`).digest('hex');
  // A UUID of version 8: its bits are of one's own making.
  const parts = [id.slice(0, 8), id.slice(8, 12), `8${id.slice(13, 16)}`, `8${id.slice(17, 20)}`, id.slice(20, 32)];
  sbom.serialNumber = `urn:uuid:${parts.join('-')}`;
  sbom.metadata.timestamp = about.committed;
  sbom.metadata.component.name = about.name;
  writeJson(file, sbom);
}

type Provenance = {
  readonly name: string;
  readonly version: string;
  readonly commit: string;
  readonly committed: string;
};

const writeJson = (path: string, value: unknown): void => writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');
const firstLine = (text: string): string => text.split('\n')[0] as string;

/** What somebody needs who builds the same again. */
const tools = (): Record<string, string> => ({
  node: process.versions.node,
  npm: run(root, 'npm', '--version', '--silent'),
  tar: firstLine(run(root, 'tar', '--version')),
  gzip: firstLine(run(root, 'gzip', '--version')),
  'dpkg-deb': firstLine(run(root, 'dpkg-deb', '--version')),
});

/** What is there goes away when the new one is built: so it must be an earlier release and nothing else. */
function insistOnReplaceable(folder: string): void {
  if (!existsSync(folder)) return;
  const sums = join(folder, SUMS);
  const built = existsSync(sums)
    ? readFileSync(sums, 'utf8')
        .split('\n')
        .map((line) => line.slice(SUM_WIDTH))
    : [];
  const foreign = readdirSync(folder).filter((name) => name !== SUMS && !built.includes(name));
  if (foreign.length > 0)
    throw new Refused(
      `${folder} has more than a release (${foreign.slice(0, 3).join(', ')}): name another folder with --out`,
    );
}

/** A tag stands for one commit, and a version for one set of bytes. */
function insistOnTagged(version: string): void {
  const tag = `v${version}`;
  if (git(root, 'tag', '--list', tag) === '') return;
  if (git(root, 'rev-parse', `${tag}^{commit}`) !== git(root, 'rev-parse', 'HEAD'))
    throw new Refused(`${tag} is another commit: check it out to build it again, or name a later version`);
}

async function build(to: string, isNpmOnly: boolean): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'svc-release-'));
  // Beside, so that the folder appears at once and complete.
  const out = `${to}.${process.pid}.tmp`;
  try {
    const commit = git(root, 'rev-parse', 'HEAD');
    const seconds = Number(git(root, 'log', '-1', '--format=%ct', commit));
    const maintainer = git(root, 'log', '-1', '--format=%an <%ae>', commit);
    const clone = await cleanClone(commit, scratch);
    const { name, version } = readManifest(clone);
    const about = { name, version, commit, committed: new Date(seconds * 1000).toISOString() };
    mkdirSync(out, { recursive: true });
    const staged = join(scratch, 'npm', 'package');
    stageNpmPackage(clone, staged);
    writeArchive(join(out, `${name}-${version}.tgz`), join(scratch, 'npm'), 'package', seconds);
    writeSbom(staged, join(out, `${name}-${version}.cdx.json`), about);
    if (!isNpmOnly)
      for (const arch of Object.keys(DEBIAN_ARCHITECTURES) as (keyof typeof DEBIAN_ARCHITECTURES)[]) {
        say(`building the Debian packages for ${arch}`);
        buildDebianPackages(arch, { clone, version, scratch, seconds, maintainer, out, compression: 'xz' });
      }
    const lock = { 'package-lock.json': sha256(join(clone, 'package-lock.json')) };
    writeJson(join(out, 'provenance.json'), { ...about, tools: tools(), sha256: lock });
    const sums = readdirSync(out)
      .sort()
      .map((file) => `${sha256(join(out, file))}  ${file}\n`);
    writeFileSync(join(out, SUMS), sums.join(''));
    rmSync(to, { recursive: true, force: true });
    renameSync(out, to);
    say(`built ${version} of ${commit}:\n${sums.join('')}`.trimEnd());
  } finally {
    for (const path of [scratch, out]) rmSync(path, { recursive: true, force: true });
  }
}

async function release(version: string, out: string, isNpmOnly: boolean): Promise<void> {
  insistOnClean();
  insistOnReplaceable(out);
  const { version: before } = readManifest(root);
  if (version !== before) {
    if (compareVersions(version, before) < 0) throw new Refused(`${version} comes before ${before} of package.json`);
    insistOnFiles(version);
    mark(version);
  } else if (!hasSection(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), version))
    throw new Refused(`package.json names ${version} already, and CHANGELOG.md has no section for it`);
  else insistOnTagged(version);
  await build(out, isNpmOnly);
}

const { values, positionals } = parseArgs({
  options: { out: { type: 'string', default: join(root, 'dist') }, only: { type: 'string' } },
  allowPositionals: true,
});
const [version = ''] = positionals;
try {
  if (positionals.length !== 1 || !isVersion(version) || (values.only !== undefined && values.only !== 'npm'))
    throw new Refused(
      'usage: npm run release -- VERSION [--out DIR] [--only npm], with a version such as 1.2.3 or 1.2.3-rc.1',
    );
  await release(version, resolve(values.out), values.only === 'npm');
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  process.stderr.write(`release: ${error.message}\n`);
  process.exitCode = 1;
}
