/**
 * A development chain that one validator signs for. Four, as `svcd run` makes them, cost a node that idles two thirds of its processor time:
 * 8 ms a cut. Chains of several validators are in test/consensus and test/stack.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { developmentGenesis } from '../node/genesis/development.ts';
import { writeGenesis } from '../node/genesis/make-genesis.ts';
import { steadyMillis } from '../runtime/clock/clock.ts';

/** Options of `svcd run`. The genesis document is written once to `directory`, which a node that starts again finds it in. */
export function oneValidator(
  directory: string,
  work: { readonly initialWork?: number; readonly minimumWork?: number } = {},
): string[] {
  mkdirSync(directory, { recursive: true });
  const path = join(directory, 'genesis.json');
  if (!existsSync(path)) {
    const { initialWork, minimumWork } = work;
    writeGenesis(
      path,
      developmentGenesis({
        timestampMillis: steadyMillis(),
        validators: 1,
        ...(initialWork === undefined ? {} : { initialWork: BigInt(initialWork) }),
        ...(minimumWork === undefined ? {} : { minimumWork: BigInt(minimumWork) }),
      }),
    );
  }
  return ['--genesis', path];
}
