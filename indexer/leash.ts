/**
 * Calls back once when the parent process is gone, however it ended: the kernel closes its end of the IPC channel, or
 * of standard input if there is no channel.
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
