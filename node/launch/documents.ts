/**
 * The three files of a launch, as people send them to each other: the invitation (its terms), the registration of a validator, and the bundle that brings it the network.
 * Nothing in them is secret. An invitation has an identifier over all of its terms, and a registration is signed by the consensus key it names.
 */
import { formatAddress, keyAddressPayload, parseAddress } from '../../protocol/address.ts';
import { formatCoins, parseCoins } from '../../protocol/amount.ts';
import {
  anything,
  check,
  exactly,
  type Infer,
  integer,
  list,
  object,
  oneOf,
  type Schema,
  text,
} from '../../protocol/api/schema.ts';
import { type Bytes, concat, fromHex, toHex, utf8 } from '../../protocol/bytes.ts';
import { id } from '../../protocol/crypto/identifier.ts';
import { SIGNATURE_BYTES } from '../../protocol/crypto/key-sizes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import {
  checkGenesisValidator,
  MAX_GENESIS_VALIDATORS,
  registrationMessage,
  SEED_BYTES,
} from '../../protocol/ledger/genesis.ts';
import { type Registration, readRegistration, showRegistration } from '../../protocol/ledger/genesis-file.ts';
import { NETWORK_NAMES } from '../../protocol/network.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { checkRewardAddress } from '../genesis/make-genesis.ts';
import { verifyMessage } from '../ml-dsa.ts';
import { isDialable } from '../network/peers/peer-address.ts';
import { LaunchError } from './launch-error.ts';

export const LAUNCH_NAME = '^[a-z0-9][a-z0-9-]{0,31}$';
const LABELS = { launch: 'SVC_LAUNCH_V1', registration: 'SVC_LAUNCH_REGISTRATION_V1' } as const;
const MOST_OUTPUTS = 4_096;
const MOST_PEERS = 4;
/** More than a bundle has. */
const MOST_LEVELS = 16;

const hex = (bytes: number) => text({ pattern: `^[0-9a-f]{${2 * bytes}}$` });
const IDENTIFIER = hex(48);
const WORK = text({ pattern: '^[1-9][0-9]{0,17}$' });
const COINS = text({ maxLength: 32 });
const ADDRESS = text({ maxLength: 128 });

const invitationSchema = object({
  format: exactly('svc-launch-invitation'),
  version: exactly(1),
  launch: IDENTIFIER,
  name: text({ pattern: LAUNCH_NAME }),
  network: oneOf(NETWORK_NAMES),
  seed: hex(SEED_BYTES),
  validators: integer({ minimum: 1, maximum: MAX_GENESIS_VALIDATORS }),
  bond: COINS,
  fee_coins: COINS,
  cut_millis: integer({ minimum: 20, maximum: 600_000 }),
  interval_cuts: integer(),
  pow_epoch_length: integer({ minimum: 1 }),
  initial_work: WORK,
  minimum_work: WORK,
  outputs: list(object({ address: ADDRESS, amount: COINS }), { maxItems: MOST_OUTPUTS }),
});

export type Invitation = Infer<typeof invitationSchema>;
export type Terms = Omit<Invitation, 'format' | 'version' | 'launch'>;

const registrationSchema = object({
  format: exactly('svc-launch-registration'),
  version: exactly(1),
  launch: IDENTIFIER,
  registration: anything('as svc-wallet validator-genesis-registration writes it'),
  fee_address: ADDRESS,
  peer_addresses: list(text({ maxLength: 300 }), { maxItems: MOST_PEERS }),
  signature: hex(SIGNATURE_BYTES),
});

type RegistrationDocument = Infer<typeof registrationSchema>;

const bundleSchema = object({
  format: exactly('svc-launch-bundle'),
  version: exactly(1),
  validator: IDENTIFIER,
  invitation: anything('the invitation'),
  registrations: list(anything('a registration'), { minItems: 1, maxItems: MAX_GENESIS_VALIDATORS }),
  genesis: anything('the genesis document'),
});

export type Bundle = {
  readonly validator: string;
  readonly invitation: Invitation;
  readonly joined: readonly Joined[];
  /** The text of the document. */
  readonly genesis: string;
};

/** A validator that takes part, its signatures checked. */
export type Joined = {
  readonly validator: string;
  readonly registration: Registration;
  readonly feeAddress: string;
  readonly peers: readonly string[];
  readonly document: RegistrationDocument;
};

export const showDocument = (document: object): string => `${JSON.stringify(document, undefined, 2)}\n`;

function parse(source: string, what: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(source);
  } catch {
    throw new LaunchError('launch_file', `${what} is not JSON`);
  }
  if (isDeeper(value, MOST_LEVELS)) throw new LaunchError('launch_file', `${what} has lists in lists without end`);
  return value;
}

/** JSON is read at any depth, and written only down to a few thousand levels. */
function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

function documentOf<T>(schema: Schema<T>, value: unknown, what: string): T {
  const problem = check(schema, value);
  if (problem !== undefined)
    throw new LaunchError(
      'launch_file',
      `${what} is none that this release reads: ${problem.field} ${problem.problem}`,
    );
  return value as T;
}

