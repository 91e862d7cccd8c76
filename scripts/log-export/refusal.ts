/** Why the export stops without publishing anything: for people, and they have to act. */
export class ExportRefusal extends Error {}

/** Another process is writing to the folder. */
export class BusyFolderError extends Error {}
