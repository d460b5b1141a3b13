/** Reads validators and this wallet's positions from the node, all pages. */
import { ApiError } from '../../protocol/api/client.ts';
import type { StakingPosition, ValidatorDocument } from '../../protocol/api/staking-documents.ts';
import { changeAddress } from '../state/address-book.ts';
import type { Book } from '../state/book.ts';
import { WalletError } from '../wallet-error.ts';
import { batches, type NodeClient, nodeFailure } from './node-link.ts';

export type StakingClient = Pick<NodeClient, 'stakingPositions' | 'stakingValidators' | 'stakingValidator'>;
export type ValidatorState = ValidatorDocument['state'];

/** More pages than any owner's positions or all validators fill: more from a node are an error. */
const MAX_PAGES = 1024;
/** The most that a node gives at once. */
const VALIDATOR_PAGE = 256;

async function asked<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw nodeFailure(error);
  }
}

/** Owners are addresses that this wallet has used, and the owner address of its stake. */
export function ownersOf(book: Book): string[] {
  const owners = new Set([changeAddress(book)]);
  for (const { address, given } of book.addresses()) if (given) owners.add(address);
  return [...owners];
}

export async function positionsOf(
  client: StakingClient,
  owners: readonly string[],
): Promise<{ readonly positions: readonly StakingPosition[]; readonly finalizedHeight: number }> {
  const positions: StakingPosition[] = [];
  let finalizedHeight = Number.MAX_SAFE_INTEGER;
  for (const addresses of batches(owners)) {
    const mine = new Set(addresses);
    let cursor: string | undefined;
    for (let pages = 0; ; pages++) {
      if (pages === MAX_PAGES) throw new WalletError('node_unreachable', 'the node’s list of positions does not end');
      const page = await asked(client.stakingPositions({ addresses, ...(cursor === undefined ? {} : { cursor }) }));
      for (const position of page.positions) if (mine.has(position.owner_address)) positions.push(position);
      finalizedHeight = Math.min(finalizedHeight, page.finalized_height);
      cursor = page.next_cursor;
      if (cursor === undefined) break;
    }
  }
  return { positions, finalizedHeight };
}

/** All of them, most stake first. Epoch and height are those of the last page. */
export async function readValidators(client: StakingClient, state: ValidatorState | undefined) {
  const validators: ValidatorDocument[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await asked(
      client.stakingValidators({
        limit: VALIDATOR_PAGE,
        ...(state === undefined ? {} : { state }),
        ...(cursor === undefined ? {} : { cursor }),
      }),
    );
    for (const one of page.validators) validators.push(one);
    cursor = page.next_cursor;
    if (cursor !== undefined) continue;
    const { epoch, finalized_height } = page;
    const interval_cuts = intervalOf(page.interval_cuts);
    return { validators: validators.sort(byStake), epoch, interval_cuts, finalized_height };
  }
  throw new WalletError('node_unreachable', 'the node’s list of validators does not end');
}

/** Heights are computed from it: without it the answer of a node is an error. */
function intervalOf(cuts: number): number {
  if (cuts >= 1) return cuts;
  throw new WalletError('node_unreachable', `the node says that an epoch has ${cuts} cuts: connect another node`);
}

function byStake(a: ValidatorDocument, b: ValidatorDocument): number {
  const more = BigInt(b.stake) - BigInt(a.stake);
  return more > 0n ? 1 : more < 0n ? -1 : 0;
}

/** Undefined when no validator has this identifier. */
export async function readValidator(client: StakingClient, id: string) {
  try {
    const found = await client.stakingValidator({ id });
    if (found.validator.validator_id === id) return { ...found, interval_cuts: intervalOf(found.interval_cuts) };
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw nodeFailure(error);
  }
  throw new WalletError('node_unreachable', 'the node answers about another validator than was asked for');
}
