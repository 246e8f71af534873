package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/realcli"
)

// TestRealAgentContinuesWithInstruction interrupts the real claude with an instruction. It continues its conversation
// with it: the model is asked again for at most one answer.
func TestRealAgentContinuesWithInstruction(t *testing.T) {
	t.Parallel()
	a := newRealAgent(t, realcli.Claude(), "Bash", "command", "-p", "--output-format", "stream-json", "--verbose",
		"--allowedTools", "Bash")
	h := sharedEnv(t)
	dir := h.dir("run")
	h.starter("run", "--config", a.definition(h.root, "claude-stream", "continue"), "--output-dir", dir, "--detach")
	until(t, "the call gets further, and its conversation is stored", func() bool { return a.answered() >= 3 })
	require.Contains(t, h.starter("steer", dir, "Write less.", "--now"), "interrupting the running call")
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	end := of[run.PassEnd](eventsOf(t, dir), run.KindPassEnd)[0]
	require.NotEmpty(t, end.ResumedFrom)
	require.Len(t, end.Instructions, 1)
	require.LessOrEqual(t, a.repeated(), 1)
	require.Equal(t, 1, end.Attempts)
	asked, _ := a.api.Asked()
	require.Contains(t, string(asked[len(asked)-1].Body), "Write less.", "the model gets the instruction")
	h.noAgents()
}
