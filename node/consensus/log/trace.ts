/**
 * A recorded trace: the initial state of a member and every event, as lines of JSON. The engine is a function of those,
 * so a trace replayed gives the same effects, with or without the network that made it. Cut names and bytes are hex,
 * stakes and bitmaps decimal text.
 */
import { fromHex, toHex } from '../../../protocol/bytes.ts';
import { Committee } from '../engine/committee.ts';
import type { Effect, Event, Recovered } from '../engine/effects.ts';
import { step } from '../engine/engine.ts';
import { lastCutOf } from '../engine/last-cut.ts';
import { openState } from '../engine/recovery.ts';
import type { ConsensusState, Listening, OwnKey } from '../engine/state.ts';
import type { Proof } from '../engine/votes.ts';

const FORMAT = 'svc-consensus-trace-1';

export type TraceStart = {
  readonly height: number;
  readonly committee: Committee;
  readonly self: number;
  /** The previous cut, if there is one. */
  readonly last?: { readonly proof: Proof; readonly committee: Committee };
  /** What the log held. */
  readonly recovered?: Recovered;
  readonly listening?: Listening;
  readonly ownKey?: OwnKey;
  readonly tickHeights?: ConsensusState['tickHeights'];
};

const CUT_FIELDS = new Set(['cut', 'wantCut', 'locked', 'valid']);

function replacer(this: unknown, key: string, value: unknown): unknown {
  if (value instanceof Committee) return { $committee: { setId: value.setId, members: value.members } };
  if (typeof value === 'bigint') return { $integer: value.toString() };
  if (value instanceof Uint8Array) return { $hex: toHex(value) };
  if (CUT_FIELDS.has(key) && typeof value === 'string') return toHex(Buffer.from(value, 'latin1'));
  return value;
}

function reviver(key: string, value: unknown): unknown {
  if (CUT_FIELDS.has(key) && typeof value === 'string') return Buffer.from(value, 'hex').toString('latin1');
  if (typeof value !== 'object' || value === null) return value;
  if ('$integer' in value) return BigInt(value.$integer as string);
  if ('$hex' in value) return fromHex(value.$hex as string);
  if ('$committee' in value) {
    const { setId, members } = value.$committee as Pick<Committee, 'setId' | 'members'>;
    return new Committee(setId, members);
  }
  return value;
}

export function encodeTrace(start: TraceStart, events: readonly Event[]): string {
  const lines = [{ format: FORMAT, ...start }, ...events];
  return lines.map((line) => `${JSON.stringify(line, replacer)}\n`).join('');
}

export function decodeTrace(text: string): { start: TraceStart; events: Event[] } {
  const [first = '{}', ...rest] = text.trimEnd().split('\n');
  const { format, ...start } = JSON.parse(first, reviver) as TraceStart & { format?: string };
  if (format !== FORMAT) throw new TypeError(`not a trace of the format ${FORMAT}`);
  return { start, events: rest.map((line) => JSON.parse(line, reviver) as Event) };
}

/** Runs the engine over a trace. */
export function replay(text: string): { state: ConsensusState; effects: Effect[][] } {
  const { start, events } = decodeTrace(text);
  const { height, committee, self, last, recovered } = start;
  const state = openState(height, committee, self, last && lastCutOf(last.proof, last.committee), recovered);
  if (start.listening !== undefined) state.listening = { ...start.listening };
  if (start.ownKey !== undefined) state.ownKey = { ...start.ownKey };
  if (start.tickHeights !== undefined) state.tickHeights = start.tickHeights;
  return { state, effects: events.map((event) => step(state, event)) };
}
