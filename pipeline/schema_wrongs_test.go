package pipeline

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// wrong is a mistake: an edit of a definition, and where an editor must underline it.
type wrong struct{ name, at, old, new string }

// wrongs are mistakes in every part of the format, beside the mistakes, done to the rich definition.
var wrongs = []wrong{
	{"agents: not a mapping", "/agents/other", "other: {run", "other: [run]\n  third: {run"},
	{"agents: a name that is none", "/", "  other: {run", "  'a b': {run"},
	{"agents: no run", "/agents/other", "run: [other, --json], ", ""},
	{"agents: an unknown reply", "/agents/other/reply", "reply: text", "reply: xml"},
	{"agents: no reply", "/agents/other", "reply: text, ", ""},
	{"agents: half a price", "/agents/other/price", ", output: 2.5", ""},
	{"agents: a price below zero", "/agents/other/price/output", "output: 2.5", "output: -1"},
	{"agents: an unknown key in the price", "/agents/other/price", "output: 2.5", "output: 2.5, cached: 1"},
	{"agents: an empty command", "/agents/other/run", "[other, --json]", "[]"},
	{"agents: an unknown sandbox", "/agents/other/sandbox", "reply: text", "reply: text, sandbox: jail"},
	{"agents: an unknown network", "/agents/other/network", "reply: text", "reply: text, network: closed"},
	{"agents: no address", "/agents/other/network/0", "reply: text", "reply: text, network: ['http://x.org/']"},
	{"agents: no addresses", "/agents/other/network", "reply: text", "reply: text, network: []"},
	{"limits: a number as wait", "/limits/backoff/first", "first: 1s", "first: 1"},
	{"limits: no wait at all", "/limits/backoff/first", "first: 1s", "first: 0s"},
	{"limits: too many attempts", "/stages/0/passes/0/limits/attempts", "attempts: 7", "attempts: 21"},
	{"limits: half an attempt", "/limits/structural", "structural: 4", "structural: 1.5"},
	{"limits: too much jitter", "/limits/backoff/jitter", "jitter: 0}", "jitter: 2}"},
	{"limits: an unknown key in the backoff", "/limits/backoff", "jitter: 0}", "base: 0}"},
	{"limits: an unknown key in the wait", "/limits/wait", "wait: {first", "wait: {begin"},
	{"limits: a key of earlier releases", "/limits", "wait: {first: 2s}", "rate_limit: {attempts: 2}"},
	{"limits: a fallback that is not a list", "/limits/fallback", "fallback: [other]", "fallback: other"},
	{"limits: time scale of a step", "/stages/0/passes/0/limits", "limits: {attempts: 7}", "limits: {time_scale: 7}"},
	{"limits: calls at once of a step", "/stages/0/passes/0/limits", "limits: {attempts: 7}", "limits: {at_once: 7}"},
	{"limits: no call at once", "/limits/at_once", "time_scale: 0.01", "at_once: 0"},
	{"limits: too many calls at once", "/limits/at_once", "time_scale: 0.01", "at_once: 1000001"},
	{"limits: no scale", "/limits/time_scale", "time_scale: 0.01", "time_scale: 0"},
	{"budget: no amount", "/budget", "artifact:", "budget: {warn_at: 0.5}\nartifact:"},
	{"budget: a share above one", "/budget/warn_at", "artifact:", "budget: {usd: 1, warn_at: 80}\nartifact:"},
	{"budget: an amount in words", "/budget/usd", "artifact:", "budget: {usd: ten}\nartifact:"},
	{"notify: one that is not a list", "/notify", "artifact:", "notify: {run: [bell]}\nartifact:"},
	{"notify: empty", "/notify", "artifact:", "notify: []\nartifact:"},
	{"notify: two ways", "/notify/0", "artifact:", "notify: [{run: [bell], webhook: 'https://x.org'}]\nartifact:"},
	{"notify: no address", "/notify/0/webhook", "artifact:", "notify: [{webhook: hook}]\nartifact:"},
	{"notify: a secret in the file", "/notify/0/secret_env", "artifact:",
		"notify: [{webhook: 'https://x.org', secret_env: 'a b'}]\nartifact:"},
	{"notify: a key for a command", "/notify/0/secret_env", "artifact:",
		"notify: [{run: [bell], secret_env: KEY}]\nartifact:"},
	{"notify: an unknown occasion", "/notify/0/on/0", "artifact:", "notify: [{run: [bell], on: [start]}]\nartifact:"},
	{"notify: no time", "/notify/0/timeout", "artifact:", "notify: [{run: [bell], timeout: 3}]\nartifact:"},
	{"artifact: a text", "/artifact", "artifact: {file: page.html, seed: seed.html}", "artifact: page.html"},
	{"artifact: no file", "/artifact", "file: page.html, ", ""},
	{"artifact: an unknown key", "/artifact", "seed: seed.html", "seed: seed.html, kind: html"},
	{"artifact: a seed outside", "/artifact/seed", "seed: seed.html", "seed: ../seed.html"},
	{"workspace: nothing is protected", "/workspace/protect", "artifact: {file: page.html, seed: seed.html}",
		"workspace: {dir: ., protect: []}"},
	{"workspace: an absolute path is protected", "/workspace/protect/0", "artifact: {file: page.html, seed: seed.html}",
		"workspace: {dir: ., protect: [/etc]}"},
	{"workspace: neither", "/workspace", "artifact: {file: page.html, seed: seed.html}", "workspace: {}"},
	{"workspace: another git", "/workspace/git", "artifact: {file: page.html, seed: seed.html}",
		"workspace: {git: branch}"},
	{"workspace: an unknown key", "/workspace", "artifact: {file: page.html, seed: seed.html}",
		"workspace: {dir: ., base: main}"},
	{"notes: no marker", "/notes/log", "roles:", "notes: {log: {file: log.md}}\nroles:"},
	{"notes: an unknown key", "/notes/log", "roles:", "notes: {log: {file: log.md, marker: LOG, title: Log}}\nroles:"},
	{"notes: a list", "/notes", "roles:", "notes: [log]\nroles:"},
	{"always_read: a mapping", "/always_read", "roles:", "always_read: {World: w.md}\nroles:"},
	{"always_read: a path that is a number", "/always_read/0/World", "roles:", "always_read: [World: 3]\nroles:"},
	{"roles: a list", "/roles/judge", "  judge:\n    prompt: j.md", "  judge: [j.md]\n  third:\n    prompt: j.md"},
	{"roles: the name of an agent that is a number", "/roles/writer/agent", "agent: other", "agent: 3"},
	{"roles: the same note twice", "/roles/writer/notes", "agent: other", "notes: [a, a]"},
	{"roles: an empty tally", "/roles/writer/tally", "agent: other", "tally: {}"},
	{"roles: a tally of a list", "/roles/writer/tally/a", "agent: other", "tally: {a: [A]}"},
	{"score: an unknown take", "/roles/judge/score/take", "take: first", "take: best"},
	{"score: no find", "/roles/judge/score", "score: {find: '(\\d)/4', ", "score: {"},
	{"score: a range of words", "/roles/judge/score/range/0", "[-1, 4.5]", "[low, high]"},
	{"score: three numbers", "/roles/judge/score/range", "[-1, 4.5]", "[0, 1, 2]"},
	{"score: an unknown key", "/roles/judge/score", "take: first", "first: true"},
	{"verdict: no find", "/roles/judge/verdict", "verdict: {find: '^VERDICT: (yes|no)$', approves: yes}", "verdict: {}"},
	{"verdict: an unknown key", "/roles/judge/verdict", "verdict: {find", "verdict: {take: last, find"},
	{"checks: a list of names", "/roles/writer/checks/0", "agent: other", "checks: [non-empty]"},
	{"checks: over that is a text", "/roles/writer/checks/0/over", "agent: other",
		"checks: [{name: minimum-length, over: long}]"},
	{"checks: between with one number", "/roles/writer/checks/0/between", "agent: other",
		"checks: [{name: container-width, between: [940]}]"},
	{"checks: over of a width", "/roles/writer/checks/0/over", "agent: other",
		"checks: [{name: container-width, between: [1, 2], over: 3}]"},
	{"checks: over of a custom check", "/roles/writer/checks/0/over", "agent: other",
		"checks: [{name: mine, any: [a], over: 3}]"},
	{"checks: an unknown key", "/roles/writer/checks/0", "agent: other", "checks: [{name: mine, all: [a]}]"},
	{"with: a word that is empty", "/roles/writer/with/list/1", "list: [a, 1]", "list: [a, null]"},
	{"corpus: no theme", "/corpus/S1", "{theme: One, files", "{files"},
	{"corpus: no files", "/corpus/S1", ", files: [a: a.md, b: b.md]", ""},
	{"corpus: an unknown key", "/corpus/S1", "theme: One", "theme: One, title: Two"},
	{"stages: a mapping", "/stages", "stages:", "stages: {a: b}\nsteps:"},
	{"stages: no list of steps", "/stages/1/steps", "    steps:\n      - screenshots",
		"    steps: none\n    passes:\n      - screenshots"},
	{"stages: an unknown key", "/stages/0", "pause_after: true", "review: true"},
	{"stages: an unknown for_each", "/stages/0/for_each", "for_each: corpus", "for_each: set"},
	{"stages: pause_after in quotes", "/stages/0/pause_after", "pause_after: true", "pause_after: 'true'"},
	{"stages: a dir outside", "/stages/1/dir", "- name: judge\n", "- name: judge\n    dir: ../out\n"},
	{"stages: a slot of another kind", "/stages/0/checkpoint", "pause_after: true", "checkpoint: cp-{n}"},
	{"stages: a slot in the only round", "/stages/1/dir", "- name: judge\n", "- name: judge\n    dir: out/{n}\n"},
	{"repeat: no max", "/stages/1/repeat", "- name: judge\n", "- name: judge\n    repeat: {until: score > 1}\n"},
	{"repeat: too many rounds", "/stages/1/repeat/max", "- name: judge\n",
		"- name: judge\n    repeat: {max: 1001, until: score > 1}\n"},
	{"repeat: another way out", "/stages/1/repeat/otherwise", "- name: judge\n",
		"- name: judge\n    repeat: {max: 2, until: score > 1, otherwise: stop}\n"},
	{"repeat: a condition that is a number", "/stages/1/repeat/until", "- name: judge\n",
		"- name: judge\n    repeat: {max: 2, until: 3}\n"},
	{"orders: an unknown key", "/stages/0/orders/X", "label: Back first", "title: Back first"},
	{"orders: a share by nothing", "/stages/0/orders/X/shift", "shift: 1/2", "shift: 1/0"},
	{"orders: no shift", "/stages/0/orders/A", "A: {shift: 0}", "A: {label: Base}"},
	{"steps: a text", "/stages/1/steps/1", "- role: *w", "- writer"},
	{"steps: an unknown key", "/stages/1/steps/1", "- role: *w", "- {role: writer, repeat: 3}"},
	{"steps: together with a text", "/stages/1/steps/1/together", "- role: *w", "- together: writer"},
	{"steps: an order of a group", "/stages/0/passes/1/order", "order: X",
		"order: X}\n      - {together: [judge, other], order: X"},
	{"steps: an order of a command", "/stages/1/steps/2/order", "id: build", "order: X"},
	{"steps: a question with a name", "/stages/1/steps/1/id", "- role: *w", "- {ask: 'Fine?', id: fine}"},
	{"steps: pictures with a name", "/stages/1/steps/0/id", "- screenshots: {sizes: [800x600]",
		"- id: shots\n        screenshots: {sizes: [800x600]"},
	{"steps: a name of until's own", "/stages/1/steps/2/id", "id: build", "id: last"},
	{"steps: a name that is a number", "/stages/1/steps/2/id", "id: build", "id: 3"},
	{"screenshots: no sizes", "/stages/1/steps/0/screenshots", "sizes: [800x600], ", ""},
	{"screenshots: the same size twice", "/stages/1/steps/0/screenshots/sizes", "[800x600]", "[800x600, 800x600]"},
	{"screenshots: an unknown kind", "/stages/1/steps/0/screenshots/kinds/0", "install: [npx, playwright, install]",
		"kinds: [page]"},
	{"screenshots: no attempt", "/stages/1/steps/0/screenshots/attempts", "install: [npx, playwright, install]",
		"attempts: 0"},
	{"screenshots: another way out", "/stages/1/steps/0/screenshots/if_failing", "install: [npx, playwright, install]",
		"if_failing: skip"},
	{"screenshots: a text to install", "/stages/1/steps/0/screenshots/install", "install: [npx, playwright, install]",
		"install: npx"},
	{"screenshots: an unknown key", "/stages/1/steps/0/screenshots", "install: [npx, playwright, install]",
		"delay: 1s"},
}

