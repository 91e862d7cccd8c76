import type { Arbiter } from "../arbiter/index.ts";
import type { Board } from "../board/index.ts";
import type { Config } from "../platform/config/config.ts";
import type { Listed } from "../platform/http/route.ts";
import { type Platform, type Table, under } from "../platform/slice.ts";
import { createFigures, type SiteParts } from "./home-page.ts";
import { packageRoutes } from "./packages/routes.ts";
import { openTarballs } from "./packages/tarballs.ts";
import { crawlerRoutes, guideRoutes, homeRoutes } from "./routes.ts";

export { passingShop } from "./seller-samples.ts";
export { passingCode } from "./test-samples.ts";

interface SiteNeeds extends Pick<SiteParts, "held"> {
  readonly board: Board;
  readonly arbiter: Arbiter;
}

/** The pages for people, and the npm packages. It warns if the packages are not built. */
export async function createSite({ log, now }: Platform, config: Config, { board, arbiter, held }: SiteNeeds) {
  const { baseUrl, payTo, securityContact, abuseContact, operator } = config;
  const figures = createFigures({ board, arbiter, held });
  const tarballs = await openTarballs(log);
  return {
    home: (routes: Table): readonly Listed[] =>
      under("Discovery", [...homeRoutes({ routes, baseUrl, figures, now }), ...crawlerRoutes({ routes, baseUrl })]),
    guides: (routes: Table): readonly Listed[] =>
      under("Discovery", [
        ...guideRoutes({ routes, baseUrl, payTo, tarballs, arbiter, securityContact, abuseContact, operator }),
        ...packageRoutes({ tarballs, baseUrl }),
      ]),
  };
}
