package activities

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/agent"
)

// TestAgentGetsTheTraceOfItsCall: the trace names the call as the events do, without the digest of the question.
func TestAgentGetsTheTraceOfItsCall(t *testing.T) {
	in := contract.PassInput{RunID: "r", Call: "r/g0.v1.2.1.-.1", Attempt: 2}
	in.Call = callID(in)
	given := map[string]string{"ITEM": "a"}
	cmd := agent.Command{ExtraEnv: given}
	(&Activities{}).trace(in, &cmd)
	require.Equal(t, given, cmd.ExtraEnv, "without traces there is no variable")
	a := &Activities{cfg: Config{Traceparent: func(run, call string, attempt int) string {
		return fmt.Sprint(run, " ", call, " ", attempt)
	}}}
	a.trace(in, &cmd)
	require.Equal(t, map[string]string{"ITEM": "a", "TRACEPARENT": "r r/g0.v1.2.1.-.1 2"}, cmd.ExtraEnv)
	require.Len(t, given, 1)
	require.Contains(t, cmd.EnvNames(), "TRACEPARENT")
}
