/** `svcd development-network` with words and directories that are wrong: one line says why, nothing of others is touched, nothing half made stays. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { developmentFiles, developmentNetworkCommand } from '../../node/genesis/development-network.ts';
import { genesisOptions } from '../../node/node-options.ts';
import { formatAddress } from '../../protocol/address.ts';
import { parseCommandLine } from '../../runtime/command-line/command-line.ts';
import { temporaryDirectory } from '../temporary.ts';

async function run(...words: string[]) {
  const said = { out: '', err: '' };
  const code = await developmentNetworkCommand.start(['--validators', '1', ...words], {
    out: (text) => {
      said.out += text;
    },
    err: (text) => {
      said.err += text;
    },
    readText: () => '',
    env: {},
  });
  return { code, ...said };
}

const one = /^svcd development-network: [^\n]+\n$/;
const NAMES = ['genesis.json', 'password', 'validator-0.fee.json', 'validator-0.json', 'validator-0.key.json'];

test('a file that is there is never replaced, whichever it is, nor written through a link', async () => {
  for (const name of NAMES) {
    const out = temporaryDirectory();
    writeFileSync(join(out, name), 'precious\n', { mode: 0o644 });
    const { code, err } = await run('--out', out);
    expect({ name, code }).toEqual({ name, code: 1 });
    expect(err).toMatch(one);
    expect(readFileSync(join(out, name), 'utf8')).toBe('precious\n');
    expect(readdirSync(out)).toEqual([name]);
  }
  const [out, elsewhere] = [temporaryDirectory(), join(temporaryDirectory(), 'victim')];
  symlinkSync(elsewhere, join(out, 'validator-0.json'));
  expect((await run('--out', out)).code).toBe(1);
  expect(existsSync(elsewhere)).toBe(false);
  expect(readdirSync(out)).toEqual(['validator-0.json']);
});

test('what cannot be made leaves nothing behind', async () => {
  const address = formatAddress(developmentKey('bert').address, 'development');
  const out = join(temporaryDirectory(), 'network');
  const tooMuch = await run('--out', out, '--fund', `${address}=19999999`);
  expect(tooMuch).toMatchObject({ code: 1, err: expect.stringMatching(/too many are funded/) });
  expect(existsSync(out)).toBe(false);
  const odd = await run('--out', out, '--interval-cuts', '25');
  expect(odd).toMatchObject({ code: 2, err: expect.stringMatching(/multiple of 12/) });
  expect(odd.err).toMatch(one);
  expect(existsSync(out)).toBe(false);
  const genesis = { name: 'svcd genesis', summary: '', options: genesisOptions };
  expect(parseCommandLine(genesis, ['--interval-cuts', '25'], () => '')).toMatchObject({ kind: 'usage' });
});

test('a directory that is a file, or below one, is refused as a wrong option', async () => {
  const file = join(temporaryDirectory(), 'file');
  writeFileSync(file, 'mine\n');
  for (const out of [file, join(file, 'below')]) {
    const { code, err } = await run('--out', out);
    expect({ out, code }).toEqual({ out, code: 2 });
    expect(err).toMatch(one);
  }
  expect(readFileSync(file, 'utf8')).toBe('mine\n');
});

test('in a directory of its own, or an empty one, it is all there, and secrets are private', async () => {
  const out = temporaryDirectory();
  mkdirSync(join(out, 'other'));
  chmodSync(out, 0o755);
  expect(await run('--out', out)).toMatchObject({ code: 0, err: '' });
  expect(readdirSync(out).sort()).toEqual([...NAMES, 'other'].sort());
  const files = developmentFiles(out);
  for (const secret of [files.password, files.key(0), files.feeKey(0)])
    expect(statSync(secret).mode & 0o777).toBe(0o600);
});
