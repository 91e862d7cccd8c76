import { expect, test } from "vitest";
import { highlight, type Language } from "../../../api/platform/page/highlight.ts";
import { HOSTILE } from "../../support/certificates/samples.ts";

const shown = (text: string, language: Language) => highlight(text, language).toString();
const plain = (markup: string) => markup.replaceAll(/<\/?span[^>]*>/g, "");

test.each([
  ["javascript", 'const a = "b"; // c', '<span class="kw">const</span> a = <span class="str">&quot;b&quot;</span>; '],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the highlighted code contains one
  ["typescript", "f(`x${a}`)", '<span class="fn">f</span>(<span class="str">`</span><span class="str">x</span>${a}'],
  ["bash", "curl -i x # y", '<span class="fn">curl</span> -i x <span class="com"># y</span>'],
  ["json", '{"a": 1}', '{<span class="fn">&quot;a&quot;</span>: <span class="num">1</span>}'],
  ["yaml", "on: push", '<span class="kw">on</span>: push'],
  ["solidity", "contract Deal {}", '<span class="kw">contract</span> <span class="fn">Deal</span> {}'],
] as const)("%s is highlighted: %s", (language, text, markup) => {
  expect(shown(text, language)).toContain(markup);
});

test.each(["bash", "javascript", "json", "solidity", "typescript", "yaml"] as const)(
  "Hostile text in %s is shown verbatim and adds no markup",
  (language) => {
    const markup = shown(`"${HOSTILE}" // ${HOSTILE}`, language);
    expect(plain(markup)).not.toMatch(/[<>]/);
    const tags = markup.match(/<[^>]*>/g) ?? [];
    expect(tags.filter((tag) => !/^<(\/span|span class="(kw|str|num|fn|com)")>$/.test(tag))).toEqual([]);
    expect(plain(markup)).toContain("&lt;img src=x onerror=&#39;alert(1)&#39;&gt;&amp;amp;");
  },
);
