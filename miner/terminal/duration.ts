/** Times as people read them, in whole seconds. */

/** `1 h 02 min`, `3 min 05 s`, `12 s`. */
export function showDuration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (part: number): string => String(part).padStart(2, '0');
  if (whole < 60) return `${whole} s`;
  if (whole < 3_600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3_600)} h ${two(Math.floor(whole / 60) % 60)} min`;
}
