package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// fakeClaude plays the roles of the pipeline bugfix: the test is a file that must not exist.
const fakeClaude = `#!/bin/sh
case $1 in --version) echo 1.0.0; exit ;; esac
case $(cat) in
*"You reproduce a bug"*) echo >bug; answer='The test fails.' ;;
*"You fix a bug"*) rm bug; echo fixed >work.txt; answer='The test passes.' ;;
*"You review the fix"*) answer='FENCEjson\n{\"approved\": true}\nFENCE' ;;
esac
printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","total_cost_usd":0.01}\n' "$answer"
`

// testInit: the files of starter init run as they are, without a commit of them.
func testInit(t *testing.T, h *environment) {
	tr := h.trial(t)
	tr.write("Makefile", "test:\n\ttest ! -e bug\n")
	tr.git("add", "-A")
	tr.git("commit", "-q", "-m", "Test")
	bin := filepath.Join(tr.folder, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	program := strings.ReplaceAll(fakeClaude, "FENCE", "```")
	require.NoError(t, os.WriteFile(filepath.Join(bin, "claude"), []byte(program), 0o700))
	starter := func(args ...string) string {
		cmd := h.command(t.Context(), args...)
		cmd.Dir, cmd.Env = tr.source, append(h.env, "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	require.Contains(t, starter("init", "bugfix", "--yes"), "make test (because of Makefile)")
	h.starter("server", "start") // its program is built in a checkout; it may have stopped after idle time
	starter("run", "passbook/bugfix/pipeline.yaml", "--task", "It is broken", "--output-dir", tr.dir)
	ended := of[run.PassEnd](eventsOf(t, tr.dir), run.KindPassEnd)
	var values []string
	for _, p := range ended {
		values = append(values, p.Value)
	}
	require.Equal(t, []string{"", "failed", "", "ok", "", "ok"}, values, "the last one in a fresh folder")
	require.Equal(t, "fixed", tr.git("show", "passbook-"+metaOf(t, tr.dir).RunID[:8]+":work.txt"))
}
