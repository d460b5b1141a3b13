/** The decisions of a launch, pure: its terms, which registrations it takes, the genesis that follows, who begins with which peers. */
import { parseAddress } from '../../protocol/address.ts';
import { formatCoins, parseCoins } from '../../protocol/amount.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { GENESIS_SUPPLY } from '../../protocol/ledger/emission.ts';
import { checkInterval, type Genesis } from '../../protocol/ledger/genesis.ts';
import { readGenesis, showGenesis, showRegistration } from '../../protocol/ledger/genesis-file.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { decodeEndpoint } from '../../protocol/staking/endpoint.ts';
import { MIN_SELF_BOND } from '../../protocol/staking/limits.ts';
import { makeGenesis } from '../genesis/make-genesis.ts';
import { type Bundle, type Invitation, invitationOf, type Joined, readJoined } from './documents.ts';
import { LaunchError, type LaunchErrorCode } from './launch-error.ts';

/** A wallet pays from outputs that are final: with one alone a faucet would pay once in a cut. */
export const FAUCET_OUTPUTS = 64n;

export type Grant = { readonly address: string; readonly amount: bigint };

export type Wishes = {
  readonly name: string;
  readonly network: NetworkName;
  readonly seed: string;
  readonly validators: number;
  readonly bond: bigint;
  readonly feeCoins: bigint;
  readonly cutMillis: number;
  readonly intervalCuts: number;
  readonly powEpochLength: number;
  readonly initialWork: number;
  readonly minimumWork: number;
  readonly fund: readonly Grant[];
  readonly faucet: Grant | undefined;
  /** Who gets what is left of the 20,000,000 coins. */
  readonly treasury: string | undefined;
};

/** In parts that differ by less than their number. */
function parts({ address, amount }: Grant): Grant[] {
  const part = amount / FAUCET_OUTPUTS;
  if (part === 0n) return [{ address, amount }];
  return Array.from({ length: Number(FAUCET_OUTPUTS) }, (_, i) => ({
    address,
    amount: i === 0 ? amount - part * (FAUCET_OUTPUTS - 1n) : part,
  }));
}

/** Throws a LaunchError where no genesis could follow from the terms, whoever registers. */
export function invite(wishes: Wishes): Invitation {
  const { name, network, seed, validators, bond, feeCoins, fund, faucet, treasury } = wishes;
  const refuse = (message: string): never => {
    throw new LaunchError('launch_terms', message);
  };
  if (bond < MIN_SELF_BOND) refuse(`a validator bonds at least ${formatCoins(MIN_SELF_BOND)} coins: --bond`);
  if (feeCoins < 1n) refuse('validators need coins for the fees of their heartbeats: --fee-coins');
  if (wishes.initialWork < wishes.minimumWork) refuse('--initial-work is below --minimum-work');
  const given = [...fund, ...(faucet === undefined ? [] : parts(faucet))];
  let left = GENESIS_SUPPLY - BigInt(validators) * (bond + feeCoins);
  for (const { amount } of given) left -= amount;
  if (left < 0n)
    refuse(
      `${formatCoins(-left)} coins more are given than the 20,000,000 there are: lower --bond, --fund or --faucet`,
    );
  if (left > 0n && treasury === undefined)
    refuse(
      `${formatCoins(left)} of the 20,000,000 coins are given to nobody: name who gets them with --treasury ADDRESS`,
    );
  const outputs = treasury === undefined || left === 0n ? given : [...given, { address: treasury, amount: left }];
  try {
    checkInterval({ network, intervalCuts: wishes.intervalCuts });
    for (const { address, amount } of outputs)
      if (parseAddress(address, network).kind === 'burn' || amount < 1n)
        refuse(`${address} is the burn address, or gets nothing`);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    refuse(error.message);
  }
  return invitationOf({
    name,
    network,
    seed,
    validators,
    bond: formatCoins(bond),
    fee_coins: formatCoins(feeCoins),
    cut_millis: wishes.cutMillis,
    interval_cuts: wishes.intervalCuts,
    pow_epoch_length: wishes.powEpochLength,
    initial_work: String(wishes.initialWork),
    minimum_work: String(wishes.minimumWork),
    outputs: outputs.map(({ address, amount }) => ({ address, amount: formatCoins(amount) })),
  });
}

