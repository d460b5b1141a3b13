/** Rows of the specification's defaults and limits that no table of it has a line of its own for, or that need two sides: what is the limit is taken, one more is refused. */
import { expect } from 'vitest';
import { encodeTransactionBody } from '../../module/bodies.ts';
import { createMultisigDescriptor } from '../../module/multisig.ts';
import { mnemonicEntropy, mnemonicFromEntropy } from '../../module/svc-wasm.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { runOptions } from '../../node/node-options.ts';
import { endpointOf, readRoute } from '../../node/validator/overlay-key.ts';
import { OVERLAY_PORTS, validatorPlan } from '../../node/validator/validator-options.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { decodeEndpoint } from '../../protocol/staking/endpoint.ts';
import { type OptionTable, parseCommandLine } from '../../runtime/command-line/command-line.ts';
import { sessionOptions } from '../../wallet/command/options.ts';
import { addressOf, treasury } from './api-bed.ts';
import { answers, type Row, subject, tested, titled } from './conformance-rows.ts';

const HERE = 'test/api/conformance-defaults.ts';
const TABLE = 'Defaults and limits, both sides';
const asked = (row: string, check: () => Promise<void> | void): Row => tested(TABLE, row, HERE, check);

/** As the program reads its command line. */
function valuesOf<T extends OptionTable>(options: T, ...words: string[]) {
  const parsed = parseCommandLine({ name: 'program', summary: '', options }, words, () => '');
  if (parsed.kind !== 'run') throw parsed.kind === 'usage' ? parsed.error : new Error(parsed.kind);
  return parsed.values;
}

const validator = ['--consensus-key-file', 'key', '--consensus-password-file', 'password'];
const binds = (...words: string[]) => validatorPlan(valuesOf(runOptions, ...validator, ...words))?.binds ?? [];
const repeated = (option: string, values: readonly string[]) => values.flatMap((value) => [option, value]);
const hosts = (count: number) => Array.from({ length: count }, (_, i) => `10.0.0.${i + 1}`);

