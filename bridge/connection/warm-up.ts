/**
 * The first logins of a thread would run cold code, which costs several times as much until V8 has compiled it. So
 * before it listens, a thread runs some logins, jobs and shares through a separate desk, which is then dropped. That
 * desk has no sockets, uses no connection numbers of the real one, and does not appear in figures or in the main
 * thread.
 */
import { randomBytes } from 'node:crypto';
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { type Bytes, utf8 } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { encodeHeader } from '../../protocol/ledger/header.ts';
import { targetOfWork } from '../../protocol/ledger/target.ts';
import { encodeClientFrame } from '../../protocol/stratum/v2.ts';
import { steadyNow } from '../../runtime/clock/clock.ts';
import type { StratumService } from '../service.ts';
import { connectionNumberMemory } from '../session/extranonce.ts';
import type { Hub } from '../threads/hub.ts';
import { connectionCountMemory } from './connection-count.ts';
import type { Conversation, Peer } from './conversation.ts';
import { Desk } from './desk.ts';
import type { DeskOptions } from './desk-options.ts';

export type WarmedUp = { readonly logins: number; readonly jobs: number; readonly shares: number };

const ROUNDS = 2;
const LOGINS_A_ROUND = 32;
/** One connection in this many uses v2. */
const V2_EVERY = 4;
const SHARES_A_LOGIN = 2;

/** Harder than any share target, and met by no hash here: no share becomes a block. */
const BLOCK_WORK = 1n << 200n;
/** Meets every share target. */
const HASH = new Uint8Array(32).fill(0xff, 16);

class DeafPeer implements Peer {
  readonly framed = false;
  readonly queued = 0;
  text = '';

  write(data: Bytes | string): void {
    this.text += typeof data === 'string' ? data : Buffer.from(data).toString('latin1');
  }
  pause(): void {}
  resume(): void {}
  end(): void {}
  destroy(): void {}
}

const templateHeader = (networkId: number, anchorHeight: number): Bytes =>
  encodeHeader({
    networkId,
    anchorHeight,
    timestampMillis: anchorHeight,
    anchorId: new Uint8Array(ID_BYTES),
    parentsRoot: new Uint8Array(ID_BYTES),
    transactionsRoot: new Uint8Array(ID_BYTES),
    rewardRoot: new Uint8Array(ID_BYTES),
    stateRoot: new Uint8Array(ID_BYTES),
    target: targetOfWork(BLOCK_WORK),
    nonce: new Uint8Array(8),
  });

export async function warmUp(options: DeskOptions): Promise<WarmedUp> {
  const done = { logins: 0, jobs: 0, shares: 0 };
  const hub: Hub = {
    own: async () => [],
    shares: async (shares) => {
      done.shares += shares.length;
    },
    refused: () => {},
    block: () => {},
    worker: () => {},
    resume: async () => null,
    ended: () => {},
    keep: () => {},
    fault: () => {},
    balance: async () => null,
  };
  const desk = new Desk(
    {
      ...options,
      bootId: new Uint8Array(options.bootId.length),
      keepsSessions: false,
      counts: connectionCountMemory(ROUNDS * LOGINS_A_ROUND),
      ownCounts: connectionCountMemory(ROUNDS * LOGINS_A_ROUND),
      connectionNumbers: connectionNumberMemory(),
    },
    {
      hub,
      verifier: { hashMany: async (_epoch, headers) => headers.map(() => HASH) },
      now: steadyNow,
      soon: setImmediate,
      randomBytes,
      log: () => {},
    },
  );
  desk.ready = true;
  const username = `${formatAddress(keyAddressPayload(utf8('warm-up')), options.network.name)}.w`;
  const miners: [conversation: Conversation, peer: DeafPeer][] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    const header = templateHeader(options.network.id, round);
    const template = {
      serial: round,
      header,
      epoch: 0,
      draw: 0,
      draws: 1,
      isFresh: false,
      cutHeight: round,
      told: round,
    };
    // Connections that are already logged in get it as a job.
    desk.publish({ templates: [template], headHeight: round, clean: false });
    for (let i = 0; i < LOGINS_A_ROUND; i++) miners.push(login(desk, username, i % V2_EVERY === 0 ? 'v2' : 'v1'));
    await turn();
    for (const [conversation, peer] of miners.slice(-LOGINS_A_ROUND)) submit(conversation, peer);
    await turn();
    desk.tick();
  }
  const { mining, jobsSent } = desk.figures();
  for (const [conversation] of miners) desk.gone(conversation, 'warm-up');
  return { ...done, logins: mining, jobs: jobsSent };
}

/** Runs the work deferred to the next turn of the event loop, and the work deferred by that. */
async function turn(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
}

function login(desk: Desk, username: string, form: 'v1' | 'v2'): [Conversation, DeafPeer] {
  const peer = new DeafPeer();
  const service: StratumService = { name: 'warm-up', pool: null, tag: 'miner' };
  const conversation = desk.open(service, form, peer, '127.0.0.1');
  if (form === 'v1')
    conversation.receive(
      utf8(
        '{"jsonrpc":"2.0","id":1,"method":"mining.subscribe","params":{"agent":"warm-up/1"}}\n' +
          `{"jsonrpc":"2.0","id":2,"method":"mining.authorize","params":{"username":"${username}","password":"x"}}\n`,
      ),
    );
  else {
    conversation.receive(
      encodeClientFrame({ type: 'subscribe', subscribe: { agent: 'warm-up/2', tag: '', session: null } }),
    );
    conversation.receive(encodeClientFrame({ type: 'authorize', authorize: { username, password: 'x' } }));
  }
  return [conversation, peer];
}

/** Shares of v1 only: apart from parsing, both protocols run the same code. */
function submit(conversation: Conversation, { text }: DeafPeer): void {
  const prefix = /"nonce_prefix":"([0-9a-f]{4})"/.exec(text)?.[1];
  const job = /"job_id":"([0-9a-f]{8})"/.exec(text)?.[1];
  if (prefix === undefined || job === undefined) return;
  for (let i = 0; i < SHARES_A_LOGIN; i++)
    conversation.receive(
      utf8(
        `{"jsonrpc":"2.0","id":${3 + i},"method":"mining.submit","params":{"job_id":"${job}","nonce":"${i.toString(16).padStart(12, '0')}${prefix}"}}\n`,
      ),
    );
}
