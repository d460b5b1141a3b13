/**
 * The job of another stratum server that a template was made from: svc-proxy serves those of a pool. Jobs on such a template
 * have the extranonce that the other server gave, and shares that meet its target are passed on. Plain data: it goes to the
 * listener threads as it is.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import { extranonceOfGeneration } from '../../protocol/stratum/farm.ts';

/** Sessions at the other server that jobs may come from at a time. */
export const MOST_PARTS = 64;

/** One of several sessions at the other server: its templates are for the connections of one account, and the others stay as they are. */
export type TemplatePart = {
  /** Below MOST_PARTS. */
  readonly draw: number;
  /** In hex. */
  readonly account: string;
};

export type OriginJob = {
  /** The other server's names for it. */
  readonly session: string;
  readonly jobId: number;
  /** Where it has several sessions: whose this is, in hex. */
  readonly account?: string;
  readonly extranonceHead: Bytes;
  /**
   * The least generation that a job on it may have; it follows the head. Null: the head is the whole extranonce, all
   * connections have the same header, and their prefixes alone keep their nonces apart.
   */
  readonly firstGeneration: number | null;
  /** What a share must meet to be passed on: no job is harder. */
  readonly shareTarget: Bytes;
};

/** Whether two templates are of one session: a new one takes the place of those. */
export const isSamePart = (
  one: { readonly origin?: OriginJob | undefined },
  other: { readonly account: string } | undefined,
): boolean => one.origin?.account === other?.account;

/** An accepted share that goes on to the other server. */
export type PassedShare = { readonly origin: OriginJob; readonly generation: number };

export const originExtranonce = ({ extranonceHead, firstGeneration }: OriginJob, generation: number): Bytes =>
  firstGeneration === null ? extranonceHead : extranonceOfGeneration(extranonceHead, generation);
