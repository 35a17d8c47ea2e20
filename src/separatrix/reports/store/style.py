"""What this page adds to the style sheet of all reports."""

STYLE = """
h1, h3, h4, .facts dd, td, li { overflow-wrap: anywhere; }
.one { margin: 0 0 2.4rem; }
.one h3, section > h3 { font: 600 1.08rem/1.35 var(--serif); margin: 1.8rem 0 .3rem; }
h3 small { font: .8rem var(--sans); color: var(--faint); margin-left: .6em; }
h4 { font: 600 .9rem/1.3 var(--sans); margin: .6rem 0 .2rem; }
.said { font-size: .92rem; color: var(--faint); margin: .2rem 0 .6rem; max-width: 60rem; }
.said { overflow-wrap: anywhere; }
.hint { font: .86rem var(--sans); color: var(--faint); }
.facts { grid-template-columns: repeat(auto-fill, minmax(130px, 1fr)); gap: .8rem; }
.facts { margin: 1.4rem 0 .8rem; }
.facts dd { font-size: 1.15rem; }
details { margin: .8rem 0; font-family: var(--sans); font-size: .9rem; }
summary { cursor: pointer; color: var(--accent); }
pre { font: .82rem/1.5 var(--mono); background: var(--wash); padding: .8rem 1rem; border-radius: 6px; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; max-height: 32rem; overflow-y: auto; }

.standings, .messages, .changes { margin: .6rem 0 1.2rem; }
.standings th:nth-child(n), .messages th:nth-child(n), .changes th:nth-child(n) { width: auto; }
.standings th:nth-child(1) { width: 20%; }
.standings th:nth-child(2) { width: 7%; }
.standings th:nth-child(3) { width: 28%; }
.messages th:nth-child(1) { width: 34%; }
.messages th:nth-child(2), .messages th:nth-child(3) { width: 8%; }
.changes th:nth-child(1) { width: 34%; }
.changes th:nth-child(4) { width: 14%; }
td code { font-size: .95em; }
.bar { display: flex; height: .85rem; border: 1px solid var(--faint); border-radius: 2px; overflow: hidden; }
.bar { max-width: 18rem; }
.bar i { display: block; height: 100%; }
.whole { white-space: nowrap; }
.shares { display: block; font-size: .95em; }

.scroll { overflow-x: auto; margin: .4rem 0; }
.grid { display: table; width: auto; table-layout: auto; border-collapse: separate; border-spacing: 2px; }
.grid { font-size: .78rem; line-height: 1.3; }
.grid thead { position: static; display: table-header-group; }
.grid tbody { display: table-row-group; }
.grid tr { display: table-row; padding: 0; border: 0; }
.grid th:nth-child(n) { width: auto; padding: .15rem .4rem; border: 0; text-align: left; font-weight: 500; }
.grid th:first-child { position: sticky; left: 0; background: var(--paper); }
.grid td { display: table-cell; padding: .15rem .4rem; border: 0; white-space: nowrap; }
.grid td:not(.statement)::before { content: none; }
.grid th.turned { height: 7.5rem; vertical-align: bottom; padding: 0 .1rem; }
.grid th.turned span { writing-mode: vertical-rl; transform: rotate(180deg); }

@media print {
  .plot, .panels h3, .keys { display: block; }
  .keys { display: flex; }
  section[id] { break-before: auto; }
  .panels > div, .one { break-inside: avoid; }
}
"""
