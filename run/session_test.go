package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestSessionsOfRoles: the session of a role is that of its last accepted call in the stage.
func TestSessionsOfRoles(t *testing.T) {
	end := func(phase, role, member string, outcome run.Category, session string) run.Event {
		p := run.PassEnd{Pass: run.Pass{Step: "001", Role: role, Member: member}, Outcome: outcome}
		if session != "" {
			p.Session = &run.KeptSession{ID: session, Host: "here", Call: "run-1/g0.001.1.-.1", Digest: session}
		}
		return event(t, run.KindPassEnd, phase, p)
	}
	s := running(t)
	of := func(phase, role string) string {
		if k := s.SessionOf(phase, role); k != nil {
			return k.ID
		}
		return ""
	}
	then := func(e run.Event) { s = fold(s, []run.Event{e}) }

	then(end("build", "writer", "", run.CategoryOK, "s-1"))
	then(end("build", "critic", "", run.CategoryOK, "s-2"))
	require.Equal(t, []string{"s-1", "s-2", ""},
		[]string{of("build", "writer"), of("build", "critic"), of("polish", "writer")})
	checkpoint := run.Checkpoint{State: s.Clone()}
	then(end("build", "reader", "", run.CategoryOK, ""))
	then(end("build", "writer", "", run.CategoryOutputEmpty, ""))
	require.Equal(t, "s-1", of("build", "writer"), "a call that was given up is not part of it")
	then(end("build", "writer", "", run.CategoryOK, "s-3"))
	require.Equal(t, []string{"s-3", "s-2"}, []string{of("build", "writer"), of("build", "critic")})
	require.Equal(t, "s-1", checkpoint.Reverted(s).SessionOf("build", "writer").ID, "a revert continues what it keeps")
	require.Equal(t, "s-1", checkpoint.Branched().SessionOf("build", "writer").ID, "a fork too")
	then(end("build", "writer", "", run.CategoryOK, ""))
	require.Empty(t, of("build", "writer"), "the next call cannot know that answer")
	then(end("polish", "writer", "", run.CategoryOK, "s-4"))
	require.Equal(t, []string{"s-4", ""}, []string{of("polish", "writer"), of("build", "critic")},
		"a stage ends its sessions")
}
