package activities

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestACommitOfTheRunIsNoDelivery: the one that `dirty: commit` made before the run has the run's name too.
func TestACommitOfTheRunIsNoDelivery(t *testing.T) {
	for _, delivery := range []string{"{to: checkout}", "{to: branch, branch: main}"} {
		t.Run(delivery, func(t *testing.T) {
			h := onTree(t, "answer", "{to: branch, branch: result}", delivery)
			h.git("commit", "-q", "--allow-empty", "-m", "Changes before a run\n\nPassbook-Run: run-1\n")
			before := h.git("rev-parse", "HEAD")
			h.carry(edited)
			res := h.deliver("", false)
			require.True(t, res.Delivered, res.Why)
			require.Equal(t, res.Commit+" "+before, h.git("log", "-1", "--format=%H %P"))
			require.Equal(t, "a2", h.git("show", "HEAD:a.txt"))
			require.Equal(t, res, h.deliver("", false), "once more changes nothing")
		})
	}
}

// TestAnotherPatchOfTheRunIsDeliveredToo: a run that was reset delivers something else.
func TestAnotherPatchOfTheRunIsDeliveredToo(t *testing.T) {
	for _, delivery := range []string{"{to: checkout}", "{to: branch, branch: result}"} {
		t.Run(delivery, func(t *testing.T) {
			h := onTree(t, "answer", "{to: branch, branch: result}", delivery)
			h.carry(edited)
			first := h.deliver("", false)
			h.carry(map[string]string{".gitignore": "*.log\n", "a.txt": "a\n", "b.txt": "b2\n", "gone.txt": "g\n"})
			second := h.deliver("", false)
			require.True(t, second.Delivered, second.Why)
			require.Equal(t, second.Commit+" "+first.Commit, h.git("log", "-1", "--format=%H %P", second.Commit))
			require.Equal(t, "b2", h.git("show", second.Commit+":b.txt"))
		})
	}
}

// TestADeliverySaysOfWhichRunItIs, and which delivery it is, in one block of trailers.
func TestADeliverySaysOfWhichRunItIs(t *testing.T) {
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
