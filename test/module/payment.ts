/** A manifest, a wallet and a body for the tests of the module. */
import { randomBytes } from 'node:crypto';
import type { Module } from './load.ts';

export const hex = (bytes: number): string => randomBytes(bytes).toString('hex');

export const manifestOf = (more: Record<string, unknown> = {}): string =>
  JSON.stringify({
    api_version: 1,
    network: 'development',
    chain_id: 'ab'.repeat(48),
    protocol_version: 1,
    rule_set: 1,
    finalized_height: 100,
    min_fee_per_mass: '10',
    mass_per_output: 256,
    max_inputs: 8,
    max_outputs: 8,
    max_transaction_bytes: 65_000,
    max_payload_bytes: 2048,
    ...more,
  });

export const MANIFEST = manifestOf();

export function requestOf(module: Module, more: Record<string, unknown> = {}): string {
  return JSON.stringify({
    valid_from_height: '100',
    valid_until_height: '1100',
    inputs: [{ transaction_id: 'cd'.repeat(48), output_index: '3' }],
    outputs: [{ address: module.burnAddress('development'), amount: '125000000' }],
    payload_hex: '',
    ...more,
  });
}

export type Payment = {
  readonly publicKey: string;
  readonly address: string;
  readonly body: string;
  readonly message: string;
  readonly signature: string;
  readonly witness: string;
  readonly wire: string;
  readonly spent: string;
  readonly spends: string;
};

/** One input at account 0, receive, 0, that pays 1.25 coins with a large fee. */
export function paymentOf(module: Module, entropy: string): Payment {
  const root = module.WalletRoot.fromEntropy(entropy, '', 'development');
  try {
    const publicKey = root.derivePublicKey(0, 'receive', 0);
    const address = module.addressFromPublicKey(publicKey, 'development');
    const body = module.encodeTransactionBody(requestOf(module), MANIFEST);
    const spent = JSON.stringify({ address, amount: '500000000' });
    const message = module.spendMessage(body, 0, spent, MANIFEST);
    const signature = root.sign(0, 'receive', 0, message, true);
    const witness = module.encodeWitness(publicKey, signature);
    const wire = module.assembleTransaction(body, JSON.stringify([witness]), MANIFEST);
    return { publicKey, address, body, message, signature, witness, wire, spent, spends: `[${spent}]` };
  } finally {
    root.free();
  }
}
