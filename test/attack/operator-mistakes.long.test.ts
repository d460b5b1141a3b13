/** What operators get wrong, and what a node or a stranger in the daemon's place may answer: one line with a code, nothing half made, and always the name of a request that may have been carried out. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readRoute } from '../../node/validator/overlay-key.ts';
import { validatorCommands } from '../../node/validator/validator-commands.ts';
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import type { ValidatorDocument } from '../../protocol/api/staking-documents.ts';
import { lockDirectory } from '../../runtime/files/directory-lock.ts';
import { readNetworkAddress } from '../../runtime/listen-address.ts';
import { readValidators, type StakingClient } from '../../wallet/chain/staking-reads.ts';
import { callMethod } from '../../wallet/command/commands.ts';
import { runInit } from '../../wallet/command/creation.ts';
import { walletCommand } from '../../wallet/command/wallet-command.ts';
import { stateDirectory } from '../../wallet/open.ts';
import { refuseUsedKey } from '../../wallet/payments/consensus-key.ts';
import { readOrCreateToken } from '../../wallet/rpc/token.ts';
import { WalletError } from '../../wallet/wallet-error.ts';
import { temporaryDirectory } from '../temporary.ts';
import { runCommand } from '../wallet/commands.ts';
import { quietChain } from '../wallet/fake-staking.ts';
import { WalletFiles } from '../wallet/wallet-files.ts';

const NOBODY = 'http://127.0.0.1:9';
const VALIDATOR = 'ab'.repeat(48);

async function files() {
  const directory = temporaryDirectory();
  const made = new WalletFiles(directory);
  await made.write();
  return { directory, file: made.file };
}

function terminal() {
  const said = { out: '', err: '' };
  return {
    said,
    out: (text: string) => {
      said.out += text;
    },
    err: (text: string) => {
      said.err += text;
    },
    readText: () => '',
    env: {},
  };
}

/** A node with many validators, which lists them a page at a time as a real one does. */
function crowd(count: number, key: Uint8Array): StakingClient {
  const owner = formatAddress(keyAddressPayload(new Uint8Array(1952)), 'development');
  const list = Array.from({ length: count }, (_, i) => ({
    validator_id: i.toString(16).padStart(96, '0'),
    owner_address: owner,
    state: 'eligible',
    stake: String(1_000 + ((i * 7_919) % 100_000)),
    consensus_key_address: i === count - 1 ? formatAddress(keyAddressPayload(key), 'development') : owner,
  })) as unknown as ValidatorDocument[];
  const quiet = quietChain(() => 1);
  return {
    ...quiet,
    stakingValidators: async ({ cursor = '0', limit = 64 } = {}) => {
      const [from, page] = [Number(cursor), await quiet.stakingValidators({})];
      const next = from + limit < list.length ? { next_cursor: String(from + limit) } : {};
      return { ...page, validators: list.slice(from, from + limit), ...next };
    },
  };
}

test('all validators are listed, most stake first, and a key that any of them has is refused', async () => {
  const key = new Uint8Array(1952).fill(7);
  const client = crowd(1_000, key);
  const { validators } = await readValidators(client, undefined);
  expect(validators).toHaveLength(1_000);
  const stakes = validators.map(({ stake }) => Number(stake));
  expect(stakes).toEqual(stakes.toSorted((a, b) => b - a));
  await expect(refuseUsedKey(key, 1, { client, network: 'development' })).rejects.toMatchObject({
    code: 'consensus_key_used',
  });
});

test('a list of validators without an end is not read for ever', async () => {
  const quiet = quietChain(() => 1);
  const client = {
    ...quiet,
    stakingValidators: async () => ({ ...(await quiet.stakingValidators({})), next_cursor: 'on' }),
  };
  await expect(readValidators(client, undefined)).rejects.toMatchObject({ code: 'node_unreachable' });
});

test('a command before there is a wallet leaves nothing that blocks `init`', async () => {
  const directory = temporaryDirectory();
  const file = join(directory, 'wallet.json');
  const session = ['--file', file, '--service', NOBODY];
  expect(await runCommand(['positions', ...session])).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('[file_missing]'),
  });
  expect(readdirSync(directory)).toEqual([]);
  const values = { file, network: 'development', generatePassword: true, json: false } as never;
  expect(await runInit(values, terminal(), { interactive: false } as never)).toBe(0);
});

