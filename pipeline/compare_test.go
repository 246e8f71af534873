package pipeline

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const comparedSource = `pipeline: compared
agent: {run: [claude, -p], reply: claude-json}
agents:
  cheap: {run: [codex, exec], reply: text, price: {input: 1, output: 1}}
limits: {timeout: 30m}
budget: {usd: 5}
notify: [{run: [notify-send], on: [end]}]
always_read: [{Guide: guide.md}]
roles:
  planner: {prompt: plan.md, gives: report}
  writer: {prompt: write.md, gives: report}
  critic:
    prompt: critic.md
    gives: report
    verdict: {find: 'VERDICT: (ok|again)', approves: ok}
stages:
  - name: plan
    steps:
      - {role: planner}
  - name: write
    steps:
      - {role: writer}
      - {run: make test, id: tests}
  - name: review
    repeat: {max: 2, until: approved}
    steps:
      - {role: critic}
      - {role: writer}
workspace: {git: worktree, setup: make deps}
`

// version is a definition with its files, of which some have other texts.
func version(t *testing.T, src string, changed ...string) Version {
	t.Helper()
	v := Version{Plan: Expand(parsed(t, []byte(src))), Files: map[string]string{}}
	for _, name := range pathShape.FindAllString(src, -1) {
		v.Files[name] = "first " + name
	}
	for _, name := range changed {
		v.Files[name] = "second " + name
	}
	return v
}

func TestCompare(t *testing.T) {
	start, writing, reviewing := Position{Round: 1}, Position{Stage: 1, Round: 1, Step: 1}, Position{Stage: 2, Round: 2}
	over := Position{Stage: 3, Round: 1}
	for name, row := range map[string]struct {
		at       Position
		old, new string   // a replacement in the source
		files    []string // with other texts
		want     []string // line, name, why it is refused
	}{
		"the same":            {at: over},
		"budget":              {reviewing, "usd: 5", "usd: 9", nil, []string{"6 budget.usd"}},
		"budget at the end":   {over, "usd: 5", "usd: 9", nil, []string{"6 budget.usd"}},
		"limits of all roles": {writing, "timeout: 30m", "timeout: 1h", nil, []string{"5 limits.timeout"}},
		"output of all roles": {writing, "{timeout: 30m}", "{timeout: 30m, output: 1MB}", nil, []string{"5 limits.output"}},
		"tree of all roles": {writing, "{timeout: 30m}", "{timeout: 30m, tree: {files: 9}}", nil,
			[]string{"5 limits.tree.files"}},
		"notices":       {reviewing, "on: [end]", "on: [pause]", nil, []string{"7 notify.0.on"}},
		"default agent": {reviewing, "[claude, -p]", "[/opt/claude, -p]", nil, []string{"2 agent.run"}},
		"named agent":   {reviewing, "[codex, exec]", "[codex]", nil, []string{"4 agents.cheap.run"}},
		"another agent": {reviewing, "{prompt: write.md,", "{prompt: write.md, agent: cheap,", nil,
			[]string{"11 roles.writer.agent"}},
		"maximum":   {reviewing, "max: 2", "max: 3", nil, []string{"25 stages.review.repeat.max"}},
		"condition": {reviewing, "until: approved}", "until: verdict == 'again'}", nil, []string{"25 stages.review.repeat.until"}},
		"condition of a completed stage": {over, "max: 2", "max: 3", nil,
			[]string{"25 stages.review.repeat.max: " + RefusedCompleted}},
		"pattern": {reviewing, "(ok|again)", "(ok|more)", nil, []string{"15 roles.critic.verdict.find"}},
		"command": {Position{Stage: 1, Round: 1, Step: 1}, "make test", "make check", nil,
			[]string{"23 stages.write.steps.1.run"}},
		"command of a completed step": {Position{Stage: 2, Round: 1}, "make test", "make check", nil,
			[]string{"23 stages.write.steps.1.run: " + RefusedCompleted}},
		"prompt of a later step":     {writing, "", "", []string{"critic.md"}, []string{"13 roles.critic.prompt"}},
		"prompt of a step in a loop": {reviewing, "", "", []string{"critic.md"}, []string{"13 roles.critic.prompt"}},
		"prompt with steps behind":   {reviewing, "", "", []string{"write.md"}, []string{"11 roles.writer.prompt"}},
		"prompt of a completed step": {writing, "", "", []string{"plan.md"},
			[]string{"10 roles.planner.prompt: " + RefusedCompleted}},
		"path of a prompt":           {writing, "critic.md", "judge.md", nil, []string{"13 roles.critic.prompt"}},
		"reference before the start": {start, "", "", []string{"guide.md"}, []string{"8 always_read.0.Guide"}},
		"reference that was read": {writing, "", "", []string{"guide.md"},
			[]string{"8 always_read.0.Guide: " + RefusedInput}},
		"role that nothing uses": {writing, "  critic:\n", "  idle: {prompt: idle.md, gives: report}\n  critic:\n", nil,
			[]string{"12 roles.idle"}},
		"kind of result": {writing, "{prompt: write.md, gives: report}", "{prompt: write.md, gives: changes}",
			nil, nil},
		"stage is new": {writing, "  - name: review",
			"  - name: more\n    steps: [{role: writer}]\n  - name: review", nil, []string{"16 stages: " + RefusedStructure}},
		"step is new": {writing, "      - {role: critic}", "      - {role: writer}\n      - {role: critic}", nil,
			[]string{"26 stages.review.steps: " + RefusedStructure}},
		"step has another role": {start, "steps:\n      - {role: planner}", "steps:\n      - {role: writer}", nil,
			[]string{"19 stages.plan.steps.0.role: " + RefusedStructure}},
		"stage does not repeat": {start, "    repeat: {max: 2, until: approved}\n", "", nil, nil},
		"setup of the workspace": {reviewing, "setup: make deps", "setup: [make deps, make tools]", nil,
			[]string{"29 workspace.setup"}},
		"workspace is kept": {reviewing, ", setup: make deps", ", setup: make deps, keep: true", nil,
			[]string{"29 workspace.keep: " + RefusedStructure}},
		"name": {start, "pipeline: compared", "pipeline: other", nil,
			[]string{"1 pipeline: " + RefusedStructure}},
		"several": {writing, "usd: 5", "usd: 9", []string{"plan.md", "critic.md"}, []string{
			"6 budget.usd", "10 roles.planner.prompt: " + RefusedCompleted, "13 roles.critic.prompt"}},
	} {
		t.Run(name, func(t *testing.T) {
			src := strings.Replace(comparedSource, row.old, row.new, 1)
			got := Compare(version(t, comparedSource), version(t, src, row.files...), row.at)
			var lines []string
			for _, d := range got {
				at, line := Locate([]byte(src), d.Path)
				text := strings.TrimSuffix(Difference{Path: at}.Name()+": "+d.Refused, ": ")
				if text = strings.Join([]string{strconv.Itoa(line), text}, " "); len(lines) == 0 || lines[len(lines)-1] != text {
					lines = append(lines, text)
				}
			}
			if row.want == nil && row.old != "" {
				require.Contains(t, strings.Join(lines, "\n"), RefusedStructure)
				return
			}
			require.Equal(t, row.want, lines)
		})
	}
}
