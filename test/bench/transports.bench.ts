/**
 * The overlay's own transport beside libp2p streams, in turns: one member of 4 and of 64 with all others in a second process. Each turn every member sends one vote, with 1 MiB blocks beside them and
 * without. From sending to taking at the measured member, and its processor time per vote sent or taken. `rounds=N` and `turns=N` set how often and how long.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { MAX_BODY_BYTES } from '../../protocol/ledger/body.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { type Bench, bench } from './harness.ts';
import type { Side } from './transports/process.ts';

type Measured = { readonly vote: number[]; readonly block: number[]; readonly processorMillis: number };

const PROGRAM = new URL('./transports/process.ts', import.meta.url);
const TRANSPORTS = ['own', 'libp2p', 'libp2p-thread'] as const;

const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN;

async function next(child: ChildProcess): Promise<unknown> {
  const [message] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => {
      throw new Error(`a side of the measurement ended (${code})`);
    }),
  ]);
  return message;
}

async function measure(side: Omit<Side, 'role' | 'port'>): Promise<Measured> {
  const [port] = (await freePorts(1)) as [number];
  const start = (role: Side['role']) => {
    const child = fork(PROGRAM, { serialization: 'advanced' });
    child.send({ ...side, role, port } satisfies Side);
    return child;
  };
  const hub = start('hub');
  await next(hub);
  const others = start('others');
  try {
    await Promise.all([next(hub), next(others)]);
    const [measured] = await Promise.all([next(hub), next(others), hub.send('go'), others.send('go')]);
    return measured as Measured;
  } finally {
    hub.kill();
    others.kill();
  }
}

async function compare(b: Bench, members: number, blockBytes: number, turns: number, rounds: number): Promise<void> {
  const turnMillis = 250;
  const found = new Map<string, Measured[]>(TRANSPORTS.map((transport) => [transport, []]));
  for (let round = 0; round < rounds; round++)
    for (const transport of TRANSPORTS)
      found.get(transport)?.push(await measure({ transport, members, turns, turnMillis, blockBytes }));
  const name = `${members}-members${blockBytes > 0 ? '-blocks' : ''}`;
  const perVote = (transport: string) => {
    const all = found.get(transport) as Measured[];
    const votes = 2 * (members - 1) * turns;
    return percentile(
      all.map(({ processorMillis }) => (processorMillis * 1_000) / votes),
      0.5,
    );
  };
  for (const transport of TRANSPORTS) {
    const all = found.get(transport) as Measured[];
    const votes = all.flatMap(({ vote }) => vote);
    const wanted = (members - 1) * turns * rounds;
    if (votes.length < wanted * 0.999) b.note(`${name} ${transport}: ${votes.length} of ${wanted} votes arrived`);
    b.figure(`${name}-${transport}-p50`, percentile(votes, 0.5), 'ms');
    b.figure(`${name}-${transport}-p99`, percentile(votes, 0.99), 'ms');
    b.figure(`${name}-${transport}-processor`, perVote(transport), 'us a vote', {
      ratio: perVote(transport) / perVote('own'),
      yardstick: 'own transport',
    });
  }
}

const numberIn = (words: readonly string[], name: string, standard: number): number =>
  Number(words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1) ?? standard);

export default bench('votes over the own transport and over libp2p streams', async (b) => {
  const turns = numberIn(b.words, 'turns', 40);
  const rounds = numberIn(b.words, 'rounds', 3);
  for (const members of [4, 64])
    for (const blockBytes of [0, MAX_BODY_BYTES]) await compare(b, members, blockBytes, turns, rounds);
});
