/** `svcd genesis` and `--genesis` as an operator uses them: files, checks, chain id, and what is said without a document. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { developmentKey, validatorName } from '../../node/genesis/development.ts';
import { developmentFiles } from '../../node/genesis/development-network.ts';
import { makeGenesis } from '../../node/genesis/make-genesis.ts';
import { signMessage } from '../../node/ml-dsa.ts';
import { loadValidatorKey } from '../../node/validator/validator-key.ts';
import { burnAddressPayload, formatAddress } from '../../protocol/address.ts';
import { equalBytes, toHex } from '../../protocol/bytes.ts';
import { chainId, encodeGenesis, type GenesisValidator, registrationMessage } from '../../protocol/ledger/genesis.ts';
import { readGenesis, showGenesis, showRegistration } from '../../protocol/ledger/genesis-file.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { possessionMessage, validatorId } from '../../protocol/staking/names.ts';
import { anEndpoint } from './signed.ts';

const COIN = 100_000_000n;
const MAIN = fileURLToPath(new URL('../../node/main.ts', import.meta.url));
const owner = developmentKey('bert');
const consensus = developmentKey('bert consensus');
const bank = formatAddress(developmentKey('bank').address, 'testnet');

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-genesis-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const validator: GenesisValidator = {
  publicKey: consensus.publicKey,
  principal: 100_000n * COIN,
  owner: owner.address,
  rewardAddress: owner.address,
  commission: 500,
  endpoint: anEndpoint(7),
};
const signed = (message: Uint8Array) => signMessage(consensus.privateKey, message);

function registration(network: NetworkName = 'testnet', changes: Partial<GenesisValidator> = {}): string {
  const named = { network, ...validator, ...changes };
  return showRegistration({ ...named, signature: signed(registrationMessage(named)) });
}

const settings = {
  network: 'testnet' as const,
  timestampMillis: 1_800_000_000_000,
  powEpochLength: 1_036_800,
  initialWork: 4_096n,
  minimumWork: 64n,
  intervalCuts: 34_560,
  registrations: [registration()],
  developmentValidators: 1,
  fund: [{ address: bank, amount: 18_900_000n * COIN }],
};

test('a genesis reads back from its file, and a changed one is refused', () => {
  const genesis = makeGenesis(settings);
  const file = showGenesis(genesis);
  expect(encodeGenesis(readGenesis(file))).toEqual(encodeGenesis(genesis));
  expect(() => readGenesis(file.replace('"commission_bps": 500', '"commission_bps": 0'))).toThrow(/but it is/);
  expect(() => readGenesis(file.replace('"version": 2', '"version": 1'))).toThrow(/version 1/);
  expect(() => readGenesis(file.replace('"outputs"', '"output"'))).toThrow(/not known/);
  expect(() => readGenesis(file.replace('18900000.00000000', '18900000.00000001'))).toThrow(/hands out/);
  expect(() => readGenesis('{')).toThrow(/not JSON/);
});

test('registrations are checked: proof, network, and what all of it adds up to', () => {
  const otherwise = possessionMessage(new Uint8Array(48), owner.address, consensus.publicKey);
  const unsigned = showRegistration({ network: 'testnet', ...validator, signature: signed(otherwise) });
  expect(() => makeGenesis({ ...settings, registrations: [unsigned] })).toThrow(/does not verify/);
  expect(() => makeGenesis({ ...settings, registrations: [registration(), registration()] })).toThrow(/more are given/);
  expect(() => makeGenesis({ ...settings, fund: [] })).toThrow(/18900000.00000000 coins are not given to anybody/);
  expect(() => makeGenesis({ ...settings, network: 'mainnet' })).toThrow();
  expect(() => makeGenesis({ ...settings, intervalCuts: 24 })).toThrow(/34560/);
  const twice = { ...settings, fund: [{ address: bank, amount: 18_800_000n * COIN }] };
  expect(() => makeGenesis({ ...twice, registrations: [registration(), registration()] })).toThrow(/one consensus key/);
});

test('a registration that was changed on its way is refused, whatever was changed', () => {
  const bank2 = formatAddress(developmentKey('bank').address, 'testnet');
  const changes: Record<string, unknown> = {
    amount: '100001.00000000',
    owner_address: bank2,
    reward_address: bank2,
    commission_bps: 1_000,
    endpoint: toHex(anEndpoint(8)),
    consensus_key: toHex(developmentKey('bank').publicKey),
  };
  const document = JSON.parse(registration()) as Record<string, unknown>;
  expect(Object.keys(document).sort()).toEqual([...Object.keys(changes), 'network', 'signature'].sort());
  for (const [field, value] of Object.entries(changes)) {
    const changed = JSON.stringify({ ...document, [field]: value });
    expect(() => makeGenesis({ ...settings, registrations: [changed] }), field).toThrow(/does not verify/);
  }
  // Signed for one network, written for another: addresses are written anew.
  const named = { network: 'development' as const, ...validator };
  const moved = showRegistration({ ...named, network: 'testnet', signature: signed(registrationMessage(named)) });
  expect(() => makeGenesis({ ...settings, registrations: [moved] })).toThrow(/does not verify/);
});

test('a registration whose rewards would be burned is refused', () => {
  const burning = registration('testnet', { rewardAddress: burnAddressPayload() });
  expect(() => makeGenesis({ ...settings, registrations: [burning] })).toThrow(/burn address/);
});

test('the commands: one makes the document and prints the chain id, the other runs it or says what is missing', async () => {
  const [file, out] = [join(directory, 'bert.json'), join(directory, 'genesis.json')];
  writeFileSync(file, registration());
  const run = (words: readonly string[]) =>
    promisify(execFile)(process.execPath, [MAIN, ...words], { timeout: 240_000 });
  const words = ['genesis', '--network', 'testnet', '--validator', file, '--development-validators', '1', '--out', out];
  await expect(run(words)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/are not given to anybody/),
  });
  expect(existsSync(out)).toBe(false);
  const { stdout } = await run([...words, '--fund', `${bank}=18900000`]);
  const genesis = readGenesis(readFileSync(out, 'utf8'));
  expect(stdout).toBe(`chain ${toHex(chainId(encodeGenesis(genesis)))}\n`);
  // A document that exists is never written over.
  await expect(run([...words, '--fund', `${bank}=18900000`])).rejects.toMatchObject({ code: 1 });
  const data = ['--data-dir', join(directory, 'data'), '--api-bind', 'off', '--mining-bind', 'off'];
  await expect(run(['run', '--network', 'testnet', ...data])).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/svcd genesis, and start with --genesis FILE/),
  });
  await expect(run(['run', '--network', 'mainnet', '--genesis', out, ...data])).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/--network testnet/),
  });
});

test('a development network: funded addresses, fee keys with coins, config files that svcd reads', async () => {
  const run = (words: readonly string[]) =>
    promisify(execFile)(process.execPath, [MAIN, ...words], { timeout: 240_000 });
  const out = join(directory, 'network');
  const address = formatAddress(owner.address, 'development');
  const words = ['development-network', '--out', out, '--validators', '2', '--interval-cuts', '24'];
  await expect(run([...words, '--fund', `${address}=18000000`])).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/20000\.\d{8} coins too many are funded/),
  });
  expect(existsSync(developmentFiles(out).genesis)).toBe(false);
  await run([...words, '--fund', `${address}=1000.5`]);
  const genesis = readGenesis(readFileSync(developmentFiles(out).genesis, 'utf8'));
  const funded = (payload: Uint8Array) => genesis.outputs.filter((output) => equalBytes(output.address, payload));
  expect(funded(owner.address)).toMatchObject([{ amount: 1_000n * COIN + COIN / 2n }]);
  for (const member of [0, 1]) {
    const { validator } = JSON.parse(readFileSync(developmentFiles(out).config(member), 'utf8'));
    const { address: payer } = await loadValidatorKey(
      { keyFile: validator.heartbeat.fee_key_file, passwordFile: validator.heartbeat.fee_key_password_file },
      'heartbeat-fee',
      'development',
    );
    expect(funded(payer)).toHaveLength(1);
    const { publicKey } = developmentKey(validatorName(member));
    expect(validator.heartbeat.validator_id).toBe(toHex(validatorId(publicKey)));
  }
});
