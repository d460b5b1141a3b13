/** How a command carries out a staking operation: quote, confirmation, call, and with `--wait` the outcome. */
import { setTimeout as sleep } from 'node:timers/promises';
import { text } from '../../runtime/command-line/command-line.ts';
import type { StakingKind } from '../state/records.ts';
import { type Context, confirmed, nameOf, newRequestId, show, tellRepeated, withSession } from './commands.ts';
import { sessionOptions } from './options.ts';
import { CallError, type Fields, type Session } from './session.ts';
import { yes } from './wallet-command.ts';

export const operationOptions = {
  ...sessionOptions,
  yes,
  requestId: text({ help: 'your own id for this request: the same command with the same id takes effect only once' }),
} as const;

export type Operation = {
  /** The method of the daemon has the name of the request's kind. */
  readonly method: StakingKind;
  readonly params: Fields;
  readonly yes: boolean;
  readonly requestId: string | undefined;
  /** The effect, shown before the confirmation. */
  readonly describe: (quote: Fields) => string;
  /** Terms of the quote that the call insists on. */
  readonly insist?: (quote: Fields) => Fields;
  readonly dryRun?: boolean;
  /** Until it is final. */
  readonly wait?: boolean;
};

/** The operator's commands: the specification's lines have no `--yes`, so they ask at a terminal only. */
const isOperators = (method: StakingKind): boolean => method.startsWith('validator_') || method === 'reward_address';

const OUTCOME_UNKNOWN = -32002;
const POLL_MILLIS = 500;

/** The result once its fate is final. Ending the program meanwhile loses nothing: the request is on disk. */
async function outcome(
  { values, terminal }: Context,
  session: Session,
  isRepeated: boolean,
  ask: () => Promise<Fields>,
): Promise<Fields> {
  let told: unknown;
  // Asked again it is the same request: whether it repeats an earlier one is what the first answer says.
  let duplicate: unknown;
  for (;;) {
    try {
      const result = await ask();
      duplicate ??= result.duplicate;
      if (result.state !== 'pending') return { ...result, duplicate };
    } catch (error) {
      if (!(error instanceof CallError) || error.rpc !== OUTCOME_UNKNOWN) throw error;
      duplicate ??= isRepeated;
    }
    const { indexed_height: height } = await session.call('status', {});
    if (height !== told && !values.json) terminal.err(`waiting for a cut after ${height}\n`);
    told = height;
    await sleep(POLL_MILLIS);
    await session.turn();
  }
}

/** Shows the terms of the request; if the command repeats a request, they may differ from the command's own. */
function textOf(result: Fields): string {
  const { amount, fee, transaction, unbonding_position: unbonding, validator, commission_bps: commission } = result;
  const position = unbonding ?? result.position;
  const moved = Number(amount) === 0 ? '' : ` ${amount}`;
  return [
    `${nameOf(result.kind)}${moved}, fee ${fee}, ${result.state}`,
    `validator ${validator}`,
    ...(position === null ? [] : [`position ${position}`]),
    ...(commission === undefined ? [] : [`commission ${(Number(commission) / 100).toFixed(1)} %`]),
    ...(result.reward_address === undefined ? [] : [`rewards to ${result.reward_address}`]),
    ...(result.consensus_key_index === undefined ? [] : [`consensus key ${result.consensus_key_index}`]),
    `transaction ${transaction}\n`,
  ].join('\n');
}

/** The request's name is shown before the call, with --json too: without an answer the same request can be repeated. */
export const operate = (context: Context, operation: Operation): Promise<number> =>
  withSession(context, async (session) => {
    const { method, describe, insist, dryRun, wait } = operation;
    const named = { ...operation.params, request_id: operation.requestId ?? newRequestId() };
    let result = await session.call(method, { ...named, dry_run: true });
    if (result.submitted !== false) tellRepeated(context, method, result);
    const quote = result;
    const call = () => session.call(method, { ...named, ...insist?.(quote) });
    // A used request id already has an answer.
    if (result.submitted === false) {
      if (dryRun) return show(context, result, () => `${describe(result)}\nNothing was signed or sent.\n`);
      const isAsked = context.prompt.interactive && !context.values.json;
      const isSure = operation.yes || (isOperators(method) && !isAsked);
      if (!(await confirmed(context, isSure, `${describe(result)}?`))) return 1;
      context.terminal.err(`request ${named.request_id}\n`);
      result = wait ? await outcome(context, session, false, call) : await call();
    } else if (wait) result = await outcome(context, session, true, call);
    // Another command used the id in between.
    if (result.kind !== method) tellRepeated(context, method, result);
    show(context, result, () => textOf(result));
    return result.state === 'void' ? 1 : 0;
  });
