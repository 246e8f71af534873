package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/run"
)

// wrapper is an agent that starts others: one in its group and one in a session of its own. The first time it never
// answers; it notes that it was called before the test can kill it.
const wrapper = `#!/bin/sh
mkdir %[1]s/called && first=yes
sleep 4000 & echo $! > %[1]s/same-group
setsid sleep 4000 & echo $! > %[1]s/own-session
echo $$ > %[1]s/leader.new && mv %[1]s/leader.new %[1]s/leader
[ -z "$first" ] || wait
echo Done.
`

// TestWrapperChildrenAreEnded kills worker and supervisor of an agent that is a script around others. Its leader dies
// with the supervisor and the others live on: they get no signal. The next worker ends them before it asks again, and
// no stranger; and none is left at the end.
func TestWrapperChildrenAreEnded(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	notes := h.dir("notes")
	require.NoError(t, os.Mkdir(notes, 0o755))
	require.NoError(t, os.WriteFile(h.dir("wrapper.sh"), fmt.Appendf(nil, wrapper, notes), 0o755))
	require.NoError(t, os.WriteFile(h.dir("prompt.md"), []byte("Work."), 0o600))
	definition := "pipeline: wrapped\nagent: {run: [" + h.dir("wrapper.sh") +
		"], reply: text}\nroles:\n  worker: {prompt: prompt.md, gives: report}\n" +
		"stages:\n  - name: work\n    steps:\n      - role: worker\n"
	require.NoError(t, os.WriteFile(h.dir("wrapped.yaml"), []byte(definition), 0o600))
	dir := h.dir("run")
	h.starter("run", "--config", h.dir("wrapped.yaml"), "--output-dir", dir, "--detach")
	who := func(name string) process.Identity {
		raw, err := os.ReadFile(filepath.Join(notes, name))
		require.NoError(t, err)
		pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
		require.NoError(t, err)
		id, err := process.Of(pid)
		require.NoError(t, err)
		t.Cleanup(func() { _ = id.Signal(syscall.SIGKILL) })
		return id
	}
	until(t, "the agent runs", func() bool { _, err := os.Stat(filepath.Join(notes, "leader")); return err == nil })
	leader, left := who("leader"), []process.Identity{who("same-group"), who("own-session")}
	stranger := exec.Command("sleep", "4000")
	require.NoError(t, stranger.Start())
	t.Cleanup(func() { _ = stranger.Process.Kill(); _ = stranger.Wait() })
	other, err := process.Of(stranger.Process.Pid)
	require.NoError(t, err)

	h.crash(h.worker())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, leader.AwaitEnd(ctx), "the leader dies with its supervisor")
	for _, id := range left {
		require.True(t, id.Alive(), "nobody has told it")
	}
	require.NoError(t, os.Remove(filepath.Join(notes, "leader")))
	h.starter("run", "--config", h.dir("wrapped.yaml"), "--output-dir", dir)
	require.True(t, statusIs(dir, run.Done))
	for _, id := range append(left, again(t, notes)...) {
		require.False(t, id.Alive())
	}
	require.True(t, other.Alive())
}

// again are those that the second call has started, if they still live.
func again(t *testing.T, notes string) (alive []process.Identity) {
	t.Helper()
	for _, name := range []string{"same-group", "own-session"} {
		pid, err := strconv.Atoi(strings.TrimSpace(string(read(t, filepath.Join(notes, name)))))
		require.NoError(t, err)
		if id, err := process.Of(pid); err == nil {
			alive = append(alive, id)
		}
	}
	return alive
}
