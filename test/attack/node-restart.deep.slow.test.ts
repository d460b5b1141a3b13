/**
 * kill -9 after refused input. `svcd` as a process of its own gets everything its doors refuse, is killed the moment the answers are there, and must start
 * again, make cuts and take a good block. At the deep level it is killed after each kind alone.
 */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Program } from '../bridge/program.ts';
import { level } from '../level.ts';
import { temporaryDirectory } from '../temporary.ts';
import { KINDS, NodeDoors } from './node-input.ts';

/** One start of `svcd` on a data directory. At work 1 every hash is below the target. */
class Node extends NodeDoors {
  readonly #program: Program;

  private constructor(directory: string) {
    super();
    this.#program = new Program('svcd', [
      'run',
      '--data-dir',
      directory,
      '--pow-mode',
      'light',
      '--cut-millis',
      '250',
      '--initial-work',
      '1',
      '--minimum-work',
      '1',
      '--api-bind',
      '127.0.0.1:0',
      '--mining-bind',
      '127.0.0.1:0',
    ]);
  }

  static async start(directory: string): Promise<Node> {
    const node = new Node(directory);
    node.api = `http://127.0.0.1:${await node.#program.until(/public API address=127.0.0.1:(\d+)/)}`;
    node.mining = `http://127.0.0.1:${await node.#program.until(/mining listener address=127.0.0.1:(\d+)/)}`;
    return node;
  }

  /** Two more cuts, and a block that the chain registers. */
  async goesOn(): Promise<void> {
    const before = await this.height();
    const { status, document } = await this.send(await this.template());
    expect([status, document.error]).toEqual([200, undefined]);
    const { block_id } = document as unknown as { block_id: string };
    await expect.poll(() => this.height()).toBeGreaterThan(before + 1);
    const registered = async () => (await this.ask(`${this.api}/v1/blocks/${block_id}`)).document.registered_cut;
    await expect.poll(registered).not.toBeNull();
  }

  async kill(): Promise<void> {
    await this.#program.stop('SIGKILL');
    expect(this.#program.output).not.toMatch(/ ERROR /);
  }
}

test('refused input of every kind, kill -9, and the node starts and goes on', async () => {
  const directory = join(temporaryDirectory(), 'node');
  let node = await Node.start(directory);
  for (const [kind, send] of Object.entries(KINDS)) {
    const answers = await send(node);
    expect([kind, answers.map(({ status }) => status).filter((status) => status >= 500)]).toEqual([kind, []]);
    expect([kind, answers.some(({ status }) => status >= 400)]).toEqual([kind, !/same|spoiled payment/.test(kind)]);
    // The first left a node that never started again: it is looked at alone in every run.
    if (level !== 'deep' && kind !== 'two blocks on one body') continue;
    await node.kill();
    node = await Node.start(directory);
    await node.goesOn();
  }
  await node.kill();
  node = await Node.start(directory);
  await node.goesOn();
});
