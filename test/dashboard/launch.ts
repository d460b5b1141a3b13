/** Debian's Chromium, headless, with WebGPU on whatever card there is or on its software one. */
import { type Browser, chromium } from 'playwright-core';

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--enable-unsafe-webgpu',
  // Small shared-memory file systems, as containers have them, crash pages otherwise.
  '--disable-dev-shm-usage',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export const launch = (): Promise<Browser> => chromium.launch({ executablePath: '/usr/bin/chromium', args: FLAGS });
