import { paid } from "../../paid.mjs";

export const dynamic = "force-dynamic";
export const GET = paid("a haiku");
