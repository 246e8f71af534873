package accounts

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/pipeline"
)

func TestAccountOfAnAgent(t *testing.T) {
	key, environ := []byte("key"), []string{"PATH=/bin", "ANTHROPIC_API_KEY=one", "GITHUB_TOKEN=x"}
	with := func(ag pipeline.Agent, environ ...string) string { return Of(key, ag, environ).ID }
	stream := pipeline.Agent{Run: []string{"/opt/claude", "-p"}, Reply: "claude-stream"}
	mine := with(stream, environ...)
	require.Len(t, mine, 16)
	require.Equal(t, "claude ("+mine[:8]+")", Of(key, stream, environ).Text())
	require.Equal(t, mine, with(pipeline.Agent{Run: []string{"claude"}, Reply: "claude-json"}, environ...))
	require.Equal(t, mine, with(stream, "GITHUB_TOKEN=y", "ANTHROPIC_API_KEY=one"), "only its own credentials count")
	require.NotEqual(t, mine, with(stream, "ANTHROPIC_API_KEY=two"))
	require.NotEqual(t, mine, with(pipeline.Agent{Run: []string{"codex"}, Reply: "codex-jsonl"}, environ...))
	require.NotEqual(t, mine, Of([]byte("other"), stream, environ).ID)
	other := pipeline.Agent{Run: []string{"./agent.sh"}, Reply: "text"}
	require.NotEqual(t, with(other, "MY_KEY=a"), with(other, "MY_KEY=b"))
	require.Equal(t, "agent.sh", Of(key, other, nil).Name)
	named := stream
	named.Account = "max"
	require.Equal(t, with(named, environ...), with(named), "a named account has any credentials")
	require.Equal(t, "max", Of(key, named, nil).Name)
}
