package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// healthy is the definition that the mistakes are done to.
const healthy = `pipeline: demo
agent: {run: [claude, -p], reply: text}
limits: {timeout: 10m}
artifact: {file: page.html, seed: seed.html}
notes:
  log: {file: log.md, marker: LOG}
always_read:
  - World: world.md
roles:
  writer: {prompt: prompts/writer.md, gives: artifact, notes: [log], checks: [{name: non-empty}]}
  judge: {prompt: prompts/judge.md, gives: report, score: {find: '(\d)/4', range: [0, 4]}}
corpus:
  S1: {theme: One, files: [A: a.md, B: b.md]}
stages:
  - name: write
    for_each: corpus
    orders: {X: 0, Y: 1/2}
    passes:
      - {role: writer, order: X}
      - {role: judge, order: Y, see: last}
    checkpoint: cp-{set}
  - name: polish
    repeat: {max: 3, until: score >= 3}
    checkpoint: cp-{n}
    steps:
      - {role: judge}
      - {run: make test, id: tests}
      - {role: writer, see: last}
`

// mistake is one edit of the healthy definition and every problem that Parse then reports.
type mistake struct {
	name string
	old  string // "" appends new
	new  string
	want string // lines
}

var mistakes = []mistake{
	{"time scale outside the top", "gives: report,", "gives: report, limits: {time_scale: 2},",
		`x.yaml:11: unknown key "time_scale" in roles.judge.limits; write one of: after_reset, attempts, backoff, fallback,` +
			` idle, max_wait, output, structural, timeout, tree, unknown_reset, wait`},
	{"duplicate role", "  judge: {", "  writer: {",
		"x.yaml:11: \"writer\" is there twice in one mapping, first on line 10; keep one of them\n" +
			"x.yaml:20: role \"judge\" is not one of roles; write one of: writer\n" +
			"x.yaml:23: stage \"polish\".repeat.until asks for score, and no role step of the stage has one; " +
			"write score: {find: ..., range: ...} in the role that does\n" +
			"x.yaml:26: role \"judge\" is not one of roles; write one of: writer"},
	{"duplicate set", "stages:", "  S1: {theme: Again, files: [A: a.md]}\nstages:",
		`x.yaml:14: "S1" is there twice in one mapping, first on line 13; keep one of them`},
	{"duplicate label", "B: b.md", "A: b.md",
		`x.yaml:13: corpus.S1.files: label "A" is there twice, first on line 13; give each file its own`},
	{"duplicate stage", "- name: polish", "- name: write",
		`x.yaml:22: stage "write" is there twice, first on line 15; give each stage its own name`},
	{"duplicate step name", "{role: writer, see: last}", "{role: writer, see: last, id: tests}",
		`x.yaml:28: stage "polish" step 3.id is "tests", the name of another step too; choose another`},
	{"duplicate check", "checks: [{name: non-empty}]", "checks: [{name: non-empty}, {name: non-empty}]",
		`x.yaml:10: roles.writer.checks "non-empty" is there twice, first on line 10; keep one of them`},
	{"duplicate marker", "  log: {file: log.md, marker: LOG}",
		"  log: {file: log.md, marker: LOG}\n  two: {file: two.md, marker: LOG}",
		`x.yaml:7: notes.two.marker is LOG, the same as in log; choose another`},
	{"duplicate checkpoint", "checkpoint: cp-{n}", "checkpoint: cp-{set}",
		"x.yaml:24: stage \"polish\".checkpoint has {set}, which has no value here; write {n} where the " +
			"rounds differ\n" +
			"x.yaml:24: stage \"polish\".checkpoint is \"cp-{set}\" for every round; write {n} where the rounds " +
			"differ\nx.yaml:24: stage \"polish\".checkpoint is cp-{set}, the same as in stage write; choose another"},
	{"duplicate folder", "{role: writer, see: last}",
		"{role: writer, see: last}\n    dir: cycle-{n}\n  - name: again\n    repeat: {max: 3, until: score >= 3}\n  " +
			"  dir: cycle-{n}\n    steps: [{role: judge}]",
		`x.yaml:32: stage "again".dir is cycle-{n}, the same as in stage polish; choose another`},
	{"wrong type, text", "pipeline: demo", "pipeline: 12",
		`x.yaml:1: pipeline is the number 12, not a text; put it in quotes: "12"`},
	{"wrong type in a list", "run: [claude, -p]", "run: [claude, 1]",
		`x.yaml:2: agent.run is the number 1, not a text; put it in quotes: "1"`},
	{"number out of bounds", "max: 3", "max: 0",
		`x.yaml:23: stage "polish".repeat.max is the number 0; write a whole number from 1 to 1000`},
	{"a duration below zero", "timeout: 10m", "timeout: -5s",
		`x.yaml:3: limits.timeout: "-5s" is not above zero; write a duration such as 5s, 10m or 1h30m`},
	{"a plain number as size", "timeout: 10m", "output: 600",
		`x.yaml:3: limits.output is the number 600; write a size with its unit, such as 500KB, 32MB or 2GB`},
	{"not a size", "timeout: 10m", "output: large",
		`x.yaml:3: limits.output: "large" is not a size; write a number with its unit, such as 500KB, 32MB or 2GB`},
	{"a size that is too small", "timeout: 10m", "tree: {size: 5B}",
		`x.yaml:3: limits.tree.size: "5B" is not a size; write a number with its unit, such as 500KB, 32MB or 2GB`},
	{"an idle time that the timeout precedes", "timeout: 10m", "idle: 5h",
		`x.yaml:3: limits.idle is 5h0m0s, and timeout is 4h0m0s; write a shorter idle, or leave it out`},
	{"missing agent", "agent: {run: [claude, -p], reply: text}\n", "",
		`x.yaml:1: the pipeline has none of agent, agents; write one, such as agent: claude`},
	{"missing prompt key", "prompt: prompts/judge.md, ", "",
		`x.yaml:11: prompt is missing in roles.judge; write prompt: prompts/judge.md`},
	{"missing seed key", ", seed: seed.html", "", `x.yaml:4: seed is missing in artifact; write seed: seed/page.html`},
	{"missing until", ", until: score >= 3", "",
		`x.yaml:23: until is missing in stage "polish".repeat; write until: score >= 3.5`},
	{"a gate that cannot be read", "    checkpoint: cp-{n}\n", "    checkpoint: cp-{n}\n    quality_gate: score >>\n",
		`x.yaml:25: stage "polish".quality_gate cannot be read: unexpected token Operator(">"); write a condition ` +
			`such as score >= 3.5, or approved and tests.ok`},
	{"a gate on an unknown value", "    checkpoint: cp-{n}\n",
		"    checkpoint: cp-{n}\n    quality_gate: approved\n",
		`x.yaml:25: stage "polish".quality_gate asks for approved, and no role step of the stage has a verdict; ` +
			`write schema: review or verdict: {find: ...} in the role that does`},
	{"a gate where no score is given", "    checkpoint: cp-{set}\n",
		"    checkpoint: cp-{set}\n    quality_gate: score >= 2\n",
		`x.yaml:22: stage "write".quality_gate is in a stage with for_each, whose passes have no score; put it into the ` +
			`stage that has one`},
	{"missing range", ", range: [0, 4]", "", `x.yaml:11: range is missing in roles.judge.score; write range: [0, 4]`},
	{"missing steps",
		"    steps:\n      - {role: judge}\n      - {run: make test, id: tests}\n      - {role: writer, see: last}\n", "",
		"x.yaml:22: steps is missing in stage \"polish\"; write steps: [{role: judge}]\n" +
			"x.yaml:23: stage \"polish\".repeat.until asks for score, and no role step of the stage has one; write score: " +
			"{find: ..., range: ...} in the role that does"},
	{"missing file always read", "world.md", "gone.md",
		`x.yaml:8: always_read.World names gone.md, and there is no such file; create it or correct the path`},
	{"a path outside", "world.md", "x/../../world.md",
		`x.yaml:8: always_read.World: "x/../../world.md" is outside the folder of this file; move what it names into the ` +
			`folder`},
	{"backslashes", "world.md", `docs\world.md`,
		`x.yaml:8: always_read.World: "docs\\world.md" is not a path with forward slashes; write one`},
	{"a blank prompt", "prompts/judge.md", "prompts/blank.md",
		`x.yaml:11: roles.judge.prompt names prompts/blank.md, which is blank; write what the role is asked`},
	{"an unknown placeholder", "prompts/judge.md", "prompts/bad.md",
		`prompts/bad.md:2: {{refrences}} is not a placeholder; did you mean "references"? ` +
			`(the text itself is written \{{refrences}})` +
			"\n" +
			`prompts/bad.md:3: {{with.focus}} has no value; write with: {focus: ...} in the role, or drop it here`},
	{"no such role in a step", "{role: judge}", "{role: juge}",
		"x.yaml:23: stage \"polish\".repeat.until asks for score, and no role step of the stage has one; write score: " +
			"{find: ..., range: ...} in the role that does\n" +
			"x.yaml:26: role \"juge\" is not one of roles; did you mean \"judge\"?"},
	{"no such role together", "{role: judge, order: Y, see: last}", "{together: [judge, jury]}",
		`x.yaml:20: role "jury" is not one of roles; write one of: writer, judge`},
	{"together alone", "{role: judge, order: Y, see: last}", "{together: [judge]}",
		`x.yaml:20: stage "write" step 2.together needs two roles or more; for one write role: NAME`},
	{"together with a builder", "{role: judge, order: Y, see: last}", "{together: [judge, writer, judge]}",
		"x.yaml:20: role \"writer\" outputs artifact, and roles under together can only output reports; make it a separate " +
			"step\n" +
			"x.yaml:20: stage \"write\" step 2.together has judge twice; keep one"},
	{"another session", "gives: report,", "gives: report, session: new,",
		`x.yaml:11: roles.judge.session is "new"; write one of: continue`},
	{"no default agent", "agent: {run: [claude, -p], reply: text}", "agents: {one: {run: [claude], reply: text}}",
		"x.yaml:10: roles.writer names no agent, and there is no default one; write agent: with one of agents\n" +
			"x.yaml:11: roles.judge names no agent, and there is no default one; write agent: with one of agents"},
	{"no such step to see", "{role: writer, see: last}", "{role: writer, see: test}",
		`x.yaml:28: see is "test", not a stage and not the id of a step; did you mean "tests"?`},
	{"nothing before to see", "{role: writer, order: X}", "{role: writer, see: last}",
		`x.yaml:19: see is last, and no step before it in the round has a reply; drop see, or name a stage or the id of a step`},
	{"a later stage to see", "{role: writer, order: X}", "{role: writer, see: polish}",
		`x.yaml:19: see is "polish", a stage that has not finished by then; name an earlier one, or last`},
	{"a later step to see", "{role: writer, order: X}", "{role: writer, see: tests}",
		`x.yaml:19: see is "tests", a step that has not run by then; name an earlier one`},
	{"no such name in until", "until: score >= 3", "until: test.ok",
		`x.yaml:23: stage "polish".repeat.until has the unknown name test; did you mean "tests"?`},
	{"no verdict for until", "until: score >= 3", "until: approved",
		`x.yaml:23: stage "polish".repeat.until asks for approved, and no role step of the stage has a verdict; write ` +
			`schema: review or verdict: {find: ...} in the role that does`},
	{"bad regexp", `(\d)/4`, `(\d/4`,
		"x.yaml:11: roles.judge.score.find: \"(\\\\d/4\" is not a regular expression: missing closing ): `(\\d/4`; correct " +
			"it (the syntax is RE2)"},
	{"a regexp without a group", `(\d)/4`, `\d/4`,
		`x.yaml:11: roles.judge.score.find: "\\d/4" has 0 groups; write (...) around exactly the part to take, and (?:...) ` +
			`elsewhere`},
	{"no kind in a step", "{role: judge}", "{id: first}",
		"x.yaml:23: stage \"polish\".repeat.until asks for score, and no role step of the stage has one; write score: " +
			"{find: ..., range: ...} in the role that does\n" +
			"x.yaml:26: stage \"polish\" step 1 has none of role, together, run, screenshots, ask; write one, such as role: " +
			"judge"},
	{"see in a command", "{run: make test, id: tests}", "{run: make test, id: tests, see: last}",
		`x.yaml:27: stage "polish" step 2: see does not go with run; leave it out`},
	{"a name that until cannot tell apart", "id: tests", "id: last",
		`x.yaml:27: stage "polish" step 2.id: "last" cannot name the output of a step; begin with a letter, then letters, ` +
			`digits or underscores, and not last`},
	{"a step called like a stage", "id: tests", "id: write",
		`x.yaml:27: stage "polish" step 2.id is "write", the name of a stage too; choose another`},
	{"a value where env wants names", "reply: text", "reply: text, env: [KEY=1]",
		`x.yaml:2: agent.env: "KEY=1" is not the name of an environment variable; write its name only, such as API_KEY`},
	{"a file with two labels", "- World: world.md", "- {World: world.md, Other: a.md}",
		`x.yaml:8: always_read needs one label and its path, such as Rules: grammar/rules.md`},
	{"no words at all", "gives: report,", "gives: report, with: {},",
		`x.yaml:11: roles.judge.with is empty; put something in it or leave the key out`},
	{"a custom tag", "pipeline: demo", "pipeline: !name demo",
		`x.yaml:1: pipeline is "demo" with the tag !name, not a text; put it in quotes: "demo"`},
	{"screenshots of nothing", "{role: judge}", "{role: judge}\n      - {screenshots: 3}",
		`x.yaml:27: stage "polish" step 2.screenshots is the number 3; write a mapping of keys and values`},
	{"a workspace of both kinds", "artifact: {file: page.html, seed: seed.html}", "workspace: {git: worktree, dir: .}",
		"x.yaml:4: workspace has git and dir; keep one\n" +
			"x.yaml:10: roles.writer.gives is artifact, and the pipeline has none; write artifact: {file: NAME, seed: PATH} " +
			"at the top"},
	{"protected paths that are none", "artifact: {file: page.html, seed: seed.html}",
		"workspace:\n  git: worktree\n  protect:\n    - /etc/passwd\n    - ''\n    - ../test.sh\n    - a/../b\n" +
			"    - '!tests/'\n    - .\n    - a//b\n    - '[a'",
		`x.yaml:7: workspace.protect: "/etc/passwd" is an absolute path; write it relative to the root of the workspace` +
			"\nx.yaml:8: workspace.protect: \"\" is blank; write a path or leave it out" +
			"\nx.yaml:9: workspace.protect: \"../test.sh\" has the element ..; write a path below the root of the workspace" +
			"\nx.yaml:10: workspace.protect: \"a/../b\" has the element ..; write a path below the root of the workspace" +
			"\nx.yaml:11: workspace.protect: \"!tests/\" begins with !, and there are no exceptions; write the paths to " +
			"include\nx.yaml:12: workspace.protect: \".\" is the whole workspace; write ** or the paths in it" +
			"\nx.yaml:13: workspace.protect: \"a//b\" is not in its shortest form; write a/b" +
			"\nx.yaml:14: workspace.protect: \"[a\" is not a valid pattern; close its brackets, or write \\ before them" +
			"\nx.yaml:20: roles.writer.gives is artifact, and the pipeline has none; write artifact: {file: NAME, seed: " +
			"PATH} at the top"},
	{"roles that nothing is protected from", "gives: report,", "gives: report, protect: false,",
		`x.yaml:11: roles.judge.protect is false, and the pipeline has no workspace; leave it out`},
	{"a blank text", "theme: One", "theme: ' '",
		`x.yaml:13: corpus.S1.theme: " " cannot be a label; write one line of at most 200 characters`},
	{"an empty list", "files: [A: a.md, B: b.md]", "files: []",
		`x.yaml:13: corpus.S1.files is empty; put something in it or leave the key out`},
	{"an unlabelled file", "A: a.md", "a.md",
		`x.yaml:13: corpus.S1.files is the text "a.md"; write one label and its path, such as Rules: grammar/rules.md`},
	{"missing stage name", "- name: polish\n    repeat", "- repeat",
		`x.yaml:22: name is missing in a stage; write name: review`},
	{"half a range", "range: [0, 4]", "range: [4]",
		`x.yaml:11: roles.judge.score.range is not two ascending numbers; write the lowest and the highest allowed, such ` +
			`as [0, 4]`},
	{"a file name with a folder", "file: log.md", "file: notes/log.md",
		`x.yaml:6: notes.log.file: "notes/log.md" cannot be a name; use letters, digits, dots, dashes and underscores, at ` +
			`most 64`},
	{"a bad marker", "marker: LOG", "marker: the log",
		`x.yaml:6: notes.log.marker: "the log" is not a marker; write capitals, digits and underscores, such as ` +
			`DISCOVERY_LOG`},
	{"a bad name", "S1:", "../S1:",
		`x.yaml:13: corpus: set "../S1" cannot be a name; use letters, digits, dots, dashes and underscores, at most 64`},
	{"repeat in a stage of sets", "checkpoint: cp-{set}", "repeat: {max: 2, until: score > 1}",
		`x.yaml:21: stage "write".repeat does not go with for_each; keep one, and put the other in a separate stage`},
	{"orders without sets", "checkpoint: cp-{n}", "orders: {A: 0}",
		`x.yaml:24: stage "polish".orders are of the files of a set, and the stage has no for_each; drop orders or write ` +
			`for_each: corpus`},
	{"a number as order", "Y: 1/2", "Y: 0.5",
		`x.yaml:17: stage "write".orders.Y: "0.5" is not 0, or a share of the files below one, such as 2/5`},
	{"a checkpoint that does not differ", "checkpoint: cp-{set}", "checkpoint: cp",
		`x.yaml:21: stage "write".checkpoint is "cp" for every round; write {set} where the rounds differ`},
	{"a checkpoint in a folder", "checkpoint: cp-{set}", "checkpoint: a/cp-{set}",
		`x.yaml:21: stage "write".checkpoint is "a/cp-{set}"; write a name without folders`},
	{"an odd size", "{role: judge}", "{screenshots: {sizes: [big]}}\n      - {role: judge}",
		`x.yaml:26: stage "polish" step 1.screenshots.sizes: "big" is not a size; write width x height in pixels, such as ` +
			`1440x900`},
	{"a word that is not one of the choices", "gives: report", "gives: reports",
		`x.yaml:11: roles.judge.gives is "reports"; did you mean "report"?`},
	{"a check without its argument", "{name: non-empty}", "{name: minimum-length}",
		`x.yaml:10: over is missing in roles.writer.checks; write over: 500`},
	{"a custom check without words", "{name: non-empty}", "{name: non-emtpy}",
		`x.yaml:10: roles.writer.checks.name is "non-emtpy"; did you mean "non-empty"? (a check of another name needs any: ` +
			`[...] or none: [...])`},
	{"words that are a mapping", "gives: report,", "gives: report, with: {a: {b: c}},",
		`x.yaml:11: roles.judge.with.a is a mapping; write a text or a list of texts`},
	{"a check without a name", "{name: non-empty}", "{over: 3}",
		`x.yaml:10: name is missing in roles.writer.checks; write name: non-empty`},
}

