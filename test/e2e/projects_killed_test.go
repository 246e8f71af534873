package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestProjectsAreKilled kills worker and server while a project works, while the run asks, and while it delivers, also
// across executions. Each project is called once, and all projects get their changes once.
func TestProjectsAreKilled(t *testing.T) {
	t.Parallel()
	h := newEnv(t, "PASSBOOK_IDLE=1h", "PASSBOOK_CONTINUE_AFTER=2")
	h.starter("server", "start")
	s := h.shop(t)
	s.steerAgents("calls", "")
	s.steerAgents("hold-library", "")
	s.begin()
	until(t, "the library is called", func() bool { return s.calls() == "library" })
	h.kill(h.worker())
	h.starter("server", "start")
	s.untell("hold-library")

	q := s.asked(run.QuestionHandoff)
	require.Equal(t, run.TriggerAcceptance, q.Trigger)
	h.kill(h.server())
	h.starter("server", "start")
	until(t, "the decision is accepted, once the worker polls again", func() bool {
		_, code := h.try("decide", s.dir, "--by", "ada", "--action", "continue")
		return code == 0
	})
	until(t, "a project has its changes", func() bool { return len(s.delivered()) > 0 })
	h.kill(h.worker())
	h.starter("server", "start")

	s.over(run.Done)
	s.once()
	require.Equal(t, []string{"library", "service"}, s.delivered())
	for _, name := range []string{"library", "service"} {
		require.Equal(t, "1", s.at(name).git("rev-list", "--count", "main..result"), "%s has one commit", name)
		clean(t, s.project(name))
	}
	clean(t, s.dir)
}