export const DEFAULTS_ROWS: readonly Row[] = [
  asked('HTTP request body: 131,072 bytes are read, 131,073 refused', async () => {
    const body = (length: number) => JSON.stringify({ addresses: [treasury()] }).padEnd(length, ' ');
    const status = async (length: number) => (await subject.bed.post('/v1/address/balances', body(length))).status;
    expect([await status(131_072), await status(131_073)]).toEqual([200, 413]);
  }),
  asked('Outputs spent per transaction: 8 are taken, 9 refused', async () => {
    const key = developmentKey('rich');
    const page = await (await subject.bed.get(`/v1/address/${addressOf('rich')}/utxos`)).json();
    const utxos = Object.values(page).find(Array.isArray) as { outpoint: Record<string, string>; amount: string }[];
    const spends = (count: number) =>
      utxos.slice(0, count).map(({ outpoint, amount }) => ({
        outpoint: {
          transactionId: fromHex(String(outpoint.transaction_id)),
          outputIndex: Number(outpoint.output_index),
        },
        address: key.address,
        amount: BigInt(amount),
        source: 'genesis' as const,
      }));
    expect(spends(9)).toHaveLength(9);
    const wire = toHex(subject.bed.bed.payment(spends(8), [{ address: key.address, amount: 1n }], { key }));
    const sent = await subject.bed.post('/v1/transactions', { api_version: 1, wire_hex: wire });
    expect([sent.status, await sent.text()]).toEqual([200, expect.stringContaining('transaction_id')]);
    const manifest = JSON.stringify(await answers('manifest'));
    const body = (count: number) =>
      encodeTransactionBody(
        JSON.stringify({
          valid_from_height: '0',
          valid_until_height: '9',
          inputs: spends(count).map(({ outpoint }) => ({
            transaction_id: toHex(outpoint.transactionId),
            output_index: String(outpoint.outputIndex),
          })),
          outputs: [{ address: addressOf('alice'), amount: '1' }],
          payload_hex: '',
        }),
        manifest,
      );
    expect(body(8)).toBeDefined();
    expect(() => body(9)).toThrow(/at most 8/);
  }),
  asked('`--route`: 4 are taken, 5 refused; without a port 28704, testnet 28709', () => {
    const endpoint = (count: number, network: 'mainnet' | 'testnet' | 'development') =>
      endpointOf(new Uint8Array(32), hosts(count).map(readRoute), OVERLAY_PORTS[network]);
    const ports = (network: 'mainnet' | 'testnet' | 'development') =>
      decodeEndpoint(endpoint(4, network)).routes.map(({ port }) => port);
    expect(ports('mainnet')).toEqual([28_704, 28_704, 28_704, 28_704]);
    expect(ports('testnet')).toEqual([28_709, 28_709, 28_709, 28_709]);
    expect(() => endpoint(5, 'mainnet')).toThrow('at most 4 routes');
  }),
  asked('`listen_addrs`: 8 are taken, 9 refused', () => {
    expect(binds(...repeated('--overlay-listen', hosts(8)))).toHaveLength(8);
    expect(() => binds(...repeated('--overlay-listen', hosts(9)))).toThrow('at most 8');
  }),
  asked('the overlay of a validator that names no address: port 28704, testnet 28709, every interface', () => {
    expect(binds('--network', 'mainnet')).toEqual([{ host: '::', port: 28_704 }]);
    expect(binds('--network', 'testnet')).toEqual([{ host: '::', port: 28_709 }]);
  }),
  asked('`--service`: without it the node on this machine, http://127.0.0.1:28701', () => {
    expect(valuesOf(sessionOptions)).toMatchObject({ service: 'http://127.0.0.1:28701' });
  }),
  asked('Multisig: 2-of-3 and 3-of-5, and no other form', () => {
    const members = Array.from({ length: 6 }, (_, i) => toHex(developmentKey(`member ${i}`).publicKey));
    const taken: string[] = [];
    for (let of = 1; of <= 6; of++)
      for (let least = 0; least <= of; least++)
        try {
          createMultisigDescriptor(least, JSON.stringify(members.slice(0, of)));
          taken.push(`${least}-of-${of}`);
        } catch {
          // Refused.
        }
    expect(taken).toEqual(['2-of-3', '3-of-5']);
  }),
  asked('Recovery phrase: 32 bytes of entropy are 24 words; other lengths are refused', () => {
    const phrase = mnemonicFromEntropy('7f'.repeat(32));
    expect(phrase.split(' ')).toHaveLength(24);
    expect(mnemonicEntropy(phrase)).toBe('7f'.repeat(32));
    for (const bytes of [16, 31, 33]) expect(() => mnemonicFromEntropy('7f'.repeat(bytes)), `${bytes}`).toThrow();
    expect(() => mnemonicEntropy(phrase.split(' ').slice(0, 12).join(' '))).toThrow();
  }),
  asked('Request nonce: 64 hex characters are taken, 63 and 65 refused', async () => {
    const status = async (length: number) =>
      (await subject.bed.get('/v1/chain/head', { 'x-svc-request-nonce': 'a'.repeat(length) })).status;
    expect([await status(64), await status(63), await status(65)]).toEqual([200, 400, 400]);
  }),
  asked('Topic `addresses`: 64 are taken, 65 refused', async () => {
    const opened = subject.bed.socket('/v1/ws', 'svc.node-api.v1');
    await opened.opened();
    const answer = async (count: number) => {
      opened.send('subscribe', { id: count, topic: 'addresses', addresses: Array(count).fill(treasury()) });
      return (await opened.next()).type;
    };
    expect([await answer(64), await answer(65)]).toEqual(['subscribed', 'error']);
    opened.ws.close();
  }),
  titled(
    TABLE,
    '`heartbeat.max_fee_atoms` and `fee_rate_per_mass`: the network minimum without it, never above the cap',
    'test/staking/heartbeats.long.test.ts',
    'a validator with a fee key: that key pays, up to the cap',
  ),
  titled(
    TABLE,
    '429: IPv6 clients share one limit per /64',
    'test/runtime/client-address.test.ts',
    'every IPv6 address of a /64 is the same client',
  ),
];