func TestParseNamesEveryMistake(t *testing.T) {
	for _, c := range mistakes {
		t.Run(c.name, func(t *testing.T) {
			src := healthy + c.new
			if c.old != "" {
				require.Contains(t, healthy, c.old)
				src = strings.Replace(healthy, c.old, c.new, 1)
			}
			folder := folderFor([]byte(healthy))
			folder["prompts/blank.md"] = file(" \n")
			folder["prompts/bad.md"] = file("Judge.\n{{refrences}}\n{{with.focus}} {{content}}\n")
			def, problems := Parse("x.yaml", []byte(src), folder)
			require.Nil(t, def)
			require.Equal(t, c.want, byLine(problems))
		})
	}
}

func TestValidDefinitionHasNoProblem(t *testing.T) {
	parsed(t, []byte(healthy))
}

func TestParseRefusesLargeFiles(t *testing.T) {
	def, problems := Parse("x.yaml", []byte(strings.Repeat("#", maxSource+1)), folderFor(nil))
	require.Nil(t, def)
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].What, "the maximum is 1048576")
}

func TestParseReportsTenProblemsAtOnce(t *testing.T) {
	src := read(t, "ten-problems.yaml")
	def, problems := Parse("ten-problems.yaml", src, folderFor([]byte("prompts/writer.md seed.html")))
	require.Nil(t, def)
	golden(t, "ten-problems.txt", problems.Error()+"\n")
	require.Len(t, problems, 10)
}

