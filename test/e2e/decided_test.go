package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/store"
	trees "github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/modelapi"
	"github.com/passbook-run/passbook/test/realcli"
)

// testDecided follows a run through its decisions, with scripted agents and with the real claude. The scripts are the
// same: only the agent differs.
func testDecided(t *testing.T, h *environment) {
	t.Run("scripted", func(t *testing.T) {
		h.within(t).decided(t, "{run: [sh, WORK/agent.sh, WORK/prompts], reply: text, sandbox: none}",
			func(work string, n int) (string, error) {
				prompt, err := os.ReadFile(filepath.Join(work, "prompts", fmt.Sprint(n)))
				return string(prompt), err
			})
	})
	t.Run("claude", func(t *testing.T) {
		a := newRealAgent(t, realcli.Claude(), "Bash", "command", "-p", "--output-format", "stream-json", "--verbose",
			"--allowedTools", "Bash")
		a.api.Close()
		a.api = realcli.Claude().API(decidedTurns()...)
		t.Cleanup(a.api.Close)
		require.NoError(t, a.shim(realcli.Claude(), filepath.Join(filepath.Dir(a.argv[0]), "home")))
		h.within(t).decided(t, "{run: ["+yamlWords(a.argv)+"], reply: claude-stream, sandbox: none}",
			func(_ string, n int) (string, error) { return nthPrompt(a.api, n) })
	})
}

// decidedTurns are what the model answers: it plans twice, and writes a line before each review.
func decidedTurns() []modelapi.Turn {
	plan := modelapi.Turn{Text: "The plan: add lines to work.txt."}
	turns := []modelapi.Turn{plan, plan}
	for n := 2; n <= 4; n++ {
		blocker := fmt.Sprintf(`"%d lines are not enough"`, n)
		if n == 4 {
			blocker = ""
		}
		turns = append(turns,
			modelapi.Turn{Text: "I write.", Tool: "Bash", Input: map[string]string{
				"command": fmt.Sprintf("echo line %d >>work.txt", n), "description": "Write"}},
			modelapi.Turn{Text: fmt.Sprintf("I wrote line %d.", n)},
			modelapi.Turn{Text: fmt.Sprintf("I read it.\n```json\n{\"ship_ready\": %t, \"findings\": [], "+
				"\"blockers\": [%s], \"gaps\": []}\n```", n == 4, blocker)})
	}
	return turns
}

// nthPrompt is the first message of the n-th conversation with the model.
func nthPrompt(api *modelapi.API, n int) (string, error) {
	asked, _ := api.Asked()
	asked = slices.DeleteFunc(asked, func(r modelapi.Request) bool { return r.Side || len(r.Results) > 0 })
	if n > len(asked) {
		return "", os.ErrNotExist
	}
	var first struct{ Content []struct{ Text string } }
	var plain struct{ Content string }
	raw := asked[n-1].Messages[0]
	if json.Unmarshal(raw, &plain) == nil {
		return plain.Content, nil
	}
	err := json.Unmarshal(raw, &first)
	var all strings.Builder
	for _, part := range first.Content {
		all.WriteString(part.Text + "\n")
	}
	return all.String(), err
}

// decidedRun is the run of the script.
type decidedRun struct {
	h      *environment
	work   string // the script's folder
	prompt func(work string, n int) (string, error)
	seen   int // events that the script has asserted
}

func (h *environment) decided(t *testing.T, agent string, prompt func(work string, n int) (string, error)) {
	t.Helper()
	d := &decidedRun{h: h, prompt: prompt}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join(project, "test", "e2e", "testdata", "decided"), RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			d.work = e.WorkDir
			e.Vars = append(append(e.Vars, h.env...), "PATH="+programs+":"+os.Getenv("PATH"), "HOME="+h.root,
				"GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@localhost", "GIT_COMMITTER_NAME=Test",
				"GIT_COMMITTER_EMAIL=test@localhost")
			name := filepath.Join(d.work, "pipeline.yaml")
			raw, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			text := strings.ReplaceAll(strings.Replace(string(raw), "AGENT", agent, 1), "WORK", d.work)
			return os.WriteFile(name, []byte(text), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"asked": d.asked, "ended": d.ended, "journal": d.journal, "row": d.row, "prompt": d.prompted,
			"tree": d.tree,
		},
	})
}

func (d *decidedRun) dir() string { return filepath.Join(d.work, "run") }

// asked N: the run asks its Nth question.
func (d *decidedRun) asked(_ *testscript.TestScript, _ bool, args []string) {
	until(d.h.t, "question "+args[0], func() bool {
		return statusIs(d.dir(), run.AwaitingPhaseHandoff) &&
			fmt.Sprint(len(metaOf(d.h.t, d.dir()).History.Handoffs)) == args[0]
	})
}

