package pipeline

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPlanLists(t *testing.T) {
	p := &Plan{
		Agents: []Agent{{Run: []string{"claude", "-p"}, Reply: "claude-json"}, {Name: "b", Run: []string{"codex"},
			Reply: "text"}, {Name: "c", Run: []string{"claude"}}, {Name: "d"}},
		Roles: []Role{{Name: "writer", Gives: GivesChanges, Limits: Limits{Tree: TreeLimits{Size: 50, Files: 7}}},
			{Name: "judge", Gives: GivesReport, Agent: "b", Limits: Limits{Tree: TreeLimits{Size: 1, Files: 1}},
				Verdict: &Verdict{Find: "x"}}},
		Stages: []PlanStage{
			{Rounds: []PlanRound{{Set: "S1", Theme: "T", Steps: []PlanStep{{Kind: KindRole, Role: "writer"}}},
				{Set: "S2", Steps: []PlanStep{{Kind: KindRole, Role: "writer", Run: "x"}}}}},
			{Rounds: []PlanRound{{Steps: []PlanStep{{Kind: KindTogether, Members: []string{"judge", "writer"}}}}}},
			{Rounds: []PlanRound{{Steps: []PlanStep{{Kind: KindAsk}}}}},
		},
	}
	require.Equal(t, []string{"claude", "codex"}, p.Programs())
	require.Equal(t, []string{"S1", "S2"}, p.Stages[0].SetNames())
	require.Empty(t, p.Stages[1].SetNames())
	require.Equal(t, []string{"writer"}, p.Stages[0].RoleNames())
	require.Equal(t, []string{"judge", "writer"}, p.Stages[1].RoleNames())
	require.Equal(t, "claude-json", p.ReplyOf(PlanStep{Kind: KindRole}, "writer"))
	require.Equal(t, "text", p.ReplyOf(PlanStep{Kind: KindRole}, "judge"))
	require.Equal(t, "text", p.ReplyOf(PlanStep{Kind: KindRun}, "writer"))
	require.Equal(t, TreeLimits{Size: 50, Files: 7}, p.TreeLimits())
	require.Equal(t, []bool{true, true, false, false, true},
		[]bool{p.JudgedFrom(0), p.JudgedFrom(1), p.JudgedFrom(2), p.JudgedFrom(9), p.JudgedFrom(-1)})

	p.Stages[2].Rounds[0].Steps = []PlanStep{{Kind: KindRun, Run: "make", Env: []string{"Z", "B"}},
		{Kind: KindRun, Run: "make all", Env: []string{"B", "A"}},
		{Kind: KindRole, Role: "writer", Limits: &Limits{Tree: TreeLimits{Size: 60, Files: 6}}}}
	require.Equal(t, []string{"claude", "codex", "sh"}, p.Programs())
	require.Equal(t, []string{"A", "B", "Z"}, p.CommandEnv())
	require.Equal(t, TreeLimits{Size: 50, Files: 6}, p.TreeLimits())
	require.Zero(t, (&Plan{Roles: p.Roles, Stages: []PlanStage{{Rounds: []PlanRound{{Steps: []PlanStep{
		{Role: "judge"}, {Role: "unknown"}}}}}}}).TreeLimits(), "no pass changes the workspace")
	p.Roles[1].Verdict = nil
	require.False(t, p.JudgedFrom(0))
	require.Equal(t, []bool{true, true, false},
		[]bool{PlanOnly(KindPlanning), PlanOnly(KindResearch), PlanOnly(KindWork)})
}

func TestReceiversAreNamedWithoutSecrets(t *testing.T) {
	for want, n := range map[string]Notify{
		"mail":        {Run: []string{"mail", "-s", "x"}, Env: []string{"KEY"}, WebhookEnv: "HOOK"},
		"$HOOK":       {WebhookEnv: "HOOK", SecretEnv: "SECRET"},
		"example.org": {Webhook: "https://example.org/secret", SecretEnv: "SECRET"},
		"webhook":     {Webhook: "://"},
	} {
		require.Equal(t, want, n.Who())
	}
}

func TestLimitsAreComplete(t *testing.T) {
	require.Equal(t, Limits{Output: 32_000_000, Tree: TreeLimits{Size: 2_000_000_000, Files: 100_000},
		Wait: Waits{30 * time.Second, 15 * time.Minute}, MaxWait: 12 * time.Hour,
		UnknownReset: Waits{15 * time.Minute, time.Hour}, AfterReset: Span{10 * time.Second, time.Minute}},
		Limits{}.Complete())
	set := Limits{Timeout: 1, Idle: 2, Attempts: 3, Structural: 4, Output: 5, Tree: TreeLimits{6, 7},
		Wait:    Waits{8, 9},
		MaxWait: 10, UnknownReset: Waits{11, 12}, AfterReset: Span{13, 14}, TimeScale: 15}
	require.Equal(t, set, set.Complete())
}

