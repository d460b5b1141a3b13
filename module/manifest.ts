/**
 * The manifest (`GET /v1/transactions/manifest`): it names the chain and its terms, and every call about transactions takes it as it came. A manifest with other rules
 * than those this release knows is refused; a higher fee is taken as it is.
 */
import { parseAtoms } from '../protocol/amount.ts';
import { type Bytes, toHex } from '../protocol/bytes.ts';
import { ID_BYTES } from '../protocol/crypto/identifier.ts';
import { ProtocolError } from '../protocol/errors.ts';
import type { NetworkName } from '../protocol/network.ts';
import { MASS_PER_OUTPUT } from '../protocol/transactions/fee.ts';
import {
  MAX_INPUTS,
  MAX_OUTPUTS,
  MAX_PAYLOAD_BYTES,
  MAX_TRANSACTION_BYTES,
  PROTOCOL_VERSION,
  RULE_SET,
} from '../protocol/transactions/transaction.ts';
import { givenObject, networkOf, written } from './given.ts';
import { ModuleError } from './module-error.ts';

export type Manifest = {
  readonly network: NetworkName;
  readonly chainId: Bytes;
  readonly finalizedHeight: number;
  readonly minFeePerMass: bigint;
};

/** What this release encodes; a chain with others has another codec. */
const KNOWN = {
  mass_per_output: MASS_PER_OUTPUT,
  max_inputs: MAX_INPUTS,
  max_outputs: MAX_OUTPUTS,
  max_transaction_bytes: MAX_TRANSACTION_BYTES,
  max_payload_bytes: MAX_PAYLOAD_BYTES,
} as const;

/** Fields that a newer node may have added are let pass. */
export function readManifest(manifestJson: unknown): Manifest {
  const fields = givenObject(manifestJson, 'manifest');
  if (fields.integer('api_version') !== 1)
    throw new ProtocolError('unsupported_version', 'manifest.api_version must be 1', { field: 'manifest.api_version' });
  const network = networkOf(fields.text('network'), fields.pathOf('network'));
  const chainId = fields.hex('chain_id', ID_BYTES);
  const version = fields.integer('protocol_version');
  const ruleSet = fields.integer('rule_set');
  if (version !== PROTOCOL_VERSION || ruleSet !== RULE_SET)
    throw new ProtocolError('unsupported_version', `the manifest is of protocol ${version}, rule set ${ruleSet}`, {
      field: fields.pathOf(version === PROTOCOL_VERSION ? 'rule_set' : 'protocol_version'),
    });
  for (const [name, known] of Object.entries(KNOWN)) {
    const told = fields.integer(name);
    if (told !== known)
      throw new ModuleError('manifest_other_rules', `manifest.${name} is ${told}, and this release knows ${known}`, {
        field: fields.pathOf(name),
      });
  }
  return {
    network,
    chainId,
    finalizedHeight: fields.integer('finalized_height'),
    minFeePerMass: fields.parsed('min_fee_per_mass', parseAtoms),
  };
}

/** The manifest as the module understands it, with every integer as text. */
export function validateManifest(manifestJson: string): string {
  const { network, chainId, finalizedHeight, minFeePerMass } = readManifest(manifestJson);
  return written({
    network,
    chain_id: toHex(chainId),
    protocol_version: String(PROTOCOL_VERSION),
    rule_set: String(RULE_SET),
    finalized_height: String(finalizedHeight),
    min_fee_per_mass: minFeePerMass,
    ...Object.fromEntries(Object.entries(KNOWN).map(([name, value]) => [name, String(value)])),
  });
}
