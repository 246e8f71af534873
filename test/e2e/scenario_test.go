package e2e_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/test/realcli"
	"github.com/passbook-run/passbook/workflows/contract"
)

var allClients = flag.Bool("clients.all", false, "take the scenario also through the CLIs of Temporal, and all of it through the Web UI")

// storyFiles are a pipeline whose agents depend on nothing but the tree: two runs of it on the same tree are the same.
var storyFiles = map[string]string{
	"pipeline.yaml": `pipeline: story
workspace: {git: worktree}
delivery: {to: branch, branch: result}
agents:
  planner: {run: [echo, "The plan: add lines."], reply: text}
  implementer: {run: [sh, -c, "echo line >>work.txt; echo I added a line."], reply: text}
  reviewer: {run: [sh, -c, "wc -l <work.txt; echo VERDICT: rejected"], reply: text}
roles:
  planner: {prompt: p.md, gives: report, agent: planner}
  implementer: {prompt: p.md, gives: changes, agent: implementer}
  reviewer: {prompt: p.md, gives: report, agent: reviewer, verdict: {find: 'VERDICT: (approved|rejected)'}}
stages:
  - name: plan
    steps: [{role: planner}, {ask: 'Is this the right plan?'}]
  - name: implement
    steps: [{role: implementer, see: plan}]
  - name: review
    repeat: {max: 1, until: approved, otherwise: ask}
    steps: [{role: reviewer, see: plan}, {role: implementer, see: last}]
`,
	"p.md": "Do it.\n",
}

// storySteps are the messages of the story. Each answers a question, but the instruction.
var storySteps = []struct {
	verb string
	kind run.QuestionKind
	m    contract.Message
}{
	{contract.VerbDecide, run.QuestionHandoff, contract.Message{
		Action: run.ActionRetryFeedback, Feedback: `shorter, "please"`, Note: "first"}},
	{contract.VerbSteer, run.QuestionHandoff, contract.Message{Text: "Keep the API.", Role: "implementer"}},
	{contract.VerbDecide, run.QuestionHandoff, contract.Message{Action: run.ActionContinue}},
	{contract.VerbDecide, run.QuestionHandoff, contract.Message{
		Action: run.ActionContinueWithWaiver, Feedback: "the line is long"}},
	{contract.VerbDecide, run.QuestionDelivery, contract.Message{Action: run.ActionApprove}},
}

// storyClient sends one message in its own way.
type storyClient func(tr *trial, verb string, m contract.Message)

// storyRunner takes the run of a trial through the story.
type storyRunner func(tr *trial, definition string)

// byStarter answers with the starter.
func byStarter(tr *trial, verb string, m contract.Message) {
	args := []string{verb, tr.dir}
	if verb == contract.VerbSteer {
		tr.starter(append(args, m.Text, "--role", m.Role)...)
		return
	}
	for flag, value := range map[string]string{"action": m.Action, "by": m.By, "feedback": m.Feedback, "note": m.Note} {
		if value != "" {
			args = append(args, "--"+flag, value)
		}
	}
	tr.starter(args...)
}

// byMCP answers with the tools of the MCP server.
func byMCP(tr *trial, verb string, m contract.Message) {
	in := map[string]any{"run": tr.dir}
	for key, text := range map[string]string{"action": m.Action, "feedback": m.Feedback, "note": m.Note,
		"by": m.By, "text": m.Text, "role": m.Role} {
		if text != "" && (verb == contract.VerbDecide || key != "by") {
			in[key] = text
		}
	}
	require.Equal(tr.t, true, tr.tool("wait", map[string]any{"run": tr.dir})["needs_input"])
	tr.tool(verb, in)
}

// temporalClients answer with the CLI of Temporal.
func temporalClients() map[string]storyClient {
	return map[string]storyClient{
		"temporal, Update": func(tr *trial, verb string, m contract.Message) {
			tr.cli(tr.dir).do("workflow", "update", "execute", "--name", verb, "--input", inJSON(tr.t, m))
		},
		"temporal, signal": func(tr *trial, verb string, m contract.Message) {
			if verb == contract.VerbDecide {
				require.Contains(tr.t, tr.cli(tr.dir).do("workflow", "query", "--type", "handoff"), m.Action,
					"the query names the actions")
			}
			tr.cli(tr.dir).do("workflow", "signal", "--name", verb, "--input", inJSON(tr.t, m))
		},
	}
}

func inJSON(t *testing.T, m contract.Message) string {
	t.Helper()
	raw, err := json.Marshal(m)
	require.NoError(t, err)
	return string(raw)
}

// byForm answers in the Web UI: its page shows what is asked, and its form sends the signal. All answers have one form, so
// only the first is given there and the others by the starter, unless all clients are asked for.
func byForm() storyClient {
	var w *webUI
	return func(tr *trial, verb string, m contract.Message) {
		if w != nil && verb == contract.VerbDecide && !*allClients {
			byStarter(tr, verb, m)
			return
		}
		t := tr.t
		name, err := filepath.Rel(tr.root, tr.dir)
		require.NoError(t, err)
		if w == nil {
			opened := tr.webUI()
			w = &opened
			page := w.page(t, tr.tab(name, "user-metadata"), "Waiting for a decision")
			for _, text := range []string{"Is this the right plan?", "starter decide " + tr.dir, "--name decide --input"} {
				require.Contains(t, page, text)
			}
		}
		w.page(t, tr.tab(name, "timeline"), "More Actions")
		w.click(t, "button", "More Actions")
		w.click(t, "[data-testid=signal-button]", "Send a Signal")
		w.click(t, "dialog[open] [data-testid=signal-select-button]", "")
		w.click(t, "dialog[open] li", verb)
		text, err := json.Marshal(inJSON(t, m))
		require.NoError(t, err)
		w.do(t, `(() => { const e = `+shown(`dialog[open] .cm-content`, "")+
			`; e.focus(); return document.execCommand('insertText', false, `+string(text)+`) })()`)
		w.click(t, "dialog[open] [data-testid=confirm-modal-button]", "Submit")
	}
}

