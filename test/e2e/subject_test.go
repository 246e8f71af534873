package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// operator controls the runs of the environment as a program does that uses Passbook as a library.
func (h *environment) operator(c client.Client) operations.Operator {
	h.t.Helper()
	release, err := local.Attach(h.t.Context(), h.state()) // as long as somebody is attached, the server stays
	require.NoError(h.t, err)
	h.t.Cleanup(func() { require.NoError(h.t, release()) })
	host, err := local.HostID(h.state())
	require.NoError(h.t, err)
	return operations.Operator{
		Client: c, Namespace: client.DefaultNamespace, Host: host, Build: "test", By: "ada", Embedded: true,
		Attributes: true,
		Settings: config.Settings{
			StateDir: h.state(), RunRoot: h.dir("runs"), Store: "file://" + filepath.Join(h.state(), "store"),
			TaskQueue: "passbook", Heartbeat: heartbeat,
			Environment: "test",
		},
	}
}

// subject is one small run with agents that a test steers, and all that can be asked of it.
type subject struct {
	*environment
	t     *testing.T
	o     operations.Operator
	def   operations.Definition
	dir   projector.Dir
	steer string
	id    string
}

// subject makes the definition of a run that has not begun; edits are pairs of texts in it.
func (h *environment) subject(t *testing.T, o operations.Operator, edits ...string) *subject {
	t.Helper()
	folder, err := os.MkdirTemp(h.root, "life-")
	require.NoError(t, err)
	testdata := filepath.Join(project, "test", "e2e", "testdata", "life")
	require.NoError(t, os.CopyFS(folder, os.DirFS(testdata)))
	edits = append(edits, "AGENT", filepath.Join(testdata, "agent.sh"))
	for i := 0; i < len(edits); i += 2 {
		replace(t, folder, "pipeline.yaml", edits[i], edits[i+1])
	}
	l := &subject{environment: h, t: t, o: o, dir: projector.At(filepath.Join(folder, "run")),
		steer: filepath.Join(folder, "steer")}
	require.NoError(t, os.Mkdir(l.steer, 0o700))
	l.def, err = operations.Load(os.DirFS(folder), "pipeline.yaml", "pipeline.yaml")
	require.NoError(t, err)
	l.def.Task = "Do it, steer=" + l.steer
	return l
}

// steerAgents steers the agents: hold or fail, until the same word with a leading minus.
func (l *subject) steerAgents(words ...string) *subject {
	l.t.Helper()
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "-"); ok {
			require.NoError(l.t, os.Remove(filepath.Join(l.steer, name)))
			continue
		}
		require.NoError(l.t, os.WriteFile(filepath.Join(l.steer, w), nil, 0o600))
	}
	return l
}

// start starts the run.
func (l *subject) start() *subject {
	l.t.Helper()
	st, err := l.o.Start(l.t.Context(), l.def, l.dir)
	require.NoError(l.t, err)
	l.id = st.RunID
	return l
}

// calls is how often an agent was called.
func (l *subject) calls() int {
	raw, err := os.ReadFile(filepath.Join(l.steer, "calls"))
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(l.t, err)
	return strings.Count(string(raw), "\n")
}

// called waits until an agent was called that often.
func (l *subject) called(n int) *subject {
	l.t.Helper()
	until(l.t, "the agent is called", func() bool { return l.calls() >= n })
	return l
}

// is waits until the directory shows a status.
func (l *subject) is(want run.Status) *subject {
	l.t.Helper()
	until(l.t, "the run is "+string(want), func() bool {
		m, err := l.dir.Meta()
		return err == nil && (m.Status == string(want) && (!want.Closed() || m.FinishedAt != nil))
	})
	return l
}

// closed waits until the run's workflow has ended.
func (l *subject) closed() *subject {
	l.t.Helper()
	_ = l.o.Client.GetWorkflow(l.t.Context(), l.id, "").Get(l.t.Context(), nil) // however it ended
	return l
}