func TestParseChecksWhatALastStageRefersTo(t *testing.T) {
	start, _, _ := strings.Cut(healthy, "  - name: polish")
	start = strings.Replace(start, "{role: writer, order: X}", "{role: writer, order: X, id: draft}", 1)
	for name, c := range map[string]struct{ stage, want string }{
		"a step called for each set": {"  - name: end\n    steps: [{role: judge, see: draft}]",
			"x.yaml:23: see is \"draft\", a step with one reply for each set; name its stage \"write\" for the last"},
		"a stage without replies": {
			"  - {name: tests, steps: [{run: make}]}\n  - name: end\n    steps: [{role: judge, see: tests}]",
			"x.yaml:24: see is \"tests\", a stage in which no role replies; name another",
		},
		"a verdict that a step does not return": {
			"  - name: end\n    repeat: {max: 2, until: done.verdict == 'ok'}\n    steps: [{role: writer, id: done}]",
			"x.yaml:23: stage \"end\".repeat.until asks for done.verdict, which is not in the output of done; write one of: text",
		},
		"a stage of sets": {"  - name: end\n    steps: [{role: judge, see: write}]", ""},
		"a later step of a loop": {
			"  - name: end\n    repeat: {max: 2, until: b.score > 1}\n    steps: [{role: judge, see: b}, {role: judge, id: b}]", "",
		},
		"an early step of a loop": {
			"  - name: end\n    repeat: {max: 2, until: score > 1}\n    steps: [{role: judge, see: last}]", "",
		},
		"a command": {"  - name: end\n    steps: [{run: make, id: tests}, {role: judge, see: tests}]", ""},
		"a slot in the only round": {"  - name: end\n    dir: out/{n}\n    steps: [{role: judge}]",
			"x.yaml:23: stage \"end\".dir has {n}, which has no value here; the stage has one round, so drop it"},
		"limits of a question": {"  - name: end\n    steps: [{ask: 'Fine?', limits: {timeout: 5m}}]",
			"x.yaml:23: stage \"end\" step 1: limits does not go with ask; leave it out"},
	} {
		t.Run(name, func(t *testing.T) {
			src := start + c.stage + "\n"
			_, problems := Parse("x.yaml", []byte(src), folderFor([]byte(healthy)))
			require.Equal(t, c.want, byLine(problems))
		})
	}
}

func TestParsePutsItsOwnFileFirst(t *testing.T) {
	folder := folderFor([]byte(healthy))
	folder["prompts/judge.md"] = file("{{x}}")
	folder["prompts/writer.md"] = file("a\n{{y}}\n{{x}}")
	_, problems := Parse("zz.yaml", []byte(strings.Replace(healthy, "{timeout: 10m}", "{timeout: 10}", 1)), folder)
	var places []string
	for _, p := range problems {
		places = append(places, strings.SplitAfterN(byLine(Problems{p}), ": ", 2)[0])
	}
	require.Equal(t, []string{"zz.yaml:3: ", "prompts/judge.md:1: ", "prompts/writer.md:2: ", "prompts/writer.md:3: "},
		places)
}
