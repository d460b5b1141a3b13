/** Commands for people: status, balance, addresses, sending, history, proofs. Amounts are coins with 8 decimals. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ValuesOf } from '../../runtime/command-line/command-line.ts';
import { jsonText } from '../../runtime/log/visible.ts';
import type { Terminal } from '../../runtime/program.ts';
import { STAKING_KINDS } from '../state/records.ts';
import { WalletError } from '../wallet-error.ts';
import { foreignRows, shortened } from './foreign-text.ts';
import type { sessionOptions } from './options.ts';
import type { Prompt } from './prompt.ts';
import { reviewText } from './review-text.ts';
import { type Fields, openSession, type Session } from './session.ts';

type Values = ValuesOf<typeof sessionOptions>;

export type Context = { readonly values: Values; readonly terminal: Terminal; readonly prompt: Prompt };

export async function withSession(context: Context, run: (session: Session) => Promise<number>): Promise<number> {
  const session = await openSession(context.values, context.prompt);
  try {
    return await run(session);
  } finally {
    await session.close();
  }
}

const pairs = (fields: Fields): string => {
  const width = Math.max(...Object.keys(fields).map((name) => name.length));
  return Object.entries(fields)
    .map(([name, value]) => `${name.replaceAll('_', ' ').padEnd(width)}  ${value ?? '-'}\n`)
    .join('');
};

export function show({ values, terminal }: Context, result: Fields, text: () => string): number {
  terminal.out(values.json ? `${jsonText(result)}\n` : text());
  return 0;
}

export const showStatus = (context: Context): Promise<number> =>
  withSession(context, async (session) => {
    const result = await session.call('status', {});
    return show(context, result, () => pairs(result));
  });

/** A warning that figures may be old, because the node does not answer or follows another chain. */
export function staleFigures(status: Fields): string {
  if (status.node_trouble === null) return '';
  return `warning: the node cannot be used [${status.node_trouble}]: this is what the wallet knew at cut ${status.indexed_height}; check the node and --service\n`;
}

/** On standard error, so that the output stays the same. */
export async function warnOfStaleFigures({ terminal }: Context, session: Session): Promise<void> {
  terminal.err(staleFigures(await session.call('status', {})));
}

export const showBalance = (context: Context): Promise<number> =>
  withSession(context, async (session) => {
    await warnOfStaleFigures(context, session);
    const result = await session.call('balance', {});
    return show(context, result, () => pairs(result));
  });

/** Every page of a listing. */
export async function all(
  session: Session,
  method: string,
  field: string,
  most: number,
  params: Fields = {},
): Promise<Fields[]> {
  const found: Fields[] = [];
  let cursor: unknown;
  do {
    const page = await session.call(method, {
      ...params,
      limit: Math.min(1000, most - found.length),
      ...(cursor === undefined ? {} : { cursor }),
    });
    found.push(...(page[field] as Fields[]));
    cursor = page.next_cursor;
  } while (cursor !== undefined && found.length < most);
  return found;
}

export const showAddresses = (context: Context): Promise<number> =>
  withSession(context, async (session) => {
    const addresses = await all(session, 'addresses', 'addresses', Number.MAX_SAFE_INTEGER);
    return show(context, { addresses }, () =>
      addresses
        .map((one) => `${one.address}  ${one.used ? 'used' : 'new '}  ${shortened(String(one.label))}\n`)
        .join(''),
    );
  });

export const makeAddress = (context: Context, label: string): Promise<number> =>
  withSession(context, async (session) => {
    const made = await session.call('new_address', { label });
    const checked = await session.call('validate_address', { address: made.address });
    const words = (checked.verification_words as string[]).join(' ');
    return show(
      context,
      { ...made, verification_words: checked.verification_words },
      () => `${made.address}\nverification words: ${words}\n`,
    );
  });

export const showHistory = (context: Context, limit: number): Promise<number> =>
  withSession(context, async (session) => {
    await warnOfStaleFigures(context, session);
    const entries = await all(session, 'history', 'entries', limit);
    return show(context, { entries }, () =>
      entries
        .map(
          (one) =>
            `${String(one.height).padStart(10)}  ${String(one.kind).padEnd(9)}  ${String(one.amount).padStart(20)}  ${one.transaction}\n`,
        )
        .join(''),
    );
  });

const SENDING = {
  refused: 'Nothing was sent.',
  missing: 'money moves only once it is confirmed: answer at a terminal, or give --yes',
};

export async function confirmed(
  { values, terminal, prompt }: Context,
  yes: boolean,
  question: string,
  texts = SENDING,
): Promise<boolean> {
  if (yes) return true;
  if (!prompt.interactive || values.json) throw new WalletError('confirmation_missing', texts.missing);
  const answer = await prompt.ask(`${question} [y/N] `);
  if (/^y(es)?$/i.test(answer.trim())) return true;
  terminal.err(`${texts.refused}\n`);
  return false;
}

export const newRequestId = (): string => `cli-${randomBytes(12).toString('hex')}`;

const COMMAND_NAMES: Readonly<Record<string, string>> = { payment: 'send' };
/** Readable names of request kinds. */
export const nameOf = (kind: unknown): string => COMMAND_NAMES[String(kind)] ?? String(kind).replaceAll('_', '-');

