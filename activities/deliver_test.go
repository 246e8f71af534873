package activities

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/workflows/contract"
)

const (
	resultBranch = "{to: branch, branch: result}"
	theCheckout  = "{to: checkout}"
)

// toDeliver is a run whose checkout has the changes, and the delivery of its definition.
func toDeliver(t *testing.T, delivery string) *trees {
	t.Helper()
	h := onTree(t, "answer", resultBranch, delivery)
	h.carry(edited)
	return h
}

// deliver delivers what the run's branch has come to.
func (h *trees) deliver(action string, dryRun bool) contract.DeliverResult {
	h.t.Helper()
	return must(do(h.t, h.acts.Deliver, h.delivery(action, dryRun)))(h.t)
}

// delivered requires a delivery, and that a repetition changes nothing.
func (h *trees) delivered(action string) contract.DeliverResult {
	h.t.Helper()
	res := h.deliver(action, false)
	require.True(h.t, res.Delivered, res.Reason)
	after := h.seen()
	require.Equal(h.t, res, h.deliver(action, false))
	require.Equal(h.t, after, h.seen())
	return res
}

// declined requires that nothing is delivered, and that the result describes what is in the way.
func (h *trees) declined(dirty ...string) contract.DeliverResult {
	h.t.Helper()
	before := h.seen()
	res := h.deliver("", false)
	require.False(h.t, res.Delivered)
	require.NotEmpty(h.t, res.Reason)
	require.Equal(h.t, dirty, res.Dirty)
	require.NotNil(h.t, res.Diff)
	require.Equal(h.t, before, h.seen())
	return res
}

func (h *trees) delivery(action string, dryRun bool) contract.DeliverInput {
	h.t.Helper()
	return contract.DeliverInput{
		Target: h.target(), Workspace: h.tree.Workspace, Commit: h.git("rev-parse", "passbook/run-1"),
		Tree: h.now, PlanUse: h.tree.PlanUse, Action: action, DryRun: dryRun, Message: "Do it\n\nPassbook-Run: run-1\n",
	}
}

// seen is what the owner of the source sees, but for the run's own branch.
func (h *trees) seen() string {
	h.t.Helper()
	var refs []string
	for line := range strings.Lines(h.git("for-each-ref") + "\n") {
		if !strings.Contains(line, "refs/heads/passbook/") {
			refs = append(refs, line)
		}
	}
	return strings.Join(refs, "") + h.git("status", "--porcelain")
}

func TestDryRunDeliversNothing(t *testing.T) {
	h := toDeliver(t, resultBranch)
	before := h.seen()
	res := h.deliver("", true)
	require.Equal(t, 3, res.Files)
	require.False(t, res.Delivered)
	require.Contains(t, h.text(res.Diff.Digest), "+a2\n")
	require.Equal(t, before, h.seen())
}

func TestDeliveryNamesTheDefinition(t *testing.T) {
	h := toDeliver(t, theCheckout)
	h.tree.Workspace.Definition = []string{"a.txt", "pipeline.yaml"}
	require.Equal(t, []string{"a.txt"}, h.deliver("", true).Definition)
}

func TestNothingToDeliver(t *testing.T) {
	h := onTree(t, "answer")
	h.carry(map[string]string{".gitignore": "*.log\n", "a.txt": "a\n", "b.txt": "b\n", "gone.txt": "g\n"})
	for _, dryRun := range []bool{true, false} {
		require.Equal(t, contract.DeliverResult{}, h.deliver("", dryRun))
	}
}

func TestDeliverToBranch(t *testing.T) {
	h := toDeliver(t, resultBranch)
	h.put("a.txt", "mine\n")
	before := h.seen()
	res := h.delivered("")
	require.Equal(t, "branch", res.To)
	require.Equal(t, "result", res.Location)
	require.Equal(t, 3, res.Files)
	require.Equal(t, res.Commit+" "+h.base+" Do it", h.git("log", "-1", "--format=%H %P %s", "result"))
	require.Equal(t, "M\ta.txt\nD\tgone.txt\nA\tnew.txt",
		h.git("diff", "--name-status", "--no-renames", "main", "result"))
	h.git("branch", "-D", "result")
	require.Equal(t, before, h.seen())
}

