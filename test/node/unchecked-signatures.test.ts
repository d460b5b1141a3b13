/** A signature that could not be checked, for example for lack of memory, is neither valid nor false: nothing is remembered, nobody is blamed, and no cut is judged by it. */
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { expect, onTestFinished, test } from 'vitest';
import type { CutLedger } from '../../node/chain/cut-ledger.ts';
import { type CutLedgerParts, cutLedgerOf } from '../../node/chain/cut-ledger.ts';
import { OverlayIdentities } from '../../node/consensus/reach/overlay-identities.ts';
import { developmentKey, validatorName } from '../../node/genesis/development.ts';
import { applySound } from '../../node/ledger/sound-blocks.ts';
import { CheckedSignatures } from '../../node/mempool/checked-signatures.ts';
import { signMessage, UncheckedSignatureError, verifyMessage } from '../../node/ml-dsa.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../../protocol/transactions/transaction.ts';
import { DrivenNetwork, MEMBERS } from '../consensus/driven.ts';
import { silentLog } from '../node/bed.ts';
import { until } from '../until.ts';

const alice = developmentKey('alice');
const message = new Uint8Array(48).fill(7);
const check = { publicKey: alice.publicKey, message, signature: signMessage(alice.privateKey, message) };
/** What node:crypto refuses to look at. */
const UNREADABLE = undefined as unknown as Bytes;
const unchecked = (): never => {
  throw new UncheckedSignatureError('a signature could not be checked: no memory');
};

test('any bytes of a key and a signature give a verdict; a check that cannot be made gives none', () => {
  for (const fill of [0, 255]) {
    const [key, signature] = [new Uint8Array(PUBLIC_KEY_BYTES).fill(fill), new Uint8Array(SIGNATURE_BYTES).fill(fill)];
    expect(verifyMessage(key, message, signature)).toBe(false);
    expect(verifyMessage(alice.publicKey, message, signature)).toBe(false);
  }
  for (const length of [0, PUBLIC_KEY_BYTES - 1, PUBLIC_KEY_BYTES + 1])
    expect(verifyMessage(new Uint8Array(length), message, check.signature)).toBe(false);
  for (const length of [0, SIGNATURE_BYTES - 1, SIGNATURE_BYTES + 1])
    expect(verifyMessage(alice.publicKey, message, new Uint8Array(length))).toBe(false);
  expect(() => verifyMessage(alice.publicKey, UNREADABLE, check.signature)).toThrow(UncheckedSignatureError);
});

test('a check that could not be made is made again, and its result counts', () => {
  let times = 0;
  const signatures = new CheckedSignatures((key, text, signature) =>
    verifyMessage(key, times++ === 0 ? UNREADABLE : text, signature),
  );
  expect(() => signatures.isValid(check)).toThrow(UncheckedSignatureError);
  expect([signatures.isValid(check), signatures.isValid(check), times]).toEqual([true, true, 2]);
});

test('a member whose identity could not be checked is not a forger', async () => {
  const { publicKey } = developmentKey(validatorName(0));
  const identities = new OverlayIdentities({ steady: () => 0, members: () => [{ publicKey }] });
  const claim = { identity: { publicKey, signature: UNREADABLE }, message };
  expect(await identities.verify(claim, 'home')).toBe('unknown');
});

test('a cut is not judged, and no block left out, by a signature that could not be checked', () => {
  const [block, header] = [{ id: new Uint8Array(32) }, { height: 1, timestampMillis: 0 }];
  const parts = {
    chain: { head: () => ({ height: 0 }), genesis: {}, network: {} },
    pool: { get: () => block },
    cuts: { isDated: () => true, execute: unchecked },
    checkpoints: [],
    log: silentLog,
  } as unknown as CutLedgerParts;
  const cut = { header, cutId: new Uint8Array(48), blockIds: [block.id] } as unknown as Parameters<
    CutLedger['execute']
  >[0];
  expect(cutLedgerOf(parts).execute(cut)).toBeUndefined();
  expect(() => applySound([1, 2], (blocks) => (blocks.length > 0 ? unchecked() : blocks))).toThrow(
    UncheckedSignatureError,
  );
  expect(() => applySound([1, 2], (blocks) => (blocks.length === 1 ? unchecked() : fails()))).toThrow(
    UncheckedSignatureError,
  );
});

const fails = (): never => {
  throw new Error('a block cannot be executed');
};

test('a validator that cannot check what it would propose proposes nothing, and goes on with the others', async () => {
  const network = new DrivenNetwork();
  onTestFinished(() => network.close());
  let made = 0;
  const make = (): never => {
    made++;
    return unchecked();
  };
  const { node } = await network.start('m0', 0, {}, [], (real) => {
    const ledger = Object.create(real.ledger, { make: { value: make } }) as CutLedger;
    return new Proxy(real, {
      get: (of, key) => {
        const value: unknown = key === 'ledger' ? ledger : Reflect.get(of, key);
        return typeof value === 'function' ? value.bind(of) : value;
      },
    });
  });
  const faults: string[] = [];
  node.on('fault', (error) => void faults.push(error.message));
  for (let member = 1; member < MEMBERS; member++) await network.start(`m${member}`, member);
  await until(() => faults.length > 0 || made > 0);
  const { height } = node.chain.head();
  await until(() => faults.length > 0 || node.chain.head().height > height + 1);
  expect(faults).toEqual([]);
});

test('a neighbour whose vote or proposal could not be checked is not dropped, and the chain goes on', async () => {
  const network = new DrivenNetwork();
  const { verify } = crypto;
  const restore = () => {
    crypto.verify = verify;
    syncBuiltinESMExports();
  };
  onTestFinished(async () => {
    restore();
    await network.close();
  });
  for (let member = 0; member < MEMBERS; member++) await network.start(`m${member}`, member);
  const height = () => Math.min(...[...network.running.values()].map(({ node }) => node.chain.head().height));
  await until(() => height() >= 2);
  let failed = 0;
  crypto.verify = ((...words: Parameters<typeof verify>) => {
    if (failed++ < 3) throw new Error('malloc failure');
    return verify(...words);
  }) as typeof verify;
  syncBuiltinESMExports();
  const from = height();
  await until(() => height() >= from + 3);
  expect(failed).toBeGreaterThan(3);
  expect(network.network.dropped).toEqual([]);
});
