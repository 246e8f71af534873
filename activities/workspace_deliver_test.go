package activities

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/blobs"
)

// deliver delivers what the run's branch has come to.
func (h *trees) deliver(action string, look bool) contract.DeliverResult {
	h.t.Helper()
	res, err := do(h.t, h.acts.Deliver, h.delivery(action, look))
	require.NoError(h.t, err)
	return res
}

func (h *trees) delivery(action string, look bool) contract.DeliverInput {
	h.t.Helper()
	return contract.DeliverInput{
		Target: h.target(), Workspace: h.tree.Workspace, Commit: h.git("rev-parse", "passbook/run-1"),
		PlanUse: h.tree.PlanUse,
		Action:  action, DryRun: look,
		Message: "Do it\n\nPassbook-Run: run-1\n",
	}
}

// standing is what the owner of the source sees, but for the run's own branch.
func (h *trees) standing() string {
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
	h := onTree(t, "answer")
	h.carry(edited)
	before := h.standing()
	res := h.deliver("", true)
	require.Equal(t, []any{3, false}, []any{res.Files, res.Delivered})
	patch, err := blobs.Get(t.Context(), h.s, res.Diff.Digest)
	require.NoError(t, err)
	require.Contains(t, string(patch), "+a2\n")
	require.Equal(t, before, h.standing())
}

func TestNothingToDeliver(t *testing.T) {
	h := onTree(t, "answer")
	h.carry(map[string]string{".gitignore": "*.log\n", "a.txt": "a\n", "b.txt": "b\n", "gone.txt": "g\n"})
	for _, look := range []bool{true, false} {
		require.Equal(t, contract.DeliverResult{}, h.deliver("", look))
	}
}

func TestDeliverToBranch(t *testing.T) {
	h := onTree(t, "answer")
	h.carry(edited)
	h.put("a.txt", "mine\n")
	before := h.standing()
	res := h.deliver("", false)
	require.Equal(t, []any{true, "branch", "result", 3}, []any{res.Delivered, res.To, res.Location, res.Files})
	require.Equal(t, res.Commit+" "+h.base+" Do it", h.git("log", "-1", "--format=%H %P %s", "result"))
	require.Equal(t, "M\ta.txt\nD\tgone.txt\nA\tnew.txt",
		h.git("diff", "--name-status", "--no-renames", "main", "result"))
	require.Equal(t, res, h.deliver("", false), "once more changes nothing")
	require.Equal(t, "1", h.git("rev-list", "--count", "main..result"))
	h.git("branch", "-D", "result")
	require.Equal(t, before, h.standing())
}

func TestDeliverToAdvancedBranch(t *testing.T) {
	for name, row := range map[string]struct {
		file string
		fits bool
	}{"elsewhere": {"b.txt", true}, "the same way": {"a.txt", false}} {
		t.Run(name, func(t *testing.T) {
			h := onTree(t, "answer")
			h.carry(edited)
			h.git("checkout", "-q", "-b", "result")
			h.put(row.file, "theirs\n")
			h.git("commit", "-q", "-am", "Theirs")
			theirs := h.git("rev-parse", "HEAD")
			h.git("checkout", "-q", "main")
			res := h.deliver("", false)
			require.Equal(t, row.fits, res.Delivered)
			if row.fits {
				require.Equal(t, theirs, h.git("rev-parse", "result^"))
				return
			}
			require.Contains(t, res.Reason, "the changes no longer apply")
			require.Equal(t, []string{"a.txt"}, res.Dirty)
			require.NotNil(t, res.Diff)
			require.Equal(t, theirs, h.git("rev-parse", "result"))
		})
	}
}

func TestDeliverToCheckout(t *testing.T) {
	for name, row := range map[string]struct {
		delivery, action string
		commit           bool
	}{
		"with a commit":    {"{to: checkout}", "", true},
		"without":          {"{to: checkout, commit: false}", "", false},
		"applied":          {"{to: checkout}", "apply", false},
		"a branch applied": {"{to: branch, branch: result}", "apply", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := onTree(t, "answer", "{to: branch, branch: result}", row.delivery)
			h.carry(edited)
			h.put("b.txt", "mine\n")
			res := h.deliver(row.action, false)
			require.Equal(t, []any{true, "checkout", h.source}, []any{res.Delivered, res.To, res.Location}, res.Reason)
			raw, err := os.ReadFile(filepath.Join(h.source, "a.txt"))
			require.NoError(t, err)
			require.Equal(t, "a2\n", string(raw))
			if row.commit {
				require.Equal(t, res.Commit+" "+h.base+" Do it", h.git("log", "-1", "--format=%H %P %s"))
				require.Equal(t, " M b.txt", h.git("status", "--porcelain"), "what is the owner's stays theirs")
			} else {
				require.Empty(t, res.Commit)
				require.Equal(t, h.base, h.git("rev-parse", "HEAD"))
				require.Equal(t, " M a.txt\n M b.txt\n D gone.txt\n?? new.txt", h.git("status", "--porcelain"))
			}
			after := h.standing()
			require.Equal(t, res, h.deliver(row.action, false), "once more changes nothing")
			require.Equal(t, after, h.standing())
		})
	}
}

func TestInterruptedDeliveryIsCompleted(t *testing.T) {
	h := onTree(t, "answer", "{to: branch, branch: result}", "{to: checkout}")
	h.carry(edited)
	res := h.deliver("", false)
	h.git("reset", "-q", h.base)
	again := h.deliver("", false)
	require.True(t, again.Delivered, again.Reason)
	require.Equal(t, h.git("rev-parse", res.Commit+"^{tree}"), h.git("rev-parse", "HEAD^{tree}"))
	require.Empty(t, h.git("status", "--porcelain"))
}

func TestChangedTargetAsks(t *testing.T) {
	for name, damage := range map[string]func(h *trees){
		"changed":               func(h *trees) { h.put("a.txt", "mine\n") },
		"staged":                func(h *trees) { h.put("a.txt", "mine\n"); h.git("add", "a.txt") },
		"committed":             func(h *trees) { h.put("a.txt", "mine\n"); h.git("commit", "-q", "-am", "Mine") },
		"a new file in its way": func(h *trees) { h.put("new.txt", "mine\n") },
	} {
		t.Run(name, func(t *testing.T) {
			h := onTree(t, "answer", "{to: branch, branch: result}", "{to: checkout}")
			h.carry(edited)
			damage(h)
			before := h.standing()
			res := h.deliver("", false)
			require.False(t, res.Delivered)
			want := "a.txt"
			if name == "a new file in its way" {
				want = "new.txt"
			}
			require.Equal(t, []string{want}, res.Dirty)
			require.Contains(t, res.Reason, want)
			require.NotNil(t, res.Diff)
			require.Equal(t, before, h.standing())
		})
	}
}
