/** News of a miner as a sentence for people, in mails and in channels of Discord, Telegram and ntfy. */
import { formatCoins } from '../../protocol/amount.ts';

export type NewsData = Readonly<Record<string, unknown>>;

const UNSHOWN = /[\p{C}\p{Zl}\p{Zp}]/gu;
const MAX_WORD = 100;

/** Worker names are chosen by miners: reduced to one line, with a maximum length. */
const word = (value: unknown): string =>
  String(value ?? '')
    .slice(0, MAX_WORD)
    .replace(UNSHOWN, '?');
const workerOf = ({ worker, service }: NewsData): string =>
  `${word(worker) || '(no name)'}${service === undefined ? '' : ` (${word(service)})`}`;
const coinsOf = (atoms: unknown): string =>
  typeof atoms === 'string' && /^\d{1,20}$/.test(atoms) ? formatCoins(BigInt(atoms)).replace(/\.?0+$/, '') : '?';

const SENTENCES: Readonly<Record<string, (data: NewsData) => string>> = {
  block_found: (data) => `Worker ${workerOf(data)} found block ${word(data.block_id)}.`,
  payout_final: (data) =>
    `A payment of ${coinsOf(data.amount)} coins is final: transaction ${word(data.transaction_id)}.`,
  worker_silent: (data) => `Worker ${workerOf(data)} has stopped sending shares.`,
  worker_back: (data) => `Worker ${workerOf(data)} is sending shares again.`,
};

/** Undefined for news that people are not told: `payout_sent`, because its payment is reported when it is final. */
export const newsSentence = (kind: string, data: NewsData): string | undefined =>
  Object.hasOwn(SENTENCES, kind) ? SENTENCES[kind]?.(data) : undefined;
export const isForPeople = (kind: string): boolean => Object.hasOwn(SENTENCES, kind);