func TestBudgetSentence(t *testing.T) {
	for want, b := range map[string]Budget{
		"":                         {},
		"$1":                       {USD: 1},
		"1 tokens":                 {Tokens: 1},
		"1 call":                   {Calls: 1},
		"2 calls":                  {Calls: 2},
		"1 hours":                  {Hours: 1},
		"until noon":               {Deadline: "noon"},
		"each call $1":             {PerPass: PerPass{USD: 1}},
		"each call 1 tokens":       {PerPass: PerPass{Tokens: 1}},
		"$2.5, each call 3 tokens": {USD: 2.5, PerPass: PerPass{Tokens: 3}},
	} {
		require.Equal(t, want, b.sentence())
	}
}

func TestAlternatives(t *testing.T) {
	letters := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, string(rune('a'+i))+"1")
		}
		return strings.Join(all, "|")
	}
	for pattern, want := range map[string]int{ // number of words; 0: they are not a short list
		"(" + letters(20) + ")": 20, "(" + letters(21) + ")": 0, "([a-t])": 20, "([a-u])": 0, "([a-cx-z])": 6,
		"([a-d][a-e])": 20, "([a-c][a-g])": 0, `(\w+)`: 0, "(?i)(ok)": 0, "ok": 0, "(": 0, "x(a)y(b)": 1, "(a*)": 0,
		"(ok|n.)": 0, "(o?k)": 2,
	} {
		words, ok := alternatives(pattern)
		require.Equal(t, want > 0, ok, pattern)
		if ok {
			require.Len(t, words, want, pattern)
		}
	}
	for pattern, want := range map[string]string{
		"(ok|again)": "again ok", "V: (yes|yesterday)": "yes yesterday", "(x?y)": "xy y", "((a)b)": "ab",
		"x(?:y(z))": "z",
		"(a[b-d])":  "ab ac ad", "(a|b)": "a b",
	} {
		words, _ := alternatives(pattern)
		slices.Sort(words)
		require.Equal(t, want, strings.Join(words, " "), pattern)
	}
}

func TestSuggest(t *testing.T) {
	require.Equal(t, `did you mean "role"?`, suggest("rolle", []string{"other", "role"}))
	require.Equal(t, "write one of: a, b", suggest("something", []string{"a", "b"}))
	require.Equal(t, "there is none to choose from", suggest("x", nil))
}

func TestNearestSuggestsSimilarWords(t *testing.T) {
	statuses := []string{"running", "paused", "done", "halted", "failed", "interrupted"}
	for word, want := range map[string][]string{
		"runing": {"running"}, "paues": {"paused"}, "dnoe": {"done"}, "DONE": {"done"}, "inter": {"interrupted"},
		"haltde": {"halted"}, "zzz": nil, "x": nil, "": nil,
	} {
		require.Equal(t, want, Nearest(word, statuses), word)
	}
	require.Equal(t, []string{"aa", "ab", "ac"}, Nearest("a", []string{"aa", "ab", "ac", "ad"}), "at most three")
}

func TestSlipsCountsTypingErrors(t *testing.T) {
	for _, row := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"kitten", "sitting", 3},
		{"größe", "grösse", 2}, {strings.Repeat("a", 1<<20), "a", 1<<20 - 1}} {
		require.Equal(t, row.want, slips(row.a, row.b), "%s", row.b)
		require.Equal(t, row.want, slips(row.b, row.a), "%s", row.b)
	}
}

func TestDescriptions(t *testing.T) {
	stage := Stage{Steps: []Step{{Role: "a"}, {Run: "make"}, {Role: "b"}}}
	var passes []string
	for i := range stage.Steps {
		passes = append(passes, passOf(stage, i))
	}
	require.Equal(t, []string{"Pass 1/2", "Step 2/3", "Pass 2/2"}, passes)

	group := PlanStep{Kind: KindTogether, Members: []string{"an-a", "b"},
		Description: "Round {n} — An a, B — An a, B"}
	require.Equal(t, "Round 2 — B — An a, B", group.DescriptionOf("b", 2))
	require.Equal(t, "Round 2 — An a, B — An a, B", group.DescriptionOf("", 2))
	require.Equal(t, "Round 1 — x", PlanStep{Kind: KindRole, Description: "Round {n} — x"}.DescriptionOf("b", 1))
}
