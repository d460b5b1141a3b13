/** What a graphics card's process or worker is opened with: plain data that crosses a process boundary. */
import type { NetworkName } from '../../protocol/network.ts';

/** How a card runs fastest, as kernels/gpu/tune.ts found it; the miner only keeps it. */
export type SavedTuning = {
  readonly shape: {
    readonly variant: 'shuffle' | 'workgroup';
    readonly lanes: 4 | 8;
    readonly flight: 1 | 2 | 4 | 8;
    readonly workgroup: number;
    readonly rounds: number;
  };
  readonly inFlight: 2 | 3;
};

export type GpuSettings = {
  readonly network: NetworkName;
  /** Part of the adapter's name, where there are several. */
  readonly adapter: string | undefined;
  readonly unsafe: boolean;
  readonly tuning: SavedTuning | undefined;
};