func TestDeliverToCheckout(t *testing.T) {
	for name, row := range map[string]struct {
		delivery, action string
		commit           bool
	}{
		"with a commit":    {theCheckout, "", true},
		"without":          {"{to: checkout, commit: false}", "", false},
		"applied":          {theCheckout, "apply", false},
		"a branch applied": {resultBranch, "apply", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := toDeliver(t, row.delivery)
			h.put("b.txt", "mine\n")
			res := h.delivered(row.action)
			require.Equal(t, "checkout", res.To)
			require.Equal(t, h.source, res.Location)
			require.Equal(t, "a2\n", read(t, filepath.Join(h.source, "a.txt")))
			if row.commit {
				require.Equal(t, res.Commit+" "+h.base+" Do it", h.git("log", "-1", "--format=%H %P %s"))
				require.Equal(t, " M b.txt", h.git("status", "--porcelain"), "an edit of the owner stays")
				return
			}
			require.Empty(t, res.Commit)
			require.Equal(t, h.base, h.git("rev-parse", "HEAD"))
			require.Equal(t, " M a.txt\n M b.txt\n D gone.txt\n?? new.txt", h.git("status", "--porcelain"))
		})
	}
}

func TestInterruptedDeliveryIsCompleted(t *testing.T) {
	h := toDeliver(t, theCheckout)
	res := h.deliver("", false)
	h.git("reset", "-q", h.base)
	h.delivered("")
	require.Equal(t, h.git("rev-parse", res.Commit+"^{tree}"), h.git("rev-parse", "HEAD^{tree}"))
	require.Empty(t, h.git("status", "--porcelain"))
}

func TestSecondPatchIsDelivered(t *testing.T) {
	h := toDeliver(t, theCheckout)
	first := h.deliver("", false)
	h.carry(map[string]string{".gitignore": "*.log\n", "a.txt": "a\n", "b.txt": "b2\n", "gone.txt": "g\n"})
	second := h.delivered("")
	require.Equal(t, second.Commit+" "+first.Commit, h.git("log", "-1", "--format=%H %P", second.Commit))
	require.Equal(t, "b2", h.git("show", second.Commit+":b.txt"))
}

func TestDeliveryCommitNamesRun(t *testing.T) {
	h := toDeliver(t, "{to: branch, branch: result, message: Result}")
	res := h.deliver("", false)
	require.Equal(t, "Result", h.git("log", "-1", "--format=%s", res.Commit))
	require.Regexp(t, "^Passbook-Run: run-1\nPassbook-Delivery: run-1 [0-9a-f]{16}\n",
		h.git("log", "-1", "--format=%(trailers)", res.Commit)+"\n")
}

// TestBlockedTargetAsks has obstacles in the checkout, and of a branch; internal/repo has all that it refuses,
// TestErrorsOfTargetAreQuestions the errors of each kind. Without the obstacle, the delivery is made.
func TestBlockedTargetAsks(t *testing.T) {
	for name, row := range map[string]struct {
		delivery string
		damage   func(h *trees)
		dirty    []string
		repair   func(h *trees)
	}{
		"a changed file": {
			theCheckout, func(h *trees) { h.put("a.txt", "mine\n") }, []string{"a.txt"},
			func(h *trees) { h.git("checkout", "-q", "a.txt") },
		},
		"an advanced branch": {
			resultBranch, func(h *trees) {
				h.git("checkout", "-q", "-b", "result")
				h.put("a.txt", "theirs\n")
				h.git("commit", "-q", "-am", "Theirs")
				h.git("checkout", "-q", "main")
			}, []string{"a.txt"},
			func(h *trees) { h.git("branch", "-q", "-f", "result", "main") },
		},
		"a merge": {
			theCheckout, func(h *trees) {
				h.git("checkout", "-q", "-b", "theirs")
				h.put("b.txt", "theirs\n")
				h.git("commit", "-q", "-am", "Theirs")
				h.git("checkout", "-q", "main")
				h.git("merge", "-q", "--no-commit", "--no-ff", "theirs")
			}, nil,
			func(h *trees) { h.git("merge", "--abort") },
		},
		"a filter that fails": {
			theCheckout, func(h *trees) {
				write(filepath.Join(h.source, ".git", "info", "attributes"), "new.txt filter=bad\n")
				h.git("config", "filter.bad.smudge", "false")
				h.git("config", "filter.bad.required", "true")
			}, nil,
			func(h *trees) { h.git("config", "--remove-section", "filter.bad") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := toDeliver(t, row.delivery)
			row.damage(h)
			h.declined(row.dirty...)
			require.FileExists(t, filepath.Join(h.source, "gone.txt"), "the run removes it")
			row.repair(h)
			h.delivered("")
		})
	}
}

