package contract

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHostQueues(t *testing.T) {
	a, b := HostQueues("passbook", "a"), HostQueues("passbook", "b")
	require.Equal(t, Queues{Dir: "passbook-dir-a", HostCalls: "passbook-calls-a"}, a)
	require.NotEqual(t, a.Dir, b.Dir)
	require.NotEqual(t, a.HostCalls, b.HostCalls)
}

func TestStoreQueues(t *testing.T) {
	a, b := StoreQueue("passbook", "s3://a"), StoreQueue("passbook", "s3://b")
	require.Regexp(t, `^passbook-[0-9a-f]{8}$`, a)
	require.NotEqual(t, a, b)
	require.Equal(t, a+"-calls", CallQueuePrefix(a))
	require.Equal(t, a+"-browser", BrowserQueue(CallQueuePrefix(a)))
}

func TestProgramQueue(t *testing.T) {
	for program, want := range map[string]string{
		"claude":                    `^q-calls-claude$`,
		"scripted":                  `^q-calls-scripted$`,
		"/opt/a/agent.sh":           `^q-calls-agent\.sh@[0-9a-f]{16}$`,
		"/opt/b/agent.sh":           `^q-calls-agent\.sh@[0-9a-f]{16}$`,
		"/opt/my agents/größe ✓.sh": `^q-calls-gr__e__\.sh@[0-9a-f]{16}$`,
		"./tools/":                  `^q-calls-@[0-9a-f]{16}$`,
		"claude@0123456789abcdef":   `^q-calls-claude_0123456789abcdef@[0-9a-f]{16}$`,
		"a\nb":                      `^q-calls-a_b@[0-9a-f]{16}$`,
	} {
		require.Regexp(t, want, ProgramQueue("q-calls", program))
	}
	require.NotEqual(t, ProgramQueue("q", "/opt/a/agent.sh"), ProgramQueue("q", "/opt/b/agent.sh"))
	require.NotEqual(t, ProgramQueue("q", "a b"), ProgramQueue("q", "a_b"))
}
