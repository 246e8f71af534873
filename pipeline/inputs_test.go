package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const withInputs = `
pipeline: small
agent: claude
inputs:
  area: {default: src/, description: folder to work in}
  limit: {type: number}
  deep: {type: boolean, default: false}
  names: {type: list, default: [a, b]}
roles: {planner: {prompt: plan.md, gives: report}}
stages: [{name: work, steps: [{role: planner}]}]
`

func TestInputsHaveTheGivenValuesOrDefaults(t *testing.T) {
	p := Expand(parsed(t, []byte(withInputs)))
	require.Empty(t, p.Give(map[string]string{"limit": "2.5", "names": "x, y z", "area": "docs/"}))
	values := map[string]string{}
	for _, in := range p.Inputs {
		values[in.Name] = *in.Value
	}
	require.Equal(t, map[string]string{"area": "docs/", "limit": "2.5", "deep": "false", "names": "x\ny\nz"}, values)
}

func TestAllProblemsOfInputsAreNamed(t *testing.T) {
	p := Expand(parsed(t, []byte(withInputs)))
	require.Equal(t, []string{
		"input limit has no value: add --input limit=VALUE",
		`input deep is "perhaps"; write true or false`,
		`the pipeline has no input aera; did you mean "area"?`,
	}, p.Give(map[string]string{"deep": "perhaps", "aera": "x"}))
	for _, in := range p.Inputs {
		require.Nil(t, in.Value, "nothing was set")
	}
	require.Equal(t, []string{`input limit is "two"; write a number`}, p.Give(map[string]string{"limit": "two"}))
}

func TestLaterPlansKeepWhatTheRunWasGiven(t *testing.T) {
	old := Expand(parsed(t, []byte(withInputs)))
	require.Empty(t, old.Give(map[string]string{"limit": "1"}))
	old.Unattended = ByStart
	next := Expand(parsed(t, []byte(withInputs)))
	next.KeepGiven(old)
	require.Equal(t, old.Inputs, next.Inputs)
	require.Equal(t, ByStart, next.Unattended)
	old.Unattended, next.Unattended = ByDefinition, ""
	next.KeepGiven(old)
	require.Empty(t, next.Unattended, "the definition decides what the definition asked for")
}

// TestInputsThatCannotBeUsedAreRefused: their names and defaults, all together.
func TestInputsThatCannotBeUsedAreRefused(t *testing.T) {
	src := strings.Replace(withInputs, "inputs:\n", "inputs:\n  1: {}\n  with.x: {}\n  task: {}\n  many: {default: [a, b]}\n", 1)
	_, problems := Parse("x.yaml", []byte(src), folderFor([]byte(src)))
	var all []string
	for _, p := range problems {
		all = append(all, p.What)
	}
	require.Equal(t, []string{
		`inputs: "1" cannot be a placeholder; begin with a letter, and not with with.`,
		`inputs: "with.x" cannot be a placeholder; begin with a letter, and not with with.`,
		`inputs: "task" is a placeholder of every prompt ({{task}}); choose another name`,
		"inputs.many.default is a list; write type: list, or one text",
	}, all)
}
