/** `svcd genesis`: a genesis document from the registrations of validators and from funded addresses (ledger rule 32). */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseAddress, payloadKind } from '../../protocol/address.ts';
import { formatCoins } from '../../protocol/amount.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { GENESIS_SUPPLY } from '../../protocol/ledger/emission.ts';
import {
  chainId,
  encodeGenesis,
  type Genesis,
  type GenesisValidator,
  registrationMessage,
} from '../../protocol/ledger/genesis.ts';
import { readGenesis, readRegistration, showGenesis } from '../../protocol/ledger/genesis-file.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { Output } from '../../protocol/transactions/transaction.ts';
import { verifyMessage } from '../ml-dsa.ts';
import { StoreError } from '../store/ledger-store.ts';
import { developmentValidator, newSeed } from './development.ts';

export type GenesisSettings = {
  readonly network: NetworkName;
  readonly timestampMillis: number;
  readonly powEpochLength: number;
  readonly initialWork: bigint;
  readonly minimumWork: bigint;
  readonly intervalCuts: number;
  /** Texts of registrations. */
  readonly registrations: readonly string[];
  /** Validators with keys that everybody can derive: for trials. */
  readonly developmentValidators: number;
  readonly fund: readonly { readonly address: string; readonly amount: bigint }[];
  /** Of a development chain; drawn if it is not given. */
  readonly seed?: Bytes;
};

function registered(source: string, network: NetworkName): GenesisValidator {
  const { signature, ...registration } = readRegistration(source);
  const { network: named, ...validator } = registration;
  if (named !== network)
    throw new ProtocolError('wrong_network', `a registration is for ${named}, the genesis for ${network}`);
  if (!verifyMessage(validator.publicKey, registrationMessage(registration), signature))
    throw new ProtocolError(
      'not_canonical',
      `the registration of key ${shortKey(validator)} is not what that key signed: its signature does not verify`,
    );
  checkRewardAddress(validator);
  return validator;
}

const shortKey = ({ publicKey }: GenesisValidator): string => `${toHex(publicKey).slice(0, 16)}...`;

export function checkRewardAddress(validator: GenesisValidator): void {
  if (payloadKind(validator.rewardAddress) === 'burn')
    throw new ProtocolError(
      'address_kind',
      `the registration of key ${shortKey(validator)} sends its rewards to the burn address, where they are lost`,
    );
}

/** Throws a ProtocolError that says what is wrong. */
export function makeGenesis(settings: GenesisSettings): Genesis {
  const { network, registrations, developmentValidators, fund, seed: given, ...numbers } = settings;
  const validators = [
    ...registrations.map((source) => registered(source, network)),
    ...Array.from({ length: developmentValidators }, (_, member) => developmentValidator(member)),
  ];
  const outputs = fund.map(
    ({ address, amount }): Output => ({ address: parseAddress(address, network).payload, amount }),
  );
  let left = GENESIS_SUPPLY;
  for (const { principal } of validators) left -= principal;
  for (const { amount } of outputs) left -= amount;
  if (left !== 0n)
    throw new ProtocolError(
      'amount_range',
      left > 0n
        ? `${formatCoins(left)} coins are not given to anybody: add --fund ADDRESS=COINS`
        : `${formatCoins(-left)} coins more are given than the 20,000,000 there are`,
    );
  // Elsewhere anybody can make the document again from the registrations, and compare.
  const seed = network === 'development' && { seed: given ?? newSeed() };
  const genesis = { network, ...numbers, ...seed, validators, outputs };
  encodeGenesis(genesis);
  return genesis;
}

/** An existing file may be another chain's: it is not overwritten. */
export function writeGenesis(path: string, genesis: Genesis): string {
  writeFileSync(path, showGenesis(genesis), { flag: 'wx' });
  return toHex(chainId(encodeGenesis(genesis)));
}

export function loadGenesis(path: string, network: NetworkName): Genesis {
  const genesis = readGenesis(readFileSync(path, 'utf8'));
  if (genesis.network !== network)
    throw new StoreError(
      'store_genesis',
      `${path} is a genesis of ${genesis.network}: run it with --network ${genesis.network}`,
    );
  return genesis;
}
