#include "report/html_style.hpp"

namespace netchannel::report {

std::string_view html_style() {
  return R"(
:root{color-scheme:light dark;--page:#fff;--ink:#1b1f24;--soft:#57606a;--grid:#e3e6ea;--band:#f1f3f6;--link:#0b5cad;
--good:#0a6b3d;--bad:#a8330b;
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#b5628f;--c4:#a07800;--c5:#3d9bd6;--c6:#6a3d9a;--c7:#666}
@media (prefers-color-scheme:dark){:root{--page:#14171a;--ink:#e4e8ec;--soft:#a3adb8;--grid:#2c3238;--band:#1f2429;--link:#7cbcff;
--good:#5ccf98;--bad:#ff9a70;
--c0:#4fb0ec;--c1:#ff8a3d;--c2:#2fcf9d;--c3:#e59bc4;--c4:#e6c34a;--c5:#9ad3ff;--c6:#b79ae6;--c7:#b0b0b0}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0 auto;max-width:1180px;padding:1rem;background:var(--page);color:var(--ink);
font:16px/1.5 system-ui,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;margin:0}h2{font-size:1.25rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--grid)}
h3{font-size:1rem;margin:1.2rem 0 .3rem}p{margin:.4rem 0;max-width:46rem}header p{color:var(--soft)}
a{color:var(--link)}nav{display:flex;flex-wrap:wrap;gap:.2rem 1rem;margin:.6rem 0}nav a{padding:.2rem 0}
ul{margin:.3rem 0;padding-left:1.1rem}li{margin:.25rem 0;max-width:52rem}
.verdict{display:inline-block;font-size:.8rem;line-height:1.4;padding:0 .45em;border:1px solid;border-radius:.7em;color:var(--soft)}
.good{color:var(--good)}.bad{color:var(--bad)}
.figures{columns:2 440px;column-gap:2rem}
figure{margin:0;padding:.5rem 0 1rem;max-width:560px;break-inside:avoid}
figcaption{font-size:.9rem;line-height:1.4;margin-bottom:.3rem;color:var(--soft)}figcaption b{color:var(--ink)}
.wide{overflow-x:auto;margin:1rem 0}
table{border-collapse:collapse;font-size:.88rem;line-height:1.35;width:100%}
caption{text-align:left;font-weight:600;padding:.2rem 0}
th,td{padding:.25rem .5rem;text-align:left;border-bottom:1px solid var(--grid);vertical-align:baseline;overflow-wrap:normal}
thead th{color:var(--soft);font-weight:500;vertical-align:bottom}tbody th{font-weight:600}
.number{text-align:right;font-variant-numeric:tabular-nums}tbody .number{white-space:nowrap}
details{margin:1rem 0}summary{cursor:pointer;color:var(--link)}
dl{margin:.3rem 0;columns:22rem;column-gap:2rem;font-size:.9rem}
dl div{display:flex;gap:.6rem;break-inside:avoid;padding:.1rem 0}dt{color:var(--soft);flex:0 0 10.5rem}dd{margin:0;min-width:0}
code{font:.9em ui-monospace,Menlo,Consolas,monospace}
@media screen and (max-width:640px){
thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}
table,tbody,tr,caption{display:block}
tr{display:grid;grid-template-columns:1fr 1fr;gap:0 .9rem;padding:.45rem 0;border-bottom:1px solid var(--grid)}
th,td,.number,tbody .number{display:block;border:0;padding:.1rem 0 .25rem;text-align:left;white-space:normal}
td::before{content:attr(data-name);display:block;font-size:.75rem;line-height:1.2;color:var(--soft)}
tbody th{grid-column:1/-1}
dt{flex-basis:10.5rem}}
@media print{
:root{--page:#fff;--ink:#000;--soft:#444;--grid:#ccc;--band:#eee;--link:#000;--good:#0a6b3d;--bad:#a8330b;
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#b5628f;--c4:#a07800;--c5:#3d9bd6;--c6:#6a3d9a;--c7:#666}
body{max-width:none;padding:0;font-size:11pt}nav{display:none}.wide{overflow:visible}table{font-size:8pt}
tr,figure,li{break-inside:avoid}h2,h3{break-after:avoid}}
)";
}

}  // namespace netchannel::report