// small is a definition with as little as possible; `more: here` is replaced by what a mistake adds at the top, or to
// nothing.
const small = `
pipeline: small
agent: {run: [a], reply: text}
more: here
roles: {r: {prompt: p.md, gives: report, with: {a: b}}}
stages: [{name: s, steps: [{role: r}]}]
`

// wrongsOfSmall are mistakes that need a definition without artifact, corpus and agents, or would be lost in a bigger
// one.
var wrongsOfSmall = []wrong{
	{"top: no stage", "/", "agent: {run: [a], reply: text}\n", ""},
	{"top: no roles", "/", "roles: {r: {prompt: p.md, gives: report, with: {a: b}}}\n", ""},
	{"top: no stages", "/", "stages: [{name: s, steps: [{role: r}]}]\n", ""},
	{"top: an artifact and a workspace", "/workspace", "more: here",
		"artifact: {file: a.html, seed: a.html}\nworkspace: {dir: .}"},
	{"agents: none", "/agents", "more: here", "agents: {}"},
	{"agents: a list", "/agents", "more: here", "agents: [a]"},
	{"agent: a number", "/agent", "agent: {run: [a], reply: text}", "agent: 1"},
	{"agent: a variable that is a number", "/agent/env/0", "reply: text", "reply: text, env: [1]"},
	{"agent: no variables", "/agent/env", "reply: text", "reply: text, env: []"},
	{"agent: a price that is a number", "/agent/price", "reply: text", "reply: text, price: 3"},
	{"agent: a price too high", "/agent/price/input", "reply: text", "reply: text, price: {input: 1000001, output: 1}"},
	{"agent: a price in words", "/agent/price/output", "reply: text", "reply: text, price: {input: 1, output: expensive}"},
	{"limits: no attempt", "/limits/attempts", "more: here", "limits: {attempts: 0}"},
	{"limits: no attempt at a structure", "/limits/structural", "more: here", "limits: {structural: 0}"},
	{"limits: waits that become shorter", "/limits/backoff/factor", "more: here", "limits: {backoff: {factor: 0.5}}"},
	{"limits: waits that explode", "/limits/backoff/factor", "more: here", "limits: {backoff: {factor: 101}}"},
	{"limits: a backoff that is a wait", "/limits/backoff", "more: here", "limits: {backoff: 5s}"},
	{"limits: a wait that is a number", "/limits/wait", "more: here", "limits: {wait: 5}"},
	{"limits: a scale too big", "/limits/time_scale", "more: here", "limits: {time_scale: 1001}"},
	{"limits: a number as size", "/limits/output", "more: here", "limits: {output: 32000000}"},
	{"limits: an unknown unit", "/limits/output", "more: here", "limits: {output: 32MO}"},
	{"limits: a size too small", "/limits/output", "more: here", "limits: {output: 0KB}"},
	{"limits: a size too large", "/limits/tree/size", "more: here", "limits: {tree: {size: 1000000GB}}"},
	{"limits: no file", "/limits/tree/files", "more: here", "limits: {tree: {files: 0}}"},
	{"limits: an unknown key in the tree", "/limits/tree", "more: here", "limits: {tree: {depth: 3}}"},
	{"limits: a duration without a number", "/limits/timeout", "more: here", "limits: {timeout: h}"},
	{"budget: a number", "/budget", "more: here", "budget: 5"},
	{"budget: a debt", "/budget/usd", "more: here", "budget: {usd: -1}"},
	{"budget: too much", "/budget/usd", "more: here", "budget: {usd: 1e10}"},
	{"budget: a warning at nothing", "/budget/warn_at", "more: here", "budget: {usd: 1, warn_at: 0}"},
	{"budget: an unknown key", "/budget", "more: here", "budget: {usd: 1, eur: 1}"},
	{"artifact: a name that is taken", "/artifact/file", "more: here", "artifact: {file: state.json, seed: a.html}"},
	{"artifact: a blank seed", "/artifact/seed", "more: here", "artifact: {file: a.html, seed: ' '}"},
	{"workspace: both", "/workspace", "more: here", "workspace: {git: worktree, dir: .}"},
	{"workspace: nothing", "/workspace", "more: here", "workspace: {}"},
	{"workspace: a text", "/workspace", "more: here", "workspace: worktree"},
	{"workspace: a branch", "/workspace/git", "more: here", "workspace: {git: branch}"},
	{"workspace: a folder outside", "/workspace/dir", "more: here", "workspace: {dir: ..}"},
	{"snapshots: an unknown word", "/snapshots", "more: here", "workspace: {dir: .}\nsnapshots: all"},
	{"snapshots: without a workspace", "/snapshots", "more: here", "snapshots: full"},
	{"notes: none", "/notes", "more: here", "notes: {}"},
	{"notes: no file", "/notes/a", "more: here", "notes: {a: {marker: A}}"},
	{"notes: a text", "/notes/a", "more: here", "notes: {a: a.md}"},
	{"notes: a marker that is a number", "/notes/a/marker", "more: here", "notes: {a: {file: a.md, marker: 1}}"},
	{"always_read: an entry without a label", "/always_read/0", "more: here", "always_read: [{}]"},
	{"always_read: a label too long", "/", "more: here", "always_read: [" + strings.Repeat("l", 201) + ": p.md]"},
	{"corpus: a list", "/corpus", "more: here", "corpus: [a]"},
	{"corpus: none", "/corpus", "more: here", "corpus: {}"},
	{"corpus: a set that is a list", "/corpus/S1", "more: here", "corpus: {S1: [A: p.md]}"},
	{"roles: none", "/roles", "{r: {prompt: p.md, gives: report, with: {a: b}}}", "{}"},
	{"roles: a bad name", "/", "roles: {r:", "roles: {a/b: {prompt: p.md, gives: report}, r:"},
	{"roles: an artifact that is none", "/roles/r/gives", "gives: report", "gives: artifact"},
	{"roles: changes to nothing", "/roles/r/gives", "gives: report", "gives: changes"},
	{"roles: no words", "/roles/r/with/a", "with: {a: b}", "with: {a: []}"},
	{"roles: words that are a list", "/roles/r/with", "with: {a: b}", "with: [a]"},
	{"roles: a bad key for words", "/", "with: {a: b}", "with: {a b: c}"},
	{"roles: checks that are a name", "/roles/r/checks", "with: {a: b}", "checks: non-empty"},
	{"roles: no checks", "/roles/r/checks", "with: {a: b}", "checks: []"},
	{"roles: notes that are a name", "/roles/r/notes", "with: {a: b}", "notes: log"},
	{"roles: no notes", "/roles/r/notes", "with: {a: b}", "notes: []"},
	{"roles: a tally that is a list", "/roles/r/tally", "with: {a: b}", "tally: [A]"},
	{"roles: a score that is a number", "/roles/r/score", "with: {a: b}", "score: 3"},
	{"roles: a verdict that is a text", "/roles/r/verdict", "with: {a: b}", "verdict: '(yes|no)'"},
	{"roles: limits that are a number", "/roles/r/limits", "with: {a: b}", "limits: 3"},
	{"score: a find that is a number", "/roles/r/score/find", "with: {a: b}", "score: {find: 3, range: [0, 1]}"},
	{"score: a range that is a text", "/roles/r/score/range", "with: {a: b}", "score: {find: '(a)', range: 0-4}"},
	{"checks: a width without bounds", "/roles/r/checks/0", "with: {a: b}", "checks: [{name: container-width}]"},
	{"checks: words of a page", "/roles/r/checks/0/any", "with: {a: b}", "checks: [{name: html-present, any: [a]}]"},
	{"checks: forbidden words of a page", "/roles/r/checks/0/none", "with: {a: b}",
		"checks: [{name: html-complete, none: [a]}]"},
	{"checks: a width of a page", "/roles/r/checks/0/between", "with: {a: b}",
		"checks: [{name: non-empty, between: [1, 2]}]"},
	{"checks: words of a length", "/roles/r/checks/0/any", "with: {a: b}",
		"checks: [{name: minimum-length, over: 1, any: [a]}]"},
	{"checks: a width of a custom check", "/roles/r/checks/0/between", "with: {a: b}",
		"checks: [{name: mine, any: [a], between: [1, 2]}]"},
	{"checks: a length below zero", "/roles/r/checks/0/over", "with: {a: b}",
		"checks: [{name: minimum-length, over: -1}]"},
	{"stages: none", "/stages", "[{name: s, steps: [{role: r}]}]", "[]"},
	{"stages: a text", "/stages/0", "{name: s, steps: [{role: r}]}", "s"},
	{"stages: no steps", "/stages/0", ", steps: [{role: r}]", ""},
	{"stages: an empty list of steps", "/stages/0/steps", "[{role: r}]", "[]"},
	{"stages: passes of no set", "/stages/0/passes", "steps:", "passes:"},
	{"stages: orders of no set", "/stages/0/orders", "steps:", "orders: {A: 0}, steps:"},
	{"stages: sets without a corpus", "/stages/0/for_each", "steps:", "for_each: corpus, passes:"},
	{"stages: a checkpoint that is a number", "/stages/0/checkpoint", "steps:", "checkpoint: 3, steps:"},
	{"stages: a checkpoint with a blank", "/stages/0/checkpoint", "steps:", "checkpoint: a b, steps:"},
	{"stages: a dir that is a list", "/stages/0/dir", "steps:", "dir: [a], steps:"},
	{"stages: a loop that is a number", "/stages/0/repeat", "steps:", "repeat: 3, steps:"},
	{"stages: a loop whose checkpoints are one", "/stages/0/checkpoint", "steps:",
		"repeat: {max: 2, until: t.ok}, checkpoint: cp, steps:"},
	{"stages: a loop whose folders are one", "/stages/0/dir", "steps:",
		"repeat: {max: 2, until: t.ok}, dir: out, steps:"},
	{"stages: a loop with passes", "/stages/0/passes", "steps:", "repeat: {max: 2, until: t.ok}, passes:"},
	{"steps: nothing to do", "/stages/0/steps/0", "{role: r}", "{id: a}"},
	{"steps: pictures of nothing", "/stages/0/steps/0/screenshots", "{role: r}", "{screenshots: {sizes: [800x600]}}"},
	{"steps: the same role twice", "/stages/0/steps/0/together", "{role: r}", "{together: [r, r]}"},
	{"steps: a group of a number", "/stages/0/steps/0/together/1", "{role: r}", "{together: [r, 3]}"},
	{"steps: an order without orders", "/stages/0/steps/0/order", "{role: r}", "{role: r, order: A}"},
	{"steps: a question that looks back", "/stages/0/steps/0/see", "{role: r}", "{ask: 'Fine?', see: last}"},
	{"steps: a question with limits", "/stages/0/steps/0/limits", "{role: r}", "{ask: 'Fine?', limits: {attempts: 2}}"},
	{"steps: a blank question", "/stages/0/steps/0/ask", "{role: r}", "{ask: ' '}"},
	{"steps: a name that begins with a digit", "/stages/0/steps/0/id", "{role: r}", "{role: r, id: 1st}"},
	{"screenshots: too many attempts", "/stages/0/steps/0/screenshots/attempts", "{role: r}",
		"{screenshots: {sizes: [800x600], attempts: 21}}"},
	{"screenshots: no size", "/stages/0/steps/0/screenshots/sizes", "{role: r}", "{screenshots: {sizes: []}}"},
	{"screenshots: a size that is not a list", "/stages/0/steps/0/screenshots/sizes", "{role: r}",
		"{screenshots: {sizes: 800x600}}"},
	{"screenshots: no kinds", "/stages/0/steps/0/screenshots/kinds", "{role: r}",
		"{screenshots: {sizes: [800x600], kinds: []}}"},
	{"screenshots: the same kind twice", "/stages/0/steps/0/screenshots/kinds", "{role: r}",
		"{screenshots: {sizes: [800x600], kinds: [full, full]}}"},
}

func TestSchemaRefusesWhatParseRefuses(t *testing.T) {
	s := compiled(t)
	require.NoError(t, s.Validate(asJSON(t, []byte(strings.Replace(small, "more: here\n", "", 1)))))
	for base, rows := range map[string][]wrong{rich: wrongs, small: wrongsOfSmall} {
		for _, c := range rows {
			t.Run(c.name, func(t *testing.T) {
				require.Contains(t, base, c.old)
				src := []byte(strings.Replace(strings.Replace(base, c.old, c.new, 1), "more: here\n", "", 1))
				_, problems := Parse("x.yaml", src, folderFor([]byte(rich+small)))
				require.NotEmpty(t, problems, "this is not a mistake")
				require.Contains(t, underlined(s.Validate(asJSON(t, src))), c.at)
			})
		}
	}
}

// underlined are the places of a definition that a schema refuses.
func underlined(err error) []string {
	var refused *jsonschema.ValidationError
	if !errors.As(err, &refused) {
		return nil
	}
	if len(refused.Causes) == 0 {
		return []string{"/" + strings.Join(refused.InstanceLocation, "/")}
	}
	var out []string
	for _, cause := range refused.Causes {
		out = append(out, underlined(cause)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