// ended STATUS: the run ends so.
func (d *decidedRun) ended(_ *testscript.TestScript, _ bool, args []string) {
	until(d.h.t, "the run is "+args[0], func() bool {
		return statusIs(d.dir(), run.Status(args[0])) && metaOf(d.h.t, d.dir()).FinishedAt != nil
	})
}

// journal KIND...: exactly these events were added since the last journal.
func (d *decidedRun) journal(ts *testscript.TestScript, _ bool, want []string) {
	var got []string
	events := eventsOf(d.h.t, d.dir())
	for _, e := range events[d.seen:] {
		got = append(got, string(e.Kind))
	}
	if d.seen = len(events); !slices.Equal(want, got) {
		ts.Fatalf("the journal continues with\n%s\nnot with\n%s", strings.Join(got, " "), strings.Join(want, " "))
	}
}

// row KIND KEY=VALUE...: the payload of the last event of a kind has these values. tree:N is the digest of that tree,
// reply:ROLE that of the role's last reply, question:N the id of that question; an empty value is not a value.
func (d *decidedRun) row(ts *testscript.TestScript, _ bool, args []string) {
	var payload any
	for _, e := range eventsOf(d.h.t, d.dir()) {
		if string(e.Kind) == args[0] {
			ts.Check(json.Unmarshal(e.Payload, &payload))
		}
	}
	for _, pair := range args[1:] {
		key, want, _ := strings.Cut(pair, "=")
		got := payload
		for name := range strings.SplitSeq(key, ".") {
			object, _ := got.(map[string]any)
			got = object[name]
		}
		if text := valueText(got); text != d.value(ts, want) {
			ts.Fatalf("%s of %s is %q, not %q (%s)", key, args[0], text, want, d.value(ts, want))
		}
	}
}

func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, valueText(one))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	return fmt.Sprint(v)
}

func (d *decidedRun) value(ts *testscript.TestScript, want string) string {
	if n, is := strings.CutPrefix(want, "tree:"); is {
		return string(d.expected(ts, n).Digest())
	}
	if n, is := strings.CutPrefix(want, "question:"); is {
		for i, q := range of[run.QuestionRequested](eventsOf(d.h.t, d.dir()), run.KindHandoffRequested) {
			if fmt.Sprint(i+1) == n {
				return q.ID
			}
		}
	}
	if role, is := strings.CutPrefix(want, "reply:"); is {
		for _, end := range slices.Backward(of[run.PassEnd](eventsOf(d.h.t, d.dir()), run.KindPassEnd)) {
			if end.Role == role {
				return end.Reply.Digest
			}
		}
	}
	return want
}

// expected is the tree that the folder tree/N of the script describes.
func (d *decidedRun) expected(ts *testscript.TestScript, n string) trees.Tree {
	text := []byte(ts.ReadFile(filepath.Join("tree", n, "work.txt")))
	info, err := os.Stat(filepath.Join(d.dir(), layout.WorkspaceDir, "work.txt"))
	ts.Check(err)
	return trees.Tree{Entries: []trees.Entry{{Path: "work.txt", Mode: trees.ModeFile, Perm: info.Mode().Perm(),
		Size: int64(len(text)), Digest: store.Digest(layout.Digest(text))}}}
}

// tree tree:N: the state has the digest of that tree, and the checkout its file.
func (d *decidedRun) tree(ts *testscript.TestScript, _ bool, args []string) {
	if got, want := metaOf(d.h.t, d.dir()).State.Tree.Digest, d.value(ts, args[0]); got != want {
		ts.Fatalf("the tree of the run is %s, not %s", got, want)
	}
	if got := ts.ReadFile(filepath.Join("run", layout.WorkspaceDir, "work.txt")); got !=
		ts.ReadFile(filepath.Join("tree", strings.TrimPrefix(args[0], "tree:"), "work.txt")) {
		ts.Fatalf("work.txt in the checkout is %q", got)
	}
}

// prompt N TEXT...: the prompt of the Nth call contains the texts; with !, it contains none of them, or without texts
// that call was not made.
func (d *decidedRun) prompted(ts *testscript.TestScript, neg bool, args []string) {
	n := 0
	_, err := fmt.Sscan(args[0], &n)
	ts.Check(err)
	prompt, err := d.prompt(d.work, n)
	if neg && len(args) == 1 {
		if err == nil {
			ts.Fatalf("call %d was made with the prompt\n%s", n, prompt)
		}
		return
	}
	ts.Check(err)
	for _, text := range args[1:] {
		if has := strings.Contains(prompt, strings.ReplaceAll(text, `\n`, "\n")); has == neg {
			ts.Fatalf("prompt %d contains %q: %t\n%s", n, text, has, prompt)
		}
	}
}