test('a state or data directory that cannot be made is reported in one line', async () => {
  const { directory, file } = await files();
  writeFileSync(stateDirectory(file), '');
  expect(await runCommand(['positions', '--file', file, '--service', NOBODY])).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('[directory_unusable]'),
  });
  expect(() => lockDirectory(join(file, 'below'))).toThrow(expect.objectContaining({ code: 'directory_unusable' }));
  const endpoint = validatorCommands.find(({ spec }) => spec.name === 'svcd validator-endpoint');
  const told = terminal();
  mkdirSync(join(directory, 'node'));
  writeFileSync(join(directory, 'node', 'network'), '');
  for (const dataDir of [join(file, 'below'), join(directory, 'node')])
    expect(await endpoint?.start(['--data-dir', dataDir], told)).toBe(1);
  expect(told.said.err).toMatch(/^svcd validator-endpoint: .*\n.*\[directory_unusable\]\n$/);
});

test('`call` refuses parameters that are no object', async () => {
  const { file } = await files();
  const context = { values: { file, service: NOBODY, json: false }, terminal: terminal(), prompt: {} } as never;
  for (const text of ['null', '5', '[]', '"x"'])
    await expect(callMethod(context, 'stake', text, true), text).rejects.toMatchObject({ code: 'params_invalid' });
});

/** A stranger where the daemon of a locked wallet should be. */
async function instead(answer: RequestListener): Promise<string[]> {
  const { file } = await files();
  const lock = lockDirectory(stateDirectory(file));
  await readOrCreateToken(`${file}.token`);
  const server = createServer(answer).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    lock.release();
    server.close();
  });
  return ['--file', file, '--rpc', `127.0.0.1:${(server.address() as AddressInfo).port}`];
}

test('what is no daemon at the place of the daemon is reported in one line', async () => {
  for (const [status, body] of [
    [200, '<html>'],
    [404, 'not here'],
    [500, '{}'],
    [200, '{}'],
    [200, 'null'],
  ] as const) {
    const session = await instead((_, response) => response.writeHead(status).end(body));
    expect(await runCommand(['positions', ...session]), `${status} ${body}`).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^svc-wallet positions: .*\[daemon_unusable\]\n$/),
    });
  }
});

test('a daemon that dies during a call: the outcome is unknown, and the request has a name to repeat it by', async () => {
  const session = await instead((request, response) => {
    let body = '';
    request.on('data', (part) => {
      body += part;
    });
    request.on('end', () => {
      const { id, params } = JSON.parse(body);
      const result = { submitted: false, amount: '100', fee: '0.1', epoch: 1, request_id: params.request_id };
      if (params.dry_run) response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
      else response.destroy();
    });
  });
  const words = ['stake', '--validator', VALIDATOR, '--amount', '100', '--yes', ...session];
  for (const json of [[], ['--json']]) {
    const { status, stdout, stderr } = await runCommand([...words, ...json]);
    expect(status).toBe(1);
    expect(stdout + stderr).toContain('outcome_unknown');
    expect(stderr).toMatch(/^request cli-[0-9a-f]{24}\n/);
  }
});

test('what a node says cannot pass for what the program says', async () => {
  const refused = walletCommand({ name: 'svc-wallet x', summary: '', options: {} }, () => {
    throw new WalletError('node_refused', 'no\r\u001b[2Kfinalized\n\u202edone');
  });
  const told = terminal();
  expect(await refused.start([], told)).toBe(1);
  expect(told.said.err).toBe('svc-wallet x: no??[2Kfinalized??done [node_refused]\n');
});

test('an overlay address that cannot be listened on is refused with its option', () => {
  for (const word of ['/ip4/999.0.0.1/tcp/5', '/ip4/::1/tcp/5', '/ip6/::::/tcp/5', '/ip4/10.0.0.1/tcp/65536'])
    expect(() => readNetworkAddress(word), word).toThrow();
  expect(readNetworkAddress('/ip4/10.0.0.1/tcp/65535')).toEqual({ host: '10.0.0.1', port: 65_535, way: 'tcp' });
  expect(readNetworkAddress('/ip6/::1/tcp/1')).toEqual({ host: '::1', port: 1, way: 'tcp' });
});

test('a route that nobody could dial is refused', () => {
  const bad = [
    '0.0.0.0',
    '::',
    '[::]:5',
    '224.0.0.1',
    'ff02::1',
    'fe80::1%eth0',
    '[fe80::1%eth0]:5',
    '999.1.1.1',
    '10.0.0',
  ];
  for (const word of bad) expect(() => readRoute(word), word).toThrow();
  for (const word of ['10.0.0.1', '::1', '[fd00::1]:5', 'a.example', '127.0.0.1:7', 'localhost']) readRoute(word);
});
