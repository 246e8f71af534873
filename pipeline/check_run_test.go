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
    verdict: {find: 'VERDICT: (ok|again)', approves: ok}
stages:
  - name: review
    repeat: {max: 2, until: approved}
    steps:
      - {role: judge, id: view}
      - {run: make test, id: tests}
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
		"impossible verdict": {"until: approved", "until: verdict == 'okay'",
			"x.yaml:11:29: stage \"review\".repeat.until waits for verdict == 'okay', which no result meets: verdict is \"ok\" or \"again\""},
		"impossible value of a role": {"until: approved", "until: view.verdict == 'okay'", "waits for view.verdict == 'okay'"},
		"a word without quotes": {"until: approved", "until: verdict == okay",
			`x.yaml:11:40: stage "review".repeat.until has the unknown name okay; texts are quoted: "okay"`},
		"earlier form of a result": {"until: approved", "until: tests == failed",
			`x.yaml:11:38: stage "review".repeat.until has the unknown name failed; whether a command failed is not tests.ok`},
		"impossible gate": {"    steps:", "    quality_gate: verdict == 'fine'\n    steps:",
			"quality_gate waits for verdict == 'fine'"},
		"a word that approves nothing": {"approves: ok", "approves: okay", "roles.judge.verdict.approves is okay, and the verdict"},
		"no word that approves": {", approves: ok", "",
			"roles.judge.verdict is only ever ok or again, and none of them approves the work; write approves: WORD"},
		"possible in another case": {"(ok|again)", "((?i)ok|again)", ""},
		"any word":                 {"(ok|again)", "(\\w+)", ""},
		"prefix in common":         {"(ok|again)", "(ok|okay)", ""},
		"optional part":            {"(ok|again)", "(ok(?:ay)?)", ""},
		"not that":                 {"until: approved", "until: verdict != 'okay'", ""},
		"words that exclude each other": {"until: approved", "until: verdict == 'ok' and tests.ok and verdict == 'again'",
			`stage "review".repeat.until waits for verdict == 'ok' and tests.ok and verdict == 'again', which no result meets`},
		"a word and its opposite": {"until: approved", "until: verdict == 'ok' and verdict != 'ok'", "which no result meets"},
		"all words excluded":      {"until: approved", "until: verdict != 'ok' and verdict != 'again'", "which no result meets"},
		"one word excluded":       {"until: approved", "until: verdict == 'ok' and verdict != 'again'", ""},
		"either word":             {"until: approved", "until: verdict == 'ok' or verdict == 'again'", ""},
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
      - {role: judge, id: mark}
      - {run: make test, id: tests}
`

// TestPlanFindsUnreachableScores compares the numbers of a condition with the range of the score.
func TestPlanFindsUnreachableScores(t *testing.T) {
	for condition, want := range map[string]string{
		"score >= 4":                    "",
		"score > 3.9999":                "",
		"score > 4":                     `x.yaml:10:29: stage "review".repeat.until waits for score > 4, which no result meets: score is from 0 to 4`,
		"score >= 4.5":                  "waits for score >= 4.5, which no result meets: score is from 0 to 4",
		"score < 0":                     "waits for score < 0, which",
		"score == -1 or tests.ok":       "",
		"score == -1 and tests.ok":      "waits for score == -1 and tests.ok, which no result meets: score is from 0 to 4, tests.ok is true or false",
		"mark.score >= 5":               "waits for mark.score >= 5, which no result meets: mark.score is from 0 to 4",
		"score >= 3 and score < 3":      "waits for score >= 3 and score < 3, which",
		"score > 3 and score < 3.01":    "",
		"score >= 3 and score <= 3":     "",
		"score != 3 and tests.ok":       "",
		"len(scores) > 2 and score > 9": "",
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
