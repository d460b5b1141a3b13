/** The stratum vector files as typed data, with their values revived. */
import { readFileSync } from 'node:fs';
import type { ServerMessage } from '../../protocol/stratum/v1-answer.ts';
import type { Method, Request, RequestId } from '../../protocol/stratum/v1-request.ts';
import type { ClientFrame, ServerFrame } from '../../protocol/stratum/v2.ts';
import { fromPlain, type Plain } from '../../vectors/generate/stratum-session.ts';

const load = (name: string): Record<string, Record<string, Plain>[]> =>
  JSON.parse(readFileSync(new URL(`../../vectors/${name}`, import.meta.url), 'utf8'));

const revive = <T>(entries: Record<string, Plain>[] | undefined): T[] =>
  (entries ?? []).map(({ value, ...rest }) => ({ ...rest, value: value && fromPlain(value) }) as T);

const v1File = load('stratum-v1.json');
export const v1 = {
  toServer: revive<{ name: string; value: Request; text: string }>(v1File.to_server),
  toServerSpellings: revive<{ same_as: string; text: string }>(v1File.to_server_spellings),
  toServerRefused: revive<{ name: string; text: string; code: number; id: RequestId | null }>(v1File.to_server_refused),
  toMiner: revive<{ name: string; value: ServerMessage; text: string }>(v1File.to_miner),
  toMinerRefused: revive<{ name: string; text: string; error: string }>(v1File.to_miner_refused),
};

const v2File = load('stratum-v2.json');
export const v2 = {
  toServer: revive<{ name: string; value: ClientFrame; hex: string }>(v2File.to_server),
  toServerRefused: revive<{ name: string; hex: string; error: string }>(v2File.to_server_refused),
  toMiner: revive<{ name: string; value: ServerFrame; hex: string }>(v2File.to_miner),
  toMinerRefused: revive<{ name: string; hex: string; error: string }>(v2File.to_miner_refused),
  farmHeaders: revive<{ generation: number; extranonce: string; header: string }>(v2File.farm_headers),
};

const METHOD_OF_ID: Record<string, Method> = {
  1: 'mining.subscribe',
  2: 'mining.authorize',
  b: 'mining.authorize',
  3: 'mining.submit',
  4: 'mining.submit',
  5: 'mining.stats',
  6: 'mining.ping',
  8: 'mining.receipts',
};

/** What the sample miner has asked, by id. */
export const methodOf = (id: RequestId): Method | undefined => METHOD_OF_ID[id];
