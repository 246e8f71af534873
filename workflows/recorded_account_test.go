package workflows_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// accountAndShow gives the histories of an account that met one limit, and of the two runs that waited for it.
func accountAndShow(t *testing.T, starter string) []*historypb.History {
	t.Helper()
	ctx := context.Background()
	root := t.TempDir()
	state, definition, program := filepath.Join(root, "state"), filepath.Join(root, "pipeline.yaml"),
		filepath.Join(root, "claude")
	t.Cleanup(func() { _, _ = local.Stop(ctx, state, 20*time.Second) })
	const refuses = `#!/bin/sh
[ "$1" != --version ] || exit 0
cd %s
[ -e until ] || echo $(($(date +%%s) + 4)) >until
if [ "$(date +%%s)" -lt "$(cat until)" ]; then
	printf '{"type":"result","is_error":true,"result":"Claude AI usage limit reached|%%d"}\n' "$(cat until)"
	exit 1
fi
printf '{"type":"result","is_error":false,"result":"done","total_cost_usd":0.5}\n'
`
	for name, text := range map[string]string{
		program: fmt.Sprintf(refuses, root), filepath.Join(root, "prompt.md"): "Work.\n",
		definition: "pipeline: account\nagent: {run: [" + program + "], reply: claude-json, sandbox: none, account: max}\n" +
			"roles:\n  worker: {prompt: prompt.md, gives: report}\nstages:\n  - name: work\n    steps: [{role: worker}]\n",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o700))
	}
	env := []string{"PASSBOOK_STATE_DIR=" + state}
	dirs := []string{filepath.Join(root, "a"), filepath.Join(root, "b")}
	for _, dir := range dirs {
		output(t, env, starter, "run", "--config", definition, "--output-dir", dir, "--detach")
	}
	c := dialed(t, state)
	var all []*historypb.History
	for _, dir := range dirs {
		await(t, dir, func(m rundir.Meta) bool { return m.State.Status == run.Done })
		claim, err := rundir.At(dir).Claim()
		require.NoError(t, err)
		all = append(all, show(t, c, claim.RunID, ""))
	}
	files, err := filepath.Glob(filepath.Join(state, "accounts", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	id := contract.AccountPrefix + strings.TrimSuffix(filepath.Base(files[0]), ".json")
	require.NoError(t, c.GetWorkflow(ctx, id, "").Get(ctx, nil))
	return append(all, show(t, c, id, ""))
}
