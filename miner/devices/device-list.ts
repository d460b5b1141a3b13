/**
 * The devices of this machine: the processor is number 0, graphics cards follow. Cards are asked for in a process of
 * their own, because a broken driver may crash the process that asks.
 */
import { fork } from 'node:child_process';
import { availableParallelism, cpus } from 'node:os';
import { MinerError } from '../miner-error.ts';
import type { FoundGpu } from '../work/gpu-names.ts';

export type ListedDevice =
  | { readonly number: number; readonly kind: 'wasm'; readonly name: string; readonly threads: number }
  | ({ readonly number: number; readonly kind: 'webgpu' } & FoundGpu);

const PROBE_MILLIS = 20_000;

/** With the reason why there are no cards: "no driver" and "the driver crashed" need different remedies. */
export async function findGpus(): Promise<{ gpus: readonly FoundGpu[]; why: string | undefined }> {
  return await new Promise((resolve) => {
    const child = fork(new URL('../work/gpu-probe.ts', import.meta.url), {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      execArgv: [],
    });
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      resolve({ gpus: [], why: 'the graphics driver does not answer' });
    }, PROBE_MILLIS);
    child.on('message', (found) => {
      clearTimeout(timer);
      resolve(found as { gpus: FoundGpu[]; why: string | undefined });
      child.kill('SIGKILL');
    });
    child.on('exit', (code, signal) => {
      clearTimeout(timer);
      resolve({ gpus: [], why: `the graphics driver crashed (${signal ?? code})` });
    });
  });
}

export function listDevices(gpus: readonly FoundGpu[]): ListedDevice[] {
  const processor: ListedDevice = {
    number: 0,
    kind: 'wasm',
    name: cpus()[0]?.model.trim() || 'processor',
    threads: availableParallelism(),
  };
  return [processor, ...gpus.map((gpu, i): ListedDevice => ({ number: i + 1, kind: 'webgpu', ...gpu }))];
}

/**
 * Selects the devices: those of --devices, otherwise the cards, otherwise the processor. A software adapter is slower
 * than the processor itself and is used only when it is named.
 */
export function chooseDevices(
  listed: readonly ListedDevice[],
  wish: {
    readonly devices: readonly number[] | 'all' | undefined;
    readonly gpu: boolean;
    readonly cpuThreads: number | undefined;
  },
): ListedDevice[] {
  const usable = listed.filter((device) => device.kind !== 'webgpu' || wish.gpu);
  const isCard = (device: ListedDevice): boolean => device.kind === 'webgpu' && !device.software;
  const cards = usable.filter(isCard);
  const wantsCpu = wish.cpuThreads === undefined ? cards.length === 0 : wish.cpuThreads > 0;
  let chosen: ListedDevice[];
  if (wish.devices === undefined)
    chosen = usable.filter((device) => isCard(device) || (device.kind === 'wasm' && wantsCpu));
  else if (wish.devices === 'all') chosen = usable.filter((device) => device.kind === 'wasm' || isCard(device));
  else
    chosen = wish.devices.map((number) => {
      const found = usable.find((device) => device.number === number);
      if (found === undefined) throw new MinerError('device_unknown', `there is no device ${number}`);
      return found;
    });
  if (wish.cpuThreads === 0) chosen = chosen.filter(({ kind }) => kind !== 'wasm');
  return chosen.map((device) =>
    device.kind === 'wasm' ? { ...device, threads: wish.cpuThreads ?? device.threads } : device,
  );
}
