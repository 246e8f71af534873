package activities

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
)

func TestRunCommitIsNotADelivery(t *testing.T) {
	for _, delivery := range []string{"{to: checkout}", "{to: branch, branch: main}"} {
		t.Run(delivery, func(t *testing.T) {
			h := onTree(t, "answer", "{to: branch, branch: result}", delivery)
			h.git("commit", "-q", "--allow-empty", "-m", "Changes before a run\n\nPassbook-Run: run-1\n")
			before := h.git("rev-parse", "HEAD")
			h.carry(edited)
			res := h.deliver("", false)
			require.True(t, res.Delivered, res.Reason)
			require.Equal(t, res.Commit+" "+before, h.git("log", "-1", "--format=%H %P"))
			require.Equal(t, "a2", h.git("show", "HEAD:a.txt"))
			require.Equal(t, res, h.deliver("", false), "once more changes nothing")
		})
	}
}

func TestSecondPatchIsDelivered(t *testing.T) {
	for _, delivery := range []string{"{to: checkout}", "{to: branch, branch: result}"} {
		t.Run(delivery, func(t *testing.T) {
			h := onTree(t, "answer", "{to: branch, branch: result}", delivery)
			h.carry(edited)
			first := h.deliver("", false)
			h.carry(map[string]string{".gitignore": "*.log\n", "a.txt": "a\n", "b.txt": "b2\n", "gone.txt": "g\n"})
			second := h.deliver("", false)
			require.True(t, second.Delivered, second.Reason)
			require.Equal(t, second.Commit+" "+first.Commit, h.git("log", "-1", "--format=%H %P", second.Commit))
			require.Equal(t, "b2", h.git("show", second.Commit+":b.txt"))
		})
	}
}

func TestDeliveryCommitNamesRun(t *testing.T) {
	for name, row := range map[string]struct{ delivery, subject string }{
		"the task":        {"{to: branch, branch: result}", "Do it"},
		"its own message": {"{to: branch, branch: result, message: Result}", "Result"},
	} {
		t.Run(name, func(t *testing.T) {
			h := onTree(t, "answer", "{to: branch, branch: result}", row.delivery)
			h.carry(edited)
			res := h.deliver("", false)
			require.Equal(t, row.subject, h.git("log", "-1", "--format=%s", res.Commit))
			trailers := strings.Split(h.git("log", "-1", "--format=%(trailers)", res.Commit), "\n")
			require.Equal(t, "Passbook-Run: run-1", trailers[0])
			require.Regexp(t, "^Passbook-Delivery: run-1 [0-9a-f]{16}$", trailers[1])
		})
	}
}

// obstacle is a state of a target that allows no delivery.
type obstacle struct {
	delivery string
	damage   func(h *trees)
	why      string
	dirty    []string
	repair   func(h *trees)
}

const (
	resultBranch = "{to: branch, branch: result}"
	theCheckout  = "{to: checkout}"
)

// merging begins a merge of a change in b.txt.
func merging(h *trees) {
	h.git("checkout", "-q", "-b", "theirs")
	h.put("b.txt", "theirs\n")
	h.git("commit", "-q", "-am", "Theirs")
	h.git("checkout", "-q", "main")
	h.git("merge", "-q", "--no-commit", "--no-ff", "theirs")
}

func abort(h *trees) { h.git("merge", "--abort") }

func TestTargetRefusesDelivery(t *testing.T) {
	for name, row := range map[string]obstacle{
		"a branch with changes in its checkout": {
			resultBranch, func(h *trees) { h.git("checkout", "-q", "-b", "result"); h.put("a.txt", "mine\n") },
			"has uncommitted changes", []string{"a.txt"}, func(h *trees) { h.git("checkout", "-q", "a.txt") },
		},
		"a branch in another checkout": {
			resultBranch, func(h *trees) { h.git("worktree", "add", "-q", "-b", "result", "../other") },
			"is checked out at", nil, func(h *trees) { h.git("worktree", "remove", "../other") },
		},
		"a branch that is merged into": {
			"{to: branch, branch: main}", merging, "a merge is in progress", nil, abort,
		},
		"a branch that git does not make": {
			resultBranch, func(h *trees) { h.git("branch", "result/1") },
			"'refs/heads/result/1' exists", nil, func(h *trees) { h.git("branch", "-D", "result/1") },
		},
		"a merge": {theCheckout, merging, "a merge is in progress", nil, abort},
		"a merge, without a commit": {
			"{to: checkout, commit: false}", merging, "a merge is in progress", nil, abort,
		},
		"a cherry-pick": {
			theCheckout, func(h *trees) { h.git("update-ref", "CHERRY_PICK_HEAD", "main") },
			"a cherry-pick is in progress", nil, func(h *trees) { h.git("cherry-pick", "--quit") },
		},
		"a detached HEAD": {
			theCheckout, func(h *trees) { h.git("checkout", "-q", "--detach") },
			"no branch is checked out", nil, func(h *trees) { h.git("checkout", "-q", "main") },
		},
		"a filter that fails": {
			theCheckout, func(h *trees) {
				require.NoError(
					h.t, os.WriteFile(filepath.Join(h.source, ".git", "info", "attributes"),
						[]byte("new.txt filter=bad\n"), 0o600),
				)
				h.git("config", "filter.bad.smudge", "false")
				h.git("config", "filter.bad.required", "true")
			},
			"smudge filter bad failed", nil, func(h *trees) { h.git("config", "--unset", "filter.bad.required") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := onTree(t, "answer", resultBranch, row.delivery)
			h.carry(edited)
			row.damage(h)
			before := h.standing()
			res := h.deliver("", false)
			require.False(t, res.Delivered)
			require.Contains(t, res.Reason, row.why)
			require.Equal(t, row.dirty, res.Dirty)
			require.NotNil(t, res.Diff)
			require.Equal(t, before, h.standing())
			raw, err := os.ReadFile(filepath.Join(h.source, "gone.txt"))
			require.NoError(t, err, "the run removes it")
			require.Equal(t, "g\n", string(raw))

			row.repair(h)
			res = h.deliver("", false)
			require.True(t, res.Delivered, res.Reason)
		})
	}
}

