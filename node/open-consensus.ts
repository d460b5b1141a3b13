/** Assembles consensus for a node: key, log, network and driver. Without a key the node follows. */
import { join } from 'node:path';
import { type Bytes, equalBytes, toHex } from '../protocol/bytes.ts';
import { validatorId } from '../protocol/staking/names.ts';
import type { Evidence } from '../protocol/staking/operation.ts';
import { type LedgerClock, steadyMillis } from '../runtime/clock/clock.ts';
import { type ListenAddress, showListenAddress } from '../runtime/command-line/command-line.ts';
import type { BindAddress } from '../runtime/listen-address.ts';
import type { Logger } from '../runtime/log/log.ts';
import { ConsensusDriver } from './consensus/driver/driver.ts';
import { ConsensusWatch } from './consensus/driver/figures.ts';
import type { Effect, Event } from './consensus/engine/effects.ts';
import type { ConsensusState } from './consensus/engine/state.ts';
import { ConsensusLog } from './consensus/log/log-file.ts';
import { TraceRecorder } from './consensus/log/trace-recorder.ts';
import { Overlay } from './consensus/reach/overlay.ts';
import { overlayQuic } from './consensus/reach/overlay-quic.ts';
import { routeLookup } from './consensus/reach/route-lookup.ts';
import { signMessageAside } from './ml-dsa.ts';
import type { ConsensusNode } from './node.ts';
import type { NodeMetrics } from './node-metrics.ts';
import type { LoadQuic } from './quic/quic-package.ts';
import { consensusReport } from './reports/consensus-report.ts';
import { serveControl } from './reports/control-socket.ts';
import { dialPlan } from './validator/dial-plan.ts';
import { overlaySigner } from './validator/overlay-key.ts';
import { isTimeToLook, mayDial, ownReach, reachableValidators } from './validator/reachable-validators.ts';
import { readMembers, rememberMembers } from './validator/remembered-members.ts';
import { SeatWatch } from './validator/seat-watch.ts';
import type { ValidatorKey } from './validator/validator-key.ts';
import { validatorOfKey } from './validator/validator-state.ts';

export type ConsensusSettings = {
  readonly dataDir: string;
  readonly cutMillis: number;
  readonly key?: ValidatorKey | undefined;
  /** The validator that the key signs for, if configured. */
  readonly heartbeat?: { readonly validatorId: Bytes } | undefined;
  readonly binds: readonly BindAddress[];
  readonly neighbours: readonly ListenAddress[];
};

export type ConsensusDependencies = {
  readonly node: ConsensusNode;
  readonly log: Logger;
  readonly now: LedgerClock;
  readonly started: (name: string, stop: () => Promise<void> | void) => void;
  readonly figures?: Pick<NodeMetrics, 'consensus' | 'validator'> | undefined;
  readonly loadQuic?: LoadQuic | undefined;
  readonly onEvidence?: ((evidence: Evidence) => void) | undefined;
};

/** A log belongs to one key: a rotated key begins another. */
const logDirectory = (dataDir: string, id: Uint8Array): string => join(dataDir, 'consensus', toHex(id).slice(0, 32));

export async function openConsensus(
  { dataDir, cutMillis, key, heartbeat, binds, neighbours }: ConsensusSettings,
  { node, log, now, started, figures: metrics, onEvidence, loadQuic }: ConsensusDependencies,
): Promise<ConsensusDriver> {
  const { chainId } = node.chain;
  const id = key && validatorId(key.publicKey);
  const opened = id && (await ConsensusLog.open(logDirectory(dataDir, id), { chainId, validatorId: id }));
  if (opened?.torn !== undefined)
    log.warn(
      'the end of the log is torn, as by a crash in the middle of a write: it listens as without a log before it signs',
      {
        bytes: opened.torn,
        height: opened.recovered?.height,
      },
    );
  const isDevelopment = node.chain.genesis.network === 'development';
  let isAllowed = mayDial([], isDevelopment);
  const quic = key === undefined && binds.length === 0 ? undefined : await overlayQuic(binds, log, loadQuic);
  const transport = new Overlay(
    { chainId, neighbours, binds },
    {
      log: log.child('overlay'),
      steady: steadyMillis,
      now,
      // On a development network names may be those of this machine alone.
      quic,
      lookup: isDevelopment ? undefined : routeLookup((ip) => isAllowed(ip)),
      members: () => node.ledger.committee(node.chain.head().height + 1)?.members ?? [],
      ...(key && {
        signer: { publicKey: key.publicKey, sign: (message) => signMessageAside(key.privateKey, message) },
        remembered: readMembers(dataDir, log),
        remember: (members) => rememberMembers(dataDir, members, log),
      }),
    },
  );
  for (const address of await transport.listen())
    log.info('validator overlay', { address: showListenAddress(address), over: address.way });
  const figures = metrics?.consensus(() => transport.peers().length);
  let noted: ((event: Event, effects: readonly Effect[], state: ConsensusState) => void) | undefined;
  const driver = new ConsensusDriver(cutMillis, {
    node,
    transport,
    ...(key && opened && { signer: { publicKey: key.publicKey, privateKey: key.privateKey, ...opened } }),
    log: log.child('consensus'),
    now,
    steady: steadyMillis,
    watch: (event, effects, state) => noted?.(event, effects, state),
    onStep: figures?.step,
    onLost: () => figures?.count('lost_messages'),
    onEvidence,
  });
  const recorder = new TraceRecorder(driver.state);
  const watch = figures && new ConsensusWatch(driver.state, figures, steadyMillis);
  noted = (event, effects, state) => {
    recorder.note(event, state);
    watch?.note(event, effects, state);
  };
  const seats = key && new SeatWatch({ node, key: key.publicKey, validatorId: heartbeat?.validatorId, log });
  if (seats !== undefined) metrics?.validator(() => seats.seat());
  const report = () => consensusReport(node, driver.state, seats?.seat(), transport.peers().length, recorder.text);
  started('questions about consensus', await serveControl(dataDir, () => `${JSON.stringify(report())}\n`));
  started('consensus', () => driver.close());
  driver.start();
  log.info(id === undefined ? 'following the validators' : 'validator', {
    ...(id && { validator: id, member: driver.state.self >= 0 }),
    height: driver.state.height,
    neighbours: neighbours.length,
  });
  if (seats !== undefined) {
    seats.tick();
    node.on('cut', () => seats.tick());
  }
  if (key !== undefined) {
    const overlay = overlaySigner(dataDir);
    let isWarned = false;
    const reach = () => {
      const staking = node.chain.staking();
      const own = ownReach(staking, heartbeat?.validatorId ?? validatorOfKey(staking, key.publicKey));
      isAllowed = mayDial(own.routes, isDevelopment);
      const validators = reachableValidators(staking, node.chain.head().height, isAllowed);
      transport.reach(dialPlan(own, validators));
      const isRegistered = overlay && own.overlayKey && equalBytes(overlay.publicKey, own.overlayKey);
      transport.know({ own, validators, sign: isRegistered ? overlay.sign : undefined });
      if (isRegistered || isWarned || isDevelopment || own.overlayKey === undefined || own.routes.length > 0) return;
      isWarned = true;
      log.warn('the overlay key is not the registered one: validators without a route cannot reach this one');
    };
    reach();
    node.on('cut', ({ header }) => isTimeToLook(header.height, node.chain.staking().intervalCuts) && reach());
  }
  return driver;
}
