package e2e_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// within is the same environment for a subtest.
func (h *environment) within(t *testing.T) *environment {
	return &environment{t: t, root: h.root, shared: h.shared, log: h.log, faults: h.faults, env: h.env,
		met: map[int]process.Identity{}}
}

// trial is one run of plan, implement and review on a separate repository. Its agents are steered through a folder
// that the task names.
type trial struct {
	*environment
	t      *testing.T
	folder string
	source string // the repository
	steer  string
	dir    string // of the run
	before string // refs and changes of the source, before anything
}

// trial makes a repository and a definition; edits are pairs of texts in that.
func (h *environment) trial(t *testing.T, edits ...string) *trial {
	t.Helper()
	tr := h.folders(t)
	folder := tr.folder
	tr.source = filepath.Join(folder, "source")
	testdata := filepath.Join(project, "test", "e2e", "testdata", "review")
	require.NoError(t, os.CopyFS(filepath.Join(folder, "definition"), os.DirFS(testdata)))
	for i := 0; i < len(edits); i += 2 {
		replace(t, tr.folder, "definition/pipeline.yaml", edits[i], edits[i+1])
	}
	raw := strings.ReplaceAll(string(read(t, tr.config())), "AGENT", filepath.Join(testdata, "agent.sh"))
	require.NoError(t, os.WriteFile(tr.config(), []byte(raw), 0o600))
	require.NoError(t, os.Mkdir(tr.steer, 0o700))
	h.repository(tr.source, "line 1\n", "other.txt", "other\n")
	tr.git("branch", "feature")
	tr.before = tr.standing()
	return tr
}

// folders is a trial in a folder that is named like the test.
func (h *environment) folders(t *testing.T) *trial {
	t.Helper()
	root, err := filepath.EvalSymlinks(h.root)
	require.NoError(t, err)
	folder := filepath.Join(root, strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
	if _, err := os.Lstat(folder); err == nil {
		folder += "-2"
	}
	return &trial{environment: h, t: t, folder: folder, steer: filepath.Join(folder, "steer"),
		dir: filepath.Join(folder, "run")}
}

// repository makes a git repository with work.txt and other files, and a trial whose source it is.
func (h *environment) repository(dir, work string, others ...string) *trial {
	h.t.Helper()
	tr := &trial{environment: h, t: h.t, source: dir}
	require.NoError(h.t, os.MkdirAll(dir, 0o700))
	tr.write("work.txt", work)
	for i := 0; i < len(others); i += 2 {
		tr.write(others[i], others[i+1])
	}
	tr.git("init", "-q", "-b", "main")
	tr.git("add", "-A")
	tr.git("commit", "-q", "-m", "Begin")
	return tr
}

func (tr *trial) config() string { return filepath.Join(tr.folder, "definition", "pipeline.yaml") }

// git runs git in the source as the user would.
func (tr *trial) git(args ...string) string {
	tr.t.Helper()
	cmd := exec.CommandContext(tr.t.Context(), "git", args...)
	cmd.Dir = tr.source
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@localhost", "GIT_COMMITTER_NAME=Test",
		"GIT_COMMITTER_EMAIL=test@localhost",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	require.NoError(tr.t, err, "git %s:\n%s", strings.Join(args, " "), out)
	return strings.TrimRight(string(out), "\n")
}

// write makes a file in the source.
func (tr *trial) write(name, text string) {
	tr.t.Helper()
	require.NoError(tr.t, os.WriteFile(filepath.Join(tr.source, name), []byte(text), 0o600))
}

// steerAgents steers the agents with a file.
func (tr *trial) steerAgents(name, text string) {
	tr.t.Helper()
	require.NoError(tr.t, os.WriteFile(filepath.Join(tr.steer, name), []byte(text), 0o600))
}

// standing is what the source's owner sees of it: every ref but those of runs, what is checked out, and what is
// changed.
func (tr *trial) standing() string {
	tr.t.Helper()
	var refs []string
	for line := range strings.Lines(tr.git("for-each-ref") + "\n") {
		if !strings.Contains(line, "refs/heads/passbook/") {
			refs = append(refs, line)
		}
	}
	return strings.Join(refs, "") + tr.git("symbolic-ref", "HEAD") + "\n" + tr.git("status", "--porcelain")
}

// untouched wants the source as it was, but for a branch that was delivered.
func (tr *trial) untouched(delivered ...string) {
	tr.t.Helper()
	var now []string
	for line := range strings.Lines(tr.standing()) {
		if len(delivered) == 0 || !strings.HasSuffix(strings.TrimSpace(line), "\trefs/heads/"+delivered[0]) {
			now = append(now, line)
		}
	}
	require.Equal(tr.t, tr.before, strings.Join(now, ""))
}

// begin starts the run and leaves it at work.
func (tr *trial) begin(args ...string) {
	tr.t.Helper()
	output, code := tr.start(args...)
	require.Zero(tr.t, code, output)
}

func (tr *trial) start(args ...string) (output string, code int) {
	tr.t.Helper()
	return tr.try(append([]string{"run", "--config", tr.config(), "--output-dir", tr.dir, "--source", tr.source,
		"--task", tr.task(), "--detach"}, args...)...)
}

func (tr *trial) task() string { return "Add a line, steer=" + tr.steer }

// asked waits for a question of the run's that is none of those before.
func (tr *trial) asked(kind run.QuestionKind, before ...run.Question) run.Question {
	tr.t.Helper()
	var q run.Question
	until(tr.t, "the run asks", func() bool {
		meta, err := rundir.At(tr.dir).Meta()
		if err != nil {
			require.ErrorIs(tr.t, err, fs.ErrNotExist)
			return false
		}
		require.Nil(tr.t, meta.FinishedAt, "the run has ended: %s %s", meta.Status, meta.Reason)
		var open bool
		q, open = meta.State.Asks()
		return open && !slices.ContainsFunc(before, func(b run.Question) bool { return b.ID == q.ID })
	})
	require.Equal(tr.t, kind, q.Kind)
	return q
}

// decide answers, and the run must take it.
func (tr *trial) decide(args ...string) {
	tr.t.Helper()
	output, code := tr.try(append([]string{"decide", tr.dir, "--by", "ada", "--action"}, args...)...)
	require.Zero(tr.t, code, output)
}

// over waits for the run's end, and wants a valid directory.
func (tr *trial) over(want run.Status) []run.Event {
	tr.t.Helper()
	until(tr.t, "the run is over", func() bool {
		meta, err := rundir.At(tr.dir).Meta()
		if err != nil {
			require.ErrorIs(tr.t, err, fs.ErrNotExist)
			return false
		}
		return meta.FinishedAt != nil
	})
	require.Equal(tr.t, string(want), metaOf(tr.t, tr.dir).Status, metaOf(tr.t, tr.dir).Reason)
	clean(tr.t, tr.dir)
	return eventsOf(tr.t, tr.dir)
}

// calls are the roles in the order in which they were asked.
func (tr *trial) calls() string {
	tr.t.Helper()
	return strings.Join(strings.Fields(string(read(tr.t, filepath.Join(tr.steer, "calls")))), " ")
}