/** What the text says it is; undefined for anything else. */
export function kindOf(source: string): 'invitation' | 'registration' | 'bundle' | undefined {
  const { format } = (parse(source, 'the file') ?? {}) as { format?: unknown };
  const kinds = ['invitation', 'registration', 'bundle'] as const;
  return kinds.find((kind) => format === `svc-launch-${kind}`);
}

/** The order of the fields is that of the schema, whatever order a file has them in. */
function launchOf({ name, network, seed, validators, bond, fee_coins, outputs, ...numbers }: Terms): string {
  const { cut_millis, interval_cuts, pow_epoch_length, initial_work, minimum_work } = numbers;
  const rest = [cut_millis, interval_cuts, pow_epoch_length, initial_work, minimum_work];
  const grants = outputs.map(({ address, amount }) => [address, amount]);
  return toHex(
    id(LABELS.launch, utf8(JSON.stringify([name, network, seed, validators, bond, fee_coins, ...rest, grants]))),
  );
}

export const invitationOf = (terms: Terms): Invitation => ({
  format: 'svc-launch-invitation',
  version: 1,
  launch: launchOf(terms),
  ...terms,
});

function checkInvitation(value: unknown): Invitation {
  const invitation = documentOf(invitationSchema, value, 'the invitation');
  if (launchOf(invitation) !== invitation.launch)
    throw new LaunchError('launch_altered', 'the invitation was changed: its terms are not those of its identifier');
  return invitation;
}

export const readInvitation = (source: string): Invitation => checkInvitation(parse(source, 'the invitation'));

/** What the consensus key signs beside its registration for genesis, which it signs too. */
export const joiningMessage = (
  launch: string,
  registration: Registration,
  feeAddress: string,
  peers: readonly string[],
): Uint8Array<ArrayBuffer> =>
  id(
    LABELS.registration,
    concat(fromHex(launch), registrationMessage(registration), utf8(JSON.stringify([feeAddress, ...peers]))),
  );

export const registrationDocument = (
  launch: string,
  registration: Registration,
  feeAddress: string,
  peers: readonly string[],
  signature: Bytes,
): RegistrationDocument => ({
  format: 'svc-launch-registration',
  version: 1,
  launch,
  registration: JSON.parse(showRegistration(registration)) as unknown,
  fee_address: feeAddress,
  peer_addresses: peers,
  signature: toHex(signature),
});

function readInner({ registration, fee_address: feeAddress }: RegistrationDocument) {
  try {
    const read = readRegistration(JSON.stringify(registration));
    checkGenesisValidator(read);
    checkRewardAddress(read);
    parseAddress(feeAddress, read.network);
    return { registration: read, network: read.network };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw new LaunchError('launch_file', `the registration is none that a genesis takes: ${error.message}`);
  }
}

/** Throws a LaunchError that says what is wrong with one registration by itself. */
export function checkRegistration(invitation: Invitation, value: unknown): Joined {
  const document = documentOf(registrationSchema, value, 'the registration');
  const { launch, fee_address: feeAddress, peer_addresses: peers, signature } = document;
  const { registration, network } = readInner(document);
  if (network !== invitation.network)
    throw new LaunchError('launch_other', `the registration is for ${network}, the launch is of ${invitation.network}`);
  if (launch !== invitation.launch)
    throw new LaunchError('launch_other', 'the registration answers another invitation, of this or another launch');
  const { publicKey } = registration;
  const isSigned =
    verifyMessage(publicKey, registrationMessage(registration), registration.signature) &&
    verifyMessage(publicKey, joiningMessage(launch, registration, feeAddress, peers), fromHex(signature));
  if (!isSigned)
    throw new LaunchError('launch_altered', 'the registration was changed: it is not what its consensus key signed');
  if (registration.principal !== parseCoins(invitation.bond))
    throw new LaunchError(
      'launch_terms',
      `the registration bonds ${formatCoins(registration.principal)} coins, and the invitation gives ${invitation.bond}`,
    );
  if (!peers.every(isDialable))
    throw new LaunchError('launch_file', 'the registration names a peer address that nobody can dial');
  return { validator: toHex(validatorId(publicKey)), registration, feeAddress, peers, document };
}

export const readJoined = (invitation: Invitation, source: string): Joined =>
  checkRegistration(invitation, parse(source, 'the registration'));

export const bundleOf = ({ validator, invitation, joined, genesis }: Bundle): object => ({
  format: 'svc-launch-bundle',
  version: 1,
  validator,
  invitation,
  registrations: joined.map(({ document }) => document),
  genesis: JSON.parse(genesis) as unknown,
});

export function readBundle(source: string): Bundle {
  const document = documentOf(bundleSchema, parse(source, 'the bundle'), 'the bundle');
  const invitation = checkInvitation(document.invitation);
  return {
    validator: document.validator,
    invitation,
    joined: document.registrations.map((one) => checkRegistration(invitation, one)),
    genesis: JSON.stringify(document.genesis),
  };
}

export const feeAddressOf = (publicKey: Bytes, { network }: Pick<Invitation, 'network'>): string =>
  formatAddress(keyAddressPayload(publicKey), network);
