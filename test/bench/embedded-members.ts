/**
 * Four members inside one node, both ways: signed for by the node's own clock, and as four engines with a loopback transport over the one ledger. What each cut costs (docs/decisions/0006).
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { certifyWith } from '../../node/chain/certificate.ts';
import type { CutLedger } from '../../node/chain/cut-ledger.ts';
import { ConsensusDriver } from '../../node/consensus/driver/driver.ts';
import { ConsensusLog } from '../../node/consensus/log/log-file.ts';
import { developmentGenesis, developmentKey, validatorName } from '../../node/genesis/development.ts';
import type { AppliedCut } from '../../node/ledger/apply-cut.ts';
import { nameOf } from '../../node/ledger/registration.ts';
import { type ConsensusNode, createNode } from '../../node/node.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { MemoryNetwork } from '../consensus/memory-network.ts';
import { developmentKeys, quickHash, silentLog } from '../node/bed.ts';

export type EmbeddedWay = 'clock' | 'engines' | 'engines with logs';
const MEMBERS = 4;

/** What one engine made or executed is not executed again, and the first that decides commits. */
function shared(ledger: CutLedger): CutLedger {
  const executed = new Map<string, AppliedCut>();
  const committed = new Map<number, Promise<void>>();
  return {
    ...ledger,
    make: (parts) => {
      const cut = ledger.make(parts);
      executed.set(nameOf(cut.effects.cutId), cut);
      return cut;
    },
    execute: (cut) => executed.get(nameOf(cut.cutId)) ?? ledger.execute(cut),
    commit: (cut, certificate) => {
      const { height } = cut.state;
      const known = committed.get(height) ?? ledger.commit(cut, certificate);
      executed.clear();
      committed.set(height, known);
      return known;
    },
  };
}

async function startEngines(node: ConsensusNode, directory: string, cutMillis: number, hasLogs: boolean) {
  const network = new MemoryNetwork();
  const ledger = shared(node.ledger);
  const drivers: ConsensusDriver[] = [];
  for (let member = 0; member < MEMBERS; member++) {
    const { publicKey, privateKey } = developmentKey(validatorName(member));
    const owner = { chainId: node.chain.chainId, validatorId: validatorId(publicKey) };
    network.keys.set(member, publicKey);
    const nothing = { append: async () => undefined, close: async () => undefined };
    const log = hasLogs ? (await ConsensusLog.open(join(directory, `log-${member}`), owner)).log : nothing;
    const seen = {
      chain: node.chain,
      ledger,
      submitBlock: node.submitBlock.bind(node),
      on: node.on.bind(node),
    } as unknown as ConsensusNode;
    drivers.push(
      new ConsensusDriver(cutMillis, {
        node: seen,
        transport: network.transport(member),
        signer: { publicKey, privateKey, log, recovered: undefined, coversTo: -1 },
        log: silentLog,
        now: (): number => steadyMillis(),
        steady: steadyMillis,
      }),
    );
  }
  for (const driver of drivers) driver.start();
  return drivers;
}

/** Processor milliseconds of one empty cut, everything of the process together. */
export async function embeddedCost(way: EmbeddedWay, cuts: number, cutMillis: number): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-embedded-'));
  const node = await createNode(
    {
      storeDirectory: join(directory, 'store'),
      genesis: developmentGenesis({ timestampMillis: steadyMillis(), validators: MEMBERS }),
      cutMillis,
      makesCuts: way === 'clock',
    },
    {
      verifier: { prepare: async () => undefined, hash: async (_, header) => quickHash(header) },
      certify: certifyWith(developmentKeys(MEMBERS)),
      now: (): number => steadyMillis(),
      random: () => 0,
      log: silentLog,
    },
  );
  const drivers = way === 'clock' ? [] : await startEngines(node, directory, cutMillis, way === 'engines with logs');
  const reached = (height: number) =>
    new Promise<void>((resolve, reject) => {
      node.on('fault', reject);
      const unsubscribe = node.on('cut', ({ header }) => {
        if (header.height < height) return;
        unsubscribe();
        resolve();
      });
    });
  await reached(10);
  const [from, began] = [node.chain.head().height, process.cpuUsage()];
  await reached(from + cuts);
  const { user, system } = process.cpuUsage(began);
  for (const driver of drivers) await driver.close();
  await node.close();
  rmSync(directory, { recursive: true, force: true });
  return (user + system) / 1_000 / cuts;
}
