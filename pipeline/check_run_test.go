package pipeline

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/price"
)

const runnable = `pipeline: p
agent: {run: [claude, -p], reply: text, price: {input: 1, output: 1}}
budget: {usd: 5}
roles:
  judge:
    prompt: judge.md
    gives: report
    verdict: {find: 'VERDICT: (ok|again)'}
stages:
  - name: review
    repeat: {max: 2, until: verdict == ok}
    steps:
      - {role: judge, as: view}
      - {run: make test, as: tests}
`

// TestPlanFindsWhatWouldFail finds what a run would fail for, before it starts.
func TestPlanFindsWhatWouldFail(t *testing.T) {
	const own = "and a call runs in a separate folder"
	for name, row := range map[string]struct {
		old, new string
		want     string // part of the only problem; empty: none
	}{
		"as it is": {},
		"script beside the pipeline": {"[claude, -p]", "[./agent.sh]",
			"x.yaml:2:15: agent.run names ./agent.sh, which is beside the pipeline, " + own},
		"argument beside the pipeline": {"[claude, -p]", "[python3, agent.sh]",
			"x.yaml:2:24: agent.run names agent.sh, which is beside"},
		"relative path": {"[claude, -p]", "[bin/claude]",
			"x.yaml:2:15: agent.run begins with bin/claude, " + own},
		"absolute path":  {"[claude, -p]", "[/opt/agent.sh]", ""},
		"in a workspace": {"budget:", "workspace: {dir: .}\nbudget:", ""},
		"script of a step": {"run: make test", "run: ./agent.sh --all",
			"names ./agent.sh, which is beside the pipeline"},
		"notice": {"budget:", "notify: [{run: [./agent.sh], on: [end]}]\nbudget:",
			"notify.run names ./agent.sh"},
		"budget without a price": {", price: {input: 1, output: 1}", "",
			"x.yaml:2:8: agent replies with text, which has no cost, and the budget is 5 USD"},
		"network without a sandbox": {"reply: text,", "reply: text, sandbox: none, network: [api.example.com],",
			"agent.network is api.example.com, and without a sandbox the network is that of the host"},
		"network of a command": {"run: make test,", "run: make test, sandbox: none, network: none,",
			"network is none, and without a sandbox"},
		"no budget and no price": {"text, price: {input: 1, output: 1}}\nbudget: {usd: 5}", "text}", ""},
		"tokens of a known model": {"[claude, -p], reply: text, price: {input: 1, output: 1}",
			"[codex, exec, -m, gpt-5.1-codex], reply: codex-jsonl", ""},
		"tokens of an unknown model": {"[claude, -p], reply: text, price: {input: 1, output: 1}",
			"[gemini, --model=own-1], reply: gemini-json",
			"x.yaml:2:8: agent reports tokens, the price of model own-1 is unknown, and the budget is 5 USD"},
		"tokens with a price": {"[claude, -p], reply: text,", "[gemini, -m, own-1], reply: gemini-json,", ""},
		"tokens of a model at run time": {"[claude, -p], reply: text, price: {input: 1, output: 1}",
			"[codex, exec], reply: codex-jsonl", ""},
		"reply with a cost": {"text, price: {input: 1, output: 1}", "claude-json", ""},
		"impossible verdict": {"verdict == ok", "verdict == okay",
			"x.yaml:11:29: stage \"review\".repeat.until waits for verdict == okay, and verdict is only ever again or ok"},
		"impossible value of a role": {"verdict == ok", "view == okay", "waits for view == okay"},
		"impossible value of a command": {"verdict == ok", "tests == passed",
			"waits for tests == passed, and tests is only ever failed or ok"},
		"impossible gate": {"    steps:", "    quality_gate: verdict == fine\n    steps:",
			"quality_gate waits for verdict == fine"},
		"possible in another case": {"(ok|again)", "((?i)ok|again)", ""},
		"any word":                 {"(ok|again)", "(\\w+)", ""},
		"prefix in common":         {"(ok|again)", "(ok|okay)", ""},
		"optional part": {"verdict: {find: 'VERDICT: (ok|again)'}",
			"verdict: {find: 'VERDICT: (ok(?:ay)?)'}", ""},
		"not that": {"verdict == ok", "verdict != okay", ""},
		"words that exclude each other": {"verdict == ok", "verdict == ok and tests == ok and verdict == again",
			`x.yaml:11:29: stage "review".repeat.until waits for verdict == ok and verdict == again, which exclude each other`},
		"a word and its opposite": {"verdict == ok", "verdict == ok and verdict != ok",
			"waits for verdict == ok and verdict != ok, which exclude"},
		"all words excluded": {"verdict == ok", "verdict != ok and verdict != again",
			"waits for verdict != ok and verdict != again, which exclude"},
		"one word excluded": {"verdict == ok", "verdict == ok and verdict != again", ""},
		"either word":       {"verdict == ok", "verdict == ok or verdict == again", ""},
	} {
		t.Run(name, func(t *testing.T) {
			src := strings.Replace(runnable, row.old, row.new, 1)
			folder := folderFor([]byte(src))
			folder["agent.sh"] = file("#!/bin/sh\n")
			_, problems := Parse("x.yaml", []byte(src), folder)
			if row.want == "" {
				require.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			require.Contains(t, problems.Error(), row.want)
		})
	}
}

const scored = `pipeline: p
agent: {run: [claude, -p], reply: claude-json}
roles:
  judge:
    prompt: judge.md
    gives: report
    score: {find: 'SCORE: ([0-9.]+)', range: [0, 4]}
stages:
  - name: review
    repeat: {max: 2, until: CONDITION}
    steps:
      - {role: judge, as: mark}
      - {run: make test, as: tests}
`

// TestPlanFindsUnreachableScores compares the numbers of a condition with the range of the score.
func TestPlanFindsUnreachableScores(t *testing.T) {
	for condition, want := range map[string]string{
		"score >= 4":     "",
		"score > 3.9999": "",
		"score > 4": `x.yaml:10:29: stage "review".repeat.until waits for score > 4, and score is ` +
			`only ever from 0 to 4`,
		"score >= 4.5":                       "waits for score >= 4.5, and score is only ever from 0 to 4",
		"score < 0":                          "waits for score < 0, and",
		"score == -1 or tests == ok":         "waits for score == -1, and",
		"mark >= 5":                          "waits for mark >= 5, and mark is only ever from 0 to 4",
		"score >= 3 and score < 3":           "waits for score >= 3 and score < 3, which exclude each other",
		"score > 3 and score < 3.01":         "",
		"score >= 3 and score <= 3":          "",
		"score != 3 and tests == ok":         "",
		"score >= 2 and mark >= 3":           "",
		"score == 3 and score == 3.5":        "waits for score == 3 and score == 3.5, which exclude each other",
		"score >= 0":                         "",
		"score > 1 and score < 2 or score>3": "",
	} {
		t.Run(condition, func(t *testing.T) {
			src := strings.Replace(scored, "CONDITION", "'"+condition+"'", 1)
			_, problems := Parse("x.yaml", []byte(src), folderFor([]byte(src)))
			if want == "" {
				require.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			require.Contains(t, problems.Error(), want)
		})
	}
}

func TestBudgetOfModelWithOwnPrice(t *testing.T) {
	src := strings.Replace(runnable, "[claude, -p], reply: text, price: {input: 1, output: 1}",
		"[gemini, -m, own-1], reply: gemini-json", 1)
	_, problems := Parse("x.yaml", []byte(src), folderFor([]byte(src)),
		price.List{{Pattern: "own-*", Price: price.Of(1, 2, 0, 0)}}.Has)
	require.Empty(t, problems)
	_, problems = Parse("x.yaml", []byte(src), folderFor([]byte(src)), price.List{{Pattern: "other"}}.Has)
	require.ErrorContains(t, problems, "add the model to the setting prices")
}