// TestErrorsOfTargetAreQuestions lists the errors that an operator can resolve. All others are retried.
func TestErrorsOfTargetAreQuestions(t *testing.T) {
	for _, row := range []struct {
		err   error
		dirty []string
		asks  bool
	}{
		{&git.ConflictError{Paths: []string{"a"}}, []string{"a"}, true},
		{&git.RefusedError{Paths: []string{"b"}}, []string{"b"}, true},
		{&git.BranchError{Path: "/other"}, nil, true},
		{&git.BranchError{}, nil, false},
		{errors.New("no connection"), nil, false},
	} {
		var d delivery
		err := d.asQuestion(fmt.Errorf("deliver: %w", row.err))
		require.Equal(t, row.asks, err == nil, "%T", row.err)
		require.Equal(t, row.asks, d.res.Reason != "")
		require.Equal(t, row.dirty, d.res.Dirty)
	}
}

func TestReasonAndDirtyFilesAreLimited(t *testing.T) {
	var d delivery
	d.decline("x"+strings.Repeat("ü", 2000), make([]string, 30))
	require.LessOrEqual(t, len(d.res.Reason), 2048)
	require.Greater(t, len(d.res.Reason), 2040)
	require.Regexp(t, "^xü+…$", d.res.Reason)
	require.Len(t, d.res.Dirty, 20)
	d.decline(strings.Repeat("x", 2048), nil)
	require.Equal(t, strings.Repeat("x", 2048), d.res.Reason)
}

func TestDeliverWithoutSourceFails(t *testing.T) {
	for name, again := range map[string]func(h *trees){
		"deleted":              func(*trees) {},
		"another folder there": func(h *trees) { require.NoError(h.t, os.Mkdir(h.source, 0o700)) },
		"and the checkout":     func(h *trees) { require.NoError(h.t, os.RemoveAll(h.workspace())) },
	} {
		t.Run(name, func(t *testing.T) {
			h := toDeliver(t, resultBranch)
			in := h.delivery("", true)
			require.NoError(t, os.RemoveAll(h.source))
			again(h)
			_, err := do(t, h.acts.Deliver, in)
			var failed *temporal.ApplicationError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, contract.ErrBadInput, failed.Type())
			require.True(t, failed.NonRetryable())
			require.ErrorContains(t, err, h.source)
		})
	}
}

// TestDeliverManyPaths has more names than fit the arguments of a program.
func TestDeliverManyPaths(t *testing.T) {
	long := strings.Repeat("d", 250)
	h := onTree(t, "answer", resultBranch, "{to: checkout, paths: ["+long+"]}")
	many := maps.Clone(edited)
	for i := range 850 {
		many[fmt.Sprintf("%s%0250d", strings.Repeat(long+"/", 10), i)] = ""
	}
	h.carry(many)
	res := h.deliver("", false)
	require.True(t, res.Delivered, res.Reason)
	require.Equal(t, 850, res.Files)
	require.Equal(t, 850, strings.Count(h.git("ls-tree", "-r", "--name-only", res.Commit), long+"/0"))
}

// TestBytesThatWereNotJudgedAreNotDelivered: an agent adds attributes with which git stores other bytes than those in
// the checkout, which were judged. The delivery asks, and names the files.
func TestBytesThatWereNotJudgedAreNotDelivered(t *testing.T) {
	for name, row := range map[string]struct{ attribute, judged string }{
		"ident":    {"ident", "$Id: judged $\n"},
		"eol":      {"text eol=crlf", "a\r\n"},
		"encoding": {"working-tree-encoding=UTF-16LE", "a\x00\n\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			h := onTree(t, "answer", resultBranch, resultBranch)
			files := map[string]string{".gitattributes": "a.txt " + row.attribute + "\n", ".gitignore": "*.log\n",
				"a.txt": row.judged, "b.txt": "b2\n", "gone.txt": "g\n"}
			h.carry(files)
			res := h.declined("a.txt")
			require.Contains(t, res.Reason, ".gitattributes")
			files[".gitattributes"] = "*.png binary\n"
			h.carry(files)
			require.Equal(t, strconv.Itoa(len(row.judged)), h.git("cat-file", "-s", h.delivered("").Commit+":a.txt"))
		})
	}
}
