package pipeline

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asking is a definition with every key about people, trees and deliveries.
const asking = `pipeline: asking
agent: {run: [claude, -p], reply: text}
workspace: {git: worktree, dirty: include, ignore: [dist/, "*.log"], secrets: keep}
questions: {remind: 8h, expires: 72h}
delivery: {to: checkout, commit: false, paths: [src], message: Do it}
roles:
  worker: {prompt: w.md, gives: changes}
  judge: {prompt: j.md, gives: report, verdict: {find: 'VERDICT: (\w+)'}}
stages:
  - name: work
    steps:
      - {role: worker, if_failing: ask}
      - {run: make test, id: tests, if_failing: ask}
      - {role: judge}
      - ask: {question: Good enough, type: human_feedback_on_reject, expires: 1h, on_expiry: continue}
      - ask: Really?
snapshots: full
notify: [{run: [bell, -l], env: [DISPLAY], on: [question, failure]}, {webhook_env: HOOK, secret_env: KEY, timeout: 5s, give_up: 1h}]
`

func TestParseReadsWhatConcernsPeople(t *testing.T) {
	d := parsed(t, []byte(asking))
	require.Equal(t, &Workspace{Git: "worktree", Dirty: "include", Ignore: []string{"dist/", "*.log"}, Secrets: "keep"},
		d.Workspace)
	require.Equal(t, "full", d.Snapshots)
	require.Equal(t, "full", Expand(d).Snapshots)
	require.Equal(t, Questions{Remind: 8 * time.Hour, Expires: 72 * time.Hour, OnExpiry: "halt"}, d.Questions)
	require.Equal(t, []Notify{
		{Run: []string{"bell", "-l"}, Env: []string{"DISPLAY"}, On: []string{"question", "failure"},
			Timeout: 30 * time.Second, GiveUp: 24 * time.Hour},
		{WebhookEnv: "HOOK", SecretEnv: "KEY", On: []string{"question", "pause", "budget", "limit", "failure", "end"},
			Timeout: 5 * time.Second, GiveUp: time.Hour},
	}, d.Notify)
	require.Equal(t, d.Notify, Expand(d).Notify)
	require.Equal(t, &Delivery{To: "checkout", Paths: []string{"src"}, Message: "Do it"}, d.Delivery)
	s := d.Stages[0].Steps
	require.Equal(t, []string{"ask", "ask"}, []string{s[0].IfFailing, s[1].IfFailing})
	require.Equal(t, Step{Ask: &Ask{
		Question: "Good enough", Type: AskOnReject,
		Questions: Questions{Remind: 8 * time.Hour, Expires: time.Hour, OnExpiry: "continue"},
	}}, s[3])
	require.Equal(t, Step{Ask: &Ask{Question: "Really?", Type: AskAlways, Questions: d.Questions}}, s[4])

	steps := Expand(d).Stages[0].Rounds[0].Steps
	require.Equal(t, &Questions{Remind: 8 * time.Hour, Expires: 72 * time.Hour, OnExpiry: "halt"}, steps[1].Questions,
		"a gate waits as the pipeline sets")
	require.Nil(t, steps[2].Questions, "what does not ask does not wait")
	require.Equal(t, "continue", steps[3].Questions.OnExpiry)
	require.Equal(t, 72*time.Hour, steps[4].Questions.Expires)
}

func TestParseRefusesQuestionsAndDeliveriesThatMakeNoSense(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"no such kind": {"agent:", "kind: plan\nagent:",
			`x.yaml:2: kind is "plan"; did you mean "planning"?`},
		"a branch without its commit": {"to: checkout", "to: branch",
			`x.yaml:5: delivery.commit goes with to: checkout; a branch always gets a commit`},
		"a path outside": {"[src]", "[../src]",
			`x.yaml:5: delivery.paths: "../src" is outside the folder of this file`},
		"no such snapshots": {"snapshots: full", "snapshots: everything",
			`x.yaml:17: snapshots is "everything"; write one of: manifests, full`},
		"two ways": {"webhook_env: HOOK", "webhook_env: HOOK, run: [bell]",
			`x.yaml:18: notify has run and webhook_env; keep one`},
		"a key for a command": {"env: [DISPLAY]", "secret_env: KEY",
			`x.yaml:18: notify.secret_env goes with webhook; leave it out`},
		"an unknown effect": {"if_failing: ask}\n      - {run: make test", "effect: extern}\n      - {run: make test",
			`x.yaml:12: stage "work" step 1.effect is "extern"; did you mean "external_action"?`},
		"the effect of a question": {"ask: Really?", "{ask: 'Really?', effect: none}",
			`x.yaml:16: stage "work" step 5: effect does not go with ask; leave it out`},
		"a gate of a question": {"ask: Really?", "{ask: 'Really?', if_failing: ask}",
			`x.yaml:16: stage "work" step 5: if_failing does not go with ask; leave it out`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, asking, c.old)
			src := strings.Replace(asking, c.old, c.new, 1)
			def, problems := Parse("x.yaml", []byte(src), folderFor([]byte(asking)))
			require.Nil(t, def)
			require.Contains(t, byLine(problems), c.want)
		})
	}
}

// A definition without these keys keeps its hash, which identifies its runs.
func TestHashCoversGatesAndDeliveries(t *testing.T) {
	of := func(old, new string) string {
		return ConfigHash(parsed(t, []byte(strings.Replace(asking, old, new, 1))))
	}
	same := of("", "")
	require.Equal(t, same, of("remind: 8h", "remind: 9h"), "the time until a reminder")
	require.NotEqual(t, same, of("to: checkout, commit: false", "to: branch"))
	require.NotEqual(t, same, of("id: tests, if_failing: ask", "id: tests"))
	require.NotEqual(t, same, of("human_feedback_on_reject", "human_bypass"))
}
