/** Options of a validator and of a node that follows validators: sections `validator` and `validator_overlay` of the config file (specification: Validator configuration). */
import { type Bytes, fromHex } from '../../protocol/bytes.ts';
import type { NetworkName } from '../../protocol/network.ts';
import {
  type ListenAddress,
  parsed,
  path,
  readListenAddress,
  repeated,
} from '../../runtime/command-line/command-line.ts';
import {
  type BindAddress,
  EVERY_INTERFACE,
  type NetworkAddress,
  readNetworkAddress,
} from '../../runtime/listen-address.ts';
import { ValidatorError } from './validator-key.ts';

const VALIDATOR = 'Validator';
const MAX_ADDRESSES = 8;

function readAtoms(word: string): bigint {
  if (!/^[1-9]\d{0,17}$/.test(word)) throw new Error('must be a whole number of atoms from 1');
  return BigInt(word);
}

export const validatorOptions = {
  consensusKeyFile: path({
    help: 'encrypted consensus key; without one, a node with neighbours only follows the chain',
    group: VALIDATOR,
    placeholder: 'FILE',
    configPath: 'validator.consensus_key_file',
  }),
  consensusPasswordFile: path({
    help: 'its password',
    group: VALIDATOR,
    placeholder: 'FILE',
    configPath: 'validator.password_file',
  }),
  overlayListen: repeated(
    parsed(
      {
        help: 'address for other nodes; a validator listens on port 28704 (testnet 28709) of every interface',
        group: VALIDATOR,
        placeholder: 'HOST[:PORT]',
        configPath: 'validator_overlay.listen_addrs',
      },
      readNetworkAddress,
    ),
  ),
  heartbeatValidatorId: parsed(
    {
      help: 'validator that heartbeats are sent for, once an epoch',
      group: VALIDATOR,
      placeholder: 'HEX',
      configPath: 'validator.heartbeat.validator_id',
    },
    (word) => {
      if (!/^[0-9a-f]{96}$/.test(word)) throw new Error('must have 96 hex characters');
      return fromHex(word);
    },
  ),
  heartbeatFeeKeyFile: path({
    help: 'encrypted key that pays for them',
    group: VALIDATOR,
    placeholder: 'FILE',
    configPath: 'validator.heartbeat.fee_key_file',
  }),
  heartbeatFeePasswordFile: path({
    help: 'its password',
    group: VALIDATOR,
    placeholder: 'FILE',
    configPath: 'validator.heartbeat.fee_key_password_file',
  }),
  heartbeatMaxFeeAtoms: parsed(
    {
      help: 'highest fee of one heartbeat, atoms',
      group: VALIDATOR,
      placeholder: 'ATOMS',
      configPath: 'validator.heartbeat.max_fee_atoms',
    },
    readAtoms,
  ),
  heartbeatFeeRatePerMass: parsed(
    {
      help: 'fee per mass, atoms; the network minimum without it',
      group: VALIDATOR,
      placeholder: 'ATOMS',
      configPath: 'validator.heartbeat.fee_rate_per_mass',
    },
    readAtoms,
  ),
  neighbour: repeated(
    parsed(
      {
        help: 'overlay of another node, which this one connects to besides the validators that registered a route',
        group: VALIDATOR,
        placeholder: 'HOST:PORT',
        configPath: 'validator_overlay.neighbours',
      },
      readListenAddress,
    ),
  ),
} as const;

export type ValidatorValues = {
  readonly heartbeatValidatorId: Bytes | undefined;
  readonly heartbeatFeeKeyFile: string | undefined;
  readonly heartbeatFeePasswordFile: string | undefined;
  readonly heartbeatMaxFeeAtoms: bigint | undefined;
  readonly heartbeatFeeRatePerMass: bigint | undefined;
  readonly network: NetworkName;
  readonly powMode: 'full' | 'light';
  readonly consensusKeyFile: string | undefined;
  readonly consensusPasswordFile: string | undefined;
  readonly overlayListen: readonly NetworkAddress[];
  readonly neighbour: readonly ListenAddress[];
};

export type HeartbeatPlan = {
  readonly validatorId: Bytes;
  readonly files: { readonly keyFile: string; readonly passwordFile: string };
  readonly maxFeeAtoms: bigint;
  readonly feePerMass: bigint | undefined;
};

export type ValidatorPlan = {
  readonly heartbeat?: HeartbeatPlan | undefined;
  readonly files: { readonly keyFile: string; readonly passwordFile: string } | undefined;
  readonly binds: readonly BindAddress[];
  readonly neighbours: readonly ListenAddress[];
};

export const OVERLAY_PORTS: Readonly<Record<NetworkName, number>> = {
  mainnet: 28_704,
  testnet: 28_709,
  testnet100: 28_709,
  development: 28_704,
};

/** A heartbeat needs all of these except the rate. */
function heartbeatPlan(values: ValidatorValues): HeartbeatPlan | undefined {
  const { heartbeatValidatorId: validatorId, heartbeatFeeKeyFile: keyFile } = values;
  const { heartbeatFeePasswordFile: passwordFile, heartbeatMaxFeeAtoms: maxFeeAtoms } = values;
  const needed = [validatorId, keyFile, passwordFile, maxFeeAtoms];
  if (needed.every((value) => value === undefined) && values.heartbeatFeeRatePerMass === undefined) return undefined;
  if (validatorId === undefined || keyFile === undefined || passwordFile === undefined || maxFeeAtoms === undefined)
    throw new ValidatorError(
      'validator_config',
      'heartbeats need the validator id, the fee key file, its password file and the highest fee',
    );
  if (values.consensusKeyFile === undefined)
    throw new ValidatorError('validator_config', 'heartbeats are signed by the consensus key: name its file too');
  return { validatorId, files: { keyFile, passwordFile }, maxFeeAtoms, feePerMass: values.heartbeatFeeRatePerMass };
}

/**
 * The settings from the options; undefined if cuts are made inside this node, as on a development network of one node.
 */
export function validatorPlan(values: ValidatorValues): ValidatorPlan | undefined {
  const { consensusKeyFile: keyFile, consensusPasswordFile: passwordFile, overlayListen, neighbour } = values;
  if ((keyFile === undefined) !== (passwordFile === undefined))
    throw new ValidatorError(
      'validator_config',
      'a consensus key needs its password file, and a password file its key',
    );
  if (overlayListen.length > MAX_ADDRESSES)
    throw new ValidatorError('validator_config', `at most ${MAX_ADDRESSES} overlay addresses can be listened on`);
  const heartbeat = heartbeatPlan(values);
  const isSeparate = keyFile !== undefined || overlayListen.length > 0 || neighbour.length > 0;
  if (!isSeparate) return undefined;
  if (keyFile !== undefined && values.powMode === 'light')
    throw new ValidatorError(
      'validator_pow_light',
      'a validator needs the full dataset: run it without --pow-mode light',
    );
  const port = OVERLAY_PORTS[values.network];
  const wanted =
    overlayListen.length === 0 && keyFile !== undefined ? [{ host: EVERY_INTERFACE, port }] : overlayListen;
  return {
    files: keyFile === undefined || passwordFile === undefined ? undefined : { keyFile, passwordFile },
    binds: wanted.map((address) => ({ ...address, port: address.port ?? port })),
    neighbours: neighbour,
    ...(heartbeat && { heartbeat }),
  };
}
