/**
 * Genesis documents and registrations as people read and send them: JSON with amounts in coins, from which the canonical bytes follow (ledger rule 32).
 * A validator sends a registration to the maker of the genesis; its signature covers all of it.
 */
import { formatAddress, parseAddress } from '../address.ts';
import { formatCoins, parseCoins } from '../amount.ts';
import { fromHex, toHex } from '../bytes.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../crypto/key-sizes.ts';
import { ProtocolError } from '../errors.ts';
import { NETWORK_NAMES, type NetworkName } from '../network.ts';
import {
  chainId,
  encodeGenesis,
  type Genesis,
  type GenesisValidator,
  genesisVersion,
  isSeeded,
  type NamedValidator,
  SEED_BYTES,
} from './genesis.ts';

type Json = Record<string, unknown>;

/** The signature is the consensus key's, over all the rest (rule 32). */
export type Registration = NamedValidator & { readonly signature: Uint8Array };

function parse(text: string, what: string): Json {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ProtocolError('json_text', `the ${what} is not JSON`);
  }
  return asObject(value, what);
}

function asObject(value: unknown, what: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ProtocolError('field_type', `the ${what} is not an object`);
  return value as Json;
}

function text(from: Json, field: string): string {
  const value = from[field];
  if (typeof value !== 'string')
    throw new ProtocolError(value === undefined ? 'field_missing' : 'field_type', `'${field}' must be text`);
  return value;
}

function whole(from: Json, field: string): number {
  const value = from[field];
  if (!Number.isSafeInteger(value) || (value as number) < 0)
    throw new ProtocolError(value === undefined ? 'field_missing' : 'field_type', `'${field}' must be a whole number`);
  return value as number;
}

function list(from: Json, field: string): Json[] {
  const value = from[field];
  if (!Array.isArray(value)) throw new ProtocolError('field_type', `'${field}' must be a list`);
  return value.map((entry) => asObject(entry, `entry of '${field}'`));
}

function only(from: Json, fields: readonly string[]): void {
  for (const field of Object.keys(from))
    if (!fields.includes(field)) throw new ProtocolError('field_unknown', `'${field}' is not known here`);
}

function readNetwork(from: Json): NetworkName {
  const name = text(from, 'network');
  const network = NETWORK_NAMES.find((known) => known === name);
  if (network === undefined) throw new ProtocolError('wrong_network', `there is no network '${name}'`);
  return network;
}

const VALIDATOR_FIELDS = [
  'consensus_key',
  'amount',
  'owner_address',
  'reward_address',
  'commission_bps',
  'endpoint',
] as const;

const readValidator = (from: Json, network: NetworkName): GenesisValidator => ({
  publicKey: fromHex(text(from, 'consensus_key'), PUBLIC_KEY_BYTES),
  principal: parseCoins(text(from, 'amount')),
  owner: parseAddress(text(from, 'owner_address'), network).payload,
  rewardAddress: parseAddress(text(from, 'reward_address'), network).payload,
  commission: whole(from, 'commission_bps'),
  endpoint: fromHex(text(from, 'endpoint')),
});

const showValidator = (validator: GenesisValidator, network: NetworkName) => ({
  consensus_key: toHex(validator.publicKey),
  amount: formatCoins(validator.principal),
  owner_address: formatAddress(validator.owner, network),
  reward_address: formatAddress(validator.rewardAddress, network),
  commission_bps: validator.commission,
  endpoint: toHex(validator.endpoint),
});

export function showRegistration({ network, signature, ...validator }: Registration): string {
  const document = { network, ...showValidator(validator, network), signature: toHex(signature) };
  return `${JSON.stringify(document, null, 1)}\n`;
}

export function readRegistration(source: string): Registration {
  const from = parse(source, 'registration');
  only(from, ['network', 'signature', ...VALIDATOR_FIELDS]);
  const network = readNetwork(from);
  return { network, ...readValidator(from, network), signature: fromHex(text(from, 'signature'), SIGNATURE_BYTES) };
}

const GENESIS_FIELDS = [
  'version',
  'chain_id',
  'network',
  'timestamp_millis',
  'pow_epoch_length',
  'initial_work',
  'minimum_work',
  'interval_cuts',
  'validators',
  'outputs',
];

export function showGenesis(genesis: Genesis): string {
  const { network } = genesis;
  const document = {
    version: genesisVersion(genesis),
    chain_id: toHex(chainId(encodeGenesis(genesis))),
    network,
    timestamp_millis: genesis.timestampMillis,
    pow_epoch_length: genesis.powEpochLength,
    initial_work: genesis.initialWork.toString(),
    minimum_work: genesis.minimumWork.toString(),
    interval_cuts: genesis.intervalCuts,
    ...(genesis.seed !== undefined && { seed: toHex(genesis.seed) }),
    validators: genesis.validators.map((validator) => showValidator(validator, network)),
    outputs: genesis.outputs.map(({ address, amount }) => ({
      address: formatAddress(address, network),
      amount: formatCoins(amount),
    })),
  };
  return `${JSON.stringify(document, null, 1)}\n`;
}

const readWork = (from: Json, field: string): bigint => {
  const value = text(from, field);
  if (!/^[1-9]\d{0,18}$/.test(value)) throw new ProtocolError('field_type', `'${field}' must be a decimal integer`);
  return BigInt(value);
};

/** Refused if the chain id in it does not match: then the file was changed by hand. */
export function readGenesis(source: string): Genesis {
  const from = parse(source, 'genesis');
  const seeded = isSeeded(whole(from, 'version'));
  only(from, seeded ? [...GENESIS_FIELDS, 'seed'] : GENESIS_FIELDS);
  const network = readNetwork(from);
  const genesis: Genesis = {
    network,
    timestampMillis: whole(from, 'timestamp_millis'),
    powEpochLength: whole(from, 'pow_epoch_length'),
    initialWork: readWork(from, 'initial_work'),
    minimumWork: readWork(from, 'minimum_work'),
    intervalCuts: whole(from, 'interval_cuts'),
    ...(seeded && { seed: fromHex(text(from, 'seed'), SEED_BYTES) }),
    validators: list(from, 'validators').map((entry) => {
      only(entry, VALIDATOR_FIELDS);
      return readValidator(entry, network);
    }),
    outputs: list(from, 'outputs').map((entry) => {
      only(entry, ['address', 'amount']);
      return {
        address: parseAddress(text(entry, 'address'), network).payload,
        amount: parseCoins(text(entry, 'amount')),
      };
    }),
  };
  const chain = toHex(chainId(encodeGenesis(genesis)));
  if (chain !== text(from, 'chain_id'))
    throw new ProtocolError('wrong_chain', `the file says chain ${text(from, 'chain_id')}, but it is ${chain}`);
  return genesis;
}