// TestScenarioByEveryClient takes a run through its whole story: the plan is sent back once, the run is steered, what
// the review rejects is accepted, and delivered over the rejection. Each client leaves the same journal.
func TestScenarioByEveryClient(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	token := strings.TrimSpace(h.starter("token", "create", "ci", "--can", "operate"))
	start, send := h.byAPI(h.console(token))
	runners := map[string]storyRunner{
		"MCP": runner("MCP", func(tr *trial, definition string) {
			tr.tool("start", map[string]any{"config": definition, "directory": tr.dir, "source": tr.source,
				"task": "Add lines."})
		}, byMCP),
		"HTTP API": runner("HTTP API", start, send),
		"pages":    runner("pages", nil, byPages(h.logIn(t, h.console("")))),
	}
	if *allClients {
		for name, client := range temporalClients() {
			runners[name] = runner(name, nil, client)
		}
	}
	h.scenario(t, runners)
}

func TestWebUIScenario(t *testing.T) {
	t.Parallel()
	sharedEnv(t).scenario(t, map[string]storyRunner{"Web UI": runner("Web UI", nil, byForm())})
}

func TestBrowserScenario(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	runners := map[string]storyRunner{}
	for name, scripts := range chromiums() {
		b := h.chromium(t, h.console(""), scripts)
		runners[name] = runner(name, nil, b.message)
	}
	h.scenario(t, runners)
}

func TestRealAgentScenario(t *testing.T) {
	t.Parallel()
	if _, err := realcli.Claude().Argv(); err != nil {
		t.Skip(err)
	}
	sharedEnv(t).scenario(t, map[string]storyRunner{"claude": byClaude})
}

// scenario compares the journals of clients with that of the starter.
func (h *environment) scenario(t *testing.T, runners map[string]storyRunner) {
	t.Helper()
	h.storyTo(h.dir("definition"))
	h.repository(h.dir("model"), "line\n") // the same commit for all
	want := string(h.journalOf(t, "starter", runner("starter", nil, byStarter)))
	for name, tell := range runners {
		t.Run(name, func(t *testing.T) {
			want := want
			if name == "pages" || strings.HasPrefix(name, "Chromium") { // a form names its question, the others do not
				want = strings.ReplaceAll(want, `,"implicit":true`, "")
			}
			got := h.within(t).journalOf(t, name, tell)
			require.Equal(t, strings.Split(want, "\n"), strings.Split(string(got), "\n"))
		})
	}
}

// runner starts a run, with the starter if the client does not, and sends the messages of the story.
func runner(client string, start storyRunner, send storyClient) storyRunner {
	return func(tr *trial, definition string) {
		if start == nil {
			tr.starter("run", "--config", definition, "--output-dir", tr.dir, "--source", tr.source, "--task", "Add lines.",
				"--detach")
		} else {
			start(tr, definition)
		}
		var answered []run.Question
		for _, step := range storySteps {
			q := tr.asked(step.kind, answered...)
			step.m.By = client
			send(tr, step.verb, step.m)
			if step.verb == contract.VerbDecide {
				answered = append(answered, q)
				continue
			}
			until(tr.t, "the run is steered", func() bool { return len(metaOf(tr.t, tr.dir).State.Instructions) == 1 })
		}
	}
}

// journalOf returns the journal of a run that tell takes through the story, without names, authentication, times, and
// what differs for each run: its id, its folder, and its commits.
func (h *environment) journalOf(t *testing.T, client string, tell storyRunner) []byte {
	t.Helper()
	folder := h.dir(strings.NewReplacer(" ", "-", ",", "").Replace(client))
	tr := &trial{environment: h, t: t, folder: folder, source: filepath.Join(folder, "source"),
		dir: filepath.Join(folder, "run")}
	require.NoError(t, os.CopyFS(tr.source, os.DirFS(h.dir("model"))))
	tr.before = tr.standing()
	tell(tr, h.dir("definition/pipeline.yaml"))
	tr.over(run.Done)
	require.Equal(t, "line\nline\nline", tr.git("show", "result:work.txt"))
	meta := metaOf(t, tr.dir)
	require.Equal(t, "the line is long", meta.Waiver.Feedback)
	require.Equal(t, "approve", meta.DeliveryOverride.Action)
	tr.untouched("result")

	journal := read(t, filepath.Join(tr.dir, rundir.EventsFile))
	for _, r := range [][2]string{{folder, "FOLDER"}, {meta.RunID, "RUN"}, {meta.RunID[:8], "RUN"}} { // of the branch
		require.Contains(t, string(journal), r[0])
		journal = bytes.ReplaceAll(journal, []byte(r[0]), []byte(r[1]))
	}
	for pattern, to := range map[string]string{
		`,"auth":"[^"]*"`: "", `"(decided_by|by)":"[^"]*"`: `"$1":""`, `"commit":"[0-9a-f]{40}"`: `"commit":""`,
		`"(ts|[a-z]+_at)":"[^"]*"`: `"$1":""`, `"duration_ms":[0-9]+`: `"duration_ms":0`,
	} {
		journal = regexp.MustCompile(pattern).ReplaceAll(journal, []byte(to))
	}
	return journal
}