func TestDeliverToMovedSourceAsks(t *testing.T) {
	for _, delivery := range []string{resultBranch, theCheckout} {
		h := onTree(t, "answer", resultBranch, delivery)
		h.carry(edited)
		in := h.delivery("", false)
		moved := h.source + "-moved"
		require.NoError(t, os.Rename(h.source, moved))
		gitIn(t, moved, "worktree", "repair", h.workspace())
		res, err := do(t, h.acts.Deliver, in)
		require.NoError(t, err)
		require.False(t, res.Delivered)
		require.Contains(t, res.Reason, "the source "+h.source+" no longer exists")
		require.NotNil(t, res.Diff)
	}
}

// TestFiltersOfAFoundRepositoryDoNotRun moves the source, so that only the .git of the checkout leads to it.
func TestFiltersOfAFoundRepositoryDoNotRun(t *testing.T) {
	h := onTree(t, "answer", resultBranch, theCheckout)
	h.carry(edited)
	in, moved, mark := h.delivery("", false), h.source+"-moved", filepath.Join(t.TempDir(), "ran")
	require.NoError(t, os.Rename(h.source, moved))
	gitIn(t, moved, "worktree", "repair", h.workspace())
	gitIn(t, moved, "config", "filter.evil.clean", "touch "+mark+"; cat")
	require.NoError(t, os.WriteFile(filepath.Join(h.workspace(), ".gitattributes"), []byte("* filter=evil\n"), 0o600))
	_, err := do(t, h.acts.Deliver, in)
	require.ErrorContains(t, err, "has filters (evil.clean), which are not executed: restore the source")
	require.NoFileExists(t, mark)
}

func TestDeliverWithoutSourceFails(t *testing.T) {
	for name, again := range map[string]func(h *trees){
		"deleted":              func(*trees) {},
		"another folder there": func(h *trees) { require.NoError(h.t, os.Mkdir(h.source, 0o700)) },
		"and the checkout":     func(h *trees) { require.NoError(h.t, os.RemoveAll(h.workspace())) },
	} {
		t.Run(name, func(t *testing.T) {
			h := onTree(t, "answer")
			h.carry(edited)
			look := h.delivery("", true)
			require.NoError(t, os.RemoveAll(h.source))
			again(h)
			_, err := do(t, h.acts.Deliver, look)
			var failed *temporal.ApplicationError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, []any{contract.ErrBadInput, true}, []any{failed.Type(), failed.NonRetryable()})
			require.ErrorContains(t, err,
				"the source "+h.source+" with the commits of the run no longer exists")
		})
	}
}

func TestDirtyFilesAreLimited(t *testing.T) {
	h := onTree(t, "answer", resultBranch, theCheckout)
	many := maps.Clone(edited)
	for i := range 30 {
		name := fmt.Sprintf("file-%02d.txt", i)
		many[name] = "theirs\n"
		h.put(name, "mine\n")
	}
	h.carry(many)
	res := h.deliver("", false)
	require.False(t, res.Delivered)
	require.Len(t, res.Dirty, 20)
	require.Equal(t, "file-19.txt", res.Dirty[19])
	require.Contains(t, res.Reason, `"file-19.txt"] and 10 more`)
	require.NotContains(t, res.Reason, "file-20.txt")
}

func TestReasonIsTruncated(t *testing.T) {
	var d delivery
	d.decline("x"+strings.Repeat("ü", 2000), nil)
	require.LessOrEqual(t, len(d.res.Reason), 2048)
	require.Greater(t, len(d.res.Reason), 2040)
	require.Regexp(t, "^xü+…$", d.res.Reason)
	d.decline(strings.Repeat("x", 2048), nil)
	require.Equal(t, strings.Repeat("x", 2048), d.res.Reason)
}

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

func TestDeliverSelectedPaths(t *testing.T) {
	for paths, want := range map[string]string{
		"[new.txt, sub/]":     "new.txt sub/a.txt",
		"['*.txt', ':/', su]": "",
		"[.]":                 "a.txt gone.txt new.txt sub/a.txt subway/a.txt",
	} {
		t.Run(paths, func(t *testing.T) {
			h := onTree(t, "answer", "branch: result}", "branch: result, paths: "+paths+"}")
			files := maps.Clone(edited)
			files["sub/a.txt"], files["subway/a.txt"] = "s\n", "w\n"
			h.carry(files)
			res := h.deliver("", false)
			require.Equal(t, want != "", res.Delivered)
			require.Equal(t, len(strings.Fields(want)), res.Files)
			if res.Delivered {
				require.Equal(
					t, want, strings.ReplaceAll(h.git("diff", "--name-only", "--no-renames", "main", "result"), "\n",
						" "),
				)
			}
		})
	}
}
