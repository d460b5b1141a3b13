/** The coordinator's folder: the invitation, the registrations that came, and `network/`, which appears at once and complete. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { toHex } from '../../protocol/bytes.ts';
import { chainId, encodeGenesis, type Genesis } from '../../protocol/ledger/genesis.ts';
import { readGenesis, showGenesis } from '../../protocol/ledger/genesis-file.ts';
import { createDurably } from '../../runtime/files/durable-file.ts';
import { makeDirectory } from '../../runtime/files/make-directory.ts';
import { readSmallFile } from '../../runtime/files/small-file.ts';
import { NODE_DEFAULTS } from '../node-defaults.ts';
import { bundleOf, type Invitation, type Joined, readInvitation, showDocument } from './documents.ts';
import { bootstrapOf, genesisOf } from './launch.ts';
import { LaunchError } from './launch-error.ts';

const PUBLIC_MODE = 0o644;
/** Of a validator's identifier in the name of its bundle. */
const SHORT = 16;
const BUILT_PAGES = fileURLToPath(new URL('../../build/dashboard', import.meta.url));

export const folderFiles = (folder: string) => {
  const network = join(folder, 'network');
  return {
    invitation: join(folder, 'invitation.json'),
    registrations: join(folder, 'registrations'),
    network,
    genesis: join(network, 'genesis.json'),
    bundles: join(network, 'bundles'),
    explorer: join(network, 'explorer'),
  };
};

export function invitationIn(folder: string): Invitation | undefined {
  const { invitation } = folderFiles(folder);
  return existsSync(invitation) ? readInvitation(readSmallFile(invitation)) : undefined;
}

export async function beginFolder(folder: string, invitation: Invitation): Promise<void> {
  const files = folderFiles(folder);
  makeDirectory(files.registrations);
  if (!(await createDurably(files.invitation, showDocument(invitation), PUBLIC_MODE)))
    throw new LaunchError('launch_exists', `${files.invitation} exists: nothing is replaced`);
}

/** What was put there: files that end in `.json`, in the order of their names. */
export function registrationsIn(folder: string): { readonly file: string; readonly text: string }[] {
  const { registrations } = folderFiles(folder);
  return readdirSync(registrations)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => {
      const file = join(registrations, name);
      try {
        return { file, text: readSmallFile(file) };
      } catch (error) {
        throw new LaunchError('launch_file', `${file} cannot be read: ${(error as Error).message}`);
      }
    });
}

/** The genesis of a launch that is done. */
export function genesisIn(folder: string): Genesis | undefined {
  const { genesis } = folderFiles(folder);
  return existsSync(genesis) ? readGenesis(readFileSync(genesis, 'utf8')) : undefined;
}

export type PublicNode = {
  /** Where the explorer will be, an origin. */
  readonly explorer: string | undefined;
  /** The node that it reads unless another one is named. */
  readonly publicNode: string | undefined;
};

/** For a node that follows: it is started in its folder. */
const followerConfig = (
  invitation: Invitation,
  bootstrap: readonly string[],
  explorer: string | undefined,
): object => ({
  network: invitation.network,
  genesis: 'genesis.json',
  'data-dir': 'data',
  ...(invitation.cut_millis !== NODE_DEFAULTS.cutMillis && { 'cut-millis': invitation.cut_millis }),
  ...(explorer !== undefined && { public: true, 'browser-origin': [explorer] }),
  p2p: { bootstrap },
});

/** The explorer alone, for a web server of any kind. False where the pages are not built. */
function writeExplorer(folder: string, publicNode: string | undefined): boolean {
  const page = join(BUILT_PAGES, 'explorer.html');
  if (!existsSync(page)) return false;
  mkdirSync(folder);
  for (const name of ['assets', 'icon.svg']) cpSync(join(BUILT_PAGES, name), join(folder, name), { recursive: true });
  const meta = publicNode === undefined ? '' : `<meta name="svc-node" content="${publicNode}" />\n    `;
  writeFileSync(join(folder, 'index.html'), readFileSync(page, 'utf8').replace('<title>', `${meta}<title>`));
  return true;
}

export type Launched = {
  readonly genesis: Genesis;
  readonly chain: string;
  readonly bootstrap: readonly string[];
  readonly hasExplorer: boolean;
};

export const bundleName = (invitation: Invitation, validator: string): string =>
  `${invitation.name}-${validator.slice(0, SHORT)}.json`;

/** Writes `network/` beside and renames it: if it is there, all of it is. */
export function finishFolder(
  folder: string,
  invitation: Invitation,
  joined: readonly Joined[],
  timestampMillis: number,
  { explorer, publicNode }: PublicNode,
): Launched {
  const files = folderFiles(folder);
  const genesis = genesisOf(invitation, joined, timestampMillis);
  const bootstrap = bootstrapOf(joined);
  if (bootstrap.length === 0)
    throw new LaunchError(
      'launch_unreachable',
      'none of the validators has an address where peers reach it: one at least must join with --route or --peer',
    );
  const text = showGenesis(genesis);
  const beside = `${files.network}.${process.pid}.tmp`;
  rmSync(beside, { recursive: true, force: true });
  try {
    mkdirSync(join(beside, 'bundles'), { recursive: true });
    const write = (name: string, contents: string) =>
      writeFileSync(join(beside, name), contents, { mode: PUBLIC_MODE, flag: 'wx' });
    write('genesis.json', text);
    write('bootstrap.txt', bootstrap.map((address) => `${address}\n`).join(''));
    write('node.json', showDocument(followerConfig(invitation, bootstrap, explorer)));
    for (const { validator } of joined)
      write(
        join('bundles', bundleName(invitation, validator)),
        showDocument(bundleOf({ validator, invitation, joined, genesis: text })),
      );
    const hasExplorer = writeExplorer(join(beside, 'explorer'), publicNode);
    renameSync(beside, files.network);
    return { genesis, chain: toHex(chainId(encodeGenesis(genesis))), bootstrap, hasExplorer };
  } catch (error) {
    rmSync(beside, { recursive: true, force: true });
    throw error;
  }
}
