/** Ports that were chosen and are not bound yet: nobody else gets them. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { freePorts } from '../../runtime/free-port.ts';

const MODULE = join(import.meta.dirname, '../../runtime/free-port.ts');
const PROGRAM = `import { freePorts } from ${JSON.stringify(MODULE)};
process.stdout.write(JSON.stringify(await freePorts(300)));`;

test('no port is chosen twice, neither by this process nor by another', async () => {
  const [first, second] = [await freePorts(300), await freePorts(300)];
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', PROGRAM]);
  const all = [...first, ...second, ...(JSON.parse(stdout) as number[])];
  expect(new Set(all).size).toBe(900);
});