// stands is where the run stands, both axes together.
func (l *subject) stands() run.Status {
	l.t.Helper()
	claim, err := l.dir.Claim()
	require.NoError(l.t, err)
	now, err := l.dir.Now()
	require.NoError(l.t, err)
	return l.o.EffectiveStatus(l.t.Context(), claim, now.State.Status).Status
}

// send tells the run something, which it must take.
func (l *subject) send(verb string, m workflows.Message) *subject {
	l.t.Helper()
	_, err := l.o.SendUpdate(l.t.Context(), l.dir, verb, m)
	require.NoError(l.t, err)
	return l
}

// ask asks for an operation as plainly as it can be.
func (l *subject) ask(op run.Operation) error {
	l.t.Helper()
	ctx := l.t.Context()
	switch op {
	case run.Pause:
		_, err := l.o.SendUpdate(ctx, l.dir, workflows.VerbPause, workflows.Message{})
		return err
	case run.Resume:
		_, err := l.o.Resume(ctx, l.dir, operations.Reopening{})
		return err
	case run.Decide:
		_, err := l.o.Decide(ctx, l.dir, l.answer())
		return err
	case run.Cancel:
		return l.o.Cancel(ctx, l.dir)
	case run.Remove:
		_, err := l.o.Remove(ctx, operations.Removal{Runs: []string{l.dir.Root}})
		return err
	case run.Revert:
		_, err := l.o.Revert(ctx, l.dir, operations.Reverting{To: "cp-1"})
		return err
	case run.Replay, run.Fork:
		_, err := l.branch(string(op))
		return err
	case run.FollowUp:
		_, err := l.followUp()
		return err
	}
	require.FailNow(l.t, "nobody can ask for it", op)
	return nil
}

// answer is a decision that the open question takes; if none is open, one of a question that nobody has asked.
func (l *subject) answer() workflows.Message {
	l.t.Helper()
	now, err := l.dir.Now()
	require.NoError(l.t, err)
	if q, open := now.State.Asks(); open {
		return workflows.Message{Action: q.Actions[0]}
	}
	return workflows.Message{Action: run.ActionContinue, ID: "first:1:7:00000000"}
}

func (l *subject) branch(mode string) (*subject, error) {
	l.t.Helper()
	from, err := l.o.Origin(l.t.Context(), l.dir.Root)
	require.NoError(l.t, err)
	b := operations.Branching{Mode: mode}
	if now, err := l.dir.Now(); err == nil && mode == run.ModeFork &&
		(now.State.Status == run.Done || now.State.Status == run.AwaitingHumanReview) {
		b.From = "cp-1"
	}
	st, err := l.o.Branch(l.t.Context(), from, b)
	next := *l
	next.dir, next.id = st.Dir, st.RunID
	return &next, err
}

func (l *subject) followUp() (*subject, error) {
	l.t.Helper()
	f, err := operations.FollowRun(l.dir, operations.FollowUp, l.def)
	if err != nil {
		return nil, err
	}
	next := *l
	next.def.Follow, next.def.Task = f, "Do more, steer="+l.steer
	next.dir = projector.At(l.dir.Root + "-next")
	return next.start(), nil
}

// lose takes a file of the definition out of the run's store.
func (l *subject) lose(name string) {
	l.t.Helper()
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(l.dir.Root), name))
	require.NoError(l.t, err)
	blobs := find(l.t, strings.TrimPrefix(l.o.Settings.Store, "file://"), sum(raw))
	require.Len(l.t, blobs, 1)
	require.NoError(l.t, os.Remove(blobs[0]))
}

// work starts a worker for a run that none has worked for.
func (l *subject) work() {
	l.t.Helper()
	if l.o.Settings.TaskQueue == "passbook" {
		return
	}
	cmd := exec.CommandContext(l.t.Context(), filepath.Join(programs, "worker"))
	cmd.Env = append(slices.Clone(l.env), "PASSBOOK_TASK_QUEUE="+l.o.Settings.TaskQueue,
		"TEMPORAL_ADDRESS="+l.running().Server.Address)
	require.NoError(l.t, cmd.Start())
	l.t.Cleanup(func() { require.NoError(l.t, end(cmd)) })
}
