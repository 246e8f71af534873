package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const named2 = `pipeline: demo
agent: AGENT
agents: {strong: {use: claude, model: opus}, mine: {run: [mine], reply: text}}
roles:
  writer: {prompt: prompts/writer.md, gives: report}
  judge: {prompt: prompts/judge.md, gives: reportJUDGE}
stages: [{name: write, steps: [{role: writer}, {role: judge}]}]
`

func definitionOf(agent, judge string) (*Definition, Problems) {
	src := strings.NewReplacer("AGENT", agent, "JUDGE", judge).Replace(named2)
	return Parse("x.yaml", []byte(src), folderFor([]byte(src)))
}

// TestPresetsAreCommands: what a definition chooses of an agent that it uses by name is its command, reply and
// variables.
func TestPresetsAreCommands(t *testing.T) {
	claude := "claude -p --output-format stream-json --verbose --include-partial-messages --permission-mode acceptEdits "
	codex := "codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox "
	gemini := "gemini --skip-trust --approval-mode yolo --output-format json "
	for agent, want := range map[string]string{
		"claude": claude + "--allowedTools Bash",
		"{use: claude, model: opus, effort: high, allow: [Edit, \"Bash(npm test)\"], args: [--add-dir, /data]}": claude +
			"--model opus --effort high --allowedTools Edit,Bash(npm test) --add-dir /data",
		"codex": codex + "-",
		"{use: codex, model: gpt-5, effort: low}":  codex + "--model gpt-5 -c model_reasoning_effort=low -",
		"{use: gemini, model: flash, args: [--x]}": gemini + "--model flash --x -p Do what is asked above.",
		"strong":                           claude + "--model opus --allowedTools Bash",
		"{run: [claude, -p], reply: text}": "claude -p",
		"{use: codex, env: [MINE], price: {input: 1, output: 2}}": codex + "-",
	} {
		d, problems := definitionOf(agent, "")
		require.Empty(t, problems, agent)
		require.Equal(t, want, strings.Join(d.Agents[0].Run, " "), agent)
	}
	d, _ := definitionOf("codex", "")
	require.Equal(t, "codex-jsonl", d.Agents[0].Reply)
	require.Contains(t, d.Agents[0].Env, "OPENAI_API_KEY")
	require.True(t, d.Agents[0].Sessions(), "a session can be continued")
	d, _ = definitionOf("{use: codex, env: [MINE], price: {input: 1, output: 2}}", "")
	require.Equal(t, &Price{Input: 1, Output: 2}, d.Agents[0].Price)
	require.Contains(t, d.Agents[0].Env, "MINE")
}

// TestRolesChooseOfTheirAgent: another model, effort or list of tools, and the rest as the agent has it.
func TestRolesChooseOfTheirAgent(t *testing.T) {
	d, problems := definitionOf("{use: claude, model: sonnet, effort: low}", ", model: opus, allow: [Read]")
	require.Empty(t, problems)
	judge := Expand(d).Roles[1]
	require.Equal(t, "judge", judge.Agent)
	own, ok := Expand(d).Agent(judge.Agent)
	require.True(t, ok)
	require.Contains(t, strings.Join(own.Run, " "), "--model opus --effort low --allowedTools Read")
	d, problems = definitionOf("claude", ", agent: strong, effort: max")
	require.Empty(t, problems)
	own, _ = Expand(d).Agent("strong-judge")
	require.Contains(t, strings.Join(own.Run, " "), "--model opus --effort max")
}

// TestAgentsAloneUseTheirOwnSandbox: the argument that switches it off goes.
func TestAgentsAloneUseTheirOwnSandbox(t *testing.T) {
	d, problems := definitionOf("codex", "")
	require.Empty(t, problems)
	argv, ok := d.Agents[0].Alone("linux")
	require.True(t, ok)
	require.Equal(t, "codex exec --json --skip-git-repo-check --sandbox workspace-write -", strings.Join(argv, " "))
	_, ok = Agent{Run: d.Agents[0].Run}.Alone("linux")
	require.False(t, ok, "a command of the definition stays as it is")
	d, problems = definitionOf("claude", "")
	require.Empty(t, problems)
	_, ok = d.Agents[0].Alone("linux")
	require.False(t, ok, "that of claude needs the same as ours on Linux")
	argv, ok = d.Agents[0].Alone("darwin")
	require.True(t, ok)
	require.Contains(t, strings.Join(argv, " "), "--setting-sources user --settings {", "no hook of the repository runs")
}

func TestWrongChoicesOfPresets(t *testing.T) {
	for _, row := range []struct{ agent, judge, want string }{
		{"cladue", "", `agent.use is "cladue", neither an agent that Passbook knows nor one of agents; did you mean "claude"?`},
		{"{use: gemini, effort: high}", "", `agent.effort is "high", and gemini has no such setting; leave it out`},
		{"{use: codex, effort: hihg}", "", `agent.effort is "hihg"; did you mean "high"?`},
		{"{use: codex, allow: [Bash]}", "", "agent.allow lists tools, and codex has no such setting; leave it out"},
		{"{use: claude, run: [x]}", "", "agent has run and use; keep one"},
		{"{reply: text}", "", "agent has none of run, use; write one, such as run: [claude, -p]"},
		{"{run: [x], reply: text, model: y}", "", "agent: model does not go with run; leave it out"},
		{"claude", ", agent: mine, model: y", "roles.judge.model is for an agent that is used by name (claude, " +
			"codex, gemini); write it into the command of the agent"},
		{"claude", ", effort: huge", `roles.judge.effort is "huge"; did you mean "high"?`},
	} {
		_, problems := definitionOf(row.agent, row.judge)
		require.Contains(t, problems.Error(), row.want, row.agent+row.judge)
	}
}

// TestRolesMayNameAPreset: also beside other agents.
func TestRolesMayNameAPreset(t *testing.T) {
	d, problems := Parse("x.yaml", []byte(`
pipeline: small
agent: claude
roles: {a: {prompt: a.md, gives: report, agent: codex}, b: {prompt: a.md, gives: report}}
stages: [{name: work, steps: [{role: a}, {role: b}]}]
`), folderFor([]byte("prompt: a.md")))
	require.Empty(t, problems)
	require.Equal(t, []string{"claude", "codex"}, []string{d.Agents[0].Run[0], d.Agents[1].Run[0]})
	require.Equal(t, "codex", d.Roles[0].Agent)
}

// TestArgumentsThatAPresetHasAreRefused: they would change what Passbook reads, or have a key.
func TestArgumentsThatAPresetHasAreRefused(t *testing.T) {
	for agent, want := range map[string]string{
		"{use: claude, args: [--output-format, text]}":     "is --output-format, which claude gets already; leave it out",
		"{use: claude, args: [--output-format=text]}":      "is --output-format=text, which claude gets already; leave it out",
		"{use: codex, args: [--model, x]}":                 "is --model; write model: VALUE instead",
		"{use: claude, args: [--effort=low]}":              "is --effort=low; write effort: VALUE instead",
		"{use: claude, reply: text}":                       "reply does not go with use; leave it out",
		"{use: claude, args: [--append-system-prompt, x]}": "",
	} {
		_, problems := definitionOf(agent, "")
		if want == "" {
			require.Empty(t, problems, agent)
			continue
		}
		require.Len(t, problems, 1, agent)
		require.Contains(t, problems[0].What, want)
	}
}
