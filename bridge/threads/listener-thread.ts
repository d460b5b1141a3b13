/** The program of a listener thread: a desk and a listener, with the hub at the other end of the thread's port. */
import { parentPort, workerData } from 'node:worker_threads';
import { attachVerifier, type VerifierTicket } from '../../kernels/verifier.ts';
import { clientFaults } from '../../runtime/clients/client-fault.ts';
import { steadyNow } from '../../runtime/clock/clock.ts';
import { giveBackIdleMemory } from '../../runtime/idle-memory.ts';
import { useNativeSha384 } from '../../runtime/native/native-sha384.ts';
import { randomPieces } from '../../runtime/native/random-pieces.ts';
import { Desk } from '../connection/desk.ts';
import { Listener } from '../connection/listener.ts';
import { warmUp } from '../connection/warm-up.ts';
import { packShares } from '../shares/share-batch.ts';
import { exposed, HUB_CALLS, LISTENER_CALLS, type PortHub, remote } from './calls.ts';
import { EndedSessions } from './ended-sessions.ts';
import { IntroducedMembers } from './introduced-members.ts';
import type { ListenerThreadOptions } from './listener-threads.ts';
import { type Packed, packEvents, packMembers } from './packed-members.ts';
import { PortCalls } from './port-calls.ts';

if (parentPort === null) throw new Error('this file is the program of a worker thread');
useNativeSha384();
giveBackIdleMemory();

const { options, ticket } = workerData as { options: ListenerThreadOptions; ticket: VerifierTicket };

const calls = new PortCalls(
  parentPort,
  {
    ...exposed(() => listener, LISTENER_CALLS),
    takeSession: (id: string) => {
      ended.flush();
      return listener.takeSession(id);
    },
    close: () => listener.close().finally(() => ended.flush()),
  },
  (name, error) => main.log('error', 'a call from the main thread failed', { name, error: String(error) }),
);
const main = remote<PortHub>(calls, HUB_CALLS);
/** Bytes are transferred, not copied. */
const tellPacked = (name: 'introduce' | 'worker', packed: Packed): void =>
  calls.tell(name, [packed], [packed.bytes.buffer]);
const members = new IntroducedMembers({
  introduce: (list) => tellPacked('introduce', packMembers(list)),
  left: main.left,
});
const ended = new EndedSessions(setImmediate, main.ended);

const desk = new Desk(options.desk, {
  hub: {
    ...main,
    shares: (shares) => {
      members.introduce(shares);
      const packed = packShares(shares);
      return calls.call<void>('shares', [packed], [packed.buffer]);
    },
    worker: (events) => tellPacked('worker', packEvents(events)),
    ended: (record) => ended.add(record),
  },
  members,
  verifier: attachVerifier(ticket),
  now: steadyNow,
  soon: setImmediate,
  randomBytes: randomPieces(),
  log: (level, message, fields) =>
    main.log(level, message, { ...fields, error: fields.error === undefined ? undefined : String(fields.error) }),
});
clientFaults.forwardTo((door, error) => main.clientFault(door, error));
const listener = new Listener(options.listener, desk, async () => {
  try {
    main.log('debug', 'warmed up', await warmUp(options.desk));
  } catch (error) {
    main.log('warn', 'the listener starts cold: its warm-up failed', { error: String(error) });
  }
});
