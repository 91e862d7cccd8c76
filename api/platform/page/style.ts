/** The one stylesheet of every page: inline, no external assets, light and dark, phone first. */
export const STYLE = `
:root{color-scheme:light dark;
--paper:#f5f2ea;--card:#fffdf8;--well:#efebdf;--ink:#1a2430;--soft:#515c67;--line:#d9d1bf;--gold:#b08a3c;
--str:#7d4a0c;--num:#a1271c;--fn:#1d4f91;--accent:#0b5a4c;--on-accent:#fffdf8;--pass:#0b6447;--fail:#a1271c;--gray:#59636d;
--serif:"Iowan Old Style","Palatino Linotype",Palatino,"URW Palladio L",P052,"IBM Plex Serif",Georgia,serif;
--sans:-apple-system,"Segoe UI",Roboto,"Noto Sans","Open Sans",system-ui,"Helvetica Neue",Arial,sans-serif;
--mono:ui-monospace,"SF Mono",SFMono-Regular,Menlo,"Cascadia Mono","IBM Plex Mono",Consolas,"DejaVu Sans Mono",monospace}
@media(prefers-color-scheme:dark){:root{
--paper:#0f151a;--card:#161e25;--well:#0b1014;--ink:#ebe6da;--soft:#a7b0b8;--line:#2d3841;--gold:#c9a35a;
--str:#e3b979;--num:#ff9c8f;--fn:#8fc3f7;--accent:#77d3b7;--on-accent:#0b1714;--pass:#74d3a6;--fail:#ff9c8f;--gray:#aab3bb}}
*,*::before,*::after{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
@media(prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
body{margin:0;background:var(--paper);color:var(--ink);font:1.0625rem/1.6 var(--sans);overflow-wrap:break-word}
.wrap{width:min(100% - 2.5rem,60rem);margin-inline:auto}
h1,h2,h3{font-family:var(--serif);font-weight:600;line-height:1.15;text-wrap:balance;margin:0}
h1{font-size:clamp(2rem,1.4rem + 3vw,3.25rem);letter-spacing:-.015em}
h2{font-size:clamp(1.4rem,1.2rem + 1vw,1.75rem);letter-spacing:-.005em}
h3{font-size:1.125rem}
p,ul,ol,dl,figure{margin:0}
p,li{text-wrap:pretty}
a{color:var(--accent);text-underline-offset:.18em;text-decoration-thickness:.08em}
a:hover{text-decoration-thickness:.16em}
:focus-visible{outline:3px solid var(--gold);outline-offset:3px;border-radius:2px}
code,pre,.mono{font-family:var(--mono);font-size:.86em}
.mono,td code,dd code{overflow-wrap:anywhere}
.skip{position:absolute;left:-100vw}
.skip:focus{left:1rem;top:1rem;z-index:1;background:var(--card);padding:.6rem 1rem}
.hide{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.soft{color:var(--soft)}
.small{font-size:.925rem}
.eyebrow{font-size:.8125rem;letter-spacing:.09em;text-transform:uppercase;color:var(--soft);font-weight:600}

.top{border-bottom:1px solid var(--line)}
.top .wrap{display:flex;flex-wrap:wrap;align-items:center;justify-content:space-between;gap:0 1.5rem;padding-block:.6rem}
.brand{display:inline-flex;align-items:center;gap:.65rem;min-height:44px;font:600 1.0625rem/1.2 var(--serif);color:var(--ink);text-decoration:none}
.brand svg{width:30px;height:30px;color:var(--accent);flex:none}
nav ul{display:flex;flex-wrap:wrap;gap:0 .25rem;list-style:none;padding:0;margin:0 -.6rem}
nav a{display:inline-flex;align-items:center;min-height:44px;padding:0 .6rem;color:var(--ink);text-decoration:none}
nav a:hover{text-decoration:underline}
nav a[aria-current]{font-weight:600;box-shadow:inset 0 -2px var(--accent)}

main{display:block;padding-block:clamp(1.75rem,1rem + 3vw,3.5rem) 4rem}
main section{margin-top:clamp(2.5rem,2rem + 2vw,3.75rem)}
section>h2{padding-bottom:.6rem;border-bottom:1px solid var(--line)}
section>h2+*{margin-top:1.1rem}
section>*+p,section>*+ul,section>p+*{margin-top:1rem}
.lead{font-size:clamp(1.1rem,1.05rem + .4vw,1.25rem);line-height:1.55;max-width:44rem}
.measure{max-width:44rem}
.hero>*+*{margin-top:1.1rem}
.masthead{display:grid;gap:2rem;align-items:center}
.masthead>svg{display:none;color:var(--accent);width:15rem;height:15rem}
@media(min-width:56rem){.masthead{grid-template-columns:1fr auto;gap:3rem}.masthead>svg{display:block}}
.actions{display:flex;flex-wrap:wrap;gap:.75rem}
.button{display:inline-flex;align-items:center;justify-content:center;min-height:44px;padding:.5rem 1.1rem;border:1px solid var(--accent);border-radius:4px;background:var(--accent);color:var(--on-accent);font:600 1rem/1.2 var(--sans);text-decoration:none;cursor:pointer}
.button.quiet{background:transparent;color:var(--accent)}
.button:hover{text-decoration:underline}

.deed{position:relative;background:var(--card);border:1px solid var(--line);padding:clamp(1.5rem,1rem + 3vw,3rem);box-shadow:0 1px 2px rgb(0 0 0/.05),0 12px 32px -20px rgb(0 0 0/.3)}
.deed::before{content:"";position:absolute;inset:7px;border:1px solid var(--gold);opacity:.65;pointer-events:none}
.deed>*{position:relative}
.deed-head{display:grid;gap:1.25rem;justify-items:start}
.deed h1{margin-top:.7rem}
.deed .state{margin-top:1rem;max-width:38rem}
.deed .facts{margin-top:1.75rem}
.seal{color:var(--tone);width:9.5rem;height:9.5rem;flex:none}
.seal text{fill:currentColor;font-family:var(--serif);font-weight:600;text-anchor:middle}
@media(min-width:46rem){.deed-head{grid-template-columns:1fr auto;align-items:center;gap:2rem}.deed-head .seal{order:1;width:13.5rem;height:13.5rem}}
.pass{--tone:var(--pass)}.fail{--tone:var(--fail)}.gray{--tone:var(--gray)}
.mark{display:inline-flex;align-items:center;gap:.4em;color:var(--tone);font-weight:650;white-space:nowrap}
.mark svg{width:1em;height:1em;flex:none}
h1 .mark{gap:.3em;font-weight:600;white-space:normal}h1 .mark svg{width:.7em;height:.7em}
.state{border-left:3px solid var(--tone);padding-left:.9rem}
.state strong{color:var(--tone)}

.facts{display:grid;gap:.9rem}
.facts>div{display:grid;gap:.1rem}
.facts dt{color:var(--soft);font-size:.925rem}
.facts dd{margin:0;min-width:0}
@media(min-width:40rem){.facts>div{grid-template-columns:minmax(11rem,16rem) 1fr;gap:1.5rem;align-items:baseline}
.ruled>div+div{border-top:1px solid var(--line);padding-top:.75rem}.ruled{gap:.75rem}}
@media(max-width:39.99rem){.short>div{grid-template-columns:minmax(0,2fr) minmax(0,3fr);gap:1.25rem;align-items:baseline}}
table{width:100%;border-collapse:collapse}
th,td{text-align:left;padding:.7rem .75rem .7rem 0;border-bottom:1px solid var(--line);vertical-align:baseline}
thead th{color:var(--soft);font-size:.8125rem;letter-spacing:.06em;text-transform:uppercase;padding-top:0}
tbody th{font-weight:400}
th:last-child,td:last-child{padding-right:0;text-align:right}
.prose th:last-child,.prose td:last-child{text-align:left}
table+table,.rows+.code,.code+table,section+p{margin-top:1.5rem}
@media(min-width:40rem){.terms th:first-child{min-width:9.5rem}}
@media(max-width:39.99rem){.terms tr{display:grid;grid-template-columns:1fr auto;border-bottom:1px solid var(--line)}.terms tr>*{border:0}.terms tr>:nth-child(2){grid-area:2/1/3/-1;padding-top:0}}
@media(max-width:39.99rem){.stack tr{display:grid;grid-template-columns:1fr auto;border-bottom:1px solid var(--line)}.stack tr>*{border:0}.stack tr>:nth-child(3){grid-column:1/-1;padding-top:0}}
.part h2{display:flex;flex-wrap:wrap;justify-content:space-between;align-items:baseline;gap:.2rem 1rem}
.part h2 .mark{font:650 1.0625rem/1.2 var(--sans)}
.two{display:grid;gap:1.5rem}
@media(min-width:46rem){.two{grid-template-columns:1fr 1fr;gap:2.5rem}}
.two h3+ul,.two h3+dl{margin-top:.6rem}
main ul:not([class]),main ol:not([class]){padding-left:1.15rem}
main li+li{margin-top:.45rem}
li::marker{color:var(--gold)}

.code{border:1px solid var(--line);border-radius:5px;background:var(--well);overflow:hidden;min-width:0}
.code+.code{margin-top:1rem}
.code figcaption{display:flex;align-items:center;justify-content:space-between;gap:1rem;min-height:44px;padding:.1rem .25rem .1rem 1rem;border-bottom:1px solid var(--line);color:var(--soft);font-size:.925rem}
.code pre{margin:0;padding:1rem;overflow-x:auto;line-height:1.6;font-size:.875rem;tab-size:2}
.code pre:focus-visible{outline-offset:-3px}
.code pre code{font-size:inherit}
.kw{color:var(--accent);font-weight:600}.str{color:var(--str)}.num{color:var(--num)}.fn{color:var(--fn)}.com{color:var(--soft);font-style:italic}
.copy{min-height:44px;min-width:44px;padding:.3rem .8rem;border:0;background:none;color:var(--accent);font:600 .925rem/1.2 var(--sans);cursor:pointer;flex:none}
.copy:hover{text-decoration:underline}
.copy[hidden]{display:none}
.badge{display:flex;flex-wrap:wrap;align-items:center;gap:.5rem 1rem}
.badge img{max-width:100%;height:20px}

.rows{list-style:none;padding:0;border-top:1px solid var(--line)}
section>h2+.rows{border-top:0;margin-top:0}
.rows>li{display:grid;gap:.2rem;padding:.95rem 0;border-bottom:1px solid var(--line);margin:0}
.rows>li>*{min-width:0}
.rows .price{font-weight:650;font-variant-numeric:tabular-nums}
@media(min-width:40rem){.rows>li{grid-template-columns:1fr auto;gap:.2rem 2rem;align-items:baseline}.rows>li>.note{grid-column:1}.rows>li>.facts{grid-column:1/-1}}
.rows .facts{gap:.3rem;margin-top:.3rem}
.rules{padding-left:2rem}
.rules>li+li{margin-top:1.4rem}
.rules>li::marker{font:600 1.125rem var(--serif)}
.rules p{margin-top:.3rem}
form{display:flex;flex-wrap:wrap;gap:.75rem;align-items:end}
.field{flex:1 1 20rem;min-width:0;display:grid;gap:.3rem}
label{font-weight:600}
input{width:100%;min-height:46px;padding:.5rem .8rem;border:1px solid var(--soft);border-radius:4px;background:var(--card);color:var(--ink);font:1rem var(--mono)}
input::placeholder{color:var(--soft);opacity:1}
.links{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.25rem 1.5rem}
main .links li{margin:0}
.links a{display:inline-flex;align-items:center;min-height:44px}

.figures{display:grid;grid-template-columns:1fr 1fr;gap:1.25rem 1.5rem;margin-top:clamp(1.75rem,1.5rem + 2vw,2.75rem);padding:1.25rem 0;border-block:1px solid var(--line)}
.figures>div{display:flex;flex-direction:column-reverse;justify-content:flex-end;gap:.15rem}
.figures dt{color:var(--soft);font-size:.925rem;line-height:1.3}
.figures dd{margin:0;font:600 1.6rem/1.2 var(--serif);font-variant-numeric:tabular-nums lining-nums}
.figures dd a,.figures dd .soft{font:400 1.0625rem/1.8 var(--sans)}
@media(min-width:46rem){.figures{grid-template-columns:repeat(4,1fr)}}
main .contents ul{display:grid;gap:.75rem;padding:0;margin:0;list-style:none}
main .contents li+li{margin:0}
.contents a{display:grid;align-content:start;gap:.15rem;height:100%;min-height:44px;padding:.85rem 1rem;border:1px solid var(--line);border-radius:5px;background:var(--card);color:var(--ink)}
.contents a:hover{border-color:var(--accent);text-decoration:none}
.contents strong{font-family:var(--serif);color:var(--accent)}
.contents span{color:var(--soft);font-size:.925rem;line-height:1.4}
@media(min-width:34rem){main .contents ul{grid-template-columns:1fr 1fr}}
@media(min-width:56rem){main .contents ul{grid-template-columns:repeat(3,1fr)}main #for+.contents ul{grid-template-columns:repeat(4,1fr)}}
.docs .side{display:none}
.docs article{min-width:0}
@media(min-width:60rem){.docs{display:grid;grid-template-columns:12rem minmax(0,1fr);gap:3rem;align-items:start}
.docs .side{display:block;position:sticky;top:1rem;max-height:calc(100vh - 2rem);overflow-y:auto;font-size:.925rem}}
.side ul{display:block;margin:0 0 1rem}
main .side li+li{margin:0}
.side a{min-height:32px;padding:.2rem .6rem;line-height:1.3}
.side .eyebrow+ul{margin-top:.2rem}
.side p{margin:0}
.side a[aria-current]{box-shadow:inset 2px 0 var(--accent)}
.steps{display:flex;flex-wrap:wrap;justify-content:space-between;gap:.5rem 2rem;margin-top:3rem;padding-top:1rem;border-top:1px solid var(--line)}
.steps a{padding:0;gap:.4em}
.steps span{color:var(--soft)}
.tabs{border:0;margin:0;padding:0;min-width:0}
.tabs>input{position:absolute;width:1px;min-height:0;padding:0;opacity:0}
.tabs>label{display:inline-flex;align-items:center;min-height:44px;padding:0 1rem;font-weight:400;color:var(--soft);cursor:pointer}
.tabs>:checked+label{color:var(--ink);font-weight:600;box-shadow:inset 0 -2px var(--accent)}
.tabs>:focus-visible+label{outline:3px solid var(--gold);outline-offset:-3px}
.tab{display:none}
.tab>h3{margin:1.75rem 0 .75rem}
.tabs>:nth-of-type(1):checked~.tab:nth-of-type(1),.tabs>:nth-of-type(2):checked~.tab:nth-of-type(2){display:block}
section>*+.tabs,.tabs+p,.code+.tabs{margin-top:1.25rem}
main .index{list-style:none;padding:0;columns:18rem;column-gap:2.5rem}
main .index li{margin:0;padding:.35rem 0;break-inside:avoid}
.index li[hidden],form[hidden]{display:none}
form+.index{margin-top:1.25rem}
section>h3{margin-top:2.25rem}
section>h3+*{margin-top:.75rem}
section>.code,section>figure{margin-top:1rem}
section>.code+p{margin-top:1.5rem}
:target{scroll-margin-top:1rem}
.rows>:target{background:var(--well);box-shadow:-.75rem 0 var(--well),.75rem 0 var(--well)}
summary{min-height:44px;display:list-item;align-content:center;cursor:pointer;color:var(--accent)}
.actions:empty,.actions[hidden],#said:empty,#result[hidden]{display:none}
#said,#result{margin-top:1.25rem}
#result>*+*{margin-top:1rem}
#cert-badge{align-self:center}
.button:disabled{opacity:.6;cursor:progress}

.foot{border-top:1px solid var(--line);color:var(--soft);font-size:.925rem}
.foot .wrap{padding-block:1.5rem 2.5rem}
.foot a{color:var(--soft)}
@media print{.top nav,.copy,.skip,.docs .side,.steps,.tabs>label,#search{display:none}.docs,.tab{display:block}.code pre{white-space:pre-wrap}body{background:none}.deed{box-shadow:none}}
`;
