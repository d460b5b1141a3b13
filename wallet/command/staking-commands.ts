/**
 * Commands for stake: validators and positions as tables, and stake, unstake and withdraw, which ask for confirmation.
 */
import { flag, text } from '../../runtime/command-line/command-line.ts';
import type { Command } from '../../runtime/program.ts';
import { type Context, show, withSession } from './commands.ts';
import { operate, operationOptions } from './operating.ts';
import { sessionOptions } from './options.ts';
import { terminalPrompt } from './prompt.ts';
import type { Fields } from './session.ts';
import { walletCommand } from './wallet-command.ts';

type Column = { readonly title: string; readonly cell: (row: Fields) => unknown; readonly right?: true };

/** A table for people. Identifiers are whole: they are copied into the next command. */
export function table(columns: readonly Column[], rows: readonly Fields[]): string {
  const cells = [
    columns.map(({ title }) => title),
    ...rows.map((row) => columns.map(({ cell }) => String(cell(row) ?? '-'))),
  ];
  const widths = columns.map((_, i) => Math.max(...cells.map((line) => (line[i] as string).length)));
  const pad = (cell: string, i: number) =>
    columns[i]?.right ? cell.padStart(widths[i] as number) : cell.padEnd(widths[i] as number);
  return cells.map((line) => `${line.map(pad).join('  ').trimEnd()}\n`).join('');
}

const percent = (basisPoints: unknown): string => `${(Number(basisPoints) / 100).toFixed(1)} %`;

/** The current commission, and an announced one. */
function commission({ commission_bps: now, pending_commission: next }: Fields): string {
  const { commission_bps, epoch } = (next ?? {}) as Fields;
  return next === null || next === undefined
    ? percent(now)
    : `${percent(now)}, ${percent(commission_bps)} from epoch ${epoch}`;
}

const VALIDATOR_COLUMNS: readonly Column[] = [
  { title: 'validator', cell: ({ validator }) => validator },
  { title: 'state', cell: ({ state }) => state },
  { title: 'stake', cell: ({ stake }) => stake, right: true },
  { title: 'self-bond', cell: ({ self_bond: own }) => own, right: true },
  { title: 'attended', cell: ({ attended_windows: windows }) => (windows === null ? '-' : `${windows} of 12`) },
  { title: 'commission', cell: commission },
];

export const showValidators = (context: Context): Promise<number> =>
  withSession(context, async (session) => {
    const result = await session.call('validators', {});
    const rows = result.validators as Fields[];
    return show(context, result, () => `epoch ${result.epoch}\n${table(VALIDATOR_COLUMNS, rows)}`);
  });

function stateOfPosition({ state, release_height: release, withdrawable, request_id: request }: Fields): string {
  const now = state === 'bonded' ? 'bonded' : withdrawable ? 'withdrawable' : `unbonding until cut ${release}`;
  return request === null ? now : `${now}, request ${request} under way`;
}

const POSITION_COLUMNS: readonly Column[] = [
  { title: 'position', cell: ({ position }) => position },
  { title: 'kind', cell: ({ kind }) => kind },
  { title: 'principal', cell: ({ principal }) => principal, right: true },
  { title: 'state', cell: stateOfPosition },
];

export const showPositions = (context: Context): Promise<number> =>
  withSession(context, async (session) => {
    const result = await session.call('positions', {});
    const rows = result.positions as Fields[];
    const { bonded, unbonding, withdrawable, finalized_height: height } = result;
    return show(context, result, () =>
      rows.length === 0
        ? `no stake at cut ${height}\n`
        : `${table(POSITION_COLUMNS, rows)}${rows
            .map(
              ({ position, validator, reward_address: to }) =>
                `${String(position).slice(0, 12)}  validator ${validator}\n${' '.repeat(14)}rewards to ${to}\n`,
            )
            .join('')}bonded ${bonded}, unbonding ${unbonding}, withdrawable ${withdrawable}, at cut ${height}\n`,
    );
  });

export const positionOption = {
  position: text({ help: 'one of `positions`', placeholder: 'ID', required: true }),
} as const;

export const stakingCommands = (name: string): Command[] => [
  walletCommand(
    { name: `${name} validators`, summary: 'validators and their state, most stake first', options: sessionOptions },
    (values, _, terminal) => showValidators({ values, terminal, prompt: terminalPrompt }),
  ),
  walletCommand(
    { name: `${name} positions`, summary: 'stake that this wallet owns', options: sessionOptions },
    (values, _, terminal) => showPositions({ values, terminal, prompt: terminalPrompt }),
  ),
  walletCommand(
    {
      name: `${name} stake`,
      summary: 'stakes an amount with a validator; asks first',
      options: {
        ...operationOptions,
        validator: text({ help: 'one of `validators`', placeholder: 'ID', required: true }),
        amount: text({ help: 'at least 100', placeholder: 'COINS', required: true }),
        rewardAddress: text({ help: 'where rewards go (default: back to this wallet)', placeholder: 'ADDRESS' }),
        compoundFirst: flag({ help: 'merge outputs first when the stake needs more than 8' }),
      },
      examples: [{ line: `${name} stake --validator 3f0a... --amount 1000`, says: 'asks before it stakes' }],
    },
    (values, _, terminal) => {
      const { validator, amount, rewardAddress, compoundFirst, yes, requestId } = values;
      const params = {
        validator,
        amount,
        ...(rewardAddress === undefined ? {} : { reward_address: rewardAddress }),
        ...(compoundFirst ? { compound_first: true } : {}),
      };
      const describe = (quote: Fields) =>
        `Stake ${quote.amount} with ${validator}\n(${quote.validator_state}, commission ${commission(quote)}), fee ${quote.fee}`;
      const insist = ({ epoch }: Fields) => ({ epoch });
      return operate(
        { values, terminal, prompt: terminalPrompt },
        { method: 'stake', params, yes, requestId, describe, insist },
      );
    },
  ),
  walletCommand(
    {
      name: `${name} unstake`,
      summary: 'unbonds a delegation or a part of it; asks first. Withdraw it ten epochs (ten days) later',
      options: {
        ...operationOptions,
        ...positionOption,
        amount: text({ help: 'a part of it (default: all)', placeholder: 'COINS' }),
      },
      examples: [{ line: `${name} unstake --position 7c19... --amount 250`, says: 'a part; the rest stays bonded' }],
    },
    (values, _, terminal) => {
      const { position, amount, yes, requestId } = values;
      // Unstaking everything signs no amount: the shown figure comes from the node.
      const describe = ({ amount: found, fee, unbonding_position: whole }: Fields) =>
        `Unstake ${whole === position ? `all of ${position}, ${found} by the node’s word` : `${found} of ${position}`}, fee ${fee}`;
      const params = { position, ...(amount === undefined ? {} : { amount }) };
      return operate(
        { values, terminal, prompt: terminalPrompt },
        { method: 'unstake', params, yes, requestId, describe },
      );
    },
  ),
  walletCommand(
    {
      name: `${name} withdraw`,
      summary: 'pays a released position back to this wallet; asks first',
      options: { ...operationOptions, ...positionOption },
      examples: [{ line: `${name} withdraw --position 7c19...`, says: 'from the release height on, see `positions`' }],
    },
    (values, _, terminal) => {
      const { position, yes, requestId } = values;
      const describe = (quote: Fields) => `Withdraw ${quote.amount} of ${position}, fee ${quote.fee}`;
      return operate(
        { values, terminal, prompt: terminalPrompt },
        { method: 'withdraw', params: { position }, yes, requestId, describe },
      );
    },
  ),
];