export type Refusal = { readonly file: string; readonly code: LaunchErrorCode; readonly message: string };
type Source = { readonly file: string; readonly text: string };

/** What no two validators may share: each is refused by the second file that has it. */
const marks = ({ validator, registration, feeAddress, peers }: Joined): readonly (readonly [string, string])[] => {
  const { overlayKey, routes } = decodeEndpoint(registration.endpoint);
  return [
    ['the consensus key', validator],
    ['the overlay key', toHex(overlayKey)],
    ['the fee address', feeAddress],
    ...routes.map(({ host, port }): readonly [string, string] => ['a route', `${toHex(host)} ${port}`]),
    ...peers.map((peer): readonly [string, string] => ['a peer address', peer]),
  ];
};

/** Registrations in the order of their validators' identifiers, and the files that are refused. */
export function gather(
  invitation: Invitation,
  sources: readonly Source[],
): { readonly joined: readonly Joined[]; readonly refused: readonly Refusal[] } {
  const joined: Joined[] = [];
  const refused: Refusal[] = [];
  const owners = new Map<string, string>();
  for (const { file, text } of sources) {
    try {
      const one = readJoined(invitation, text);
      for (const [what, value] of marks(one)) {
        const owner = owners.get(`${what} ${value}`);
        if (owner !== undefined && owner !== file)
          throw new LaunchError('launch_duplicate', `it has ${what} of ${owner}: keep one of the two`);
        owners.set(`${what} ${value}`, file);
      }
      joined.push(one);
    } catch (error) {
      if (!(error instanceof LaunchError)) throw error;
      refused.push({ file, code: error.code, message: error.message });
    }
  }
  return { joined: joined.sort(byIdentifier), refused };
}

const byIdentifier = (a: Joined, b: Joined): number => (a.validator < b.validator ? -1 : 1);

/** Anybody who has the invitation and the registrations makes the same document. */
export function genesisOf(invitation: Invitation, joined: readonly Joined[], timestampMillis: number): Genesis {
  const { network, outputs, validators } = invitation;
  if (joined.length !== validators)
    throw new LaunchError('launch_terms', `the invitation is for ${validators} validators, not ${joined.length}`);
  const fees = joined.map(({ feeAddress }) => ({ address: feeAddress, amount: parseCoins(invitation.fee_coins) }));
  const granted = outputs.map(({ address, amount }) => ({ address, amount: parseCoins(amount) }));
  return makeGenesis({
    network,
    timestampMillis,
    powEpochLength: invitation.pow_epoch_length,
    initialWork: BigInt(invitation.initial_work),
    minimumWork: BigInt(invitation.minimum_work),
    intervalCuts: invitation.interval_cuts,
    registrations: joined.map(({ registration }) => showRegistration(registration)),
    developmentValidators: 0,
    fund: [...fees, ...granted],
    seed: fromHex(invitation.seed),
  });
}

/** Throws unless the genesis of a bundle is the one that follows from its invitation and registrations. */
export function checkBundle({ invitation, joined, genesis }: Bundle): Genesis {
  const { refused } = gather(
    invitation,
    joined.map(({ document }, i) => ({ file: `registration ${i + 1}`, text: JSON.stringify(document) })),
  );
  const [first] = refused;
  if (first !== undefined) throw new LaunchError(first.code, `${first.file} of the bundle: ${first.message}`);
  let said: Genesis;
  try {
    said = readGenesis(genesis);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw new LaunchError('launch_altered', `the genesis of the bundle cannot be used: ${error.message}`);
  }
  const follows = genesisOf(invitation, [...joined].sort(byIdentifier), said.timestampMillis);
  if (showGenesis(follows) !== showGenesis(said))
    throw new LaunchError(
      'launch_altered',
      'the genesis of the bundle is not the one that follows from the invitation and the registrations in it',
    );
  return follows;
}

/** Peers of the others. */
export const bootstrapOf = (joined: readonly Joined[], validator?: string): string[] =>
  joined.filter((one) => one.validator !== validator).flatMap(({ peers }) => peers);
