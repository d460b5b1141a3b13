/** The review of a multisig package for people. The package comes from others: their free text is shown first, in marked rows. What is paid, to whom and at what fee comes last, right above the question. Pure. */
import { formatCoins } from '../../protocol/amount.ts';
import { OPERATION_FIELDS } from '../../protocol/staking/operation-document.ts';
import { foreignRows, USUAL_COLUMNS } from './foreign-text.ts';
import type { Fields } from './session.ts';

/** Rows of a payload, and of a field of an operation, without `--full`. */
const MOST_ROWS = 8;
const MOST_FIELD_ROWS = 2;

type Room = { readonly most: number; readonly columns: number };

/** Results of checking the input amounts with the wallet's node. */
const AMOUNTS: Readonly<Record<string, string>> = {
  checked: ' (the inputs hold what is said here)',
  false: ', WHICH IS FALSE: an input holds another amount',
  spent: ' (an input is spent, or never was)',
  not_checked: ', NOT CHECKED: no node could be asked, so these are the amounts that the package claims',
};

/** Proposals of this wallet are valid for at most as many cuts: a month. */
const LONG_VALIDITY = 1_000_000;

function leftText(left: unknown): string {
  if (typeof left !== 'number') return '';
  if (left === 0) return ', WHICH IS OVER';
  return `, ${left} more cuts${left > LONG_VALIDITY ? ', WHICH IS VERY LONG: it can be sent until then' : ''}`;
}

function fieldText(operation: string, name: string, value: unknown): string {
  const fields = OPERATION_FIELDS[operation as keyof typeof OPERATION_FIELDS];
  if (!fields.some(([, json, kind]) => json === name && kind === 'amount'))
    return typeof value === 'string' ? value : JSON.stringify(value);
  const atoms = BigInt(value as string);
  return operation === 'unbond' && atoms === 0n ? 'the whole position' : `${formatCoins(atoms)} coins`;
}

function operationRows({ operation, operation_data: data }: Fields, room: Room): string[] {
  if (typeof operation !== 'string') return [];
  const fields = Object.entries(data as Fields).flatMap(([name, value]) =>
    foreignRows('operation | ', `${name} ${fieldText(operation, name, value)}`, room),
  );
  return [`operation | ${operation}`, ...fields];
}

/**
 * Repeats the amounts and addresses of an operation at the end, where they cannot scroll away: they have a fixed form,
 * so this row contains no free text.
 */
function operationSummary({ operation, operation_data: data }: Fields): string[] {
  if (typeof operation !== 'string') return [];
  const moved = OPERATION_FIELDS[operation as keyof typeof OPERATION_FIELDS]
    .filter(([, , kind]) => kind === 'amount' || kind === 'address')
    .map(([, name]) => `${name} ${fieldText(operation, name, (data as Fields)[name])}`);
  return [`also      ${[operation, ...moved].join(', ')}`];
}

function payloadRows({ payload_hex: hex, payload_text: text }: Fields, room: Room): string[] {
  return hex === '' ? [] : foreignRows('payload   | ', String(text ?? hex), room);
}

/**
 * Everything that is signed, as listed in rule 6 of the specification's protocol module. `full`: whatever its length.
 * `columns`: terminal width.
 */
export function reviewText(review: Fields, full: boolean, columns = USUAL_COLUMNS): string {
  const recipients = review.recipients as Fields[];
  const inputs = review.inputs as Fields[];
  const { members, threshold } = review.descriptor as { members: string[]; threshold: string };
  const signed = review.signed_by as number[];
  return [
    ...payloadRows(review, { columns, most: full ? Number.POSITIVE_INFINITY : MOST_ROWS }),
    ...operationRows(review, { columns, most: full ? Number.POSITIVE_INFINITY : MOST_FIELD_ROWS }),
    ...inputs.map(({ transaction, output, amount }) => `spends    ${amount} of ${transaction}:${output}`),
    `profile   ${review.witness_profile}`,
    `digest    ${review.template_digest}`,
    `signed by ${signed.length === 0 ? 'nobody yet' : `member ${signed.join(' and ')}`}; ${review.missing_signatures} more needed`,
    `valid     from cut ${review.valid_from_height} to ${review.valid_until_height}${leftText(review.cuts_left)}`,
    `from      ${review.address} (${threshold}-of-${members.length}${review.watched ? '' : ', NOT WATCHED by this wallet'})`,
    ...operationSummary(review),
    ...recipients.map(({ to, amount, change }) => `${change ? 'change   ' : 'pays     '} ${amount} to ${to}`),
    `fee       ${review.fee}${AMOUNTS[String(review.amounts)] ?? ''}`,
    '',
  ].join('\n');
}
