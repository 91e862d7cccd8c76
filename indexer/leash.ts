/**
 * Calls back once when the process that started this one is gone, however it went: the kernel closes its end of the
 * IPC channel, or of standard input where there is no channel.
 */
export function onParentGone(callback: () => void): void {
  if (process.channel) {
    process.once("disconnect", callback);
    return;
  }
  process.stdin.once("close", callback);
  process.stdin.once("end", callback);
  process.stdin.resume();
}
