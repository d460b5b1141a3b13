/** A certificate counts each member once and needs more than two thirds of the stake, all of one round. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { expect, test } from 'vitest';
import { verifyCertificate } from '../../node/chain/certificate.ts';
import { rawPublicKey, signMessageAside } from '../../node/ml-dsa.ts';
import { certificateMessage } from '../../protocol/ledger/cut.ts';

const pair = (): KeyObject =>
  (generateKeyPairSync as unknown as (kind: string) => { privateKey: KeyObject })('ml-dsa-65').privateKey;
const keys = Array.from({ length: 4 }, pair);
const cut = {
  chainId: new Uint8Array(48),
  height: 5,
  cutId: new Uint8Array(48).fill(7),
  committee: keys.map((key) => ({ publicKey: rawPublicKey(key), stake: 1n })),
};

async function certificate(members: readonly number[], rounds: readonly number[] = members.map(() => 0)) {
  const signatures = members.map(async (member, at) => ({
    member,
    signature: await signMessageAside(
      keys[member] as KeyObject,
      certificateMessage(cut.chainId, cut, rounds[at] as number),
    ),
  }));
  return { round: 0, signatures: await Promise.all(signatures) };
}

test('three of four are enough, two are not', async () => {
  expect(verifyCertificate(await certificate([0, 1, 3]), cut)).toBe(true);
  expect(verifyCertificate(await certificate([0, 3]), cut)).toBe(false);
});

test('a member named three times counts for nothing', async () => {
  expect(verifyCertificate(await certificate([0, 0, 0]), cut)).toBe(false);
  expect(verifyCertificate(await certificate([2, 1, 0]), cut)).toBe(false);
});

test('a signature of another round spoils the certificate', async () => {
  expect(verifyCertificate(await certificate([0, 1, 2], [0, 0, 1]), cut)).toBe(false);
});