/**
 * The request id was used before: the answer is about that request. Refuses if its kind differs, so that the answer is
 * not mistaken for that of the typed command.
 */
export function tellRepeated({ values, terminal }: Context, kind: string, result: Fields): void {
  const { request_id: request } = result;
  if (result.kind !== kind)
    throw new WalletError(
      'request_id_used',
      `request ${request} was a ${nameOf(result.kind)}: nothing was done for this ${nameOf(kind)}; give it a request id of its own`,
    );
  if (!values.json) terminal.err(`request ${request} was made before, and is not made again; this became of it:\n`);
}

export type SendWish = {
  readonly to: string;
  readonly amount: string;
  readonly yes: boolean;
  readonly requestId: string | undefined;
  readonly terms: Fields;
};

export const send = (context: Context, wish: SendWish): Promise<number> =>
  withSession(context, async (session) => {
    const { to, amount, terms } = wish;
    // Shown before anything is sent, so that the same payment can be repeated after a lost terminal.
    const requestId = wish.requestId ?? newRequestId();
    const params = { to, amount, request_id: requestId, ...terms };
    const quote = await session.call('send', { ...params, dry_run: true });
    // A request that was made before pays nothing now: its answer is shown without a question.
    if (quote.duplicate !== true) {
      const { verification_words: words } = await session.call('validate_address', { address: to });
      const question = `Send ${quote.amount} to ${to}\n(${(words as string[]).join(' ')}), fee ${quote.fee}?`;
      if (!(await confirmed(context, wish.yes, question))) return 1;
    }
    // Shown for scripts too: a script that gets no answer can repeat the request with it.
    context.terminal.err(`request ${requestId}\n`);
    const result = await session.call('send', params);
    if (result.duplicate === true) tellRepeated(context, 'payment', result);
    return show(context, result, () => `sent ${result.amount}, fee ${result.fee}\ntransaction ${result.transaction}\n`);
  });

const SIGNING = {
  refused: 'Nothing was signed.',
  missing:
    'a proof is signed only once it is confirmed: name the request’s file and answer at a terminal, or give --yes',
};

/** A request is untrusted text, of any form, until the daemon has parsed it. */
const SHOWN = ['address', 'purpose'] as const;

/** The purpose is shown before signing: a pool changes a payout threshold by such a proof. */
async function isProofWanted(context: Context, request: unknown, yes: boolean): Promise<boolean> {
  const fields = (typeof request === 'object' && request !== null ? request : {}) as Readonly<Record<string, unknown>>;
  const { columns } = context.prompt;
  const room = columns === undefined ? {} : { columns };
  const rows = SHOWN.flatMap((name) => foreignRows(`${name.padEnd(7)} | `, String(fields[name] ?? ''), room));
  context.terminal.err(`${rows.join('\n')}\n`);
  return confirmed(context, yes, 'Sign for this purpose that the address is yours?', SIGNING);
}

/** Methods that move money need confirmation here as well. */
const MOVES: ReadonlySet<string> = new Set([
  'send',
  'send_many',
  'sweep',
  'burn',
  'compound',
  'chat_request',
  'chat_accept',
  'chat_send',
  ...STAKING_KINDS,
]);

export const callMethod = (context: Context, method: string, text: string, yes: boolean): Promise<number> =>
  withSession(context, async (session) => {
    let params: Fields;
    try {
      params = JSON.parse(text) as Fields;
    } catch {
      throw new WalletError('params_invalid', 'the parameters are not JSON');
    }
    if (typeof params !== 'object' || params === null || Array.isArray(params))
      throw new WalletError('params_invalid', 'the parameters are an object, such as {"since_height":0}');
    if (MOVES.has(method) && params.dry_run !== true) {
      const quote = await session.call(method, { ...params, dry_run: true });
      const question = `${method}: ${quote.amount} in ${quote.transaction_count} transaction(s), fee ${quote.fee}?`;
      // A request that was made before is shown instead of a quote: nothing moves.
      if (quote.duplicate !== true && !(await confirmed(context, yes, question))) return 1;
    }
    if (method === 'multisig_send') {
      const review = await session.call('multisig_review', { package: params.package });
      if (!yes && !context.values.json) context.terminal.err(reviewText(review, false, context.prompt.columns));
      if (!(await confirmed(context, yes, 'Send this?'))) return 1;
    }
    if (method === 'prove_address' && !(await isProofWanted(context, params.request, yes))) return 1;
    const result = await session.call(method, params);
    context.terminal.out(`${jsonText(result, context.values.json ? 0 : 2)}\n`);
    return 0;
  });

export const proveAddress = (context: Context, requestFile: string | undefined, yes: boolean): Promise<number> =>
  withSession(context, async (session) => {
    const text = requestFile === undefined ? await context.prompt.readAll() : readFileSync(requestFile, 'utf8');
    let request: unknown;
    try {
      request = JSON.parse(text);
    } catch {
      throw new WalletError('proof_request_invalid', 'the request is not JSON');
    }
    if (!(await isProofWanted(context, request, yes))) return 1;
    const proof = await session.call('prove_address', { request });
    context.terminal.out(`${jsonText(proof, context.values.json ? 0 : 2)}\n`);
    return 0;
  });
